# SPDX-License-Identifier: Apache-2.0
"""A daemon for libcolloc-preload.so: the other end of docs/preload.md, for tests and trials.

    daemon = PreloadDaemon(path, on_wait=lambda wait: [(BOUND, 60000), (RETRY, 0)])
    ...
    daemon.pages[pid].held(0)

`on_wait` gets each WAIT and returns the answers to send at once; `daemon.answer(wait, kind)` sends
one later.
"""
import array
import ctypes
import mmap
import os
import socket
import struct
import threading
import time

MESSAGE = struct.Struct("=IBBBBQIIQQQ16s")
MAGIC = 0x50434C43
LIMIT_S = 120  # for anything to happen at all, on a busy machine
HELLO, WAIT, WELCOME, BOUND, RETRY, FAIL, ROOM = range(1, 8)
MEMORY, CONTEXT, OVER_CAP = range(1, 4)
PAGE_SIZE = 4096
PAGE_MAGIC = 0x6C6C6F63
# struct preload_page: offsets of its fields, and of the first device
GATE, IN_FLIGHT, AT_GATE, WAITING, CAP, BEAT, FAILURES, WAITS, WAITED, FLAGS, CALLED = (
    8,
    12,
    16,
    20,
    24,
    32,
    40,
    48,
    56,
    64,
    68,
)
DEVICES, DEVICE_SIZE, DEVICES_MAX = 72, 56, 16
CARRY_ORDER, CARRY_DONE, CARRY_STATE, CARRY_WHY, CARRY_ERROR = 968, 972, 976, 980, 984
CARRY_BYTES, CARRY_OUT_US, CARRY_IN_US = 992, 1000, 1008
HELD, UNDER_WAY, COMMUNICATORS, COMMUNICATOR_SIZE, COMMUNICATORS_MAX = 1016, 1020, 1024, 32, 32
COMMUNICATORS_END = COMMUNICATORS + COMMUNICATOR_SIZE * COMMUNICATORS_MAX
CARRY_PLACE, CARRY_LIES, CARRY_PLACES = 988, 990, 991
KEEP, AWAY, HERE, TO_HOST = range(4)  # what the daemon orders
OWN, POOL, NEIGHBOUR = range(3)  # where a copy lies (enum preload_place)
# where the memory is, and why it is not elsewhere (src/preload/page.h)
NO_BLOCKS, IS_HERE, IS_WAITING, IS_COPYING = range(4)
IS_RELEASING, IS_AWAY, IS_RETURNING, IS_LOST = range(4, 8)
WHYS = """can off no-mapping several-gpus managed shared contexts other-memory linked captures
gate-open calls no-host-memory no-gpu-memory driver no-room""".split()
# struct preload_steps (src/preload/step_page.h)
STEPS, STEPS_TIMED_US, STEPS_UNIT, STEPS_SOURCE, STEPS_MARKED = 2048, 2056, 2064, 2068, 2072
# struct preload_calls (src/preload/message_page.h)
CALLS, CALLS_ALLOWED, CHANNELS, CHANNEL_SIZE, CHANNELS_MAX = 2304, 2312, 2320, 24, 64
JOINING = CHANNELS + CHANNEL_SIZE * CHANNELS_MAX
NO_STEPS, STEPS_OF_CALLS, STEPS_REPORTED = range(3)
USES_MANAGED, USES_IPC, USES_POOLS, INCOMPLETE, COUNTS_CALLS = 1, 2, 4, 8, 16
SEES_COLLECTIVES, OTHER_COLLECTIVES = 128, 256
SEALS = 2 | 4  # F_SEAL_SHRINK, F_SEAL_GROW


