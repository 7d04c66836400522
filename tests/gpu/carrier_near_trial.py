#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The carrier to the memory of a neighbour GPU (docs/carrier.md), on two real GPUs of one host.
Writes JSON lines.

    tests/gpu/carrier_near_trial.py PROGRAMS OUTPUT SECONDS [--small] [PART ...]

PROGRAMS: a folder made by scripts/bundle. It needs what carrier_trial.py needs, and two GPUs
between which memory can be mapped. Each part is a process with its own time limit
(carrier_mps_trial.py).

Parts, the first one first:
    owner      whose the lent memory is, in NVML, from its creation to the kill of its last user
    speed      ResNet-50 and ResNet-152 out and in by the neighbour, by host memory and by the
               driver's checkpoint, time-sliced and as MPS clients; the neighbour wants its memory
               back in the middle; a kill while the memory lies there. The others pause meanwhile
    pinned     steps and NVML's answers on the other GPU while 48 GiB are pinned, registered, copied
               and staged on the first
"""
import array
import json
import os
import socket
import subprocess
import sys
import time

import carrier_mps_trial as cm
import carrier_trial as ct

pd, until = ct.pd, cm.until
LIMITS_S = {"owner": 30, "speed": 130, "pinned": 100}
SLACK_BYTES = 64 << 20  # the training may allocate between the loan and the order
GRAIN = 2 << 20

# Creates memory of a GPU, without a context there, and sends its descriptor. It is as
# colloc-checkpoint does it.
LENDER = r"""
import array, ctypes as c, json, os, socket, sys
cuda = c.CDLL("libcuda.so.1")
class Prop(c.Structure):
    _fields_ = [("type", c.c_int), ("handles", c.c_int), ("where", c.c_int), ("id", c.c_int),
                ("meta", c.c_void_p), ("flags", c.c_ubyte * 8)]
to = socket.socket(fileno=int(sys.argv[1]))
began = cuda.cuInit(0)
for line in sys.stdin:
    gpu, size, keeps = map(int, line.split())
    handle, fd, prop = c.c_uint64(), c.c_int(-1), Prop(1, 1, 1, gpu)
    created = cuda.cuMemCreate(
        c.byref(handle), c.c_size_t(size), c.byref(prop), c.c_ulonglong(0))
    exported = cuda.cuMemExportToShareableHandle(
        c.byref(fd), handle, 1, c.c_ulonglong(0)) if created == 0 else None
    released = None if keeps or created else cuda.cuMemRelease(handle)
    said = json.dumps({"init": began, "create": created, "export": exported, "release": released})
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd.value]))]
    to.sendmsg([said.encode()], rights if fd.value >= 0 else [])
    if fd.value >= 0: os.close(fd.value)
"""

# Maps lent memory for its own GPU, the only one that it sees, and writes to it.
BORROWER = r"""
import ctypes as c, json, sys
cuda = c.CDLL("libcuda.so.1")
fd, size = int(sys.argv[1]), int(sys.argv[2])
context, handle, at, own, count = c.c_void_p(), c.c_uint64(), c.c_uint64(), c.c_uint64(), c.c_int()
class Access(c.Structure):
    _fields_ = [("where", c.c_int), ("id", c.c_int), ("flags", c.c_int)]
