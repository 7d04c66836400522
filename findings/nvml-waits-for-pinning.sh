#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# While one process pins much host memory for its GPU, NVML answers no process of the host: a question
# about ANOTHER GPU waits for seconds too.
#
# Version:  driver 580.159.04, two H200s. Needs a GPU and GIB (48) GiB of free host memory; with two
#           GPUs the second one is asked about as well. Changes no setting.
# Expected: nvmlDeviceGetMemoryInfo answers within some milliseconds, as it does while nothing is pinned
#           (99th percentile 0.1 ms), at least for a GPU that the process does not use.
# Seen:     cuMemHostAlloc of 48 GiB took 26.6 s. The longest answer meanwhile took 3.5 s, for both GPUs
#           at the same instant (docs/measured/carrier-near.md); with 12 GiB 6.5 and 0.36 s. To
#           register the same memory in pieces of 1 GiB, once its pages exist, takes 1.2 s and delays
#           answers by 15 ms.
# Meaning:  a program that samples GPUs needs a thread for NVML and a time limit, and must not take a GPU
#           for lost because one answer is late. colloc's carrier pins 64 MiB, when a process begins.
set -euo pipefail

python=${PYTHON:-/usr/bin/python3} gib=${GIB:-48}
nvidia-smi -L >/dev/null 2>&1 || {
    echo "skipped: needs a GPU of NVIDIA and its driver"
    exit 77
}
free_gib=$(($(awk '/MemAvailable/ { print $2 }' /proc/meminfo) >> 20))
if ((free_gib < gib + 8)); then
    echo "skipped: needs $((gib + 8)) GiB of free host memory, $free_gib are there (GIB=N takes less)"
    exit 77
fi
"$python" - "$gib" <<'END'
import ctypes as c
import subprocess
import sys
import threading
import time

# Another process: what it does holds no lock of the one that asks.
PINS = """
import ctypes as c, sys
cuda, context, host = c.CDLL("libcuda.so.1"), c.c_void_p(), c.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0) == 0
cuda.cuCtxSetCurrent(context)
size = c.c_size_t(int(sys.argv[1]) << 30)
calls = {"pin": lambda: cuda.cuMemHostAlloc(c.byref(host), size, 1),
         "free": lambda: cuda.cuMemFreeHost(host), "begin": lambda: 0}
for line in sys.stdin:
    print(calls[line.strip()](), flush=True)
"""
nvml, gib, count = c.CDLL("libnvidia-ml.so.1"), int(sys.argv[1]), c.c_uint()
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetCount_v2(c.byref(count)) == 0
child = subprocess.Popen(
    [sys.executable, "-c", PINS, str(gib)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
)


def call(name):
    child.stdin.write(name + "\n")
    child.stdin.flush()
    return child.stdout.readline().strip()


class Clock(threading.Thread):
    """How long NVML takes to answer about one GPU, in ms."""

    def __init__(self, gpu):
        super().__init__(daemon=True)
        self.device, self.times = c.c_void_p(), []
        assert nvml.nvmlDeviceGetHandleByIndex_v2(gpu, c.byref(self.device)) == 0
        self.start()

    def run(self):
        memory = (c.c_ulonglong * 3)()
        while True:
            begin = time.monotonic()
            nvml.nvmlDeviceGetMemoryInfo(self.device, memory)
            self.times.append(1000 * (time.monotonic() - begin))
            time.sleep(0.005)


def measure(what, clocks, work):
    for clock in clocks:
        clock.times = []
    begin = time.monotonic()
    result = work()
    took = time.monotonic() - begin
    time.sleep(0.1)
    worst = [max(clock.times, default=0) for clock in clocks]
    said = ", ".join(f"GPU {gpu} {ms:.1f} ms" for gpu, ms in enumerate(worst))
    print(f"{what}: result {result}, {took:.2f} s; longest answer: {said}", flush=True)
    return max(worst)


call("begin")
clocks = [Clock(gpu) for gpu in range(min(count.value, 2))]
time.sleep(0.5)
calm = measure("nothing", clocks, lambda: time.sleep(3) or 0)
pinned = measure(f"cuMemHostAlloc of {gib} GiB", clocks, lambda: call("pin"))
measure("cuMemFreeHost", clocks, lambda: call("free"))
child.kill()
if pinned < 20 * max(calm, 5):
    sys.exit("changed: NVML's answers did not wait")
END
