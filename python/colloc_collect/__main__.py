# SPDX-License-Identifier: Apache-2.0
"""Collects memory and activity of training tasks on the GPUs of this machine.

    python3 -m colloc_collect --out DIR --seconds 480        all GPUs
    python3 -m colloc_collect --out DIR --device cpu ...     dry run

Rows that are in DIR/runs.jsonl, or done in --onto (data that were cleaned and shipped before), are
not run again. With CUDA_MPS_PIPE_DIRECTORY in the environment the runs share a GPU by MPS: that is
faster, but MPS clients have smaller contexts, which are not recorded. Three files are written:

    runs.jsonl        a row for each run
    layers.jsonl.xz   the layers of each model
    exports.jsonl.xz  descriptions by colloc_export of real models and of a sample of the synthetic
                      ones; one xz stream per line
"""
import argparse
import json
import lzma
import os
import signal
import sys
import time
import warnings

from colloc_fit.options import positive

from .forks import fork


def options_of(arguments):
    parser = argparse.ArgumentParser(
        prog="colloc_collect", description="memory and activity of training tasks, measured"
    )
    parser.add_argument("--out", required=True, help="folder for the results")
    parser.add_argument("--onto", help="folder of cleaned data that the new ones will be added to")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--seconds", type=float, default=480, help="stop after this long")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument(
        "--synthetic", type=int, default=4000, help="configurations of each drawn kind together"
    )
    parser.add_argument(
        "--per-architecture", type=int, default=7, help="configurations per real architecture"
    )
    parser.add_argument(
        "--alone", type=int, default=320, help="how many have a GPU to themselves, for activity"
    )
    parser.add_argument(
        "--alone-seconds",
        type=float,
        default=190,
        help="time at the end that is reserved for these runs, in seconds",
    )
    parser.add_argument(
        "--at-once", type=positive(int), default=12, help="runs at a time on one GPU"
    )
    parser.add_argument(
        "--runs-per-process",
        type=int,
        default=1,
        help="more is faster; the allocator is emptied in between",
    )
    parser.add_argument(
        "--limit-gib", type=float, default=64, help="a run beside others may take this much"
    )
    parser.add_argument("--exporters", type=int, default=24, help="processes that export")
    parser.add_argument(
        "--export-share", type=float, default=0.1, help="of the synthetic configurations"
    )
    parser.add_argument(
        "--only", help="a kind (mlp, cnn, transformer, real) or a part of a real model's name"
    )
    parser.add_argument("--count", type=int, help="the first so many rows of the plan")
    options = parser.parse_args(arguments)
    options.deadline = time.monotonic() + options.seconds
    options.limit_bytes = int(options.limit_gib * 2**30)
    return options


