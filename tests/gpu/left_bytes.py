#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a new process finds in the free memory of a GPU that others have used: nothing, if the
driver clears it.

    left_bytes.py [MIB]

Takes MIB of the first visible GPU, by default all that is free, and prints how many bytes it has
taken, and how many of its pages of 4 KiB are not all zero.
"""
import ctypes
import sys

MIB = 1 << 20
CHUNK = 64 * MIB
PAGE = 4096


def driver():
    cuda = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    for call in (
        lambda: cuda.cuInit(0),
        lambda: cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
        lambda: cuda.cuCtxSetCurrent(context),
    ):
        error = call()
        if error:
            raise OSError(f"CUDA error {error}")
    return cuda


def take_all(cuda, most):
    """Addresses of chunks, until no more is free."""
    chunks = []
    while len(chunks) * CHUNK < most:
        at = ctypes.c_uint64()
        if cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(CHUNK)):
            break
        chunks.append(at)
    return chunks


def pages_left(cuda, at, room):
    error = cuda.cuMemcpyDtoH_v2(room, at, ctypes.c_size_t(CHUNK))
    if error:
        raise OSError(f"CUDA error {error}")
    data, zeros = memoryview(room).cast("B"), bytes(PAGE)
    if data == bytes(CHUNK):
        return 0
    return sum(data[i : i + PAGE] != zeros for i in range(0, CHUNK, PAGE))


def main(arguments):
    most = int(arguments[0]) * MIB if arguments else 1 << 62
    cuda = driver()
    room = ctypes.create_string_buffer(CHUNK)
    chunks = take_all(cuda, most)
    print(len(chunks) * CHUNK, sum(pages_left(cuda, at, room) for at in chunks))


if __name__ == "__main__":
    main(sys.argv[1:])
