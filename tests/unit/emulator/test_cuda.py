# SPDX-License-Identifier: Apache-2.0
"""The emulated libcuda, called as NVIDIA's reference has it, without the emulator's headers.

Each test is a rule or a trap that was met on H200s with driver 580.159.04."""
import ctypes as C
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

FOLDER = os.environ["EMULATOR_FOLDER"]
LIMIT_S = 20
RUNNING, LOCKED, CHECKPOINTED, FAILED = range(4)
INVALID_VALUE, OUT_OF_MEMORY, OPERATING_SYSTEM, ILLEGAL_STATE, NOT_SUPPORTED = 1, 2, 304, 401, 801
INVALID_CONTEXT = 201


class LockArgs(C.Structure):
    _fields_ = [("timeout_ms", C.c_uint), ("reserved0", C.c_uint), ("reserved1", C.c_uint64 * 7)]


class PlainArgs(C.Structure):
    _fields_ = [("reserved", C.c_uint64 * 8)]


class Uuid(C.Structure):
    _fields_ = [("bytes", C.c_ubyte * 16)]


class Pair(C.Structure):
    _fields_ = [("old", Uuid), ("new", Uuid)]


class RestoreArgs(C.Structure):
    _fields_ = [("pairs", C.POINTER(Pair)), ("count", C.c_uint), ("reserved", C.c_char * 52)]


class Allocation(C.Structure):
    _fields_ = [
        ("type", C.c_int),
        ("handle_types", C.c_int),
        ("location_type", C.c_int),
        ("device", C.c_int),
        ("meta", C.c_void_p),
        ("flags", C.c_ubyte * 8),
    ]


class IpcHandle(C.Structure):
    _fields_ = [("bytes", C.c_ubyte * 64)]


class Driver(unittest.TestCase):
    gpus = "2xA100-40GB"
    speed = "500"

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        os.environ.update(
            COLLOC_EMULATOR=self.folder + "/gpus", CUDA_MPS_PIPE_DIRECTORY=self.folder
        )
        self.tool(
            "create", "--gpus=" + self.gpus, "--speed=" + self.speed, os.environ["COLLOC_EMULATOR"]
        )
        # One copy of the library for each test: it keeps the machine that it has opened.
        library = self.folder + "/libcuda.so.1"
        shutil.copy(FOLDER + "/libcuda.so.1", library)
        self.cuda = C.CDLL(library)
        self.assertEqual(self.cuda.cuInit(0), 0)

    def tool(self, *arguments):
        done = subprocess.run(
            [FOLDER + "/colloc-emulator", *arguments],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def wait_for(self, condition):
        end = time.monotonic() + LIMIT_S
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.001)

    def process(self, pid):
        """(GPU, MiB, what follows) as colloc-emulator shows it."""
        row = re.search(
            rf"pid {pid} +GPU (\d)\D* +(\d+) MiB .*? s(?:  (\w+))?$", self.tool("show"), re.M
        )
        return row and (int(row[1]), int(row[2]), row[3])

    def start(self, *options, mib=3000, **env):
        command = [
            FOLDER + "/colloc-pretend-train",
            f"--memory-mib={mib}",
            "--seconds=1e8",
            "--ramp-seconds=0",
        ]
        child = subprocess.Popen(
            [*command, *options], stdout=subprocess.DEVNULL, env=dict(os.environ, **env)
        )
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.wait_for(lambda: self.process(child.pid) and self.process(child.pid)[1] == mib)
        return child.pid

    def function(self, name, version=13000):
        function, status = C.c_void_p(), C.c_int()
        r = self.cuda.cuGetProcAddress_v2(
            name.encode(), C.byref(function), version, C.c_uint64(0), C.byref(status)
        )
        return C.CFUNCTYPE(C.c_int, C.c_int, C.c_void_p)(function.value) if r == 0 else None

    def call(self, name, pid, argument):
        return self.function("cuCheckpointProcess" + name)(pid, C.byref(argument))

    def state(self, pid):
        state = C.c_int(-1)
        r = self.call("GetState", pid, state)
        return state.value if r == 0 else -r

    def lock(self, pid):
        return self.call("Lock", pid, LockArgs(timeout_ms=1000))

    def checkpoint(self, pid):
        return self.call("Checkpoint", pid, PlainArgs())

    def unlock(self, pid):
        return self.call("Unlock", pid, PlainArgs())

    def uuid(self, i):
        uuid = Uuid()
        self.assertEqual(self.cuda.cuDeviceGetUuid_v2(C.byref(uuid), i), 0)
        return uuid

    def restore(self, pid, *moves):
        pairs = (Pair * max(1, len(moves)))(*[Pair(self.uuid(a), self.uuid(b)) for a, b in moves])
        return self.call("Restore", pid, RestoreArgs(pairs if moves else None, len(moves)))

    def suspend(self, pid):
        self.assertEqual((self.lock(pid), self.checkpoint(pid)), (0, 0))


