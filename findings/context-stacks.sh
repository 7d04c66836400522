#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Half of the memory that an idle CUDA context takes of an H200 is a stack for each thread that the
# GPU could run at once. The limit that is said to be for kernels (CU_LIMIT_STACK_SIZE) gives it
# back without a kernel, and a larger one takes a gigabyte without a kernel.
#
# Version:  driver 580.159.04, H200 (132 multiprocessors of 2,048 threads). Needs a GPU that nothing
#           else uses meanwhile. Changes no setting of the GPU: the limit is that of a process.
# Expected: a context takes what its modules need; stacks are taken when a kernel that needs them is
#           launched, and the limit changes nothing before.
# Seen:     270,336 threads, and no kernel launched: a context takes 523 MiB with stacks of 1,024
#           bytes (the default), 263 MiB with 16, 1,315 MiB with 4,096. From 1,024 to 16 it gave
#           back 260 MiB; 1 KiB for each of the threads is 264 MiB.
# Meaning:  a program that launches nothing (a monitor, a helper that asks a library) halves what it
#           takes by one call. Who estimates memory must count the context by the GPU's
#           multiprocessors: 1 KiB for each of their threads. colloc-cudnn sets the least stack
#           before it opens cuDNN.
set -euo pipefail

python=${PYTHON:-/usr/bin/python3}
nvidia-smi -L >/dev/null 2>&1 || {
    echo "skipped: needs a GPU of NVIDIA and its driver"
    exit 77
}
"$python" - <<'END'
import ctypes as c
import subprocess

STACK_SIZE = 0  # CU_LIMIT_STACK_SIZE
MULTIPROCESSORS, THREADS = 16, 39  # CU_DEVICE_ATTRIBUTE_*
cuda, context, limit, number = c.CDLL("libcuda.so.1"), c.c_void_p(), c.c_size_t(), c.c_int()


def used_mib():
    query = ["nvidia-smi", "-i", uuid, "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    return int(subprocess.run(query, capture_output=True, text=True, check=True).stdout)


def attribute(which):
    assert cuda.cuDeviceGetAttribute(c.byref(number), which, 0) == 0
    return number.value


assert cuda.cuInit(0) == 0
raw = (c.c_ubyte * 16)()
assert cuda.cuDeviceGetUuid_v2(raw, 0) == 0
digits = bytes(raw).hex()
uuid = "GPU-" + "-".join(
    digits[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
)
empty = used_mib()
assert cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuCtxGetLimit(c.byref(limit), STACK_SIZE) == 0
threads = attribute(MULTIPROCESSORS) * attribute(THREADS)
first = used_mib() - empty
print(f"{threads} threads, stacks of {limit.value} bytes: the context takes {first} MiB")
taken = {limit.value: first}
for size in (16, 4096):
    assert cuda.cuCtxSetLimit(STACK_SIZE, c.c_size_t(size)) == 0
    taken[size] = used_mib() - empty
    print(f"stacks of {size} bytes: {taken[size]} MiB")
saved, stacks = first - taken[16], threads * (limit.value if limit.value > 1024 else 1024) >> 20
print(f"given back: {saved} MiB; {threads} x 1 KiB are {stacks} MiB")
more = taken[4096] - taken[16]
ok = abs(saved - stacks) <= 0.1 * stacks and abs(more - 4 * stacks) <= 0.1 * 4 * stacks
raise SystemExit(0 if ok else "changed: the stacks are not kept for each thread any more")
END
