# SPDX-License-Identifier: Apache-2.0
"""A training process for other programs: commands on stdin, replies on stdout, one JSON line each.

{"do": "load", "model": NAME}   -> {"ready": true}         builds the model, makes the first steps
{"do": "run", "seconds": S}     -> {"steps": ..., ...}     trains, synchronises after each step
{"do": "epoch", "steps": N}     -> {"epoch_s": ..., ...}   trains, synchronises at the end only;
                                                           "ended_at" is Unix time
     with "profiled": true                                 under torch.profiler; "profiler_s": what
                                                           its start and end take besides
{"do": "drop"}                  -> {"dropped": true}
{"do": "loader", "processes": N, "seconds": S}
                                -> {"steps_per_s": ...}    pictures that N processes decode a
                                                           second, 0: one for each processor;
                                                           or {"error": ...}
"""
import contextlib
import gc
import json
import resource
import statistics
import sys
import time

import torch
from models import make_step

WARM_UP_STEPS = 8


def load(model):
    torch.cuda.reset_peak_memory_stats()
    step = make_step(model)
    for _ in range(WARM_UP_STEPS):
        step()
    torch.cuda.synchronize()
    return step


def run(step, seconds):
    times_ms, began = [], time.monotonic()
    while (now := time.monotonic()) - began < seconds:
        step()
        torch.cuda.synchronize()
        times_ms.append(1000 * (time.monotonic() - now))
    took = time.monotonic() - began
    quantiles = statistics.quantiles(times_ms, n=20) if len(times_ms) > 1 else [times_ms[0]] * 19
    return {
        "steps": len(times_ms),
        "steps_per_s": len(times_ms) / took,
        "step_ms": statistics.median(times_ms),
        "step_p95_ms": quantiles[18],
        "reserved_mib": torch.cuda.max_memory_reserved() / 2**20,
    }


def profiler(wanted):
    if not wanted:
        return contextlib.nullcontext()
    activity = torch.profiler.ProfilerActivity
    return torch.profiler.profile(activities=[activity.CPU, activity.CUDA])


def epoch(step, steps, profiled=False):
    asked = time.monotonic()
    with profiler(profiled):
        processor_s, began = time.process_time(), time.monotonic()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        epoch_s, ended_at = time.monotonic() - began, time.time()
        processor_s = time.process_time() - processor_s
    return {
        "epoch_s": epoch_s,
        "ended_at": ended_at,
        "profiler_s": time.monotonic() - asked - epoch_s,
        "processor_s": processor_s,
        "resident_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "reserved_mib": torch.cuda.max_memory_reserved() / 2**20,
    }


def load_pictures(command):
    try:
        from loaders import decode_rate

        return {"steps_per_s": decode_rate(command["processes"], command["seconds"])}
    # No torchvision, no space, no shared memory.
    except (ImportError, OSError, RuntimeError) as error:
        return {"error": f"{type(error).__name__}: {error}"[:200]}


def main():
    step = None
    torch.zeros(1, device="cuda")
    print(json.dumps({"up": True}), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if command["do"] == "load":
                step = load(command["model"])
                answer = {"ready": True}
            elif command["do"] == "run":
                answer = run(step, command["seconds"])
            elif command["do"] == "epoch":
                answer = epoch(step, command["steps"], command.get("profiled", False))
            elif command["do"] == "loader":
                answer = load_pictures(command)
            else:
                step = None
                gc.collect()
                torch.cuda.empty_cache()
                answer = {"dropped": True}
        except torch.OutOfMemoryError as error:
            step, answer = None, {"error": str(error)[:200]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
