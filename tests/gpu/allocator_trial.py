#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's allocators take and cost: its own, with expandable segments, and CUDA's
(`cudaMallocAsync`), each with the GPU free and with little memory left, as on a MIG instance.

    tests/gpu/allocator_trial.py PROGRAMS OUTPUT [TRAINING,...]

PROGRAMS: of scripts/bundle, with workloads/. OUTPUT: a JSON line for each run. The memory that is
left in the second case is what PyTorch's own took in the first, and an eighth more. Needs an idle
GPU and python3 with PyTorch, torchvision and timm.
"""
import json
import os
import subprocess
import sys

ALLOCATORS = {
    "native": "",
    "expandable": "expandable_segments:True",
    "async": "backend:cudaMallocAsync",
}
TRAININGS = {
    "resnet26": ["resnet26", "--batch=32", "--steps=200"],
    "large": ["large", "--steps=40"],
    "heavy": ["heavy", "--steps=25"],
    "decoder": ["decoder", "--steps=40"],
}
FILL = """
import sys, torch
free, _ = torch.cuda.mem_get_info()
rest = torch.empty(max(0, free - int(sys.argv[1]) * 2**20), dtype=torch.uint8, device="cuda")
print("full", flush=True)
sys.stdin.read()
"""


def filled(left_mib):
    """A process that leaves so much of the GPU's memory."""
    process = subprocess.Popen(
        [sys.executable, "-c", FILL, str(left_mib)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    return process


def run(programs, training, allocator):
    command = [os.path.join(programs, "colloc"), "record", "--json", "--interval=50ms"]
    command += ["-s", "/dev/stderr", "--", sys.executable]
    command += [os.path.join(programs, "workloads", "train.py"), *TRAININGS[training]]
    environment = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": ALLOCATORS[allocator]}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    epochs = [event for event in events if event["event"] == "epoch"]
    ends = [event for event in events if event["event"] == "end"]
    start = done.stderr.rfind("\n{") + 1
    try:
        summary = json.loads(done.stderr[start:])
    except ValueError:
        summary = {"stderr": done.stderr[-400:]}
    return {
        "exit": done.returncode,
        "samples_per_s": epochs[-1]["samples"] / epochs[-1]["seconds"] if epochs else None,
        "reserved_mib": ends[-1]["reserved_mib"] if ends else None,
        "record": summary,
    }


def peak_mib(result):
    """Of the process on the GPU, with its context; of the whole GPU where the driver lists none."""
    gpu = (result["record"].get("gpus") or [{}])[0]
    return gpu.get("command_mem_peak_mib") or gpu.get("mem_peak_mib") or 1e9


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    programs, output = sys.argv[1:3]
    names = sys.argv[3].split(",") if len(sys.argv) > 3 else list(TRAININGS)
    with open(output, "w", encoding="utf-8") as log:
        for training in names:
            left = None
            for memory in ("free", "little"):
                for allocator in ALLOCATORS:
                    rest = filled(left) if memory == "little" else None
                    result = run(programs, training, allocator)
                    if rest:
                        rest.communicate()
                    line = {"training": training, "allocator": allocator, "memory": memory}
                    line.update(result)
                    line["left_mib"] = left if rest else None
                    print(json.dumps(line), file=log, flush=True)
                    print(training, allocator, memory, result["samples_per_s"], peak_mib(result))
                    if left is None:
                        left = int(peak_mib(result) * 1.125)
    return 0


if __name__ == "__main__":
    sys.exit(main())