class Page:
    def __init__(self, cap_bytes=0):
        self.fd = os.memfd_create("colloc-preload", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, PAGE_SIZE)
        import fcntl

        fcntl.fcntl(self.fd, 1033, SEALS)
        self.map = mmap.mmap(self.fd, PAGE_SIZE)
        struct.pack_into("=II", self.map, 0, PAGE_MAGIC, 1)
        struct.pack_into("=Q", self.map, CAP, cap_bytes)

    def u32(self, offset):
        return struct.unpack_from("=I", self.map, offset)[0]

    def u64(self, offset):
        return struct.unpack_from("=Q", self.map, offset)[0]

    def _device(self, device, field):
        return self.u64(DEVICES + DEVICE_SIZE * device + 16 + 8 * field)

    def uuid(self, device):
        at = DEVICES + DEVICE_SIZE * device
        return bytes(self.map[at : at + 16])

    def held(self, device=0):
        return self._device(device, 0)

    def peak(self, device=0):
        return self._device(device, 1)

    def window_peak(self, device=0):
        return self._device(device, 2)

    def pool_held(self, device=0):
        return self._device(device, 3)

    def pool_peak(self, device=0):
        return self._device(device, 4)

    def set_gate(self, closed):
        """Opening does not wake the waiters: they look again each second by themselves."""
        struct.pack_into("=I", self.map, GATE, 1 if closed else 0)

    def uses(self):
        """What the process uses, and whether the numbers are whole."""
        return self.u32(FLAGS) & ~(COUNTS_CALLS | SEES_COLLECTIVES)

    def take_called(self):
        """Was CUDA called since the last time?"""
        called = self.u32(CALLED)
        struct.pack_into("=I", self.map, CALLED, 0)
        return called == 1

    def set_order(self, goal):
        """Returns the order, which is in CARRY_DONE when it was carried out or has failed."""
        order = (self.u32(CARRY_ORDER) & ~3) + 4 + goal
        struct.pack_into("=I", self.map, CARRY_ORDER, order)
        self.wake(CARRY_ORDER)
        return order

    def wake(self, offset):
        """Wakes threads that wait for a field to change: FUTEX_WAKE."""
        word = ctypes.c_uint32.from_buffer(self.map, offset)
        call = 202 if os.uname().machine == "x86_64" else 98
        ctypes.CDLL(None).syscall(call, ctypes.byref(word), 1, 2**31 - 1, None, None, 0)

    def carry(self, goal, timeout=LIMIT_S):
        """Has it carried out. Returns why it was not, or "can"."""
        order, end = self.set_order(goal), time.monotonic() + timeout
        while self.u32(CARRY_DONE) != order:
            if time.monotonic() > end:
                raise AssertionError(f"not carried out: state {self.u32(CARRY_STATE)}")
            time.sleep(0.0005)
        return self.why()

    def set_place(self, place):
        struct.pack_into("=H", self.map, CARRY_PLACE, place)

    def lies(self):
        return self.map[CARRY_LIES]

    def places(self):
        return self.map[CARRY_PLACES]

    def why(self):
        return WHYS[self.u32(CARRY_WHY)]

    def where(self):
        return self.u32(CARRY_STATE)

    def channels(self):
        """(id of the communicator, from, to): sends or receives of this process"""
        found = {}
        for place in range(CHANNELS_MAX):
            number, launched, ends = struct.unpack_from(
                "=QQI", self.map, CHANNELS + CHANNEL_SIZE * place
            )
            if number:
                found[number, ends >> 16, ends & 0xFFFF] = launched
        return found

    def ranks(self):
        """id of a communicator: which rank of it this process is"""
        found = {}
        for number, (place, _, _) in self.communicators().items():
            found[number] = self.u32(COMMUNICATORS + COMMUNICATOR_SIZE * place + 28) - 1
        return found

    def allow_calls(self, calls):
        struct.pack_into("=Q", self.map, CALLS_ALLOWED, calls)

    def communicators(self):
        """id: (place, collectives launched, number of ranks)"""
        found = {}
        for place in range(COMMUNICATORS_MAX):
            at = COMMUNICATORS + COMMUNICATOR_SIZE * place
            number, launched, _, ranks = struct.unpack_from("=QQQI", self.map, at)
            if number:
                found[number] = (place, launched, ranks)
        return found

    def allow(self, place, launched):
        struct.pack_into("=Q", self.map, COMMUNICATORS + COMMUNICATOR_SIZE * place + 16, launched)

    def hold(self, number):
        """0: collectives pass"""
        struct.pack_into("=I", self.map, HELD, number)
        self.wake(HELD)

    def set_cap(self, cap_bytes):
        struct.pack_into("=Q", self.map, CAP, cap_bytes)


