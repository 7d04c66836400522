#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a new process finds in the free memory of a GPU that others have used: nothing, if the
driver clears it.

    left_bytes.py [MIB [READ_MIB]]

Takes MIB of the first visible GPU, by default all that is free, and reads READ_MIB of them, evenly
spaced, by default all. Prints how many bytes it has taken and read, and how many of the pages of
4 KiB that it has read are not all zero.
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


def spaced(chunks, most):
    """At most `most` of them, at equal distances."""
    step = max(1, -(-len(chunks) // most))
    return chunks[::step]


def pages_left(cuda, at, room, zeros):
    error = cuda.cuMemcpyDtoH_v2(room, at, ctypes.c_size_t(CHUNK))
    if error:
        raise OSError(f"CUDA error {error}")
    if ctypes.CDLL(None).memcmp(room, zeros, ctypes.c_size_t(CHUNK)) == 0:
        return 0
    data, zero = memoryview(room).cast("B"), bytes(PAGE)
    return sum(data[i : i + PAGE] != zero for i in range(0, CHUNK, PAGE))


def main(arguments):
    most = int(arguments[0]) * MIB if arguments else 1 << 62
    most_read = int(arguments[1]) * MIB if len(arguments) > 1 else 1 << 62
    cuda = driver()
    room, zeros = ctypes.create_string_buffer(CHUNK), ctypes.create_string_buffer(CHUNK)
    chunks = take_all(cuda, most)
    read = spaced(chunks, max(1, most_read // CHUNK))
    left = sum(pages_left(cuda, at, room, zeros) for at in read)
    print(len(chunks) * CHUNK, len(read) * CHUNK, left)


if __name__ == "__main__":
    main(sys.argv[1:])
