#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scripts that divide a training over two GPUs: each rank's estimate, and what it takes.

    tests/gpu/split_trial.py measure BUNDLE OUTPUT SECONDS [NAME ...]   on the machine with the GPUs
    tests/gpu/split_trial.py keep ROWS FILE.xz                          anywhere: the rows, smaller
    tests/gpu/split_trial.py page COLLOC FILE.xz PAGE                   anywhere: the tables

The script is tuning/split.py: DistributedDataParallel (ddp), ZeroRedundancyOptimizer (zero1),
fully_shard (fsdp), FullyShardedDataParallel (fsdp1). NAMEs such as gpt2-ddp choose some. Each is
followed without a GPU (rank 0, and rank 1 with zero1, where ranks differ), and runs on both GPUs,
LANES at once. Scripts that call DeepSpeed are followed alone. What is followed has the lowest
priority. GPU names the GPUs for NVML ("0,1"). Rows as kernel_trial.py's `run` and `export`, each
with its rank.
"""
import concurrent.futures
import json
import lzma
import os
import sys
import time

import kernel_trial
import tuning_trial as trial
from tuning_trial import MIB, log

MODELS, WAYS = ("gpt2", "bert", "llama", "resnet50"), ("fsdp", "ddp", "zero1", "fsdp1")
LANES, FOLLOWED_AT_ONCE, RUN_LIMIT_S, FIRST_PORT = 4, 8, 40, 29710
RANKS = 2


def trainings_of(names):
    """Name and words of each, the most important ways first."""
    every = [(f"{model}-{way}", ["split.py", "--model", model, "--way", way])
             for way in WAYS for model in MODELS]  # fmt: skip
    every += [
        (f"{model}-{way}-bf16", ["split.py", "--model", model, "--way", way, "--precision", "bf16"])
        for way in ("fsdp", "fsdp1", "ddp")
        for model in ("llama", "gpt2")
    ]
    return [one for one in every if not names or one[0] in names]


def followed_alone():
    """Name and words of scripts that are followed only: DeepSpeed is not on the machine."""
    return [(f"{by}-deepspeed-{stage}", ["train_deepspeed.py", "--by", by, "--stage", str(stage)])
            for by in ("trainer", "accelerate") for stage in (2, 3)]  # fmt: skip


def variables(rank, port):
    """What torchrun sets."""
    return {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS),
            "LOCAL_WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port)}  # fmt: skip


class Trial:
    def __init__(self, bundle, output, seconds, names):
        self.bundle, output = os.path.abspath(bundle), os.path.abspath(output)
        self.deadline, self.work = time.monotonic() + float(seconds), os.path.join(output, "work")
        self.trainings = trainings_of(names)
        os.makedirs(self.work, exist_ok=True)
        self.rows = trial.Rows(os.path.join(output, "rows.jsonl"))
        self.indexes = os.environ.get("GPU", "0,1").split(",")
        self.gpus = [trial.Gpu(int(index), 0.002) for index in self.indexes]
        self.server = None

    def left(self):
        return self.deadline - kernel_trial.LAST_END_S - time.monotonic()

    def follow(self, name, words, rank):
        if self.left() > 8:
            place = os.path.join(self.work, f"{name}.{rank}")
            trial.follow(self.bundle, name, words, self.rows, place, rank=rank,
                         variables=variables(rank, FIRST_PORT))  # fmt: skip

    def run_rank(self, name, words, rank, port):
        program = os.path.join(trial.HERE, "kernel_trial.py")
        status, text = self.server.run_program(
            [program, "run", *trial.script_command(words)], max(1, min(RUN_LIMIT_S, self.left())),
            GPU=self.indexes[rank], **variables(rank, port),
        )  # fmt: skip
        _, _, last = text.rpartition("REPORT ")
        known = json.loads(last) if "REPORT " in text else {"text": text[-1500:]}
        nvml = [round(gpu.most.get(known.get("pid"), 0) / MIB, 1) for gpu in self.gpus]
        self.rows.write("run", name=name, rank=rank, status=status, nvml_mib=max(nvml),
                        nvml=nvml, **known)  # fmt: skip
        log("run", name, rank, status, nvml, known.get("end"), known.get("text", "")[-400:])

    def run(self, name, words, port):
        if self.left() < 9:
            log("run", name, "not run: no time")
            return
        with concurrent.futures.ThreadPoolExecutor(RANKS) as ranks:
            jobs = [ranks.submit(self.run_rank, name, words, rank, port) for rank in range(RANKS)]
        for job in jobs:
            if job.exception():
                log("run", name, "FAILED", repr(job.exception()))

    def measure(self):
        self.rows.write("facts", **self.gpus[0].facts(), **trial.versions())
        followers = concurrent.futures.ThreadPoolExecutor(FOLLOWED_AT_ONCE)
        wanted = [(*one, rank) for one in self.trainings
                  for rank in range(RANKS if "zero1" in one[0] else 1)]  # fmt: skip
        wanted += [(*one, 0) for one in followed_alone()]
        followed = [followers.submit(self.follow, *one) for one in wanted]
        libraries = "torch torch.distributed.fsdp torch.distributed.optim torchvision " \
            "transformers transformers.models.llama.modeling_llama " \
            "transformers.models.gpt2.modeling_gpt2 " \
            "transformers.models.bert.modeling_bert"  # fmt: skip
        self.server = trial.ForkServer(self.bundle, libraries)
        log("fork server ready")
        with concurrent.futures.ThreadPoolExecutor(LANES) as lanes:
            jobs = [lanes.submit(self.run, *one, FIRST_PORT + i)
                    for i, one in enumerate(self.trainings)]  # fmt: skip
        log("runs ended with", round(self.left(), 1), "s left")
        concurrent.futures.wait([*jobs, *followed], max(0.1, self.left()))
        self.server.close()
        for gpu in self.gpus:
            gpu.close()
        os._exit(0)


def measure(bundle, output, seconds, *names):
    Trial(bundle, output, seconds, names).measure()


# ---- the page ----


def table(colloc, path):
    """A row for each rank."""
    with lzma.open(path, "rt") as file:
        rows = [json.loads(line) for line in file]
    exports = {(row["name"], row["rank"]): row for row in rows if row["what"] == "export"}
    lines, errors = [], []
    for name, _ in trainings_of([]):
        for run in (row for row in rows if row["what"] == "run" and row["name"] == name):
            if run["status"] != 0:
                continue
            rank, took = run["rank"], run["nvml_mib"]
            export = exports.get((name, rank)) or exports.get((name, 0), {})
            said = None
            if "value" in export:
                said = trial.estimate_text(colloc, export["value"], "--export")
            errors += [(said, took)] if said is not None else []
            shown = f"{said:,.0f}" if said is not None else ""
            lines.append(f"| {name} | {rank} | {took:,.0f} | {run['end'][0]:,.0f} | {shown} "
                         f"| {trial.error_text(said, took)} |")  # fmt: skip
    head = ["| training | rank | NVML, MiB | of it PyTorch's allocator | estimate | error |",
            "| --- | --- | ---: | ---: | ---: | ---: |"]  # fmt: skip
    return [*trial.HEAD, trial.summary_line("script, each rank", errors)], head + lines


def page(colloc, path, target):
    summary, ranks = table(colloc, path)
    with open(target, encoding="utf-8") as file:
        text = file.read()
    text = trial.fill(trial.fill(text, "scripts", summary), "each rank", ranks)
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)


ACTIONS = {"measure": measure, "keep": trial.keep, "page": page}


def main():
    what, *words = sys.argv[1:] or [""]
    if what not in ACTIONS:
        sys.exit(__doc__)
    ACTIONS[what](*words)


if __name__ == "__main__":
    main()