none, whole = c.c_ulonglong(0), c.c_size_t(size)
r = {"init": cuda.cuInit(0), "retain": cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0)}
cuda.cuCtxSetCurrent(context)
cuda.cuDeviceGetCount(c.byref(count))
r["sees"] = count.value
r["import"] = cuda.cuMemImportFromShareableHandle(c.byref(handle), c.c_void_p(fd), 1)
r["reserve"] = cuda.cuMemAddressReserve(c.byref(at), whole, c.c_size_t(0), c.c_uint64(0), none)
r["map"] = cuda.cuMemMap(at, whole, c.c_size_t(0), handle, none)
r["access"] = cuda.cuMemSetAccess(at, whole, c.byref(Access(1, 0, 3)), c.c_size_t(1))
r["own"] = cuda.cuMemAlloc_v2(c.byref(own), whole)
r["fill"] = cuda.cuMemsetD8_v2(own, 7, whole)
r["copy"] = cuda.cuMemcpyDtoD_v2(at, own, whole)
back = (c.c_ubyte * 16)()
r["read"] = cuda.cuMemcpyDtoH_v2(back, c.c_uint64(at.value + size - 16), c.c_size_t(16))
r["right"] = bytes(back) == bytes([7] * 16)
import os; os.close(fd)
print(json.dumps(r), flush=True)
sys.stdin.read()
"""

# Does one thing with host memory on its GPU, and says when it begins and ends.
PINNER = r"""
import ctypes as c, mmap, sys, time
cuda, libc = c.CDLL("libcuda.so.1"), c.CDLL(None, use_errno=True)
gib = int(sys.argv[1])
context, host, at = c.c_void_p(), c.c_void_p(), c.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0) == 0
cuda.cuCtxSetCurrent(context)
size = gib << 30
whole = c.c_size_t(size)
libc.mmap.restype = c.c_void_p
libc.mmap.argtypes = [c.c_void_p, c.c_size_t, c.c_int, c.c_int, c.c_int, c.c_long]
def room():
    at = libc.mmap(None, size + (2 << 20), 3, 0x22, -1, 0)
    at += -at % (2 << 20)
    libc.madvise(c.c_void_p(at), whole, 14)
    return at
def touch(at): libc.memset(c.c_void_p(at), 1, whole)
def part(name, what):
    print("begin", name, flush=True)
    begin = time.monotonic()
    r = what()
    print("end", name, r, round(time.monotonic() - begin, 3), flush=True)
    sys.stdin.readline()
sys.stdin.readline()
assert cuda.cuMemAlloc_v2(c.byref(at), whole) == 0
part("pinned", lambda: cuda.cuMemHostAlloc(c.byref(host), whole, 1))
part("copied from pinned", lambda: cuda.cuMemcpyDtoH_v2(host, at, whole))
part("unpinned", lambda: cuda.cuMemFreeHost(host))
pages = room()
part("touched", lambda: touch(pages))
def register():
    for i in range(gib):
        r = cuda.cuMemHostRegister_v2(c.c_void_p(pages + (i << 30)), c.c_size_t(1 << 30), 1)
        if r: return r
    return 0
part("registered in pieces of 1 GiB", register)
def unregister():
    return [cuda.cuMemHostUnregister(c.c_void_p(pages + (i << 30))) for i in range(gib)][-1]
