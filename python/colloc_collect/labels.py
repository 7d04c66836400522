# SPDX-License-Identifier: Apache-2.0
"""Labels drawn Transformers with the memory that colloc estimates from their exports. Needs no GPU.

    python3 -m colloc_collect.labels OUT.jsonl --colloc=PROGRAM --count=5000 --jobs=14

A measured label costs a minute of a GPU, an export a second or two of one core. For Transformers
the estimate from an export is within a few per cent of the measured memory (docs/measured/
memnet.md), which is little beside a class of 8 GiB. So thousands of labels cost hours of a CPU, and
have an error that is known: they show what a learned estimator does with more data.

The number of a draw and the seed decide what it is: the same seed gives the same labels, whatever
--jobs and --first say. A line is written when it is known. A program that was ended goes on after
the lines of OUT.jsonl when it is started again. `--given=FILE` labels the networks of a table
instead, with the columns of data/published/transformers.csv; `--plan SEED COUNT` the Transformers
of a plan of `python3 -m colloc_collect --seed=SEED --synthetic=COUNT`, with their names in
data/memory: many of (20, 3500) and (21, 4000) were measured.

A line has the draw, the estimate in MiB for each of GPUS, and the layers as layers.jsonl.xz of
data/memory has them, with repeated blocks written once (folded.py).
"""
import argparse
import contextlib
import csv
import json
import multiprocessing
import multiprocessing.connection
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import torch

from colloc_export import Task, export
from colloc_fit.options import positive

from . import synthetic
from .folded import fold
from .names import identify
from .plan import synthetic_rows
from .transformers_published import PROPERTIES, draw_published, published_spec

GPUS = ("NVIDIA H200", "NVIDIA A100-SXM4-40GB")
OPTIMIZERS, PRECISIONS = ("adam", "adam", "sgd", "momentum", "adamw"), ("fp32", "fp32", "amp")
AS_PUBLISHED = {"optimizer": "adam", "precision": "fp32"}
TINY = published_spec(
    vocabulary=32, width=16, heads=2, layers=1, hidden=32, dropout=0.1, sequence=8, classes=2
)


# --- draws


def published(rng):
    """As GPUMemNet's set was drawn: Adam in fp32."""
    spec, batch = draw_published(rng)
    return {"spec": spec, "batch": batch, **AS_PUBLISHED}


def collected(rng):
    """As the measured Transformers of data/memory were drawn."""
    spec, batch, _ = synthetic.draw_transformer(rng)
    return {
        "spec": spec,
        "batch": batch,
        "optimizer": rng.choice(OPTIMIZERS),
        "precision": rng.choice(PRECISIONS),
    }


DRAWS = {"published": published, "collected": collected}


def draw(kind, seed, number):
    """The training of a number: a dictionary with spec, batch, optimizer, precision and its id."""
    row = DRAWS[kind](random.Random(f"{kind} {seed} {number}"))
    return {"id": identify(row), "draw": kind, "number": number, **row}


# --- layers


def layer_rows(described):
    """The layers of an export in the form of layers.jsonl.xz: activations are of one sample."""
    samples = 1 if described["every_batch"] else described["batch"]
    return [
        [
            layer["type"],
            sum(layer["activations"]) // samples,
            layer["parameters"],
            layer["args"],
            layer["shape"],
            int(layer["in_place"]),
            int(layer["shared"]),
        ]
        for layer in described["layers"]
        if layer["leaf"] or layer["parameters"]
    ]


# --- labels


def describe(row):
    """The export of a drawn training."""
    spec = row["spec"]
    task = Task(
        lambda: synthetic.make_model(spec),
        lambda n: synthetic.make_batch(spec, n),
        optimizer=row["optimizer"],
        precision=row["precision"],
        sequence_length=spec["sequence"],
        name=row["id"],
    )
    return export(task, row["batch"], at_one_batch=True)


