#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long collocd takes to ask cuDNN, what that takes of the GPU, and what a neighbour loses.

    tests/gpu/asking_trial.py PROGRAMS OUTPUT SECONDS [ROUNDS]   on the machine with the GPU
    tests/gpu/asking_trial.py page OUTPUT PAGE                   anywhere: the tables of a page
    tests/gpu/asking_trial.py again OUTPUT PAGE                  of a later run: asked, neighbour
    tests/gpu/asking_trial.py third OUTPUT PAGE                  of the third run

PROGRAMS is a folder of scripts/bundle. GPU names the GPU for NVML (0), which nothing else uses. A
ResNet-50 trains there as a task of collocd, each step of it one CUDA graph. ROUNDS times (10) a
network is submitted at a batch whose kernels are not known, with two quiet seconds before; then
networks of other kinds, once; then one whose answers are kept, 30 times, and one without
convolutions. OUTPUT gets a row of JSON for each result when it is known, by `what`:

    context     memory of a process by NVML: with a CUDA context, with smaller limits, with cuDNN
    ask         a submission: when, how long, the daemon's word on kernels; memory of colloc-cudnn
    steps       when each step of the neighbour ended
"""
import contextlib
import ctypes
import functools
import json
import lzma
import os
import statistics
import subprocess
import sys
import threading
import time

import tuning_trial
from kernel_trial import library
from trial import TrialDaemon
from tuning_trial import MIB, log

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
ROUNDS, WINDOW_S, KEPT = 10, 2.0, 30
OTHERS = ["vgg16", "densenet121", "mobilenet_v3_large", "efficientnet_b0", "unet-512"]
CU_LIMITS = [
    ("stack", 0, 256),
    ("stack", 0, 16),
    ("stack", 0, 0),
    ("printf", 1, 1 << 16),
    ("heap", 2, 1 << 16),
]  # of cuda.h, to bytes  # fmt: skip


# ---- what a context takes ----


def probe_context():
    """In a separate process: prints a row."""
    import pynvml

    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(int(os.environ.get("GPU", "0")))
    cuda, context, row = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), {}

    def note(name, status):
        own = [one.usedGpuMemory for one in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
               if one.pid == os.getpid()]  # fmt: skip
        row[name] = [status, round(own[0] / MIB, 1) if own else None]

    note("init", cuda.cuInit(0))
    note("context", cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    cuda.cuCtxSetCurrent(context)
    for name, limit, size in CU_LIMITS:
        before = ctypes.c_size_t()
        cuda.cuCtxGetLimit(ctypes.byref(before), limit)
        note(f"{name} {before.value} to {size}", cuda.cuCtxSetLimit(limit, ctypes.c_size_t(size)))
    cudnn, cudnn_handle = ctypes.CDLL(library()), ctypes.c_void_p()
    note("cudnn loaded", 0)
    note("cudnn created", cudnn.cudnnCreate(ctypes.byref(cudnn_handle)))
    print("ROW " + json.dumps(row), flush=True)


# ---- the exports ----


def read_exports(names):
    """Texts of exports that hold for any batch, by network."""
    found = {}
    path = os.path.join(TOP, "data", "memory", "exports.jsonl.xz")
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            description = json.loads(line)
            name = description["model_key"]
            if name in names and description["precision"] == "fp32" and name not in found:
                found[name] = line
    return found


# ---- the trial ----


class Trial:
    def __init__(self, programs, output, seconds, rounds):
        self.programs, self.deadline = programs, time.monotonic() + float(seconds)
        self.rounds = int(rounds)
        self.file, self.index = open(output, "w", encoding="utf-8"), os.environ.get("GPU", "0")
        self.exports = read_exports(["resnet50", "bert-base", *OTHERS])
        self.asking, self.ended = {}, threading.Event()

    def write(self, what, **row):
        self.file.write(json.dumps({"what": what, **row}) + "\n")
        self.file.flush()
        log(what, json.dumps(row)[:200])

    def left(self):
        return self.deadline - time.monotonic()

    def watch(self):
        """The most that each colloc-cudnn took, by NVML."""
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(int(self.index))
        while not self.ended.wait(0.002):
            with contextlib.suppress(pynvml.NVMLError, OSError):
                for one in pynvml.nvmlDeviceGetComputeRunningProcesses(handle):
                    with open(f"/proc/{one.pid}/comm", encoding="ascii") as file:
                        if file.read().strip() == "colloc-cudnn":
                            used = (one.usedGpuMemory or 0) / MIB
                            self.asking[one.pid] = max(self.asking.get(one.pid, 0), used)

    def submit(self, name, batch, how):
        """Estimates a network at a batch, by submitting a task that is held, and cancelling it."""
        self.asking.clear()
        body = {"summary": {"name": f"{name}.json", "text": self.exports[name]}, "batch": batch,
                "hold": True}  # fmt: skip
        started = time.time()
        task = self.client.submit(["true"], environment={}, cwd="/", **body)
        ended = time.time()
        shown = self.client.task(int(task))
        self.client.request("POST", f"/v1/tasks/{int(task)}/cancel", {})
        self.write("ask", name=name, batch=batch, how=how, started=started,
                   ms=round(1000 * (ended - started), 2), kernels=shown.get("estimate_kernels"),
                   evidence=shown.get("estimate_evidence"), mib=shown.get("estimate_mib"),
                   taken_mib=list(self.asking.values()))  # fmt: skip
        return started

    def rest_of(self, started):
        time.sleep(max(0, started + WINDOW_S - time.time()))

    def start_neighbour(self, daemon, path, seconds):
        daemon.submit(os.path.join(HERE, "asking_neighbour.py"), path, str(seconds),
                      options=["--memory=12GiB"])  # fmt: skip
        end = time.monotonic() + 30
        while not (os.path.exists(path) and os.path.getsize(path)) and time.monotonic() < end:
            time.sleep(0.1)
        time.sleep(2)

    def ask_all(self):
        for i in range(self.rounds):
            if self.left() < 14:
                break
            time.sleep(WINDOW_S + 0.2)
            self.rest_of(self.submit("resnet50", 33 + 2 * i, "new"))
        for name in OTHERS:
            if name in self.exports and self.left() > 10:
                self.rest_of(self.submit(name, 48, "other"))
        for i in range(KEPT):
            self.submit("resnet50", 33, "kept")
        for i in range(KEPT if "bert-base" in self.exports else 0):
            self.submit("bert-base", 8, "without convolutions")

    def run(self):
        probe = subprocess.run([sys.executable, os.path.abspath(__file__), "context"],
                               capture_output=True, text=True, timeout=20, check=False)  # fmt: skip
        row = [line[4:] for line in probe.stdout.splitlines() if line.startswith("ROW ")]
        self.write("context", took=json.loads(row[0]) if row else None, text=probe.stderr[-300:])
        watching = threading.Thread(target=self.watch, daemon=True)
        watching.start()
        sys.path.insert(0, os.path.join(self.programs, "python"))
        from colloc.client import Client

        daemon = TrialDaemon(self.programs, gpus=self.index, cudnn_library=library(),
                             cudnn_program=os.path.join(self.programs, "colloc-cudnn"))  # fmt: skip
        self.client = Client(socket=daemon.socket)
        path = os.path.join(daemon.folder, "steps")
        try:
            self.start_neighbour(daemon, path, max(5, self.left() - 4))
            self.ask_all()
            with open(path, encoding="ascii") as file:
                self.write("steps", ended=[float(line) for line in file if line.endswith("\n")])
        finally:
            with open(daemon.log.name, encoding="utf-8", errors="replace") as file:
                self.write("log", text=[one for one in file.read().splitlines() if "cuDNN" in one])
            self.ended.set()
            daemon.close()


# ---- the page ----


def context_table(rows):
    took = next((row["took"] for row in rows if row["what"] == "context" and row["took"]), {})
    lines = ["| after | MiB of the process |", "| --- | --- |"]
    return lines + [f"| {name} | {mib:.0f} |" for name, (_, mib) in took.items() if mib]


def asked_table(rows):
    asked = [row for row in rows if row["what"] == "ask"]
    lines = ["| submission | times | ms, median | least | most | kernels known | MiB |",
             "| --- | --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    kinds = {}
    for row in asked:
        kinds.setdefault((row["how"], row["name"]), []).append(row)
    for (how, name), ones in kinds.items():
        times = sorted(row["ms"] for row in ones)
        known = sum(row["evidence"] == "export with kernels" for row in ones)
        most = max((mib for row in ones for mib in row["taken_mib"]), default=None)
        shown = f"{most:.0f}" if most and how in ("new", "other") else ""
        lines.append(f"| {name}, {how} | {len(ones)} | {statistics.median(times):.1f} "
                     f"| {times[0]:.1f} | {times[-1]:.1f} | {known} | {shown} |")  # fmt: skip
    return lines


def mean_step(ended, begin, end):
    """In ms, of the steps that lie between; None: too few."""
    inner = [one for one in ended if begin <= one <= end]
    return 1000 * (inner[-1] - inner[0]) / (len(inner) - 1) if len(inner) > 10 else None


def neighbour_table(rows):
    """Each asking's two seconds against the two before it; and these against their first half."""
    ended = next((row["ended"] for row in rows if row["what"] == "steps"), [])
    lines = ["| asking | quiet, ms a step | while asked, ms | more "
             "| quiet: second half over first |", "| --- | --- | --- | --- | --- |"]  # fmt: skip
    more, noise = [], []
    for row in (row for row in rows if row["what"] == "ask" and row["how"] == "new"):
        start = row["started"]
        quiet, busy = (mean_step(ended, begin, begin + WINDOW_S)
                       for begin in (start - WINDOW_S, start))  # fmt: skip
        halves = [mean_step(ended, start - WINDOW_S + i, start - WINDOW_S + i + 1) for i in (0, 1)]
        if None in (quiet, busy, *halves):
            continue
        more.append(busy / quiet - 1)
        noise.append(halves[1] / halves[0] - 1)
        lines.append(f"| {len(more)} | {quiet:.2f} | {busy:.2f} | {100 * more[-1]:+.2f} % "
                     f"| {100 * noise[-1]:+.2f} % |")  # fmt: skip
    if more:
        lines.append(f"| median | | | {100 * statistics.median(more):+.2f} % "
                     f"| {100 * statistics.median(noise):+.2f} % |")  # fmt: skip
    return lines


def fill_page(path, target, suffix, tables):
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    with open(target, encoding="utf-8") as file:
        text = file.read()
    for marker, table in tables:
        text = tuning_trial.fill(text, marker + suffix, table(rows))
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)


def page(path, target):
    tables = (("context", context_table), ("asked", asked_table), ("neighbour", neighbour_table))
    fill_page(path, target, "", tables)


def page_later(run, path, target):
    tables = (("asked", asked_table), ("neighbour", neighbour_table))
    fill_page(path, target, f", {run}", tables)


PAGES = {"page": page, **{run: functools.partial(page_later, run) for run in ("again", "third")}}


def main():
    if len(sys.argv) == 4 and sys.argv[1] in PAGES:
        PAGES[sys.argv[1]](*sys.argv[2:])
    elif sys.argv[1:] == ["context"]:
        probe_context()
    elif len(sys.argv) in (4, 5):
        Trial(os.path.abspath(sys.argv[1]), *sys.argv[2:4], (*sys.argv[4:], ROUNDS)[0]).run()
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
