#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libcolloc-preload.so on a real GPU with PyTorch. Prints one JSON object.

    tests/gpu/preload_trial.py LIBRARY [OUTPUT [PART ...]]

LIBRARY: libcolloc-preload.so. Needs python3, PyTorch and a GPU without other users; about four
minutes. The other end of the library is tests/lib/preload_daemon.py, so no colloc has to run.

Parts:
    cost      the median step time of a small network that synchronises each step, with and without
              the library, in turns
    peak      the peak that the library counts, beside PyTorch's and NVML's, for each allocator
    wait      a training that does not fit beside another one waits until that has ended, for each
              allocator, and ends with the losses of an undisturbed run
    error     an allocation that no GPU could hold fails at once
    full      a training of convolutions that starts on a GPU with room for little more than its
              context, with and without the library: the code of its kernels waits for memory
    gate      a process whose first call after a checkpoint is cudaDeviceSynchronize survives
"""
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import preload_daemon as pd  # noqa: E402

GIB = 1 << 30
ALLOCATORS = {
    "native": "",
    "expandable_segments": "expandable_segments:True",
    "cudaMallocAsync": "backend:cudaMallocAsync",
}

# Small kernels, many allocations and a synchronisation in each step: what the library costs most.
STEPS = """
import os, sys, time, torch
torch.manual_seed(0)
torch.backends.cudnn.deterministic = True
width, depth, batch, steps, gib = (int(x) for x in sys.argv[1:6])
net = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU())
                            for _ in range(depth)]).cuda()
optimizer = torch.optim.SGD(net.parameters(), 1e-3, momentum=.9)
x = torch.randn(batch, width, generator=torch.Generator().manual_seed(1)).cuda()
times, losses, ballast = [], [], []
print("begun", os.getpid(), flush=True)
for i in range(steps):
    begin = time.perf_counter()
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    times.append(time.perf_counter() - begin)
    if i < gib:
        ballast.append(torch.full((1 << 28,), float(i), device="cuda"))
good = all(int(b[-1].item()) == i for i, b in enumerate(ballast))
import json
stats = torch.cuda.memory_stats()
print("result", json.dumps(dict(times=times[len(times) // 4:], losses=losses, good=good,
      reserved=torch.cuda.max_memory_reserved())), flush=True)
if os.environ.get("STAY"):
    sys.stdin.readline()
"""

# The kernels of cuDNN are loaded after the context was made.
CONVOLUTIONS = """
import json, torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 3), torch.nn.ReLU(),
                          torch.nn.Conv2d(64, 64, 3, groups=64), torch.nn.Conv2d(64, 64, 1),
                          torch.nn.BatchNorm2d(64), torch.nn.Flatten(1),
                          torch.nn.LazyLinear(10))
x = torch.randn(8, 3, 36, 36)
net(x)
net, x = net.cuda(), x.cuda()
optimizer = torch.optim.SGD(net.parameters(), 1e-3)
losses = []
for _ in range(10):
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("result", json.dumps(dict(losses=losses)), flush=True)
"""

# Leaves as many MiB of the GPU as each line of its input says.
FILLER = """
import sys, torch
torch.zeros(1, device="cuda")
held = None
for line in sys.stdin:
    held = None
    torch.cuda.empty_cache()
    free = torch.cuda.mem_get_info()[0]
    held = torch.empty(max(1, free - (int(line) << 20)), dtype=torch.uint8, device="cuda")
    print("left", torch.cuda.mem_get_info()[0] >> 20, flush=True)
