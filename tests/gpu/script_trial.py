#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training scripts followed without a GPU, and the same scripts on a real one.

    tests/gpu/script_trial.py measure LIST OUTPUT [SECONDS]     on the machine with a GPU
    tests/gpu/script_trial.py price COLLOC OUTPUT               anywhere

LIST has a line for each script: its name, the folder that it runs in (relative to LIST) and its
words, separated by "|". `measure` follows each script (on the CPU, several at once) and runs it for
a few steps on GPU 0 (one at a time), and leaves in OUTPUT/NAME the export or the reason, and the
peak of the GPU's used memory above what it was before: context, workspaces and all. No new script
starts after SECONDS (default 120). `price` estimates from the exports and prints a table.
"""
import concurrent.futures
import contextlib
import json
import os
import runpy
import statistics
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.path.join(HERE, "..", "..", "python")
STEPS = 6  # of each optimizer on the GPU: the allocator's peak is steady
LIMIT_S = 60
FREE_LIMIT_S = 20
MIB = 1 << 20


# ---- inside the script's process ----


def use_data_that_is_here():
    """Data sets of torchvision without their checksums and downloads."""
    try:
        import torchvision
    except ImportError:
        return
    sets = torchvision.datasets
    for kind in (sets.CIFAR10, sets.MNIST):
        kind._check_integrity = lambda self: True
        kind.download = lambda self: None
    sets.MNIST._check_exists = lambda self: True
    sets.CIFAR10._load_meta = lambda self: setattr(self, "classes", list("abcdefghij"))


def end_process():
    import torch

    torch.cuda.synchronize()
    time.sleep(0.3)  # for the poll of the other process
    os._exit(0)


def stop_after(steps):
    """Ends this process once each optimizer has made its steps, or the loop as many by hand."""
    import torch

    counts, backwards = {}, [0]
    initialize, backward = torch.optim.Optimizer.__init__, torch.autograd.backward

    def initialized(optimizer, *args, **kwargs):
        initialize(optimizer, *args, **kwargs)
        counts[id(optimizer)] = 0
        step = type(optimizer).step

        def stepped(self, *args, **kwargs):
            result = step(self, *args, **kwargs)
            counts[id(self)] += 1
            if min(counts.values()) >= steps or max(counts.values()) >= 6 * steps:
                end_process()
            return result

        if not getattr(step, "_trial", False):
            stepped._trial = True
            stepped.__name__ = "step"
            type(optimizer).step = stepped

    def ran(*args, **kwargs):
        backward(*args, **kwargs)
        backwards[0] += 1
        if not counts and backwards[0] >= steps:
            end_process()

    torch.optim.Optimizer.__init__, torch.autograd.backward = initialized, ran


def run_script(words):
    use_data_that_is_here()
    if os.environ.get("COLLOC_TRIAL_STEPS"):
        stop_after(int(os.environ["COLLOC_TRIAL_STEPS"]))
    sys.argv = words
    sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
    runpy.run_path(words[0], run_name="__main__")


# ---- measuring ----


class Gpu:
    """GPU 0 by NVML."""

    def __init__(self):
        import pynvml

        pynvml.nvmlInit()
        self._nvml, self._handle = pynvml, pynvml.nvmlDeviceGetHandleByIndex(0)

    def used(self):
        return self._nvml.nvmlDeviceGetMemoryInfo(self._handle).used


def read_list(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                name, folder, words = line.rstrip("\n").split("|")
                yield name, os.path.join(
                    os.path.dirname(os.path.abspath(path)), folder
                ), words.split()


def command_of(words):
    return [sys.executable, os.path.abspath(__file__), "run", *words]


def python_path(*folders):
    own = os.environ.get("PYTHONPATH")
    return os.pathsep.join([*map(os.path.abspath, folders), *([own] if own else [])])


def follow(name, folder, words, output):
    """Runs the script on the GPU that is not there. Returns seconds."""
    place = os.path.join(output, name)
    environment = {
        **os.environ,
        "PYTHONPATH": python_path(os.path.join(PYTHON, "colloc_script", "inject"), PYTHON),
        "COLLOC_SCRIPT_FOLDER": place,
        "CUDA_VISIBLE_DEVICES": "",
        "PYTORCH_JIT": "0",
        "TORCHDYNAMO_DISABLE": "1",
        "HF_HUB_OFFLINE": "1",
    }
    started = time.monotonic()
    with open(os.path.join(place, "follow.log"), "w", encoding="utf-8") as log:
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                command_of(words), cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, timeout=LIMIT_S, check=False,
            )  # fmt: skip
    return round(time.monotonic() - started, 1)


def settled_use(gpu):
    """Of the idle GPU: what ended before this began may still hold memory for a while."""
    used = gpu.used()
    while True:
        time.sleep(1)
        before, used = used, gpu.used()
        if used >= before:
            return used


def wait_until_free(gpu, idle):
    """The driver frees the memory of an ended process some time after its end."""
    end = time.monotonic() + FREE_LIMIT_S
    while gpu.used() > idle + MIB:
        if time.monotonic() > end:
            sys.exit(f"the GPU has {(gpu.used() - idle) / MIB:.0f} MiB more in use than before")
        time.sleep(0.02)


def run_on_gpu(gpu, idle, folder, words, place):
    """(peak of used memory above that of the idle GPU, status, seconds)."""
    peak, ended = [0], threading.Event()
    wait_until_free(gpu, idle)

    def poll():
        while not ended.wait(0.01):
            peak[0] = max(peak[0], gpu.used() - idle)

    poller = threading.Thread(target=poll)
    poller.start()
    started, status = time.monotonic(), "time"
    with open(os.path.join(place, "run.log"), "w", encoding="utf-8") as log:
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = subprocess.run(
                command_of(words), cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "COLLOC_TRIAL_STEPS": str(STEPS)}, timeout=LIMIT_S, check=False,
            ).returncode  # fmt: skip
    ended.set()
    poller.join()
    return peak[0], status, round(time.monotonic() - started, 1)


def save(place, name, value):
    with open(os.path.join(place, name), "w", encoding="utf-8") as file:
        json.dump(value, file)


def measure(path, output, seconds="120"):
    gpu = Gpu()
    idle, deadline = settled_use(gpu), time.monotonic() + float(seconds)
    rows = list(read_list(path))
    for name, _, _ in rows:
        os.makedirs(os.path.join(output, name), exist_ok=True)

    def follow_one(row):
        if time.monotonic() < deadline:
            save(os.path.join(output, row[0]), "follow.json", follow(*row, output))

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        followed = [pool.submit(follow_one, row) for row in rows]
        for name, folder, words in rows:
            if time.monotonic() > deadline:
                break
            place = os.path.join(output, name)
            peak, status, took = run_on_gpu(gpu, idle, folder, words, place)
            save(place, "run.json", {"peak_mib": peak / MIB, "status": status, "seconds": took})
            print(f"{name}: {peak / MIB:.0f} MiB, status {status}, {took} s", flush=True)
        for one in followed:
            one.result()
    for name, _, _ in rows:
        place = os.path.join(output, name)
        reason = os.path.join(place, "failure")
        if not os.path.exists(os.path.join(place, "result")):
            with contextlib.suppress(OSError), open(reason, encoding="utf-8") as file:
                print(f"{name}: not followed: {file.read().strip()}")


# ---- pricing ----


def load(place, name):
    with contextlib.suppress(OSError), open(os.path.join(place, name), encoding="utf-8") as file:
        return json.load(file) if name.endswith("json") else file.read().strip()
    return None


def estimate(colloc, place):
    """(MiB, P99 in MiB) of the export, or None."""
    words = [
        colloc,
        "estimate",
        "--json",
        "--gpu=H200",
        f"--export={os.path.join(place, 'result')}",
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    row = json.loads(done.stdout)["estimates"][0]
    return row["mib"], row["p99_mib"]


def price(colloc, output):
    errors, above = [], 0
    print("| script | measured MiB | estimate | error | P99 | seconds | what is wrong |")
    print("| ------ | ------------ | -------- | ----- | --- | ------- | ------------- |")
    for name in sorted(os.listdir(output)):
        place = os.path.join(output, name)
        run, answer = load(place, "run.json"), estimate(colloc, place)
        if not run:
            continue
        is_measured = run["status"] == 0 and run["peak_mib"] > 0
        cells = [name, f"{run['peak_mib']:.0f}" if is_measured else "-", "-", "-", "-"]
        if answer:
            cells[2], cells[4] = f"{answer[0]:.0f}", f"{answer[1]:.0f}"
        if answer and is_measured:
            error = answer[0] / run["peak_mib"] - 1
            errors.append(abs(error))
            above += run["peak_mib"] > answer[1]
            cells[3] = f"{100 * error:+.1f} %"
        wrong = "" if answer else load(place, "failure") or "no answer in time"
        print("| " + " | ".join([*cells, str(load(place, "follow.json")), wrong[:200]]) + " |")
    if errors:
        errors.sort()
        print(
            f"\n{len(errors)} scripts: median error {100 * statistics.median(errors):.1f} %, "
            f"largest {100 * errors[-1]:.1f} %, {above} above P99"
        )


def main():
    what, *words = sys.argv[1:] or [""]
    if what == "run":
        run_script(words)
    elif what == "measure":
        measure(*words)
    elif what == "price":
        price(*words)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
