# SPDX-License-Identifier: Apache-2.0
"""Blocks of the carrier that processes share by CUDA IPC (src/preload/share_handle.h), in programs
that use a pretend libcuda. Each program evaluates what the test sends."""
import os
import signal
import socket
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_carrier as tc  # noqa: E402

pd, MIB = tc.pd, tc.MIB

INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE = 1, 201, 400
OTHER_USER = 65534  # of no user of tests
EVALUATES = (
    tc.BLOCKS
    + """
class Handle(c.Structure):
    _fields_ = [("bytes", c.c_ubyte * 64)]
cuda.cuIpcOpenMemHandle_v2.argtypes = [c.POINTER(c.c_uint64), Handle, c.c_uint]
cuda.cuIpcCloseMemHandle.argtypes = [c.c_uint64]
def handle(at):
    it = Handle()
    r = cuda.cuIpcGetMemHandle(c.byref(it), c.c_uint64(at))
    return r or bytes(it.bytes).hex()
def opened(text, flags=1):
    at = c.c_uint64()
    it = Handle.from_buffer_copy(bytes.fromhex(text))
    r = cuda.cuIpcOpenMemHandle_v2(c.byref(at), it, flags)
    return at.value if r == 0 else -r
def close(at):
    return cuda.cuIpcCloseMemHandle(at)
def threads(n, call):
    answers = []
    each = [threading.Thread(target=lambda: answers.append(call())) for _ in range(n)]
    for thread in each: thread.start()
    for thread in each: thread.join()
    return sorted(set(answers))
def forked(call):
    if os.fork() == 0:
        say(call())
        os._exit(0)
    os.wait()
context = begin()
at = 0
say("ready")
for text in sys.stdin:
    if text[0] == "!": exec(text[1:])
    else: say(eval(text))
"""
)


class Ipc(tc.Carrier):
    def setUp(self):
        super().setUp()
        self.start_daemon()

    def program(self, carrier="1", **options):
        options.setdefault("COLLOC_PRELOAD_CARRIER", carrier)
        program = self.python(EVALUATES, **options)
        self.assertEqual(self.hear(program), "ready")
        return program

    def ask(self, program, text):
        self.say(program, text)
        return self.hear(program)

    def do(self, program, text):
        """A statement, of which nothing is heard."""
        self.say(program, "!" + text)

    def exporter(self, mib=3, byte=7, **options):
        """Returns a program with a block, and the block's handle."""
        program = self.program(**options)
        self.do(program, f"at = alloc({mib})[1]")
        self.assertEqual(self.ask(program, f"fill(at, {mib}, {byte})"), "0")
        return program, self.ask(program, "handle(at)")

    def importer(self, handle, mib=3, byte=7, **options):
        program = self.program(**options)
        self.do(program, f"at = opened('{handle}')")
        self.assertGreater(int(self.ask(program, "at")), 0)
        self.assertEqual(self.ask(program, f"has(at, {mib}, {byte})"), "True")
        return program

    def end(self, program):
        program.stdin.close()
        self.assertEqual(program.wait(pd.LIMIT_S), 0)


