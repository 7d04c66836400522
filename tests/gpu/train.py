# SPDX-License-Identifier: Apache-2.0
"""Work for a GPU trial: trainings, plain allocation, failures. Prints JSON lines.

    train.py resnet18|resnet50 --batch N --seconds S
        trains on synthetic data for S seconds
    train.py allocate --gib N --seconds S
        allocates N GiB in steps of 1 GiB, holds them for S seconds
    train.py illegal
        reads beyond its memory: a failed assertion of PyTorch's
    train.py wild --seconds S
        after S seconds of work writes to an unmapped address (needs CuPy)
"""
import argparse
import json
import os
import time

import torch


def say(**what):
    print(json.dumps(what), flush=True)


def used_by_me():
    torch.cuda.synchronize()
    return {
        "reserved_mib": torch.cuda.max_memory_reserved() / 2**20,
        "allocated_mib": torch.cuda.max_memory_allocated() / 2**20,
    }


def train(name, batch, seconds):
    import torchvision

    side = 32 if name == "resnet18" else 224
    model = getattr(torchvision.models, name)(num_classes=1000).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    images = torch.randn(batch, 3, side, side, device="cuda")
    labels = torch.randint(0, 1000, (batch,), device="cuda")
    criterion = torch.nn.CrossEntropyLoss()
    started, steps = None, 0
    while started is None or time.monotonic() - started < seconds:
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
        torch.cuda.synchronize()
        if started is None:
            started = time.monotonic()
            say(event="first-step", at=time.time())
        else:
            steps += 1
    took = time.monotonic() - started
    say(
        event="trained",
        model=name,
        batch=batch,
        steps=steps,
        step_ms=1000 * took / steps,
        images_per_s=batch * steps / took,
        **used_by_me(),
    )


def allocate(gib, seconds):
    blocks = []
    for _ in range(gib):
        blocks.append(torch.zeros(2**28, dtype=torch.float32, device="cuda"))
        time.sleep(0.05)
    say(event="allocated", **used_by_me())
    time.sleep(seconds)
    say(event="done")


def illegal():
    source = torch.zeros(16, device="cuda")
    index = torch.full((16,), 2**40, dtype=torch.int64, device="cuda")
    source.gather(0, index)
    torch.cuda.synchronize()


def wild(seconds):
    import cupy

    kernel = cupy.RawKernel(
        'extern "C" __global__ void wild(unsigned long long at) { *(volatile int*)at = 1; }', "wild"
    )
    matrix = torch.randn(2048, 2048, device="cuda")
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        matrix = (matrix @ matrix).tanh()
        torch.cuda.synchronize()
    say(event="fault", at=time.time())
    kernel((1,), (1,), (cupy.uint64(0x7000000000000),))
    torch.cuda.synchronize()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--gib", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    say(
        event="first-line",
        at=time.time(),
        visible=os.environ.get("CUDA_VISIBLE_DEVICES"),
        pipe=os.environ.get("CUDA_MPS_PIPE_DIRECTORY"),
    )
    if options.what == "allocate":
        allocate(options.gib, options.seconds)
    elif options.what == "illegal":
        illegal()
    elif options.what == "wild":
        wild(options.seconds)
    else:
        train(options.what, options.batch, options.seconds)


if __name__ == "__main__":
    main()
