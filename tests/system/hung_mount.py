# SPDX-License-Identifier: Apache-2.0
"""A mounted file system that stops answering, as NFS does when its server is gone.

It is a FUSE server that reads every request about a file and never replies. A process that opens a
file there waits in the kernel, and even SIGKILL does not end it.
"""

import ctypes
import os
import struct
import threading

LOOKUP, FORGET, GETATTR, OPEN, RELEASE, FLUSH, INIT, BATCH_FORGET = 1, 2, 3, 14, 18, 25, 26, 42
HEADER = struct.Struct("<IIQQIIII")
MNT_FORCE, MNT_DETACH = 1, 2
LIBC = ctypes.CDLL(None, use_errno=True)


def node(number, mode, size):
    return struct.pack("<6Q10I", number, size, *(0,) * 7, mode, 1, 0, 0, 0, 4096, 0)


def attributes(number):
    """Of the root folder, or of the file: the answer is valid for an hour."""
    of = node(1, 0o40777, 0) if number == 1 else node(2, 0o100666, 65536)
    return struct.pack("<QII", 3600, 0, 0) + of


def initialised():
    return struct.pack("<IIIIHHIIHHI7I", 7, 31, 65536, 0, 16, 12, 65536, 1, 0, 0, 0, *[0] * 7)


class HungMount:
    """Raises OSError where FUSE is not to be had."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.device = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.device},rootmode=40000,user_id=0,group_id=0,allow_other"
        if LIBC.mount(b"hung", folder.encode(), b"fuse", 0, options.encode()) < 0:
            os.close(self.device)
            raise OSError(ctypes.get_errno(), "mount of FUSE")
        self.hung = threading.Semaphore(
            0
        )  # released for each request that is left without an answer
        self.server = threading.Thread(target=self.serve, daemon=True)
        self.server.start()

    def serve(self):
        while True:
            try:
                request = os.read(self.device, 1 << 17)
            except OSError:
                return  # unmounted
            _, kind, unique, number, _, _, _, _ = HEADER.unpack_from(request)
            data = self.answer(kind, number)
            if data is not None:
                os.write(self.device, struct.pack("<IiQ", 16 + len(data), 0, unique) + data)
            elif kind not in (FORGET, BATCH_FORGET):
                self.hung.release()

    def answer(self, kind, number):
        """None: there is none."""
        if kind == INIT:
            return initialised()
        return attributes(number) if kind == GETATTR else None

    def close(self):
        """What waits there fails and goes on, then the mount is gone."""
        if self.device is None:  # closed already
            return
        LIBC.umount2(self.folder.encode(), MNT_FORCE)
        LIBC.umount2(self.folder.encode(), MNT_DETACH)
        self.server.join()
        os.close(self.device)
        self.device = None


class HungFile(HungMount):
    """With a file "f" that can be opened, and whose reads are not answered."""

    def answer(self, kind, number):
        if kind == LOOKUP:
            return struct.pack("<4Q2I", 2, 1, 3600, 3600, 0, 0) + node(2, 0o100666, 65536)
        if kind == OPEN:
            direct_io = 1
            return struct.pack("<QIi", 1, direct_io, 0)
        if kind in (FLUSH, RELEASE):
            return b""
        return super().answer(kind, number)