class Shared(Ipc):
    def test_both_see_the_same_memory(self):
        one, handle = self.exporter()
        other = self.importer(handle)
        self.assertEqual(self.ask(other, "fill(at, 3, 9)"), "0")
        self.assertEqual(self.ask(one, "has(at, 3, 9)"), "True")
        self.assertEqual(self.gpu.get("used"), 4 * MIB)
        self.end(other)
        self.assertEqual(self.ask(one, "free(at)"), "0")
        self.end(one)
        self.assertEqual(self.gpu.get("used"), 0)

    def test_neither_is_carried(self):
        one, handle = self.exporter()
        other = self.importer(handle)
        self.do(other, "own = alloc(2)")
        self.assertEqual(self.ask(other, "own[0]"), "0")
        for program in (one, other):
            page = self.page(program)
            self.daemon.wait_until(lambda: page.why() == "shared")
            self.assertEqual(page.uses(), pd.USES_IPC)
            self.order_away(page, "shared")
            self.assertEqual(self.ask(program, "has(at, 3, 7)"), "True")

    def test_a_process_that_is_not_carried_opens(self):
        """It has the library, but no blocks: several GPUs are visible to it, or it is no task."""
        _, handle = self.exporter()
        self.importer(handle, carrier="0")
        self.importer(handle, PRETEND_CUDA_GPUS="2")

    def test_a_forked_child_opens(self):
        """As of a fork server: the fork comes before the first call of CUDA."""
        _, handle = self.exporter()
        program = self.python(
            EVALUATES.replace("context = begin()", "if os.fork(): os._exit(os.wait()[1])\nbegin()"),
            COLLOC_PRELOAD_CARRIER="1",
        )
        self.assertEqual(self.hear(program), "ready")
        self.do(program, f"at = opened('{handle}')")
        self.assertEqual(self.ask(program, "has(at, 3, 7)"), "True")

    def test_small_memory_is_shared_by_the_driver(self):
        program = self.program()
        handle = self.ask(program, "handle(alloc(0.5)[1])")
        self.assertTrue(bytes.fromhex(handle).startswith(b"pretend driver"))
        self.assertGreater(int(self.ask(self.program(), f"opened('{handle}')")), 0)

    def test_where_the_gpu_cannot_share_mappings_there_are_no_blocks(self):
        one = self.program(PRETEND_CUDA_EXPORTS="0")
        handle = self.ask(one, "handle(alloc(3)[1])")
        self.assertTrue(bytes.fromhex(handle).startswith(b"pretend driver"))
        self.daemon.wait_until(lambda: self.page(one).why() == "no-mapping")


