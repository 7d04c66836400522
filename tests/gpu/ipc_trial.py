#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory that processes share by CUDA IPC, beside the carrier (docs/carrier.md), on a real GPU.
Writes JSON lines.

    tests/gpu/ipc_trial.py PROGRAMS OUTPUT SECONDS [--small] [PART ...]

PROGRAMS: a folder made by scripts/bundle. Each part is a process with its own time limit; what a
part leaves running is ended. All parts together end within SECONDS. It uses the first GPU that
CUDA_VISIBLE_DEVICES names.

Parts, the first one first:
    answers      what the driver's calls of IPC answer: plain, with the library, with the carrier
    checkpoint   the driver's checkpoint of processes with mapped memory that can be exported
    torch        torch.multiprocessing (ipc_share.py): plain, with the library, with the carrier
    torch-mps    the same as MPS clients
    cupy         the same with CuPy's interface of IPC
    allocations  400 blocks that can be exported, and 400 that cannot
    steps        ResNet-50's steps with the carrier and without the library, in pairs
"""
import ctypes
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import carrier_trial as ct
from carrier_mps_trial import PR_SET_CHILD_SUBREAPER, end_all, until, write

HERE = os.path.dirname(os.path.abspath(__file__))
LIMITS_S = {
    "answers": 40,
    "checkpoint": 30,
    "torch": 90,
    "torch-mps": 90,
    "cupy": 30,
    "allocations": 30,
    "steps": 100,
}
MODES = ("plain", "library", "carrier")

# Evaluates what the trial sends; "!" before a statement.
PROBE = r"""
import ctypes as c, os, sys, time
cuda = c.CDLL("libcuda.so.1")
MIB = 1 << 20
class Handle(c.Structure):
    _fields_ = [("bytes", c.c_ubyte * 64)]
cuda.cuMemAlloc_v2.argtypes = [c.POINTER(c.c_uint64), c.c_size_t]
cuda.cuMemFree_v2.argtypes = [c.c_uint64]
cuda.cuMemsetD8_v2.argtypes = [c.c_uint64, c.c_ubyte, c.c_size_t]
cuda.cuMemcpyDtoH_v2.argtypes = [c.c_void_p, c.c_uint64, c.c_size_t]
cuda.cuMemUnmap.argtypes = [c.c_uint64, c.c_size_t]
cuda.cuIpcGetMemHandle.argtypes = [c.POINTER(Handle), c.c_uint64]
cuda.cuIpcOpenMemHandle_v2.argtypes = [c.POINTER(c.c_uint64), Handle, c.c_uint]
cuda.cuIpcCloseMemHandle.argtypes = [c.c_uint64]
cuda.cuPointerGetAttribute.argtypes = [c.c_void_p, c.c_int, c.c_uint64]
cuda.cuMemGetAddressRange_v2.argtypes = [c.POINTER(c.c_uint64), c.POINTER(c.c_size_t), c.c_uint64]
def alloc(mib):
    at = c.c_uint64()
    r = cuda.cuMemAlloc_v2(c.byref(at), int(mib * MIB))
    return at.value if r == 0 else -r
def free(at): return cuda.cuMemFree_v2(at)
def fill(at, mib, byte):
    return cuda.cuMemsetD8_v2(at, byte, int(mib * MIB)) or cuda.cuCtxSynchronize()
def has(at, mib, byte):
    room = c.create_string_buffer(int(mib * MIB))
    r = cuda.cuMemcpyDtoH_v2(room, at, int(mib * MIB))
    return -r if r else room.raw == bytes([byte]) * int(mib * MIB)
def handle(at):
    it = Handle()
    r = cuda.cuIpcGetMemHandle(c.byref(it), at)
    return -r if r else bytes(it.bytes).hex()
def opened(text, flags=1):
    at = c.c_uint64()
    r = cuda.cuIpcOpenMemHandle_v2(c.byref(at), Handle.from_buffer_copy(bytes.fromhex(text)), flags)
    return -r if r else at.value
