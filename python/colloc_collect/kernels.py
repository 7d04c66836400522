# SPDX-License-Identifier: Apache-2.0
"""Collects the scratch memory that each convolution of the shipped runs of real networks takes.

    python3 -m colloc_collect.kernels --data data/memory --out DIR --seconds 400

Each training is run again in its own process, with the history of PyTorch's allocator recorded:
what
is allocated and freed within one operation is scratch. Writes DIR/kernels.jsonl:

    {"id", "reserved", "scratch": [[forward], [input gradient, weight gradient], ...]}

in the order of execution, which is the order of `convs` in an export (docs/export.md); null stands
for a gradient that is not computed.
"""
import argparse
import json
import os
import select
import signal
import sys
import time
import warnings

from colloc_fit.options import positive

MIB = 1 << 20
RUN_SECONDS = 60
CONTEXT_MIB = 800
STEPS = 5  # before the watched one: by then holes between blocks have settled
HISTORY_MOST = 4_000_000


# ---- what a list of changes says


def peak_of(changes):
    """The peak of the bytes that are allocated and freed within the list.

    changes: bytes of an allocation; -n for a free of the allocation n allocations ago
    """
    held, given, taken = {}, set(), 0
    for change in changes:
        if change > 0:
            held[taken] = change
            taken += 1
        else:
            given.add(taken + change)
    now = most = taken = 0
    for change in changes:
        if change > 0:
            now += change if taken in given else 0
            taken += 1
        else:
            now -= held.get(taken + change, 0)
        most = max(most, now)
    return most


def _split(changes, weight_bytes):
    """The index of the weight's gradient: the last allocation of its size that stays."""
    stay, taken = {}, 0
    for place, change in enumerate(changes):
        if change > 0:
            stay[taken] = place
            taken += 1
        else:
            stay.pop(taken + change, None)
    places = [place for place in stay.values() if changes[place] == weight_bytes]
    return places[-1] if places else 0


def scratch_of(changes, mask, weight_bytes):
    """The scratch of the forward pass (`mask` is None), or of the gradients of input and weight."""
    if mask is None:
        return [peak_of(changes)]
    if not mask[0]:
        return [None, peak_of(changes)]
    place = _split(changes, weight_bytes) if mask[1] else len(changes)
    return [peak_of(changes[:place]), peak_of(changes[place:]) if mask[1] else None]


# ---- one run


def _make_watch(torch, position):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):
        """Records each convolution and its part of the allocator's history."""

        def __init__(self):
            super().__init__()
            self.operations = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            name = function._schema.name.split("::")[-1]
            begin = position()
            results = function(*args, **(kwargs or {}))
            if name == "convolution":
                self.operations.append((begin, position(), None, 0))
            elif name == "convolution_backward":
                self.operations.append(
                    (begin, position(), list(args[10]), args[2].numel() * args[2].element_size())
                )
            return results

    return Watch()


def _changes(entries):
    """The allocator's history in the form of peak_of."""
    held, taken = {}, 0
    for entry in entries:
        if entry["action"] == "alloc":
            held[entry["addr"]] = taken
            taken += 1
            yield entry["size"]
        elif entry["action"] == "free_completed":
            place = held.pop(entry["addr"], None)
            yield place - taken if place is not None else 0


def _own(changes, begin, end):
    """The allocations and frees of one operation, without frees of blocks that it did not
    allocate."""
    own, taken = [], 0
    for change in changes[begin:end]:
        taken += change > 0
        if change > 0 or 0 < -change <= taken:
            own.append(change)
    return own