class Handles(Ipc):
    def test_a_block_has_one_handle(self):
        one, handle = self.exporter()
        self.assertEqual(self.ask(one, "handle(at)"), handle)
        self.assertEqual(self.ask(one, "handle(at + 2 * MIB)"), handle)
        self.assertNotEqual(self.ask(one, "handle(alloc(3)[1])"), handle)

    def test_another_block_at_its_address_has_another(self):
        one, handle = self.exporter()
        for _ in range(5):
            self.assertEqual(self.ask(one, "free(at)"), "0")
            self.do(one, "at = alloc(3)[1]")
            self.assertNotEqual(self.ask(one, "handle(at)"), handle)
        self.assertEqual(self.ask(self.program(), f"opened('{handle}')"), f"-{INVALID_VALUE}")

    def test_a_block_is_opened_once_in_a_process(self):
        _, handle = self.exporter()
        other = self.importer(handle)
        self.assertEqual(self.ask(other, f"opened('{handle}') == at"), "True")
        self.assertEqual(self.ask(other, "close(at)"), "0")
        self.assertEqual(self.ask(other, "has(at, 3, 7)"), "True")
        self.assertEqual(self.ask(other, "close(at)"), "0")
        self.assertEqual(self.ask(other, "close(at)"), "0")  # the driver's answer by now

    def test_threads_open_it_at_the_same_time(self):
        _, handle = self.exporter()
        other = self.program()
        self.do(other, f"each = threads(16, lambda: opened('{handle}'))")
        self.assertEqual(self.ask(other, "len(each)"), "1")
        self.assertEqual(self.ask(other, "[close(each[0]) for _ in range(15)] == [0] * 15"), "True")
        self.assertEqual(self.ask(other, "has(each[0], 3, 7)"), "True")

    def test_many_blocks(self):
        one, other = self.program(), self.program()
        self.do(one, "each = [alloc(1)[1] for _ in range(200)]")
        self.do(one, "r = [fill(at, 1, i % 251) for i, at in enumerate(each)]")
        handles = self.ask(one, "' '.join(handle(at) for at in each)")
        self.do(other, f"each = [opened(text) for text in '{handles}'.split()]")
        self.assertEqual(
            self.ask(other, "all([has(at, 1, i % 251) for i, at in enumerate(each)])"), "True"
        )
        self.assertEqual(self.ask(other, "sum([close(at) for at in each])"), "0")
        self.assertEqual(self.ask(one, "sum([free(at) for at in each])"), "0")
        self.assertEqual(self.gpu.get("used"), 0)

    def test_it_is_opened_with_the_flag_that_the_driver_wants(self):
        """As with the driver."""
        _, handle = self.exporter()
        other = self.importer(handle)
        for flags in (0, 2, 3):
            self.assertEqual(self.ask(other, f"opened('{handle}', {flags})"), f"-{INVALID_VALUE}")
        self.assertEqual(self.ask(other, "close(at), close(at)"), "(0, 0)")

    def test_its_own_process_cannot_open_it(self):
        """As with the driver."""
        one, handle = self.exporter()
        self.assertEqual(self.ask(one, f"opened('{handle}')"), f"-{INVALID_CONTEXT}")

    def test_what_a_program_asks(self):
        one, handle = self.exporter()
        other = self.importer(handle)
        for program in (one, other):
            self.do(program, "base, size = c.c_uint64(), c.c_size_t()")
            self.do(
                program,
                "r = cuda.cuMemGetAddressRange_v2(c.byref(base), c.byref(size), c.c_uint64(at+9))",
            )
            self.assertEqual(
                self.ask(program, "r, base.value == at, size.value // MIB"), "(0, True, 3)"
            )
            self.do(program, "n = [c.c_uint64(5) for _ in range(21)]")
            self.do(
                program,
                "r = [cuda.cuPointerGetAttribute(c.byref(it), i, c.c_uint64(at)) "
                "for i, it in enumerate(n)]",
            )
            self.assertEqual(
                self.ask(program, "n[1].value == context, n[11].value == at, n[12].value // MIB"),
                "(True, True, 3)",
            )
            ipc = "1" if program is one else "0"
            self.assertEqual(self.ask(program, "n[10].value"), ipc)
            self.assertEqual(self.ask(program, "n[14].value"), "0")
            self.assertEqual(self.ask(program, "unmap(at, 3)"), str(INVALID_VALUE))
        self.assertEqual(self.ask(other, "free(at)"), str(INVALID_VALUE))
        self.assertEqual(self.ask(other, "handle(at)"), str(INVALID_VALUE))
        self.assertEqual(self.ask(one, "close(at)"), str(INVALID_VALUE))