class Checkpoint(Driver):
    def test_there_and_back(self):
        pid = self.start()
        self.assertEqual(self.state(pid), RUNNING)
        self.assertEqual(self.lock(pid), 0)
        self.assertEqual((self.state(pid), self.process(pid)), (LOCKED, (0, 3000, "locked")))
        self.assertEqual(self.checkpoint(pid), 0)
        self.assertEqual((self.state(pid), self.process(pid)), (CHECKPOINTED, (0, 0, "suspended")))
        self.assertEqual(self.restore(pid), 0)
        self.assertEqual((self.state(pid), self.process(pid)), (LOCKED, (0, 3000, "locked")))
        self.assertEqual(self.unlock(pid), 0)
        self.assertEqual((self.state(pid), self.process(pid)), (RUNNING, (0, 3000, None)))

    def test_only_in_order(self):
        pid = self.start()
        self.assertEqual(self.checkpoint(pid), ILLEGAL_STATE)
        self.assertEqual(self.restore(pid), ILLEGAL_STATE)
        self.assertEqual(self.unlock(pid), ILLEGAL_STATE)
        self.suspend(pid)
        self.assertEqual(self.lock(pid), ILLEGAL_STATE)
        self.assertEqual(self.unlock(pid), ILLEGAL_STATE)

    def test_a_suspended_training_makes_no_progress_and_then_goes_on(self):
        pid = self.start()
        self.suspend(pid)
        done = lambda: float(re.search(rf"pid {pid} .* done (\d+) s", self.tool("show"))[1])
        before = done()
        now = lambda: float(re.search(r"emulated time ([\d.]+)", self.tool("show"))[1])
        at = now()
        self.wait_for(lambda: now() > at + 50)
        self.assertEqual(done(), before)
        self.assertEqual((self.restore(pid), self.unlock(pid)), (0, 0))
        self.wait_for(lambda: done() > before)

    def test_a_suspended_process_that_synchronizes_dies(self):
        child = os.fork()
        if child == 0:
            cuda, context = C.CDLL(FOLDER + "/libcuda.so.1"), C.c_void_p()
            cuda.cuInit(0)
            cuda.cuDevicePrimaryCtxRetain(C.byref(context), 0)
            cuda.cuCtxSetCurrent(context)
            while cuda.cuCtxSynchronize() == 0:
                time.sleep(0.001)
            os._exit(1)
        self.wait_for(lambda: self.process(child))
        self.assertEqual(self.lock(child), 0)
        self.assertEqual(os.waitpid(child, os.WNOHANG), (0, 0))
        self.checkpoint(child)
        self.assertEqual(os.WTERMSIG(os.waitpid(child, 0)[1]), signal.SIGSEGV)

    def test_no_such_process(self):
        self.assertEqual(self.state(os.getpid()), -OPERATING_SYSTEM)
        self.assertEqual(self.lock(2**22 + 5), OPERATING_SYSTEM)

    def test_reserved_bytes_are_zero(self):
        pid = self.start()
        self.assertEqual(self.call("Lock", pid, LockArgs(reserved0=1)), INVALID_VALUE)
        args = PlainArgs()
        args.reserved[7] = 1
        self.assertEqual(self.lock(pid), 0)
        self.assertEqual(self.call("Checkpoint", pid, args), INVALID_VALUE)
        self.assertEqual(self.call("Restore", pid, RestoreArgs(None, 0, b"x")), INVALID_VALUE)

    def test_moved(self):
        pid = self.start()
        for to in (1, 0):
            self.suspend(pid)
            self.assertEqual(self.restore(pid, (0, 1), (1, 0)), 0)
            self.assertEqual(self.unlock(pid), 0)
            self.assertEqual(self.process(pid), (to, 3000, None))

    def test_pairs_that_are_no_permutation_lose_the_process(self):
        for moves in ([(0, 1)], [(0, 1), (1, 1)]):
            pid = self.start()
            self.suspend(pid)
            self.assertEqual(self.restore(pid, *moves), INVALID_VALUE)
            self.assertEqual(self.restore(pid), OPERATING_SYSTEM)
            self.assertEqual(self.unlock(pid), ILLEGAL_STATE)

    def test_restored_to_a_full_gpu_it_is_lost_for_ever(self):
        pid = self.start()
        self.suspend(pid)
        self.tool("set", "0", "foreign-mib=39000")
        self.assertEqual(self.restore(pid), OUT_OF_MEMORY)
        self.tool("set", "0", "foreign-mib=0")
        self.assertEqual(self.restore(pid), OPERATING_SYSTEM)
        self.assertEqual(self.state(pid), FAILED)

    def test_not_under_a_profiler_nor_with_managed_memory(self):
        pid = self.start("--profiler")
        self.assertEqual((self.lock(pid), self.checkpoint(pid)), (NOT_SUPPORTED, ILLEGAL_STATE))
        pid = self.start("--managed")
        self.assertEqual(
            (self.lock(pid), self.checkpoint(pid), self.unlock(pid)), (0, NOT_SUPPORTED, 0)
        )
        self.assertEqual(self.state(pid), RUNNING)

    def test_no_mps_client(self):
        pipe = self.folder + "/mps"
        os.mkdir(pipe)
        env = dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=pipe, CUDA_MPS_LOG_DIRECTORY=pipe)
        control = FOLDER + "/nvidia-cuda-mps-control"
        subprocess.run([control, "-d"], env=env, check=True, timeout=LIMIT_S)
        self.addCleanup(subprocess.run, [control], env=env, input=b"quit -t 1\n", timeout=LIMIT_S)
        pid = self.start(CUDA_MPS_PIPE_DIRECTORY=pipe)
        self.assertEqual((self.lock(pid), self.checkpoint(pid)), (NOT_SUPPORTED, ILLEGAL_STATE))
        self.assertEqual(self.state(pid), RUNNING)

    def test_each_call_hangs_on_a_stopped_process(self):
        pid = self.start()
        os.kill(pid, signal.SIGSTOP)
        self.wait_for(lambda: open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] == "T")
        results = []
        thread = threading.Thread(target=lambda: results.append(self.state(pid)))
        thread.start()
        thread.join(0.1)
        self.assertTrue(thread.is_alive())
        os.kill(pid, signal.SIGCONT)
        thread.join(LIMIT_S)
        self.assertEqual(results, [RUNNING])

    def test_the_host_is_short_of_memory(self):
        first, second = self.start(), self.start()
        self.tool("set", "machine", "host-memory-mib=4000")
        self.suspend(first)
        self.assertEqual(self.lock(second), 0)
        self.assertEqual(self.checkpoint(second), OPERATING_SYSTEM)
        self.wait_for(lambda: not self.process(second))
        self.assertEqual(self.state(first), CHECKPOINTED)

    def test_an_old_driver_has_no_such_functions(self):
        self.assertIsNone(self.function("cuCheckpointProcessLock", version=12070))
        self.tool("set", "machine", "cuda=12040")
        self.assertIsNone(self.function("cuCheckpointProcessLock"))
        self.assertIsNotNone(self.function("cuDeviceGetCount"))

    def test_memory_of_the_current_context(self):
        device, context, at = C.c_int(-1), C.c_void_p(), C.c_uint64()
        self.assertEqual(self.cuda.cuCtxGetDevice(C.byref(device)), 201)  # no context
        self.assertEqual(self.cuda.cuDevicePrimaryCtxRetain(C.byref(context), 1), 0)
        self.assertEqual(self.cuda.cuCtxSetCurrent(context), 0)
        self.assertEqual(self.cuda.cuCtxGetDevice(C.byref(device)), 0)
        self.assertEqual(device.value, 1)
        size = C.c_size_t(30000 << 20)  # more than the host has to give
        self.assertEqual(self.cuda.cuMemAllocManaged(C.byref(at), size, 1), 0)
        self.assertEqual(self.cuda.cuIpcGetMemHandle(C.byref(IpcHandle()), at), 0)
        self.assertEqual(self.cuda.cuMemFree_v2(at), 0)

    def test_memory_without_a_context(self):
        handle, bytes_ = C.c_uint64(), 4 << 30
        wanted = Allocation(type=1, location_type=1, device=1)
        create = lambda size: self.cuda.cuMemCreate(
            C.byref(handle), C.c_size_t(size), C.byref(wanted), C.c_ulonglong(0)
        )
        self.assertEqual(create(bytes_), 0)
        self.assertEqual(self.process(os.getpid())[1], 0)  # on GPU 0
        self.assertIn(" 4096 / ", self.tool("show"))
        self.assertEqual(create(40 << 30), OUT_OF_MEMORY)
        self.assertEqual(create(5), INVALID_VALUE)
        self.assertEqual(self.cuda.cuMemRelease(handle), 0)
        self.assertIsNone(self.process(os.getpid()))