def estimate(program, path, batch, gpu):
    """What `colloc estimate` says of the export in a file, in MiB. Raises ValueError."""
    done = subprocess.run(
        [program, "estimate", f"--export={path}", f"--batch={batch}", "--estimator=graph",
         f"--gpu={gpu}", "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise ValueError(done.stderr.strip())
    answer = json.loads(done.stdout)["estimates"][0]
    if answer["mib"] is None:
        raise ValueError(answer.get("note") or "no estimate")
    return answer["mib"]


def label(program, row):
    """The row with its labels and layers, or with `error`."""
    try:
        described = describe(row)
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            json.dump(described, file)
            file.flush()
            mib = {gpu: estimate(program, file.name, row["batch"], gpu) for gpu in GPUS}
    except Exception as error:  # the network is left out, with the reason
        return {**row, "error": f"{type(error).__name__}: {error}"[:300]}
    return {
        **row,
        "torch": torch.__version__,
        "parameters": described["parameters"],
        "mib": mib,
        "layers": fold(layer_rows(described)),
    }


def without_fake_tensors():
    """Why exports would run on data here, which takes the networks' whole memory; None: they do
    not."""
    tried = describe({"id": "tiny", "spec": TINY, "batch": 2, **AS_PUBLISHED})
    return None if tried["method"] == "fake" else "; ".join(tried["warnings"])


# --- many of them


def read_done(path):
    """Ids of the lines of a file; a last line that was cut off is taken away."""
    if not os.path.exists(path):
        return set()
    done, whole = set(), 0
    with open(path, "rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            done.add(json.loads(line)["id"])
            whole += len(line)
    os.truncate(path, whole)
    return done


def read_given(path):
    """The networks of a table (data/published/transformers.csv), numbered by their rows."""
    with open(path, encoding="utf-8", newline="") as file:
        table = csv.DictReader(line for line in file if not line.startswith("#"))
        for number, row in enumerate(table):
            spec = published_spec(**{key: float(row[key]) for key in PROPERTIES})
            training = {"spec": spec, "batch": int(row["batch"]), **AS_PUBLISHED}
            yield {
                "id": identify([number, training]),
                "draw": "given",
                "number": number,
                **training,
            }


def read_plan(seed, count):
    """The Transformers that a plan of colloc_collect draws."""
    rows = synthetic_rows(random.Random(seed), count)
    for number, row in enumerate(row for row in rows if row["kind"] == "transformer"):
        training = {key: row[key] for key in ("batch", "optimizer", "precision")}
        yield {
            "id": row["id"],
            "draw": "planned",
            "number": number,
            "spec": row["model"],
            **training,
        }


def rows_to_label(options):
    if options.plan:
        return list(read_plan(*options.plan))
    if options.given:
        return list(read_given(options.given))
    numbers = range(options.first, options.first + options.count)
    return [draw(options.draw, options.seed, number) for number in numbers]


def _work(program, pipe, of_others):
    """A worker's life: rows come in, labels go out, until the parent is gone."""
    for other in of_others:
        other.close()
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(label(program, pipe.recv()))


class Workers:
    """Processes that label one row after the other. One that dies costs its row only."""

    def __init__(self, program, jobs):
        self.program, self.jobs = program, jobs
        self.idle, self.busy = [], {}  # [(process, pipe)], pipe -> (process, row)
        self.context = multiprocessing.get_context("fork")

    def _start(self):
        pipe, of_worker = self.context.Pipe()
        others = [pipe, *self.busy, *(one for _, one in self.idle)]
        arguments = self.program, of_worker, others
        process = self.context.Process(target=_work, args=arguments, daemon=True)
        process.start()
        of_worker.close()
        return process, pipe

    def give(self, row):
        process, pipe = self.idle.pop() if self.idle else self._start()
        self.busy[pipe] = process, row
        with contextlib.suppress(OSError):  # it has died: finished() says so
            pipe.send(row)

    def finished(self, timeout_s):
        """Labels that came in time; a row whose process has died gets an error."""
        for pipe in multiprocessing.connection.wait(list(self.busy), timeout_s):
            process, row = self.busy.pop(pipe)
            try:
                answer = pipe.recv()
            except (EOFError, OSError):
                self._end(process, pipe)
                answer = {**row, "error": "its process died"}
            else:
                self.idle.append((process, pipe))
            yield answer

    @staticmethod
    def _end(process, pipe):
        pipe.close()
        process.kill()
        process.join()

    def close(self):
        for process, pipe in self.idle + [(one, pipe) for pipe, (one, _) in self.busy.items()]:
            self._end(process, pipe)


def check_fake_tensors():
    """In a process that ends: one that has computed a gradient cannot be forked any more."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        reason = pool.apply(without_fake_tensors)
    if reason:
        raise SystemExit(f"labels: PyTorch {torch.__version__} {reason}")


def write_labels(options, rows):
    """Appends a line for each row as it comes, for `options.within` seconds. Returns the count."""
    ends, written, waiting = time.monotonic() + options.within, 0, list(reversed(rows))
    workers = Workers(options.colloc, options.jobs)
    try:
        with open(options.out, "a", encoding="utf-8") as file:
            while (waiting or workers.busy) and time.monotonic() < ends:
                while waiting and len(workers.busy) < workers.jobs:
                    workers.give(waiting.pop())
                for row in workers.finished(max(0.01, ends - time.monotonic())):
                    file.write(json.dumps(row, separators=(",", ":")) + "\n")
                    file.flush()
                    written += 1
    finally:
        workers.close()
    return written


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", metavar="OUT.jsonl")
    parser.add_argument("--colloc", required=True, metavar="PROGRAM")
    parser.add_argument("--draw", choices=sorted(DRAWS), default="published")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first")
    parser.add_argument("--count", type=int, default=5000, metavar="N")
    parser.add_argument("--given", metavar="FILE", help="label these and draw none")
    parser.add_argument("--plan", type=int, nargs=2, metavar=("SEED", "COUNT"))
    parser.add_argument("--jobs", type=positive(int), default=1, metavar="N")
    parser.add_argument("--on-data", action="store_true", help="of small networks, for any PyTorch")
    parser.add_argument("--within", type=float, default=1e6, metavar="SECONDS")
    options = parser.parse_args()
    if not options.on_data:
        check_fake_tensors()
    done = read_done(options.out)
    rows = [row for row in rows_to_label(options) if row["id"] not in done]
    written = write_labels(options, rows)
    print(f"{written} labels written, {len(rows) - written} left", file=sys.stderr)
    return 1 if written < len(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