part("unregistered", unregister)
"""


def smi(query, gpu):
    out = subprocess.run(
        ["nvidia-smi", "-i", str(gpu), f"--query-{query}", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
    ).stdout
    return [line.strip() for line in out.splitlines()]


def used_mib(gpu):
    return int(smi("gpu=memory.used", gpu)[0])


class Lender:
    def __init__(self):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        env = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"}
        env["CUDA_MPS_PIPE_DIRECTORY"] = "/nonexistent"
        self.socket = ours
        self.process = subprocess.Popen(
            [sys.executable, "-c", LENDER, str(theirs.fileno())],
            stdin=subprocess.PIPE,
            text=True,
            env=env,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self.lend(GRAIN, closes=True)  # once CUDA is initialised, a loan is quick

    def lend(self, size, gpu=1, keeps=False, closes=False):
        """Returns the descriptor, what the driver said, and how long it took."""
        begin = time.monotonic()
        self.process.stdin.write(f"{gpu} {size} {int(keeps)}\n")
        self.process.stdin.flush()
        said, rights, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(4))
        took = time.monotonic() - begin
        fds = array.array("i")
        for _, _, data in rights:
            fds.frombytes(data[:4])
        if closes and fds:
            os.close(fds.pop())
        return (fds[0] if fds else -1), json.loads(said or b"{}"), round(took, 4)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.socket.close()


class Part(cm.Part):
    def __init__(self, *arguments):
        uuids = smi("gpu=uuid", "0,1")
        os.environ["CUDA_VISIBLE_DEVICES"] = uuids[0]  # of all trainings, and of their MPS server
        self.uuids = uuids
        super().__init__(*arguments)

    # ---- whose is it ----

    def seen(self, pids):
        apps = [line.split(", ") for line in smi("compute-apps=pid,used_memory", 1)]
        names = {str(pid): name for name, pid in pids.items()}
        listed = {names.get(pid, "another"): used for pid, used in apps}
        return {"used_mib_gpu1": used_mib(1), "listed_on_gpu1": listed}

    def borrow(self, fd, size, mps):
        env = dict(os.environ, **(self.trial.mps_environment() if mps else {}))
        process = subprocess.Popen(
            [sys.executable, "-c", BORROWER, str(fd), str(size)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=env,
            pass_fds=[fd],
        )
        line = process.stdout.readline()
        said = json.loads(line) if line.startswith("{") else {"says": line}
        return process, said

    def owner(self):
        size = (1 if self.small else 8) << 30
        for mps in (False, True):
            rows = []
            lender = Lender()
            pids = {"lender": lender.process.pid}
            rows.append({"when": "before", **self.seen(pids)})
            fd, said, took = lender.lend(size, keeps=True)
            rows.append({"when": "created", "said": said, "took_s": took, **self.seen(pids)})
            if fd < 0:
                self.note(f"owner{', MPS' if mps else ''}", {"rows": rows})
                continue
            borrower, said = self.borrow(fd, size, mps)
            os.close(fd)
            pids["borrower"] = borrower.pid
            rows.append({"when": "mapped and written", "said": said, **self.seen(pids)})
            lender.end()
            rows.append({"when": "the lender has ended", **self.seen(pids)})
            borrower.kill()
            borrower.wait()
            time.sleep(0.5)
            rows.append({"when": "the borrower was killed", **self.seen(pids)})
            self.note(f"owner{', MPS' if mps else ''}", {"rows": rows})
        self.trial.end_mps()

    # ---- speeds ----

    def hand_over(self, training):
        size = training.page.u64(pd.CARRY_BYTES) + SLACK_BYTES
        size += -size % GRAIN
        fd, said, took = self.lender.lend(size)
        if fd < 0:
            raise RuntimeError(f"no loan of {size}: {said}")
        training.daemon.give_room(training.process.pid, pd.NEIGHBOUR, size, fd)
        os.close(fd)
        return took

    def swap_near(self, training):
        before, took = used_mib(1), self.hand_over(training)
        why, out_s = training.leave()
        row = {"why": why, "loan_s": took, "out_s": round(out_s, 4)}
        if why != "can":
            row["error"] = training.page.u32(pd.CARRY_ERROR)
            return row
        row["neighbour_mib"] = used_mib(1) - before
        row["lies"] = training.page.lies()
        time.sleep(0.1)
        why, in_s = training.come_back()
        row.update(why=why, in_s=round(in_s, 4), left_mib=used_mib(1) - before)
        return row

    def swap_wanted(self, training):
        """The neighbour wants its memory back in the middle."""
        before = used_mib(1)
        self.hand_over(training)
        why, out_s = training.leave()
        row = {"why": why, "out_s": round(out_s, 4)}
        if why != "can":
            return row
        training.page.set_place(pd.OWN)
        begin = time.monotonic()
        row["to_host"] = training.page.carry(pd.TO_HOST)
        row["to_host_s"] = round(time.monotonic() - begin, 4)
        row["left_mib"] = used_mib(1) - before
        why, in_s = training.come_back()
        row.update(why=why, in_s=round(in_s, 4))
        return row

    def kill_away(self, training):
        before = used_mib(1)
        self.hand_over(training)
        why, _ = training.leave()
        row = {"why": why, "neighbour_mib": used_mib(1) - before}
        training.process.kill()
        training.process.wait()
        time.sleep(0.5)
        row["left_mib"] = used_mib(1) - before
        return row

    def measure(self, training, times):
        self.pause(training, False)
        self.wait_steps(training, 3)
        if not training.daemon:
            return super().measure(training, times)
        page, result = training.page, {}
        result["gib"] = round(page.u64(pd.CARRY_BYTES) / 2**30, 2)
        result["near"] = [self.swap_near(training) for _ in range(times)]
        page.set_place(pd.OWN)
        result["host"] = [training.swap(0.1) for _ in range(2)]
        result["wanted"] = [self.swap_wanted(training) for _ in range(1 if times < 5 else 2)]
        n = len(training.steps)
        try:
            self.wait_steps(training, 10)
        except TimeoutError:
            pass
        result["steps_after"] = len(training.steps) - n
        result["killed"] = self.kill_away(training)
        return result

    def speed(self):
        self.lender = Lender()
        references = {}
        for name, (steps, batch, _) in self.kinds.items():
            references[name] = self.start(name, batch, min(steps, 30), carrier=False)
        for name, training in references.items():  # they end first: not all fit on the GPU
            training.end(60)
            self.keep(f"reference {name}", training.losses)
        super().speed()
        self.lender.end()

    # ---- what the other GPU sees ----

    def beside_on(self, gpu):
        return self.start(
            "resnet50", 8 if self.small else 64, carrier=False, CUDA_VISIBLE_DEVICES=self.uuids[gpu]
        )

    def note_beside(self, name, beside, clocks, seconds, r=None):
        steps = beside.steps[self.n_steps :]
        self.n_steps = len(beside.steps)
        taken = {f"gpu{i}": clock.take() for i, clock in enumerate(clocks)}
        row = {"took_s": seconds, "answer": r, "steps": len(steps)}
        row["p50_step_ms"] = round(1000 * sorted(steps)[len(steps) // 2], 2) if steps else None
        row["p99_step_ms"] = round(1000 * cm.p99(steps), 2) if steps else None
        row["worst_step_ms"] = round(1000 * max(steps), 2) if steps else None
        for gpu, times in taken.items():
            row[f"nvml_{gpu}"] = {
                "answers": len(times),
                "p99_ms": cm.p99(times),
                "worst_ms": max(times, default=None),
            }
        row["what"] = name
        self.note(f"beside, {name}", row)

    def pinned(self):
        gib = 2 if self.small else 48
        beside = self.beside_on(1)
        name, (_, batch, _) = list(self.kinds.items())[1]
        staged = self.start(name, batch)
        self.lender = Lender()
        pinner = subprocess.Popen(
            [sys.executable, "-c", PINNER, str(gib)],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        beside.wait_begun(60)
        clocks = [cm.NvmlClock(0), cm.NvmlClock(1)]
        staged.wait_begun(60)
        self.wait_steps(staged, 3)
        self.pause(staged)
        time.sleep(1)
        [clock.take() for clock in clocks]
        self.n_steps = len(beside.steps)
        time.sleep(1 if self.small else 5)
        self.note_beside("nothing", beside, clocks, 5)
        for way in ("host", "near"):
            begin = time.monotonic()
            self.pause(staged, False)
            self.wait_steps(staged, 1)
            swaps = [staged.swap() if way == "host" else self.swap_near(staged) for _ in range(2)]
            self.pause(staged)
            seconds = round(time.monotonic() - begin, 2)
            self.note_beside(f"staged, {way}", beside, clocks, seconds, [s["why"] for s in swaps])
        staged.kill()
        while time.monotonic() < self.end - 8:
            [clock.take() for clock in clocks]
            self.n_steps = len(beside.steps)
            pinner.stdin.write("\n")
            pinner.stdin.flush()
            if not pinner.stdout.readline():
                break
            words = pinner.stdout.readline().split()
            self.note_beside(" ".join(words[1:-2]), beside, clocks, float(words[-1]), words[-2])
        pinner.kill()
        beside.kill()


GROUPS = [["owner"], ["speed"], ["pinned"]]
SMALL_GROUPS = [["owner", "pinned"], ["speed"]]

if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    cm.run_trial(__file__, Part, LIMITS_S, GROUPS, SMALL_GROUPS)