class TwoProcesses(Driver):
    """Memory that another process opens: by a handle of legacy IPC, or by a descriptor."""

    # Opens what its arguments say, and prints what it has found there. It leaves an 8 there.
    OTHER = """
import ctypes as C, sys
library, way, text = sys.argv[1:]
cuda, at, context, room = C.CDLL(library), C.c_uint64(), C.c_void_p(), C.create_string_buffer(4)
class Handle(C.Structure):
    _fields_ = [("bytes", C.c_ubyte * 64)]
cuda.cuIpcOpenMemHandle_v2.argtypes = [C.c_void_p, Handle, C.c_uint]
cuda.cuIpcCloseMemHandle.argtypes = [C.c_uint64]
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(C.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
def opened():
    return cuda.cuIpcOpenMemHandle_v2(C.byref(at), Handle.from_buffer_copy(bytes.fromhex(text)), 1)
def mapped():
    handle = C.c_uint64()
    return (cuda.cuMemImportFromShareableHandle(C.byref(handle), C.c_void_p(int(text)), 1) or
            cuda.cuMemAddressReserve(C.byref(at), C.c_size_t(2 << 20), 0, 0, 0) or
            cuda.cuMemMap(at, C.c_size_t(2 << 20), C.c_size_t(0), handle, 0) or
            cuda.cuMemSetAccess(at, C.c_size_t(2 << 20), None, C.c_size_t(0)))
r = opened() if way == "legacy" else mapped()
if r == 0:
    assert cuda.cuMemcpyDtoH_v2(room, at, C.c_size_t(4)) == 0
    assert cuda.cuMemcpyHtoD_v2(at, bytes([8] * 4), C.c_size_t(4)) == 0
print(r, room.raw[0])
if way == "legacy" and r == 0:
    first = at.value
    print(opened(), at.value == first)
    print([cuda.cuIpcCloseMemHandle(at) for _ in range(3)])
"""

    def setUp(self):
        super().setUp()
        context = C.c_void_p()
        self.assertEqual(self.cuda.cuDevicePrimaryCtxRetain(C.byref(context), 0), 0)
        self.assertEqual(self.cuda.cuCtxSetCurrent(context), 0)

    def other(self, way, text, **options):
        command = ["python3", "-c", self.OTHER, self.cuda._name, way, str(text)]
        out = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, **options)
        self.assertEqual(out.returncode, 0, out.stderr)
        return out.stdout.split("\n")[:-1]

    def first_byte(self, at):
        room = C.create_string_buffer(4)
        self.assertEqual(self.cuda.cuMemcpyDtoH_v2(room, at, C.c_size_t(4)), 0)
        return room.raw[0]

    def fill(self, at):
        self.assertEqual(self.cuda.cuMemcpyHtoD_v2(at, bytes([7] * 4), C.c_size_t(4)), 0)

    def test_legacy_ipc(self):
        at, handle = C.c_uint64(), IpcHandle()
        self.assertEqual(self.cuda.cuMemAlloc_v2(C.byref(at), C.c_size_t(3 << 20)), 0)
        self.fill(at)
        self.assertEqual(self.cuda.cuIpcGetMemHandle(C.byref(handle), at), 0)
        text = bytes(handle.bytes).hex()
        answers = ["0 7", "0 True", f"[0, 0, {INVALID_VALUE}]"]
        self.assertEqual(self.other("legacy", text), answers)
        self.assertEqual(self.first_byte(at), 8)
        again = C.c_uint64()
        r = self.cuda.cuIpcOpenMemHandle_v2(C.byref(again), handle, 1)
        self.assertEqual(r, INVALID_CONTEXT)  # its own process
        self.assertEqual(self.cuda.cuMemFree_v2(at), 0)
        self.assertEqual(self.other("legacy", text), [f"{INVALID_VALUE} 0"])
        self.assertEqual(self.other("legacy", "00" * 64), [f"{INVALID_VALUE} 0"])

    def mapped(self, handle_types):
        at, handle, size = C.c_uint64(), C.c_uint64(), C.c_size_t(2 << 20)
        wanted = Allocation(type=1, handle_types=handle_types, location_type=1, device=0)
        for r in (
            self.cuda.cuMemCreate(C.byref(handle), size, C.byref(wanted), C.c_ulonglong(0)),
            self.cuda.cuMemAddressReserve(C.byref(at), size, 0, 0, 0),
            self.cuda.cuMemMap(at, size, C.c_size_t(0), handle, 0),
            self.cuda.cuMemSetAccess(at, size, None, C.c_size_t(0)),
        ):
            self.assertEqual(r, 0)
        return at, handle

    def test_mapped_memory(self):
        at, handle = self.mapped(1)
        self.fill(at)
        legacy, memory = IpcHandle(), C.c_int(-1)
        self.assertEqual(self.cuda.cuIpcGetMemHandle(C.byref(legacy), at), INVALID_VALUE)
        export = lambda it, kind: self.cuda.cuMemExportToShareableHandle(
            C.byref(memory), it, kind, C.c_ulonglong(0)
        )
        self.assertEqual(export(handle, 2), INVALID_VALUE)
        self.assertEqual(export(self.mapped(0)[1], 1), INVALID_VALUE)
        self.assertEqual(export(handle, 1), 0)
        self.addCleanup(os.close, memory.value)
        answers = self.other("descriptor", memory.value, pass_fds=[memory.value])
        self.assertEqual(answers, ["0 7"])
        self.assertEqual(self.first_byte(at), 8)


