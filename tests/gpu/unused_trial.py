#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that holds 8 GiB of a GPU as a notebook does: it computes, does nothing for PAUSE
seconds, then calls CUDA once, and so on, each time in another way (docs/measured/unused.md).

    tests/gpu/unused_trial.py PAUSE [WAY,...]

A line for each says how long the call took, and until the GPU had done all. `same` at the end: what
is in its memory did not change. Needs PyTorch and a task of a daemon with suspend-unused-after.
"""
import sys
import time

import torch


def on_another_stream(data, stream):
    with torch.cuda.stream(stream):
        return data.exp()


def ways():
    data = torch.randn(1024, 1024, device="cuda")
    ballast = torch.ones(2 << 30, device="cuda")
    host = torch.randn(1024, 1024)
    pinned = host.pin_memory()
    net = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU()).cuda()
    event, stream = torch.cuda.Event(), torch.cuda.Stream()
    net(data @ data).sum().item()
    return ballast, {
        "product": lambda: data @ data,
        "new-kernel": lambda: torch.special.gammaln(data.abs() + 1),
        "to-host": data.cpu,
        "to-gpu": host.cuda,
        "to-gpu-pinned": lambda: pinned.to("cuda", non_blocking=True),
        "memory-info": torch.cuda.mem_get_info,
        "event": event.record,
        "synchronize": torch.cuda.synchronize,
        "allocate": lambda: torch.empty(1 << 28, device="cuda"),
        "stream": lambda: on_another_stream(data, stream),
        "fill": lambda: data.clone().zero_(),
        "query": lambda: torch.cuda.current_stream().query(),
        "name": lambda: torch.cuda.get_device_name(0),
        "network": lambda: net(data),
        "pin": lambda: torch.empty(1 << 20).pin_memory(),
    }


def sum_of(data):
    """Exact, in pieces: a sum of all as double would hold twice as much for ever."""
    return sum(piece.sum(dtype=torch.float64).item() for piece in data.split(1 << 24))


def main():
    pause = float(sys.argv[1])
    ballast, calls = ways()
    wanted = sys.argv[2].split(",") if len(sys.argv) > 2 else list(calls)
    before = sum_of(ballast)
    print("ready", flush=True)
    for name in wanted:
        time.sleep(pause)
        begin = time.monotonic()
        calls[name]()
        called = time.monotonic() - begin
        torch.cuda.synchronize()
        print(f"{name}: {called:.2f} s, all {time.monotonic() - begin:.2f} s", flush=True)
    print("same" if sum_of(ballast) == before else "changed", flush=True)


if __name__ == "__main__":
    main()