def close(at): return cuda.cuIpcCloseMemHandle(at)
def answers_of(at, inside=4096):
    found = {}
    for which in range(1, 22):
        room = (c.c_ubyte * 64)()
        r = cuda.cuPointerGetAttribute(room, which, at + inside)
        value = int.from_bytes(bytes(room[:8]), "little")
        value = {at: "start", context.value: "context", at + inside: "itself"}.get(value, value)
        found[which] = [r, "some id" if which in (7, 20) else value]
    base, size = c.c_uint64(), c.c_size_t()
    r = cuda.cuMemGetAddressRange_v2(c.byref(base), c.byref(size), at + inside)
    found["range"] = [r, base.value == at, size.value]
    kept = c.c_uint64()
    found["retain"] = cuda.cuMemRetainAllocationHandle(c.byref(kept), c.c_void_p(at))
    return found
class Prop(c.Structure):
    _fields_ = [("type", c.c_int), ("handles", c.c_int), ("where", c.c_int), ("id", c.c_int),
                ("meta", c.c_void_p), ("flags", c.c_ubyte * 8)]
class Access(c.Structure):
    _fields_ = [("type", c.c_int), ("id", c.c_int), ("flags", c.c_int)]
cuda.cuMemAddressReserve.argtypes = [
    c.POINTER(c.c_uint64), c.c_size_t, c.c_size_t, c.c_uint64, c.c_ulonglong]
cuda.cuMemCreate.argtypes = [c.POINTER(c.c_uint64), c.c_size_t, c.POINTER(Prop), c.c_ulonglong]
cuda.cuMemMap.argtypes = [c.c_uint64, c.c_size_t, c.c_size_t, c.c_uint64, c.c_ulonglong]
cuda.cuMemSetAccess.argtypes = [c.c_uint64, c.c_size_t, c.POINTER(Access), c.c_size_t]
cuda.cuMemRelease.argtypes = [c.c_uint64]
cuda.cuMemAddressFree.argtypes = [c.c_uint64, c.c_size_t]
def mapped(mib, exportable):
    at, handle, bytes_ = c.c_uint64(), c.c_uint64(), mib * MIB
    r = (cuda.cuMemAddressReserve(c.byref(at), bytes_, 0, 0, 0) or
         cuda.cuMemCreate(c.byref(handle), bytes_, c.byref(Prop(1, exportable, 1, 0)), 0) or
         cuda.cuMemMap(at, bytes_, 0, handle, 0) or
         cuda.cuMemSetAccess(at, bytes_, c.byref(Access(1, 0, 3)), 1))
    return [r, at.value, handle.value]
def unmapped(mib, at, handle):
    return (cuda.cuMemUnmap(at, mib * MIB) or cuda.cuMemRelease(handle) or
            cuda.cuMemAddressFree(at, mib * MIB))
def many(n, mib, exportable):
    begin = time.perf_counter()
    each = [mapped(mib, exportable) for _ in range(n)]
    middle = time.perf_counter()
    bad = [m[0] for m in each if m[0]] + [u for u in (unmapped(mib, m[1], m[2]) for m in each) if u]
    return [round(middle - begin, 4), round(time.perf_counter() - middle, 4), bad[:3]]
context = c.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0) == 0
cuda.cuCtxSetCurrent(context)
at = 0
print("ready", flush=True)
for text in sys.stdin:
    if text[0] == "!": exec(text[1:])
    else: print(repr(eval(text)), flush=True)
"""

# The child opens by CuPy what the parent has, changes it, and both compare.
CUPY = r"""
import os, subprocess, sys
import cupy
runtime = cupy.cuda.runtime
n = 5 << 20
if len(sys.argv) > 1:
    at = runtime.ipcOpenMemHandle(bytes.fromhex(sys.argv[1]))
    memory = cupy.cuda.UnownedMemory(at, 8 * n, None)
    a = cupy.ndarray((n,), cupy.float64, cupy.cuda.MemoryPointer(memory, 0))
    ok = bool((a == cupy.arange(n)).all())
    a *= 2
    cupy.cuda.Device().synchronize()
    del a
    runtime.ipcCloseMemHandle(at)
    print(ok)