class Writer:
    """Appends whole lines, and whole xz streams, so that several processes may share the files."""

    def __init__(self, folder):
        self.folder = folder
        self._seen = set()

    def _append(self, name, data):
        fd = os.open(os.path.join(self.folder, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(fd, data)
        os.close(fd)

    @staticmethod
    def _line(value):
        return (json.dumps(value, separators=(",", ":")) + "\n").encode()

    def run(self, row):
        self._append("runs.jsonl", self._line(row))

    def layers(self, key, layers):
        if key not in self._seen:
            self._seen.add(key)
            self._append(
                "layers.jsonl.xz", lzma.compress(self._line({"model": key, **layers}), preset=6)
            )

    def export(self, row):
        self._append("exports.jsonl.xz", lzma.compress(self._line(row), preset=6))

    def say(self, text):
        self._append("log.txt", f"{time.strftime('%H:%M:%S')} {text}\n".encode())


def import_everything(writer):
    """Imports all modules before any fork, so that a run starts within a second.

    The GPUs stay hidden: CUDA, once initialised, does not survive a fork.
    """
    os.environ.update(CUDA_VISIBLE_DEVICES="", PYTORCH_NVML_BASED_CUDA_CHECK="1")
    from . import worker

    worker.skip_random_initialisation()
    for name in ("torchvision", "timm", "transformers"):
        started = time.monotonic()
        try:
            __import__(name)
            if name == "torchvision":
                __import__("torchvision.models.detection")
                __import__("torchvision.models.video")
            if name == "transformers":
                _touch_transformers()
        except ImportError as error:
            writer.say(f"{name} is not here: {error}")
        writer.say(f"imported {name} in {time.monotonic() - started:.1f} s")


def _touch_transformers():
    """Its models are imported on first use."""
    import transformers

    from .real import ARCHITECTURES

    for row in ARCHITECTURES:
        if row.source == "transformers":
            try:
                getattr(transformers, row.config)
            except Exception as error:
                print(f"{row.config}: {error}", file=sys.stderr)


def _rows(options, writer):
    from .plan import make_plan
    from .shipped import read_runs

    rows = make_plan(options.seed, options.synthetic, options.per_architecture, options.alone)
    if options.only:
        rows = [
            row
            for row in rows
            if options.only == row["kind"]
            or (row["kind"] == "real" and options.only in row["model"])
        ]
    done = set()
    path = os.path.join(options.out, "runs.jsonl")
    if os.path.exists(path):
        with open(path) as file:
            done = {json.loads(line)["id"] for line in file}
    earlier = read_runs(options.onto) if options.onto else []
    done |= {row["id"] for row in earlier if row["status"] == "ok"}
    measured = {}
    for row in earlier:
        if row["status"] == "ok":
            measured.setdefault(row["model"], []).append(
                (row["batch"], row["reserved_mib"] * (1 << 20))
            )
    rows = [row for row in rows if row["id"] not in done][: options.count]
    writer.say(f"{len(rows)} to run, {len(done)} done")
    return rows, measured


def _supervise(index, rows, measured, writer, options):
    from . import device
    from .supervisor import Supervisor

    os.environ["CUDA_VISIBLE_DEVICES"] = str(index) if options.device == "cuda" else ""
    gpu = device.Nvml(index) if options.device == "cuda" else device.NoDevice()
    writer.say(f"supervisor {index}: {gpu.name}, driver {gpu.driver}, {len(rows)} rows")
    Supervisor(index, gpu, rows, measured, writer, options).work()
    writer.say(f"supervisor {index} ends")


class _TooLong(Exception):
    pass


def _on_alarm(*_):
    raise _TooLong("too long")


def _export_all(rows, writer, options):
    import torch

    from colloc_export import export

    from .names import model_key
    from .plan import task_of

    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.nice(10)
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, _on_alarm)
    for row in rows:
        if time.monotonic() > options.deadline - 10:
            return
        started, answer = time.monotonic(), None
        signal.alarm(90)
        try:
            answer = export(task_of(row), row["batch"])
            error = None
        except BaseException as problem:
            error = f"{type(problem).__name__}: {problem}"[:300]
        signal.alarm(0)
        writer.export(
            {
                "model_key": model_key(row),
                "optimizer": row["optimizer"],
                "precision": row["precision"],
                "error": error,
                "seconds": round(time.monotonic() - started, 2),
                "export": answer,
            }
        )


def _to_export(rows, options):
    """Rows to export.

    Each combination of real model, optimizer and precision once, at the middle of its batch sizes;
    a sample of the synthetic ones.
    """
    from .names import model_key

    real = {}
    for row in sorted((row for row in rows if row["kind"] == "real"), key=lambda row: row["batch"]):
        real.setdefault((model_key(row), row["optimizer"], row["precision"]), []).append(row)
    synthetic = [row for row in rows if row["kind"] != "real"]
    return [
        *(group[len(group) // 2] for group in real.values()),
        *synthetic[: int(options.export_share * len(synthetic))],
    ]


def _wait_until(pids, deadline):
    """Ends those that are still running then."""
    waiting = set(pids)
    while waiting:
        for pid in list(waiting):
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
            if os.waitpid(pid, os.WNOHANG)[0]:
                waiting.discard(pid)
        time.sleep(0.1)


def main():
    options = options_of(sys.argv[1:])
    warnings.simplefilter("ignore")
    os.makedirs(options.out, exist_ok=True)
    writer = Writer(options.out)
    import_everything(writer)
    rows, measured = _rows(options, writer)
    gpus = 1
    if options.device == "cuda":
        import pynvml

        pynvml.nvmlInit()
        gpus = pynvml.nvmlDeviceGetCount()
        pynvml.nvmlShutdown()
    import torch

    writer.say(
        json.dumps(
            {
                "torch": torch.__version__,
                "cuda": torch.version.cuda,
                "cudnn": torch.backends.cudnn.version(),
                "gpus": gpus,
                "cores": os.cpu_count(),
                "python": sys.version.split()[0],
            }
        )
    )
    exports = _to_export(rows, options)
    workers = [
        fork(lambda i=i: _export_all(exports[i :: options.exporters], writer, options))
        for i in range(options.exporters)
    ]
    supervisors = [
        fork(lambda i=i: _supervise(i, rows[i::gpus], measured, writer, options))
        for i in range(gpus)
    ]
    for pid in supervisors:
        os.waitpid(pid, 0)
    _wait_until(workers, options.deadline)
    writer.say("done")


main()
