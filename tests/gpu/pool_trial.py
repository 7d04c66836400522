#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The carrier's copies in host memory that was made ready (docs/carrier.md), on a real GPU.

    tests/gpu/pool_trial.py PROGRAMS OUTPUT SECONDS [--small]

PROGRAMS: a folder made by scripts/bundle. OUTPUT: a JSON line for each result. It needs root, and
what carrier_trial.py needs. ResNet-50 and ResNet-152 go out and in four times each: by the driver's
checkpoint, by the carrier to memory of the process, and to memory that is touched beforehand, as
room_file.c of the daemon does it; the latter also as clients of MPS. All others pause meanwhile.
"""
import ctypes
import os
import subprocess
import sys
import tempfile
import threading
import time

import carrier_mps_trial as cm

GIB = 1 << 30
TIMES = 4
ROOMS_GIB = {"resnet50": 8, "resnet152": 52}
SMALL_ROOMS_GIB = {"resnet50": 3, "resnet18": 2}
MAP_SHARED, PROT_READ_WRITE, MADV_HUGEPAGE, MADV_POPULATE_WRITE = 1, 3, 14, 23
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class Room:
    """A file whose pages are made by four threads, a GiB at a time."""

    def __init__(self, folder, gib):
        self.bytes, self.left, self.lock = gib * GIB, list(range(gib)), threading.Lock()
        self.fd = os.open(tempfile.mktemp(dir=folder), os.O_RDWR | os.O_CREAT | os.O_EXCL)
        os.ftruncate(self.fd, self.bytes)
        self.begin, self.failed, self.seconds = time.monotonic(), [], None
        self.threads = [threading.Thread(target=self.touch, daemon=True) for _ in range(4)]
        for thread in self.threads:
            thread.start()

    def touch(self):
        while True:
            with self.lock:
                if not self.left:
                    return
                at = self.left.pop() * GIB
            memory = libc.mmap(None, GIB, PROT_READ_WRITE, MAP_SHARED, self.fd, at)
            libc.madvise(memory, GIB, MADV_HUGEPAGE)
            if libc.madvise(memory, GIB, MADV_POPULATE_WRITE):
                self.failed.append(ctypes.get_errno())
            libc.munmap(memory, GIB)

    def wait(self):
        for thread in self.threads:
            thread.join()
        self.seconds = self.seconds or round(time.monotonic() - self.begin, 2)


class Trial(cm.Part):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.tmpfs = os.path.join(self.work, "tmpfs")
        os.mkdir(self.tmpfs)
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "huge=always,size=200g", "none", self.tmpfs], check=True
        )
        self.rooms_gib = SMALL_ROOMS_GIB if self.small else ROOMS_GIB

    def make_rooms(self, wave):
        return {key: Room(self.tmpfs, self.rooms_gib[key.split(",")[0]]) for key in wave}

    def run_wave(self, wave, rooms):
        """wave: key -> training."""
        for training in wave.values():
            training.wait_begun(90)
            self.pause(training)
        for key, training in wave.items():
            try:
                if key in rooms:
                    room = rooms[key]
                    room.wait()
                    training.daemon.give_room(training.process.pid, 1, room.bytes, room.fd)
                result = self.measure(training, TIMES)
                if key in rooms:
                    result.update(room_gib=room.bytes / GIB, made_s=room.seconds)
                    result.update(failed=room.failed[:2])
                self.note(f"speed {key}", result)
            except Exception as error:  # noqa: BLE001 - the others are still of use
                self.note(f"speed {key}", {"error": repr(error), "says": training.others[-4:]})
            training.kill()
            is_reference = key.endswith(", driver")
            self.keep(
                f"reference {key.split(',')[0]}" if is_reference else f"speed {key}",
                training.losses,
            )

    def machine(self):
        result = {}
        for name in ("shmem_enabled", "enabled"):
            with open(f"/sys/kernel/mm/transparent_hugepage/{name}") as file:
                result[name] = file.read().split("[")[1].split("]")[0]
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":") for line in file)
        result.update({key: lines[key].strip() for key in ("ShmemHugePages", "Shmem", "MemTotal")})
        self.note("machine", result)

    def run(self):
        small, large = self.kinds
        batch = {name: self.kinds[name][1] for name in self.kinds}
        rooms = self.make_rooms([f"{large}, pool", f"{small}, pool", f"{small}, pool, MPS"])

        def begin(name, **options):
            return self.start(name, batch[name], **options)

        first = {
            f"{large}, pool": begin(large),
            f"{small}, pool": begin(small),
            f"{small}, pool, MPS": begin(small, mps=True),
            f"{large}, driver": begin(large, carrier=False),
            f"{small}, driver": begin(small, carrier=False),
        }
        self.run_wave(first, rooms)
        self.machine()
        rooms = self.make_rooms([f"{large}, pool, MPS"])
        second = {
            f"{large}, pool, MPS": begin(large, mps=True),
            f"{large}, own": begin(large),
            f"{small}, own": begin(small),
        }
        self.run_wave(second, rooms)
        self.trial.end_mps()


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    programs, output, seconds = os.path.abspath(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    os.environ["PART_SECONDS"] = str(seconds)
    cm.ctypes.CDLL(None).prctl(cm.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
        trial = Trial(programs, output, work, "--small" in sys.argv[4:])
        timer = threading.Timer(seconds - 10, cm.end_all)
        timer.daemon = True
        timer.start()
        try:
            trial.run()
        finally:
            cm.end_all()
            subprocess.run(["umount", "-l", trial.tmpfs], check=False)
        cm.compare(output, work)
    os._exit(0)


if __name__ == "__main__":
    main()