class Ends(Ipc):
    def test_the_exporter_frees_first(self):
        one, handle = self.exporter()
        other = self.importer(handle)
        self.assertEqual(self.ask(one, "free(at)"), "0")
        self.assertEqual(self.ask(other, "has(at, 3, 7)"), "True")
        self.assertEqual(self.ask(self.program(), f"opened('{handle}')"), f"-{INVALID_VALUE}")
        self.assertEqual(self.ask(other, "close(at)"), "0")

    def test_the_importer_closes_first(self):
        one, handle = self.exporter()
        other = self.importer(handle)
        self.assertEqual(self.ask(other, "close(at)"), "0")
        self.assertEqual(self.ask(one, "has(at, 3, 7), free(at)"), "(True, 0)")
        self.assertEqual(self.gpu.get("used"), 0)

    def test_the_exporter_is_killed(self):
        one, handle = self.exporter()
        other = self.importer(handle)
        one.kill()
        one.wait(pd.LIMIT_S)
        self.assertEqual(self.ask(other, "has(at, 3, 7)"), "True")
        self.assertEqual(self.ask(other, f"opened('{handle}') == at"), "True")
        self.assertEqual(self.ask(self.program(), f"opened('{handle}')"), f"-{INVALID_HANDLE}")

    def test_a_child_of_the_exporter_does_not_hold_its_socket(self):
        """An importer would wait for the answer of a process that has none."""
        one, handle = self.exporter()
        self.do(one, "child = os.fork() or time.sleep(600)")
        self.assertGreater(int(self.ask(one, "child")), 0)
        child = int(self.ask(one, "child"))
        try:
            one.kill()
            one.wait(pd.LIMIT_S)
            self.assertEqual(self.ask(self.program(), f"opened('{handle}')"), f"-{INVALID_HANDLE}")
        finally:
            os.kill(child, signal.SIGKILL)

    def test_a_close_waits_for_the_gpu(self):
        _, handle = self.exporter()
        other = self.importer(handle)
        self.gpu.set("busy", 1)
        self.say(other, "close(at)")
        self.daemon.wait_until(lambda: self.gpu.get("synchronising") == 1)
        self.gpu.set("busy", 0)
        self.assertEqual(self.hear(other), "0")

    def test_a_block_that_is_closed_in_a_capture_goes_after_it(self):
        _, handle = self.exporter()
        other = self.importer(handle)
        self.do(other, "stream, graph = c.c_void_p(16), c.c_void_p()")
        self.assertEqual(self.ask(other, "cuda.cuStreamBeginCapture_v2(stream, 0)"), "0")
        self.assertEqual(self.ask(other, "close(at)"), "0")
        self.assertEqual(self.ask(other, "has(at, 3, 7)"), "True")
        self.do(other, f"again = opened('{handle}')")
        self.assertEqual(self.ask(other, "again != at and has(again, 3, 7)"), "True")
        self.assertEqual(self.ask(other, "cuda.cuStreamEndCapture(stream, c.byref(graph))"), "0")
        self.assertEqual(self.ask(other, "close(again)"), "0")
        self.say(other, "has(at, 3, 7)")
        self.assertEqual(self.hear(other), "")
        self.assertEqual(other.wait(pd.LIMIT_S), -signal.SIGSEGV)

    def test_imports_go_with_their_context(self):
        _, handle = self.exporter()
        other = self.importer(handle)
        self.assertEqual(self.ask(other, "cuda.cuDevicePrimaryCtxReset_v2(0)"), "0")
        self.do(other, f"at = opened('{handle}')")
        self.assertEqual(self.ask(other, "has(at, 3, 7), close(at)"), "(True, 0)")

    def test_a_failure_leaves_nothing(self):
        _, handle = self.exporter()
        for call in (
            "cuMemImportFromShareableHandle",
            "cuMemAddressReserve",
            "cuMemSetAccess",
        ):
            other = self.program(PRETEND_CUDA_FAILS=call)
            r = "-2" if call == "cuMemAddressReserve" else f"-{INVALID_VALUE}"
            self.assertEqual(self.ask(other, f"opened('{handle}')"), r)
            self.end(other)

    def test_an_export_that_fails(self):
        _, handle = self.exporter(PRETEND_CUDA_FAILS="cuMemExportToShareableHandle")
        self.assertEqual(self.ask(self.program(), f"opened('{handle}')"), f"-{INVALID_VALUE}")


class Waits(Ipc):
    def test_an_importer_waits_for_the_exporters_gate(self):
        """But not in its gate: it can be suspended meanwhile."""
        one, handle = self.exporter()
        page = self.page(one)
        other = self.program()
        self.do(other, "own = alloc(2)")
        self.assertEqual(self.ask(other, "own[0]"), "0")
        page.set_gate(True)
        self.say(other, f"opened('{handle}') > 0")
        self.daemon.wait_until(lambda: page.u32(pd.AT_GATE) == 1)
        self.assertEqual(self.page(other).u32(pd.IN_FLIGHT), 0)
        page.set_gate(False)
        self.assertEqual(self.hear(other), "True")