"""


def nvml(*query):
    out = subprocess.run(
        ["nvidia-smi", "-i", "0", *query, "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
    ).stdout
    return [[int(x) for x in line.split(",")] for line in out.split("\n") if line.strip()]


def gpu_memory():
    """(free, total) in bytes."""
    ((free, total),) = nvml("--query-gpu=memory.free,memory.total")
    return free << 20, total << 20


def process_memory(pid):
    rows = nvml("--query-compute-apps=pid,used_memory")
    return next((used << 20 for p, used in rows if p == pid), None)


class Trial:
    def __init__(self, library):
        self.library = os.path.abspath(library)
        self.folder = tempfile.mkdtemp(prefix="preload-trial")
        self.socket = self.folder + "/socket"
        self.script = self.folder + "/steps.py"
        with open(self.script, "w") as out:
            out.write(STEPS)
        self.ended = threading.Event()
        self.daemon = pd.PreloadDaemon(self.socket, self.on_wait)
        threading.Thread(target=self.serve, daemon=True).start()

    def on_wait(self, wait):
        """Too much for the GPU: the true error. Otherwise serve() says when there is room."""
        if wait.bytes > gpu_memory()[1]:
            return [(pd.FAIL, 0)]
        wait.answered = False
        return [(pd.BOUND, 90000)]

    def serve(self):
        while not self.ended.wait(0.25):
            free = None
            for wait in list(self.daemon.waits):
                if getattr(wait, "answered", True):
                    continue
                free = gpu_memory()[0] if free is None else free
                if free >= wait.bytes:
                    wait.answered = True
                    self.daemon.answer(wait, pd.RETRY)

    def environment(self, allocator, preload, **more):
        env = dict(os.environ, CUDA_VISIBLE_DEVICES="0", CUDA_DEVICE_ORDER="PCI_BUS_ID", **more)
        env.update(COLLOC_PRELOAD_SOCKET=self.socket, COLLOC_TASK_ID="1", COLLOC_ATTEMPT_NUMBER="1")
        if allocator:
            env["PYTORCH_CUDA_ALLOC_CONF"] = env["PYTORCH_ALLOC_CONF"] = allocator
        if preload:
            env["LD_PRELOAD"] = self.library
        return env

    def start(self, numbers, allocator="", preload=True, **more):
        return self.start_python([self.script, *map(str, numbers)], allocator, preload, **more)

    def start_python(self, arguments, allocator="", preload=True, **more):
        return subprocess.Popen(
            [sys.executable, *arguments],
            env=self.environment(allocator, preload, **more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def result(self, program):
        """(what it printed, the last lines when it failed)"""
        lines = []
        for line in program.stdout:
            lines.append(line.strip())
            if line.startswith("result "):
                return json.loads(line[7:]), None
        program.wait()
        return None, lines[-4:]

    # ---- the parts ----

    def cost(self):
        shape = (1024, 24, 256, 1200, 0)
        medians = {True: [], False: []}
        for turn in range(3):
            for preload in (turn % 2 == 0, turn % 2 == 1):
                result, error = self.result(self.start(shape, preload=preload))
                if error:
                    return {"error": error}
                medians[preload].append(1e6 * statistics.median(result["times"]))
        with_it, without = statistics.median(medians[True]), statistics.median(medians[False])
        return {
            "step_us_with": medians[True],
            "step_us_without": medians[False],
            "percent": 100 * (with_it - without) / without,
        }

    def peak(self):
        seen = {}
        for name, allocator in ALLOCATORS.items():
            program = self.start((2048, 8, 1024, 20, 4), allocator, STAY="1")
            result, error = self.result(program)
            if error:
                seen[name] = {"error": error}
                continue
            page, used = self.daemon.pages[program.pid], process_memory(program.pid)
            seen[name] = {
                "held": page.held(),
                "peak": page.peak(),
                "pool_held": page.pool_held(),
                "pool_peak": page.pool_peak(),
                "flags": page.u32(pd.FLAGS),
                "torch_reserved_peak": result["reserved"],
                "nvml_process": used,
                "nvml_beside_held": used and used - page.held() - page.pool_held(),
            }
            program.communicate("\n")
        return seen

    def wait(self):
        """The first holds all but 6 GiB for some seconds; the second needs 16."""
        free = gpu_memory()[0] // GIB
        reference, error = self.result(self.start((1024, 8, 256, 60, 12)))
        seen = {"free_gib": free, "reference": error or "ran"}
        for name, allocator in ALLOCATORS.items():
            begun = len(self.daemon.waits)
            first = self.start((1024, 2, 64, free - 6, free - 6), STAY="1")
            first_result, error = self.result(first)
            if error:
                seen[name] = {"first": error}
                continue
            second = self.start((1024, 8, 256, 60, 12), allocator)
            try:
                self.daemon.wait_until(lambda: len(self.daemon.waits) > begun, 40)
            except AssertionError:
                pass
            time.sleep(2)
            waiting = second.poll() is None and len(self.daemon.waits) > begun
            first.communicate("\n")
            result, error = self.result(second)
            second.wait()
            page = self.daemon.pages.get(second.pid)
            seen[name] = {
                "waited": waiting,
                "exit": second.returncode,
                "error": error,
                "same_losses": bool(result and reference)
                and result["losses"] == reference["losses"],
                "good": bool(result) and result["good"],
                "waits": page and page.u64(pd.WAITS),
                "waited_ms": page and page.u64(pd.WAITED),
                "asked_mib": [w.bytes >> 20 for w in self.daemon.waits[begun:]][:20],
            }
        return seen

    def error(self):
        code = "import torch\ntry:\n    torch.empty(1 << 40, dtype=torch.uint8, device='cuda')\n"
        code += "except torch.OutOfMemoryError as e:\n    print('oom', str(e)[:60])\n"
        begin = time.monotonic()
        out = subprocess.run(
            [sys.executable, "-c", code],
            env=self.environment("", True),
            capture_output=True,
            text=True,
        )
        return {"said": out.stdout.strip(), "seconds": time.monotonic() - begin}

    def full(self):
        """The GPU is emptied 1 s after the first wait, or when the training has ended."""
        filler = self.start_python(["-c", FILLER], preload=False)
        seen = []

        def leave(mib):
            filler.stdin.write(f"{mib}\n")
            filler.stdin.flush()
            return int(filler.stdout.readline().split()[-1])

        for mib in (700, 900, 1100):
            for preload in (False, True):
                begun = len(self.daemon.waits)
                run = {"left_mib": leave(mib), "preload": preload}
                program = self.start_python(["-c", CONVOLUTIONS], preload=preload)
                end = time.monotonic() + 40
                while program.poll() is None and time.monotonic() < end:
                    if len(self.daemon.waits) > begun:
                        time.sleep(1)
                        break
                    time.sleep(0.1)
                leave(20000)
                result, error = self.result(program)
                program.wait()
                run.update(
                    exit=program.returncode,
                    error=error,
                    losses=result and result["losses"][-1],
                    waits=[(w.reason, w.bytes >> 20) for w in self.daemon.waits[begun:]][:9],
                )
                seen.append(run)
        filler.communicate()
        return seen

    def gate(self):
        """Needs root and a driver from 570 on. The state is queried by no one meanwhile."""
        code = (
            "import sys, torch\nx = torch.ones(1 << 28, device='cuda')\ntorch.cuda.synchronize()\n"
            "print('up', flush=True)\nfor line in sys.stdin:\n"
            "    torch.cuda.synchronize()\n    print(int(x[:4].sum().item()), flush=True)\n"
        )
        cuda = ctypes.CDLL("libcuda.so.1")
        cuda.cuInit(0)
        arguments = (ctypes.c_uint64 * 8)()  # 64 bytes of zero serve each call
        runs = []
        for _ in range(3):
            program = subprocess.Popen(
                [sys.executable, "-c", code],
                env=self.environment("", True),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            program.stdout.readline()
            page = self.daemon.pages.get(program.pid)
            if not page:
                program.kill()
                return {"error": "no page: the library did not see the process use CUDA"}
            page.set_gate(True)
            end = time.monotonic() + 5
            while page.u32(pd.IN_FLIGHT) and time.monotonic() < end:
                time.sleep(0.001)
            run = {"in_flight": page.u32(pd.IN_FLIGHT)}
            run["lock"] = cuda.cuCheckpointProcessLock(program.pid, arguments)
            run["checkpoint"] = cuda.cuCheckpointProcessCheckpoint(program.pid, arguments)
            program.stdin.write("go\n")
            program.stdin.flush()
            time.sleep(2)
            run["at_gate"], run["died"] = page.u32(pd.AT_GATE), program.poll()
            run["restore"] = cuda.cuCheckpointProcessRestore(program.pid, arguments)
            run["unlock"] = cuda.cuCheckpointProcessUnlock(program.pid, arguments)
            page.set_gate(False)
            run["said"] = program.stdout.readline().strip()
            program.stdin.close()
            run["exit"] = program.wait(20)
            runs.append(run)
        return runs


def main():
    trial = Trial(sys.argv[1])
    parts = sys.argv[3:] or ["error", "peak", "wait", "gate", "cost"]
    seen = {}
    for part in parts:
        begin = time.monotonic()
        try:
            seen[part] = getattr(trial, part)()
        except Exception as error:  # the other parts are worth their time
            seen[part] = {"exception": repr(error)}
        seen[part + "_s"] = round(time.monotonic() - begin, 1)
        print(part, json.dumps(seen[part]), flush=True)
        if len(sys.argv) > 2:
            with open(sys.argv[2], "w") as out:
                json.dump(seen, out, indent=1)
    trial.ended.set()


if __name__ == "__main__":
    main()