class Slow(Driver):
    """Copies that take a while: 3 GiB in 1.5 s of a world that is ten times as fast."""

    speed = "10"

    def test_a_copy_takes_its_time_and_a_query_waits_for_it(self):
        pid = self.start()
        self.assertEqual(self.lock(pid), 0)
        before = time.monotonic()
        thread = threading.Thread(target=self.checkpoint, args=(pid,))
        thread.start()
        self.wait_for(lambda: self.call_begun(pid))
        self.assertEqual(self.state(pid), CHECKPOINTED)
        thread.join(LIMIT_S)
        self.assertGreater(time.monotonic() - before, 0.14)

    def call_begun(self, pid):
        """The second call of two that copy is refused."""
        return self.checkpoint(pid) == ILLEGAL_STATE

    def test_a_copy_goes_on_when_its_caller_is_killed(self):
        pid = self.start()
        self.assertEqual(self.lock(pid), 0)
        child = os.fork()
        if child == 0:
            self.checkpoint(pid)
            os._exit(0)
        self.wait_for(lambda: self.call_begun(pid))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        self.assertEqual(self.state(pid), CHECKPOINTED)


class Mig(Driver):
    gpus = "1xA100-40GB:3g.20gb"

    def test_a_mig_instance_is_out_of_memory(self):
        pid = self.start()
        self.assertEqual((self.lock(pid), self.checkpoint(pid)), (0, OUT_OF_MEMORY))
        self.assertEqual((self.unlock(pid), self.state(pid)), (0, RUNNING))


if __name__ == "__main__":
    unittest.main()