else:
    a = cupy.arange(n, dtype=cupy.float64)
    cupy.cuda.Device().synchronize()
    handle = runtime.ipcGetMemHandle(a.data.mem.ptr)
    out = subprocess.run([sys.executable, sys.argv[0], bytes(handle).hex()],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(out.stdout.strip()[-300:], bool((a == 2 * cupy.arange(n)).all()))
"""


class Program:
    """A process that evaluates, as PROBE."""

    def __init__(self, env):
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROBE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=env,
        )
        self.said = self.process.stdout.readline().strip()
        if self.said != "ready":
            raise RuntimeError(self.said + self.process.stdout.read()[-300:])

    def ask(self, text):
        self.send(text)
        line = self.process.stdout.readline()
        if not line:
            raise EOFError(f"{text}: ended with {self.process.wait(10)}")
        return eval(line)

    def do(self, text):
        self.send("!" + text)

    def send(self, text):
        try:
            self.process.stdin.write(text + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise EOFError(f"{text}: ended before with {self.process.wait(10)}") from None

    def kill(self):
        self.process.kill()
        self.process.wait()


class Part:
    def __init__(self, programs, output, work, small):
        self.output, self.work, self.small = output, work, small
        self.library = os.path.join(programs, "libcolloc-preload.so")
        self.trial = ct.Trial(self.library, os.path.join(work, "trial.json"))
        self.end = time.monotonic() + float(os.environ.get("PART_SECONDS", "100"))

    def note(self, key, value):
        write(self.output, {"result": key, **value})

    def environment(self, mode, mps=False):
        """Without a daemon: the library works, and nothing is ordered."""
        env = dict(os.environ)
        if mps:
            env.update(self.trial.mps_environment())
        if mode != "plain":
            env["LD_PRELOAD"] = self.library
        if mode == "carrier":
            env["COLLOC_PRELOAD_CARRIER"] = "1"
        return env

    # ---- the driver's answers ----

    def answers_of(self, mode, mps):
        found, env = {}, self.environment(mode, mps)
        one, other = Program(env), Program(env)
        try:
            self.ask_all(mode, one, other, found)
        except (EOFError, SyntaxError) as problem:
            found["problem"] = str(problem)[-300:]
        one.kill()
        other.kill()
        return found

    def ask_all(self, mode, one, other, found):
        for mib in (0.5, 3, 64):
            name = f"{mib} MiB"
            one.do(f"at = alloc({mib}); r = fill(at, {mib}, 7)")
            handle = one.ask("handle(at)")
            if not isinstance(handle, str) or len(handle) != 128:
                found[f"{name}: handle"] = handle
                continue
            found[f"{name}: handle again"] = one.ask("handle(at)") == handle
            found[f"{name}: handle of an inner address"] = one.ask("handle(at + 4096)") == handle
            found[f"{name}: its own process opens"] = one.ask(f"opened('{handle}')")
            found[f"{name}: opened with flags 0"] = other.ask(f"min(0, opened('{handle}', 0))")
            other.do(f"at = opened('{handle}')")
            found[f"{name}: opened"] = other.ask("min(0, at)")
            if other.ask("at") <= 0:
                continue
            found[f"{name}: content"] = other.ask(f"has(at, {mib}, 7)")
            found[f"{name}: opened again, same address"] = other.ask(f"opened('{handle}') == at")
            if mib >= 1:
                for which, value in other.ask("answers_of(at)").items():
                    found[f"{name}: attribute {which} of the opened"] = value
                for which, value in one.ask("answers_of(at)").items():
                    found[f"{name}: attribute {which} of the block"] = value
            found[f"{name}: handle of the opened"] = other.ask(
                "(lambda h: h if isinstance(h, int) else 'a handle')(handle(at))"
            )
            other.ask(f"fill(at, {mib}, 9)")
            found[f"{name}: content there"] = one.ask(f"has(at, {mib}, 9)")
            found[f"{name}: closes"] = other.ask("[close(at), close(at), close(at)]")
            other.do(f"at = opened('{handle}')")
            found[f"{name}: opened after closes"] = other.ask(f"has(at, {mib}, 9)")
            found[f"{name}: free there"] = one.ask("free(at)")
            if mode == "carrier" and mib >= 1:
                found[f"{name}: content after the free"] = other.ask(f"has(at, {mib}, 9)")
        self.ask_wrong(one, other, found)
        one.do("gone = alloc(5)")
        handle = one.ask("handle(gone)")
        one.ask("free(gone)")
        if isinstance(handle, str):
            found["opened after the free"] = other.ask(f"min(0, opened('{handle}'))")
            one.do("gone = alloc(5)")
            handle = one.ask("handle(gone)")
            one.kill()
            found["opened after the exporter's end"] = other.ask(f"min(0, opened('{handle}'))")

    def ask_wrong(self, one, other, found):
        """What a driver may answer in any way; another block, since it may be gone then."""
        one.do("wrong = alloc(3); r = fill(wrong, 3, 7)")
        handle = one.ask("handle(wrong)")
        other.do(f"wrong = opened('{handle}')" if isinstance(handle, str) else "wrong = 0")
        if other.ask("wrong") > 0:
            found["free of the opened"] = other.ask("free(wrong)")
            found["unmap of the opened"] = other.ask("cuda.cuMemUnmap(wrong, 3 * MIB)")
            found["close inside"] = other.ask("close(wrong + 4096)")
            found["close of a block"] = one.ask("close(wrong)")

    def answers(self):
        for mps in (False, True):
            plain = None
            for mode in MODES:
                if mps and mode == "library":
                    continue
                found = self.answers_of(mode, mps)
                differ = {
                    key: [(plain or found).get(key), found.get(key)]
                    for key in sorted({*found, *(plain or found)})
                    if (plain or found).get(key) != found.get(key)
                }
                name = f"answers, {mode}" + (", MPS" if mps else "")
                if plain is None:
                    self.note(name, {"asked": len(found), "answers": found})
                else:
                    self.note(name, {"asked": len(found), "differ": differ})
                plain = plain or found
        self.trial.end_mps()

    # ---- the driver's checkpoint ----

    def checkpoint(self):
        driver = ct.Driver()
        cases = {
            "mapped": ("plain", "at = mapped(64, 0)[1]"),
            "mapped, can be exported": ("plain", "at = mapped(64, 1)[1]"),
            "blocks of the carrier": ("carrier", "at = alloc(64)"),
        }
        for name, (mode, text) in cases.items():
            program = Program(self.environment(mode))
            program.do(text)
            program.ask("fill(at, 64, 5)")
            row = {"before": program.ask("has(at, 64, 5)")}
            row["calls"] = driver.swap(program.process.pid)
            row["after"] = program.ask("has(at, 64, 5)")
            self.note(f"checkpoint, {name}", row)
            program.kill()

    # ---- torch.multiprocessing ----

    def torch(self, mps=False):
        """All at the same time: a process takes ten seconds to import PyTorch."""
        n = 40 if self.small else 200
        methods = ["spawn"] if self.small else ["spawn", "forkserver", "fork"]
        started = {
            f"{method}, {mode}": self.start_share(method, mode, n, mps)
            for method in methods
            for mode in MODES
        }
        for name, process in started.items():
            self.note_share(f"torch, {name}" + (", MPS" if mps else ""), process)

    def torch_mps(self):
        self.torch(mps=True)
        self.trial.end_mps()

    def start_share(self, method, mode, n, mps):
        return subprocess.Popen(
            [sys.executable, os.path.join(HERE, "ipc_share.py"), method, str(n)],
            env=self.environment(mode, mps),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def note_share(self, name, process):
        """One that runs past the part's time leaves the others theirs."""
        try:
            out, err = process.communicate(timeout=max(0.1, self.end - time.monotonic() - 5))
            row = json.loads(out.splitlines()[-1]) if out.strip() else {}
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # its children have its pipes
            out, err = process.communicate()
            row = {"ran_past": True}
        row["rc"] = process.returncode
        if row["rc"] or row.get("errors") or "loop" not in row:
            row["says"] = err[-600:]
        self.note(name, row)

    def cupy(self):
        script = os.path.join(self.work, "share_cupy.py")
        with open(script, "w") as out:
            out.write(CUPY)
        started = {
            f"cupy, {mode}"
            + (", MPS" if mps else ""): subprocess.Popen(
                [sys.executable, script],
                env=self.environment(mode, mps),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for mps in (False, True)
            for mode in MODES
        }
        for name, process in started.items():
            try:
                out, _ = process.communicate(timeout=max(2, self.end - time.monotonic() - 2))
            except subprocess.TimeoutExpired:
                process.kill()
                out = "ran past its limit"
            self.note(name, {"rc": process.poll(), "says": out.strip()[-300:]})
        self.trial.end_mps()

    # ---- costs ----

    def allocations(self):
        rounds = 2 if self.small else 5
        for mps in (False, True):
            program = Program(self.environment("plain", mps))
            program.ask("many(20, 20, 0)")
            rows = {0: [], 1: []}
            for i in range(rounds):
                for exportable in (0, 1) if i % 2 else (1, 0):
                    rows[exportable].append(program.ask(f"many(400, 20, {exportable})"))
            self.note(
                "allocations" + (", MPS" if mps else ""),
                {
                    "blocks": 400,
                    "mib": 20,
                    "private": rows[0],
                    "exportable": rows[1],
                    "median_s": [
                        round(statistics.median(row[k] for row in rows[e]), 4)
                        for e in (0, 1)
                        for k in (0, 1)
                    ],
                },
            )
            program.kill()
        self.trial.end_mps()

    def pause(self, training, paused):
        if paused:
            open(training.pause_file, "w").close()
        elif os.path.exists(training.pause_file):
            os.unlink(training.pause_file)

    def start(self, name, batch, carrier, **options):
        pause = tempfile.mktemp(dir=self.work)
        training = ct.Training(
            self.trial, name, 1000000, batch, carrier=carrier, PAUSE=pause, **options
        )
        training.pause_file = pause
        return training

    def some_steps(self, training, n):
        """The median of n steps while all others pause. The first ones are left out."""
        self.pause(training, False)
        before = len(training.steps)
        until(lambda: len(training.steps) >= before + n + 5, 30, "steps")
        self.pause(training, True)
        return statistics.median(training.steps[before + 5 : before + 5 + n])

    def steps(self):
        pairs, n = (3, 20) if self.small else (20, 60)
        each = [self.start("resnet50", 32, carrier) for carrier in (False, True)]
        for training in each:
            training.wait_begun(60)
            self.pause(training, True)
        time.sleep(1)
        ratios, times = [], []
        for i in range(pairs):
            order = (0, 1) if i % 2 else (1, 0)
            seconds = {k: self.some_steps(each[k], n) for k in order}
            ratios.append(round(seconds[1] / seconds[0], 5))
            times.append([round(1000 * seconds[k], 4) for k in (0, 1)])
            if time.monotonic() > self.end - 6:
                break
        self.note(
            "steps, ResNet-50, batch 32",
            {
                "pairs": len(ratios),
                "ms_without_and_with": [
                    round(statistics.median(row[k] for row in times), 4) for k in (0, 1)
                ],
                "median_of_ratios": statistics.median(ratios),
                "ratios": ratios,
                "carried": each[1].page.why(),
            },
        )
        for training in each:
            training.kill()


# ---- the process that runs the parts ----


def run_part(arguments, part, output, deadline, work):
    limit = min(LIMITS_S[part], deadline - time.monotonic() - 4)
    if limit < 8:
        write(output, {"result": f"part {part}", "rc": "not run: no time is left"})
        return
    begin = time.monotonic()
    command = [sys.executable, os.path.abspath(__file__), *arguments, "--part", work, part]
    process = subprocess.Popen(command, env=dict(os.environ, PART_SECONDS=str(limit)))
    try:
        rc = process.wait(limit)
    except subprocess.TimeoutExpired:
        rc = "ran past its limit"
    seconds = round(time.monotonic() - begin, 1)
    write(output, {"result": f"part {part}", "rc": rc, "seconds": seconds})
    end_all()


def summarise(output):
    print("---- summary ----")
    with open(output) as rows:
        for row in map(json.loads, rows):
            key = row.pop("result")
            for long in ("answers", "ratios", "private", "exportable"):
                row.pop(long, None)
            print(f"{key}: {json.dumps(row)[:420]}")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    programs, output, seconds = os.path.abspath(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    rest = sys.argv[4:]
    small = "--small" in rest
    if "--part" in rest:
        work, part = rest[rest.index("--part") + 1 :]
        getattr(Part(programs, output, work, small), part.replace("-", "_"))()
        os._exit(0)  # threads of this trial may wait for ever
    deadline = time.monotonic() + seconds
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    chosen = [word for word in rest if word != "--small"] or list(LIMITS_S)
    arguments = [programs, output, sys.argv[3]] + (["--small"] if small else [])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
        try:
            for part in chosen:
                run_part(arguments, part, output, deadline, work)
        finally:
            end_all()
    summarise(output)


if __name__ == "__main__":
    main()