class Refused(Ipc):
    def test_a_process_without_the_library(self):
        """The driver does not know the handle."""
        _, handle = self.exporter()
        other = self.program(preload=None)
        self.assertEqual(self.ask(other, f"opened('{handle}')"), f"-{INVALID_VALUE}")

    def test_other_handles(self):
        _, handle = self.exporter()
        other = self.program()
        wrong = {
            "another socket": handle[:32] + "0" * 16 + handle[48:],
            "another secret": handle[:48] + "0" * 32 + handle[80:],
            "another block": handle[:80] + "ff" + handle[82:],
            "another magic": "00" + handle[2:],
        }
        for name, text in wrong.items():
            r = INVALID_HANDLE if name == "another socket" else INVALID_VALUE
            with self.subTest(name):
                self.assertEqual(self.ask(other, f"opened('{text}')"), f"-{r}")
        self.assertGreater(int(self.ask(other, f"opened('{handle}')")), 0)

    def request(self, handle, user=None):
        """What the exporter's socket answers to a whole handle: the answer, and descriptors."""
        number = struct.unpack("=Q", bytes.fromhex(handle)[16:24])[0]
        text = f"""
import array, os, socket
if {user!r} is not None: os.setresuid({user}, {user}, {user})
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(b"\\0colloc-share-{number:016x}")
try:
    s.send(bytes.fromhex({handle!r}))
    data, control, _, _ = s.recvmsg(64, 64)
except (ConnectionResetError, BrokenPipeError):
    data, control = b"", []
print(data.hex(), len(control))
"""
        out = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
        self.assertEqual(out.returncode, 0, out.stderr)
        return out.stdout.split(" ")

    def test_its_socket_answers_this_user_only(self):
        one, handle = self.exporter()
        data, n = self.request(handle)
        self.assertEqual(struct.unpack("=iIQQ", bytes.fromhex(data))[0], 0)
        self.assertEqual(int(n), 1)
        data, n = self.request(handle[:48] + "0" * 32 + handle[80:])
        self.assertEqual(struct.unpack("=iIQQ", bytes.fromhex(data)), (INVALID_VALUE, 0, 0, 0))
        self.assertEqual(int(n), 0)
        if os.geteuid() == 0:
            self.assertEqual(self.request(handle, OTHER_USER), ["", "0\n"])
        self.importer(handle)

    @unittest.skipIf(os.geteuid(), "only root can become another user")
    def test_a_process_of_another_user(self):
        _, handle = self.exporter()
        other = self.program()
        self.do(other, f"r = os.setresuid({OTHER_USER}, {OTHER_USER}, {OTHER_USER})")
        self.assertEqual(self.ask(other, f"opened('{handle}')"), f"-{INVALID_HANDLE}")

    @unittest.skipIf(os.geteuid(), "only root can become another user")
    def test_a_socket_of_another_user(self):
        """Whoever has taken the name of an exporter that has ended learns no secret."""
        one, handle = self.exporter()
        one.kill()
        one.wait(pd.LIMIT_S)
        number = struct.unpack("=Q", bytes.fromhex(handle)[16:24])[0]
        thief = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(thief.close)
        os.seteuid(OTHER_USER)
        try:
            thief.bind(b"\0colloc-share-%016x" % number)
            thief.listen()
        finally:
            os.seteuid(0)
        self.assertEqual(self.ask(self.program(), f"opened('{handle}')"), f"-{INVALID_HANDLE}")
        thief.settimeout(pd.LIMIT_S)
        connection, _ = thief.accept()
        with connection:
            self.assertEqual(connection.recv(64), b"")

    def test_a_silent_process_of_this_user_does_not_stop_it(self):
        _, handle = self.exporter()
        number = struct.unpack("=Q", bytes.fromhex(handle)[16:24])[0]
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
            silent.connect(b"\0colloc-share-%016x" % number)
            self.importer(handle)


if __name__ == "__main__":
    unittest.main()