class ProcessPage:
    """The page of a running process, read from outside: with the rights to trace it."""

    PHASES = "none here waiting copying releasing away returning lost".split()

    def __init__(self, pid, daemon):
        """daemon: the pid of collocd; the process keeps the pages of former ones."""
        of_daemon, own = self.pages_of(daemon), self.pages_of(pid)
        starts = [own[inode] for inode in own if inode in of_daemon]
        if not starts:
            raise RuntimeError(f"process {pid} has no page of collocd")
        self.memory, self.start = os.open(f"/proc/{pid}/mem", os.O_RDONLY), starts[0]

    @staticmethod
    def pages_of(pid):
        """inode: address"""
        with open(f"/proc/{pid}/maps") as maps:
            rows = [line.split() for line in maps if "memfd:colloc-preload" in line]
        return {row[4]: int(row[0].split("-")[0], 16) for row in rows}

    def close(self):
        os.close(self.memory)

    def _number(self, at, size):
        return int.from_bytes(os.pread(self.memory, size, self.start + at), "little")

    def u32(self, at):
        return self._number(at, 4)

    def u64(self, at):
        return self._number(at, 8)

    def phase(self):
        """ "held": collectives are; "gate": it is closed, and no order is carried out."""
        where = self.PHASES[self.u32(CARRY_STATE)]
        if where != "here":
            return where
        return "gate" if self.u32(GATE) else "held" if self.u32(HELD) else where

    def stand(self):
        """What a log needs to say why ranks could not be stopped, or their memory not carried."""
        communicators = range(COMMUNICATORS, COMMUNICATORS_END, COMMUNICATOR_SIZE)
        channels = range(CHANNELS, JOINING, CHANNEL_SIZE)
        return {
            "phase": self.phase(),
            "why": WHYS[self.u32(CARRY_WHY)],
            "blocks_mib": self.u64(CARRY_BYTES) >> 20,
            "held_mib": [
                self.u64(DEVICES + DEVICE_SIZE * i + 16) >> 20 for i in range(DEVICES_MAX)
            ],
            "flags": self.u32(FLAGS),
            "in_flight": self.u32(IN_FLIGHT),
            "calls": [self.u64(CALLS), self.u64(CALLS_ALLOWED)],
            "under_way": [self.u32(UNDER_WAY), self.u32(JOINING)],
            "launched": [
                [self.u64(at + 8), self.u64(at + 16)] for at in communicators if self.u64(at)
            ],
            "messages": [
                [self.u32(at + 16) >> 16, self.u32(at + 16) & 0xFFFF, self.u64(at + 8)]
                for at in channels
                if self.u64(at)
            ],
        }

    def wait_phase(self, *phases, limit_s=10):
        """Without a pause: some last for a few milliseconds. Returns the phase then."""
        end = time.monotonic() + limit_s
        phase = self.phase()
        while phase not in phases and time.monotonic() < end:
            phase = self.phase()
        return phase


class Wait:
    def __init__(self, connection, pid, fields):
        self.connection, self.pid = connection, pid
        (_, _, _, self.reason, _, self.task, self.attempt) = fields[:7]
        (self.ordinal, self.bytes, self.held, _, self.uuid) = fields[7:]


class PreloadDaemon:
    def __init__(self, path, on_wait, cap_bytes=0, answers_hello=True):
        self.on_wait, self.cap_bytes, self.answers_hello = on_wait, cap_bytes, answers_hello
        self.pages, self.waits, self.connections = {}, [], set()
        self.processes = {}  # pid: the connection
        self.lock, self.changed = threading.Lock(), threading.Condition()
        self.path = path
        if os.path.exists(path):
            os.unlink(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(path)
        os.chmod(path, 0o666)
        self.socket.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()
        with self.lock:
            for connection in self.connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def wait_until(self, condition, timeout=LIMIT_S):
        """Waits until condition() is true; looks again at every message, and now and then."""
        import time

        end = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > end:
                raise AssertionError("the condition did not come true")
            with self.changed:
                self.changed.wait(0.02)

    def answer(self, wait, kind, bound_ms=0):
        packet = MESSAGE.pack(
            MAGIC, 1, kind, 0, 0, wait.task, wait.attempt, 0, 0, 0, bound_ms, bytes(16)
        )
        try:
            wait.connection.send(packet)
        except OSError:
            pass

    def give_room(self, pid, place, size, fd, offset=0):
        """Hands a process memory for its copy, by a descriptor."""
        packet = MESSAGE.pack(MAGIC, 1, ROOM, place, 0, 0, 0, 0, size, offset, 0, bytes(16))
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
        self.processes[pid].sendmsg([packet], rights)
        self.pages[pid].set_place(place)

    def give_back(self, pid, place=OWN):
        """What was handed over and is not used is given back."""
        packet = MESSAGE.pack(MAGIC, 1, ROOM, place, 0, 0, 0, 0, 0, 0, 0, bytes(16))
        self.processes[pid].send(packet)
        self.pages[pid].set_place(OWN)

    def _accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with self.lock:
                self.connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        pid = struct.unpack("=iII", credentials)[0]
        while True:
            try:
                packet = connection.recv(256)
            except OSError:
                packet = b""
            if len(packet) != MESSAGE.size:
                break
            self._take(connection, pid, MESSAGE.unpack(packet))
            with self.changed:
                self.changed.notify_all()
        with self.lock:
            self.connections.discard(connection)
        connection.close()

    def _take(self, connection, pid, fields):
        if fields[2] == HELLO and self.answers_hello:
            page = Page(self.cap_bytes)
            self.pages[pid] = page
            self.processes[pid] = connection
            packet = MESSAGE.pack(MAGIC, 1, WELCOME, 0, 0, 0, 0, 0, 0, 0, 0, bytes(16))
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [page.fd]))]
            connection.sendmsg([packet], rights)
        if fields[2] == WAIT:
            wait = Wait(connection, pid, fields)
            self.waits.append(wait)
            for kind, bound_ms in self.on_wait(wait):
                self.answer(wait, kind, bound_ms)