def measure(row, limit_bytes):
    """Trains a configuration and returns its line."""
    import torch

    from .worker import Training

    torch.cuda.init()
    torch.cuda.set_per_process_memory_fraction(
        min(1.0, limit_bytes / torch.cuda.get_device_properties(0).total_memory)
    )
    torch.manual_seed(1)

    def position():
        stats = torch._C._cuda_memoryStats(0)["allocation"]["all"]
        return stats["allocated"] + stats["freed"]

    start = position()
    torch.cuda.memory._record_memory_history("all", context=None, max_entries=HISTORY_MOST)
    training = Training(row, "cuda").place()
    for _ in range(STEPS):
        training.step()
        training.finish()
    reserved = torch.cuda.memory_stats()["reserved_bytes.all.peak"]
    watch = _make_watch(torch, position)
    with watch:
        training.step()
        training.finish()
    changes = list(_changes(torch.cuda.memory._snapshot()["device_traces"][0]))
    return {
        "reserved": reserved,
        "scratch": [
            scratch_of(_own(changes, begin - start, end - start), mask, weight)
            for begin, end, mask, weight in watch.operations
        ],
    }


# ---- all of them


def _rows(folder):
    """Yields (row for a Training, id, MiB that it is known to need)."""
    from .plan import make_configuration
    from .shipped import read_runs

    for run in read_runs(folder):
        if run["status"] == "ok" and run["kind"] == "real" and run["n_conv"]:
            row = make_configuration(
                "real",
                run["family"],
                run["model"],
                int(run["batch"]),
                int(run["sequence"] or 0),
                run["optimizer"],
                run["precision"],
            )
            yield row, run["id"], run["reserved_mib"]


def _run(row, identity, limit_bytes, path):
    os.environ["CUDA_VISIBLE_DEVICES"] = "0"
    signal.alarm(RUN_SECONDS)
    line = json.dumps({"id": identity, **measure(row, limit_bytes)}, separators=(",", ":")) + "\n"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(fd, line.encode())
    os.close(fd)


def _start(row, identity, mib, path):
    """Starts a process for one run. Returns its id and a descriptor that is closed when it ends."""
    ends, held = os.pipe()
    pid = os.fork()
    if pid:
        os.close(held)
        return pid, ends
    os.close(ends)
    try:
        _run(row, identity, int(mib * MIB), path)
    except Exception as error:
        print(f"{row['model']}: {type(error).__name__}: {error}"[:300], file=sys.stderr)
    finally:
        sys.stderr.flush()
        os._exit(0)


def _run_all(todo, options, path):
    budget, running = options.gib * 1024, {}
    while todo or running:
        busy = sum(mib for _, mib in running.values())
        for entry in list(todo) if time.monotonic() < options.deadline else []:
            need = 1.4 * entry[2] + CONTEXT_MIB + 300
            if len(running) < options.at_once and (not running or busy + need <= budget):
                todo.remove(entry)
                pid, ends = _start(*entry[:2], need - CONTEXT_MIB, path)
                running[ends] = (pid, need)
                busy += need
        if not running:
            break
        for ends in select.select(list(running), [], [])[0]:
            os.waitpid(running.pop(ends)[0], 0)
            os.close(ends)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="colloc_collect.kernels",
        description="scratch memory of real networks' convolutions, measured",
    )
    parser.add_argument("--data", required=True, help="folder of cleaned data")
    parser.add_argument("--out", required=True, help="folder for the result")
    parser.add_argument("--seconds", type=float, default=400, help="begin no run later than this")
    parser.add_argument("--at-once", type=positive(int), default=15)
    parser.add_argument(
        "--gib", type=float, default=125, help="of the GPU's memory, for all runs at once"
    )
    options = parser.parse_args(arguments)
    options.deadline = time.monotonic() + options.seconds
    warnings.simplefilter("ignore")
    os.makedirs(options.out, exist_ok=True)
    os.environ.update(CUDA_VISIBLE_DEVICES="", PYTORCH_NVML_BASED_CUDA_CHECK="1")  # until the forks
    from . import worker

    worker.skip_random_initialisation()
    for name in (
        "torchvision.models.detection",
        "torchvision.models.video",
        "timm",
        "transformers",
    ):
        __import__(name)
    _run_all(
        sorted(_rows(options.data), key=lambda entry: -entry[2]),
        options,
        os.path.join(options.out, "kernels.jsonl"),
    )


if __name__ == "__main__":
    main()
