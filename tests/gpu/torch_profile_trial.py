#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's profiler turned on from outside, on a real GPU.

    tests/gpu/torch_profile_trial.py PROGRAMS OUTPUT

PROGRAMS is a folder of scripts/bundle. A training that reads its loss in each step runs under
--profile=torch: steps that are named at its submission, then five by `colloc profile`, then a
second by time. Each trace has to have kernels, and at least as many steps of the optimizer as were
asked for: PyTorch ends a recording in another thread, the first in 0.7 s. The steps a second
before, during and after a recording go into OUTPUT as JSON, beside those of the same training
without the option: the cost of being ready. Needs one idle GPU and a python3 with PyTorch; changes
no setting of the GPU.
"""
import glob
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from trial import TrialDaemon  # noqa: E402

STEPS, FIRST_STEP, MEASURE_S, LIMIT_S = 5, 2000, 10, 60

TRAINING = """
import time, torch
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(8)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
data = torch.randn(512, 2048, device="cuda")
print(torch.__version__, flush=True)
begin, steps = time.time(), 0
while True:
    optimizer.zero_grad()
    loss = model(data).square().mean()
    loss.backward()
    optimizer.step()
    loss.item()
    steps += 1
    if time.time() - begin >= 1:
        torch.cuda.synchronize()
        print(f"{time.time():.3f} {steps / (time.time() - begin):.1f}", flush=True)
        begin, steps = time.time(), 0
"""


def wait_for(what, condition):
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.5)
    raise RuntimeError(f"{what} did not come within {LIMIT_S} s")


def rates(daemon, task):
    """(time, steps a second) of each second."""
    lines = daemon.colloc("logs", str(task)).splitlines()
    return [tuple(map(float, line.split())) for line in lines if line.count(" ") == 1]


def read_trace(path):
    """A trace that is complete: kernels, and steps of the optimizer."""
    try:
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    except ValueError:  # it is still being written
        return None
    return {
        "kernels": sum(event.get("cat") == "kernel" for event in events),
        "optimizer_steps": sum("Optimizer.step" in event.get("name", "") for event in events),
        "mib": os.path.getsize(path) / 2**20,
    }


def trace_of(daemon, task, count=""):
    form = f"{daemon.folder}/colloc-{task}.torch{count}_[0-9]*.json"
    path = wait_for(f"the trace {form}", lambda: (glob.glob(form) or [None])[0])
    return wait_for("the end of the trace", lambda: read_trace(path))


def mean_rate(daemon, task, since, until):
    found = [rate for at, rate in rates(daemon, task) if since < at <= until]
    return sum(found) / len(found) if found else None


def measure(daemon, task):
    since = time.time()
    time.sleep(MEASURE_S)
    return mean_rate(daemon, task, since, time.time())


def begin(daemon, options):
    task, _ = daemon.submit(f"{daemon.folder}/training.py", options=("--gpus=1", *options))
    wait_for("the first steps", lambda: rates(daemon, task))
    return task


def run_trial(daemon):
    with open(f"{daemon.folder}/training.py", "w", encoding="utf-8") as file:
        file.write(TRAINING)
    plain = begin(daemon, ())
    result = {"torch": daemon.colloc("logs", str(plain)).splitlines()[0]}
    result["plain_steps_per_s"] = measure(daemon, plain)
    daemon.colloc("cancel", str(plain))
    daemon.wait(plain)
    task = begin(daemon, (f"--profile=torch:step={FIRST_STEP},steps={STEPS}",))
    result["named"] = trace_of(daemon, task)
    result["ready_steps_per_s"] = measure(daemon, task)
    asked = time.time()
    daemon.colloc("profile", f"--steps={STEPS}", str(task))
    result["by_steps"] = trace_of(daemon, task, "-2")
    result["by_steps_came_after_s"] = time.time() - asked
    result["while_recording_steps_per_s"] = mean_rate(daemon, task, asked, time.time())
    daemon.colloc("profile", "--for=1s", str(task))
    result["by_time"] = trace_of(daemon, task, "-3")
    result["suspension"] = daemon.colloc("suspend", str(task), check=False)
    daemon.colloc("cancel", str(task))
    daemon.wait(task)
    return result


def main(programs, output):
    daemon = TrialDaemon(programs)
    try:
        result = run_trial(daemon)
    finally:
        daemon.close()
    print(json.dumps(result, indent=1))
    with open(output, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    failed = [
        name
        for name in ("named", "by_steps", "by_time")
        if not result[name]["kernels"]
        or (name != "by_time" and result[name]["optimizer_steps"] < STEPS)
    ]
    if failed:
        sys.exit(f"wrong traces: {failed}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
