# SPDX-License-Identifier: Apache-2.0
"""libcolloc-preload.so in programs that use a pretend libcuda, against a pretend daemon."""
import os
import signal
import struct
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import preload_daemon as pd  # noqa: E402

BUILD = os.environ["COLLOC_BUILD"]
LIBRARY = os.path.join(BUILD, "src", "preload", "libcolloc-preload.so")
TOOLS = os.path.join(BUILD, "tests", "preload")
MIB = 1 << 20
LIMIT_S = 120  # for anything to happen at all, on a busy machine

# What each small program below begins with: the driver by dlsym, as ctypes finds it.
PROLOGUE = """
import ctypes, os, sys, threading, time
c = ctypes
cuda = c.CDLL("libcuda.so.1")
MIB = 1 << 20
def say(*words):  # in one piece, for threads
    print(" ".join(map(str, words)) + "\\n", end="", flush=True)
def init():
    assert cuda.cuInit(0) == 0
def alloc(mib):
    at = c.c_uint64()
    r = cuda.cuMemAlloc_v2(c.byref(at), c.c_size_t(int(mib * MIB)))
    return r, at.value
def free(at):
    return cuda.cuMemFree_v2(c.c_uint64(at))
class Prop(c.Structure):
    _fields_ = [("type", c.c_int), ("handles", c.c_int), ("where", c.c_int), ("id", c.c_int),
                ("meta", c.c_void_p), ("flags", c.c_ubyte * 8)]
def create(mib):
    handle = c.c_uint64()
    prop = Prop(1, 0, 1, 0)
    r = cuda.cuMemCreate(c.byref(handle), c.c_size_t(mib * MIB), c.byref(prop), c.c_ulonglong(0))
    return r, handle.value
def map_at(at, mib, handle):
    size, none = c.c_size_t(mib * MIB), c.c_size_t(0)
    return cuda.cuMemMap(c.c_uint64(at), size, none, c.c_uint64(handle), c.c_ulonglong(0))
def unmap(at, mib):
    return cuda.cuMemUnmap(c.c_uint64(at), c.c_size_t(mib * MIB))
def release(handle):
    return cuda.cuMemRelease(c.c_uint64(handle))
def sockets():
    names = {fd: os.path.join("/proc/self/fd", fd) for fd in os.listdir("/proc/self/fd")}
    return [int(fd) for fd, name in names.items()
            if os.path.islink(name) and os.readlink(name).startswith("socket:")]
def alloc_async(mib):
    at = c.c_uint64()
    return cuda.cuMemAllocAsync(c.byref(at), c.c_size_t(mib * MIB), None)
"""


class Gpu:
    """The pretend GPU's file (tests/preload/pretend_cuda.h)."""

    FIELDS = ["total", "used", "tries", "refusals", "suspended", "busy", "synchronising", "context"]
    FIELDS += ["uuid", "uuid", "held"]

    def __init__(self, path, total_mib):
        self.path = path
        with open(path, "wb") as out:
            out.write(struct.pack("=8Q16sQ", total_mib * MIB, *[0] * 7, b"0123456789abcdef", 0))
        self.file = open(path, "r+b", buffering=0)

    def get(self, name):
        return struct.unpack("=Q", os.pread(self.file.fileno(), 8, 8 * self.FIELDS.index(name)))[0]

    def set(self, name, value):
        os.pwrite(self.file.fileno(), struct.pack("=Q", value), 8 * self.FIELDS.index(name))


class Preload(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="preload")
        self.addCleanup(self.folder.cleanup)
        self.gpu = Gpu(os.path.join(self.folder.name, "gpu"), 1000)
        self.addCleanup(lambda: self.gpu.file.close())
        self.socket = os.path.join(self.folder.name, "socket")
        self.daemon = None
        self.programs = []
        self.addCleanup(self.end_programs)

    def end_programs(self):
        for program in self.programs:
            if program.poll() is None:
                program.kill()
            program.wait()
            for stream in (program.stdout, program.stdin):
                if stream:
                    stream.close()
        if self.daemon:
            self.daemon.close()

    def start_daemon(self, on_wait=lambda wait: [(pd.BOUND, 60000)], **options):
        self.daemon = pd.PreloadDaemon(self.socket, on_wait, **options)
        return self.daemon

    def environment(self, preload=LIBRARY, **more):
        env = dict(os.environ, LD_LIBRARY_PATH=TOOLS, PRETEND_CUDA=self.gpu.path, **more)
        env.update(COLLOC_PRELOAD_SOCKET=self.socket, COLLOC_TASK_ID="7", COLLOC_ATTEMPT_NUMBER="1")
        if preload:
            env["LD_PRELOAD"] = preload
        return env

    def start(self, *command, **options):
        program = subprocess.Popen(
            command,
            env=self.environment(**options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.programs.append(program)
        return program

    def python(self, text, **options):
        return self.start(sys.executable, "-c", PROLOGUE + textwrap.dedent(text), **options)

    def output(self, program):
        out, _ = program.communicate(timeout=LIMIT_S)
        self.assertEqual(program.returncode, 0, out)
        return out.split()

    def check_memory(self, program, answer, held_mib, held_at_end_mib, peak_mib):
        """A program says `answer` and waits for a line; after it, it says 0 and ends."""
        self.assertEqual(program.stdout.readline(), f"{answer}\n")
        page = self.daemon.pages[program.pid]
        self.assertEqual(page.held(), held_mib * MIB)
        program.stdin.write("\n")
        self.assertEqual(self.output(program), ["0"])
        self.assertEqual((page.held(), page.peak()), (held_at_end_mib * MIB, peak_mib * MIB))

    def probe(self, *words, **options):
        name = "probe-linked" if words[0] == "linked" else "probe"
        return self.start(os.path.join(TOOLS, name), *words, **options)

    def wait_for_wait(self, n=1):
        self.daemon.wait_until(lambda: len(self.daemon.waits) >= n)
        return self.daemon.waits[n - 1]


class Found(Preload):
    """However a program finds the driver, its allocation waits."""

    def check(self, way, **options):
        daemon = self.start_daemon()
        self.gpu.set("used", 900 * MIB)
        program = self.probe(way, "alloc", "200", **options)
        wait = self.wait_for_wait()
        self.assertEqual((wait.bytes, wait.reason, wait.task), (200 * MIB, pd.MEMORY, 7))
        self.assertEqual(wait.uuid, b"0123456789abcdef")
        self.assertEqual(daemon.pages[program.pid].u32(pd.WAITING), 1)
        self.gpu.set("used", 0)
        daemon.answer(wait, pd.RETRY)
        self.assertEqual(self.output(program), ["0"])
        page = daemon.pages[program.pid]
        self.assertEqual((page.held(), page.peak()), (200 * MIB, 200 * MIB))
        self.assertEqual((page.u64(pd.WAITS), page.u64(pd.FAILURES)), (1, 0))

    def test_linked(self):
        self.check("linked")

    def test_by_dlsym(self):
        self.check("dlsym")

    def test_by_cu_get_proc_address(self):
        self.check("table")

    def test_other_forms_of_a_function_are_left_alone(self):
        self.start_daemon()
        self.assertEqual(self.output(self.probe("table", "forms")), ["32", "99", "0", "0"])

    def test_another_preloaded_library_finds_what_is_behind_itself(self):
        self.start_daemon()
        both = LIBRARY + " " + os.path.join(TOOLS, "libinterposer.so")
        program = self.probe("dlsym", "next", preload=both)
        self.assertEqual(self.output(program), ["1", "none", "error"])

    def test_another_preloaded_library_has_a_dlsym(self):
        """Without our library, before it and behind it."""
        other = os.path.join(TOOLS, "libown-dlsym.so")
        answer = self.output(self.probe("dlsym", "alloc", "200", preload=other))
        self.assertEqual(answer, ["0"])
        for both in (f"{other}:{LIBRARY}", f"{LIBRARY}:{other}"):
            with self.subTest(both):
                self.check("dlsym", preload=both)
                self.daemon.close()
                self.daemon = None
                self.check("table", preload=both)
                self.daemon.close()
                self.daemon = None
                program = self.probe("dlsym", "next", preload=both)
                self.assertEqual(self.output(program)[1:], ["none", "error"])

    def test_its_memory_is_the_drivers_without_a_daemon(self):
        self.assertEqual(self.output(self.probe("dlsym", "alloc", "600", "600")), ["0", "2"])

    def test_the_environment_is_read_once_in_each_process(self):
        """A thread of the program may change it later. The child is that of a fork server: it gets
        the environment of its task after the fork."""
        self.start_daemon(on_wait=lambda wait: [(pd.FAIL, 0)])
        program = self.python(
            """
            init()
            alloc(1)
            os.environ["COLLOC_TASK_ID"] = "8"
            if os.fork() == 0:
                alloc(2000)
                os._exit(0)
            os.wait()
            os.environ["COLLOC_PRELOAD_SOCKET"] = "/none"
            alloc(2000)
            """
        )
        self.output(program)
        self.assertEqual([wait.task for wait in self.daemon.waits], [8, 7])

    def test_programs_without_cuda(self):
        plain = subprocess.run(
            ["sh", "-c", "echo out; echo err >&2; exit 3"],
            env=self.environment(),
            capture_output=True,
        )
        self.assertEqual((plain.returncode, plain.stdout, plain.stderr), (3, b"out\n", b"err\n"))

    def test_a_static_program(self):
        program = self.start(os.path.join(TOOLS, "static-program"))
        self.assertEqual(self.output(program), ["static"])

    def test_it_is_linked_with_nothing(self):
        text = subprocess.run(["readelf", "-dW", LIBRARY], capture_output=True, text=True).stdout
        self.assertNotIn("NEEDED", text)
        text = subprocess.run(["readelf", "-VW", LIBRARY], capture_output=True, text=True).stdout
        self.assertNotIn("GLIBC", text)


class Connections(Preload):
    def test_a_descriptor_that_the_program_took_is_its_own(self):
        """It closes all, as a program that becomes a daemon, and gets their numbers again."""
        daemon = self.start_daemon()
        self.gpu.set("used", 900 * MIB)
        program = self.python(
            """
            import socket
            init()
            thread = threading.Thread(target=lambda: say(alloc(200)[0]))
            thread.start()
            input()
            theirs = sockets()
            here, there = socket.socketpair()
            for fd in theirs: os.dup2(here.fileno(), fd)
            say(len(theirs))
            thread.join()
            while len(sockets()) < len(theirs) + 3:  # the new connection of the process
                free(alloc(1)[1])
                time.sleep(0.05)
            there.setblocking(False)
            try:
                say("got", len(there.recv(256)))
            except BlockingIOError:
                say("nothing")
            here.close()
            for fd in theirs: os.fstat(fd)
            there.send(b"x")  # the library has not shut it down
            """
        )
        daemon.answer(self.wait_for_wait(), pd.RETRY)
        wait = self.wait_for_wait(2)  # it has read the bound
        program.stdin.write("\n")
        program.stdin.flush()
        self.assertEqual(program.stdout.readline(), "2\n")
        daemon.answer(wait, pd.RETRY)
        wait = self.wait_for_wait(3)
        self.gpu.set("used", 0)
        daemon.answer(wait, pd.RETRY)
        self.assertEqual(self.output(program), ["0", "nothing"])

    def test_a_child_has_none_of_its_parent(self):
        """Also not that of a thread that waits. The daemon sees the end of the parent."""
        daemon = self.start_daemon()
        self.gpu.set("used", 900 * MIB)
        program = self.python(
            """
            init()
            threading.Thread(target=lambda: say(alloc(200)[0])).start()
            input()
            before = len(sockets())
            if os.fork() == 0:  # a worker of a DataLoader
                say(before, len(sockets()))
                sys.stdin.read()
                os._exit(0)
            """
        )
        self.wait_for_wait()
        program.stdin.write("\n")
        program.stdin.flush()
        self.assertEqual(program.stdout.readline(), "2 0\n")
        os.kill(program.pid, signal.SIGKILL)
        daemon.wait_until(lambda: not daemon.connections)
        program.stdin.close()  # the child ends
        self.assertEqual(program.stdout.read(), "")


class Code(Preload):
    """On a full GPU a kernel's code has no room: the call that loads it waits."""

    def check(self, program, result):
        """506 is what the pretend launch returns: no success of the driver."""
        wait = self.wait_for_wait()
        self.assertEqual((wait.bytes, wait.reason), (256 * MIB, pd.CONTEXT))
        self.gpu.set("used", 0)
        self.daemon.answer(wait, pd.RETRY)
        self.assertEqual(self.output(program), result)
        page = self.daemon.pages[program.pid]
        self.assertEqual(page.u64(pd.WAITS), 1)
        self.assertEqual(page.u64(pd.FAILURES), int("506" in result))

    def test_a_launch(self):
        for way in ("table", "dlsym"):
            self.start_daemon()
            self.gpu.set("used", 0)
            program = self.probe(way, "launch")
            self.assertEqual(program.stdout.readline(), "ready\n")
            self.gpu.set("used", 1000 * MIB)
            program.stdin.write("\n")
            program.stdin.flush()
            self.check(program, ["13000", "506", "25"])
            self.daemon.close()
            os.unlink(self.socket)

    def test_later_launches_wait_as_well(self):
        """As those of an evaluation, which comes after hours."""
        self.start_daemon()
        program = self.probe("table", "launches", "200000")
        self.assertEqual(program.stdout.readline(), "ready\n")
        self.gpu.set("used", 1000 * MIB)
        program.stdin.write("\n")
        program.stdin.flush()
        self.check(program, ["0"])

    def test_what_else_takes_memory_of_the_drivers_own(self):
        """Graphs, streams and events; and code with options of the compiler, whose values the
        driver overwrites in each try."""
        self.start_daemon()
        for call in (
            "cuda.cuStreamCreate(made, 0)",
            "cuda.cuEventCreate(made, 0)",
            "cuda.cuGraphInstantiateWithFlags(made, c.c_void_p(8), c.c_ulonglong(0))",
            "cuda.cuGraphUpload(c.c_void_p(8), None)",
            "cuda.cuGraphLaunch(c.c_void_p(8), None)",
            "cuda.cuModuleLoadDataEx(made, None, 1, (c.c_int * 1)(4), (c.c_void_p * 1)(4096))",
        ):
            with self.subTest(call):
                self.gpu.set("used", 0)
                before = len(self.daemon.waits)
                program = self.python(
                    f"""
                    init()
                    made = c.byref(c.c_void_p())
                    say("ready")
                    input()
                    say({call})
                    """
                )
                self.assertEqual(program.stdout.readline(), "ready\n")
                self.gpu.set("used", 1000 * MIB)
                program.stdin.write("\n")
                program.stdin.flush()
                wait = self.wait_for_wait(before + 1)
                self.assertEqual((wait.bytes, wait.reason), (256 * MIB, pd.CONTEXT))
                self.gpu.set("used", 0)
                self.daemon.answer(wait, pd.RETRY)
                self.assertEqual(self.output(program), ["0"])

    def test_a_library(self):
        self.start_daemon()
        self.gpu.set("used", 990 * MIB)
        none = ", None" * 3
        program = self.python(
            f"""
            init()
            library = c.c_void_p()
            say(cuda.cuLibraryLoadData(c.byref(library), None{none}, 0, None, None, 0))
            """
        )
        self.check(program, ["0"])

    def test_without_a_daemon_the_error(self):
        self.gpu.set("used", 1000 * MIB)
        program = self.probe("table", "launch")
        program.stdin.write("\n")
        self.assertEqual(self.output(program), ["ready", "13000", "2", "25"])


class Waiting(Preload):
    def test_the_true_error_when_the_daemon_says_so(self):
        self.start_daemon(on_wait=lambda wait: [(pd.FAIL, 0)])
        self.assertEqual(self.output(self.probe("dlsym", "alloc", "2000", "100")), ["2", "0"])
        page = list(self.daemon.pages.values())[0]
        self.assertEqual(page.u64(pd.FAILURES), 1)

    def test_the_true_error_when_the_bound_has_passed(self):
        self.start_daemon(on_wait=lambda wait: [(pd.BOUND, 200)])
        self.assertEqual(self.output(self.probe("dlsym", "alloc", "2000")), ["2"])
        self.assertEqual(len(self.daemon.waits), 1)

    def test_a_bound_that_comes_while_it_is_stopped_counts(self):
        """The task is paused just after RETRY; when it is resumed, the memory is gone."""
        daemon = self.start_daemon(on_wait=lambda wait: [(pd.BOUND, 2000)])
        program = self.probe("dlsym", "alloc", "2000")
        wait = self.wait_for_wait()
        daemon.on_wait = lambda wait: []
        time.sleep(0.2)  # it has read the bound
        os.kill(program.pid, signal.SIGSTOP)
        daemon.answer(wait, pd.RETRY)
        daemon.answer(wait, pd.BOUND, 60000)
        time.sleep(2.1)
        os.kill(program.pid, signal.SIGCONT)
        daemon.answer(self.wait_for_wait(2), pd.RETRY)
        daemon.answer(self.wait_for_wait(3), pd.FAIL)
        self.assertEqual(self.output(program), ["2"])

    def test_it_is_over_although_a_child_has_its_socket(self):
        daemon = self.start_daemon()
        self.gpu.set("used", 900 * MIB)
        program = self.python(
            """
            init()
            thread = threading.Thread(target=lambda: say(alloc(200)[0]))
            thread.start()
            input()
            if os.fork() == 0:  # a worker of a DataLoader
                input()
                os._exit(0)
            say("forked")
            thread.join()
            os.wait()
            """
        )
        wait = self.wait_for_wait()
        program.stdin.write("\n")
        program.stdin.flush()
        self.assertEqual(program.stdout.readline(), "forked\n")
        self.gpu.set("used", 0)
        daemon.answer(wait, pd.RETRY)
        self.assertEqual(program.stdout.readline(), "0\n")
        daemon.wait_until(lambda: wait.connection.fileno() == -1)
        program.stdin.write("\n")
        self.output(program)

    def test_each_failed_retry_is_asked_again(self):
        answers = [[(pd.BOUND, 60000), (pd.RETRY, 0)]] * 3 + [[(pd.FAIL, 0)]]
        self.start_daemon(on_wait=lambda wait: answers[len(self.daemon.waits) - 1])
        self.assertEqual(self.output(self.probe("dlsym", "alloc", "2000")), ["2"])
        self.assertEqual((self.gpu.get("refusals"), len(self.daemon.waits)), (4, 4))

    def test_without_an_answer_it_does_not_wait_for_long(self):
        self.start_daemon(on_wait=lambda wait: [])
        program = self.probe("dlsym", "alloc", "2000")
        self.assertEqual(self.output(program), ["2"])

    def test_a_new_daemon_goes_on(self):
        self.start_daemon()
        self.gpu.set("used", 900 * MIB)
        program = self.probe("dlsym", "alloc", "200")
        self.wait_for_wait()
        self.daemon.close()
        self.start_daemon()
        wait = self.wait_for_wait()
        self.gpu.set("used", 0)
        self.daemon.answer(wait, pd.RETRY)
        self.assertEqual(self.output(program), ["0"])

    def test_it_gets_memory_while_no_daemon_is_there(self):
        self.start_daemon()
        self.gpu.set("used", 900 * MIB)
        program = self.probe("dlsym", "alloc", "200")
        self.wait_for_wait()
        self.daemon.close()
        self.gpu.set("used", 0)
        self.assertEqual(self.output(program), ["0"])

    def test_a_framework_frees_its_cache_first(self):
        """PyTorch tries twice; the second try of the same size is final."""
        self.start_daemon(on_wait=lambda wait: [(pd.FAIL, 0)])
        torch = os.path.join(TOOLS, "libc10_cuda.so")
        program = self.python(
            f"""
            c.CDLL({torch!r})
            init()
            r, cache = alloc(900)
            say(r, alloc(200)[0])
            free(cache)
            say(alloc(200)[0])      # the round ended well
            say(alloc(900)[0], "passes")
            say(alloc(900)[0], "waited")
            """
        )
        words = self.output(program)
        self.assertEqual(words, ["0", "2", "0", "2", "passes", "2", "waited"])
        self.assertEqual([wait.bytes for wait in self.daemon.waits], [900 * MIB])

    def test_a_library_of_nvidia_does_not_try_again(self):
        """In PyTorch's process, too, the first failure of cuBLAS ends the training."""
        self.start_daemon(on_wait=lambda wait: [(pd.FAIL, 0)])
        torch, cublas = (os.path.join(TOOLS, f"lib{name}.so") for name in ("c10_cuda", "cublas"))
        program = self.python(
            f"""
            c.CDLL({torch!r})
            init()
            say(c.CDLL({cublas!r}).take_workspace(c.c_size_t(1200 * MIB)))
            say(alloc(1100)[0], "passes")
            """
        )
        self.assertEqual(self.output(program), ["2", "2", "passes"])
        self.assertEqual([wait.bytes for wait in self.daemon.waits], [1200 * MIB])

    def test_smaller_and_smaller_sizes(self):
        """XLA's way: only the smallest, in the second round, is what it needs."""
        self.start_daemon(on_wait=lambda wait: [(pd.FAIL, 0)])
        torch = os.path.join(TOOLS, "libc10_cuda.so")
        program = self.python(
            f"""
            c.CDLL({torch!r})
            init()
            for mib in [1400, 1200, 1100] * 2:
                assert alloc(mib)[0] == 2
            """
        )
        self.output(program)
        self.assertEqual([wait.bytes for wait in self.daemon.waits], [1100 * MIB])

    def test_expandable_segments_in_a_framework(self):
        """It takes pieces; the second round's pieces that succeed do not end the round."""
        self.start_daemon(on_wait=lambda wait: [(pd.FAIL, 0)])
        torch = os.path.join(TOOLS, "libc10_cuda.so")
        program = self.python(
            f"""
            c.CDLL({torch!r})
            init()
            for round in range(2):
                handles = []
                while True:
                    r, handle = create(300)
                    if r: break
                    handles.append(handle)
                say(len(handles))
                for handle in handles: release(handle)
            """
        )
        self.assertEqual(self.output(program), ["3", "3"])
        self.assertEqual([wait.bytes for wait in self.daemon.waits], [300 * MIB])
        self.assertEqual(self.daemon.waits[0].held, 900 * MIB)

    def test_stream_ordered_allocations(self):
        daemon = self.start_daemon()
        self.gpu.set("used", 900 * MIB)
        program = self.python("init(); say(alloc_async(200))")
        wait = self.wait_for_wait()
        self.gpu.set("used", 0)
        daemon.answer(wait, pd.RETRY)
        self.assertEqual(self.output(program), ["0"])

    def test_a_context(self):
        daemon = self.start_daemon()
        self.gpu.set("used", 900 * MIB)
        self.gpu.set("context", 500 * MIB)
        program = self.python(
            "init(); say(cuda.cuDevicePrimaryCtxRetain(c.byref(c.c_void_p()), 0))"
        )
        wait = self.wait_for_wait()
        self.assertEqual(wait.reason, pd.CONTEXT)
        self.gpu.set("used", 0)
        daemon.answer(wait, pd.RETRY)
        self.assertEqual(self.output(program), ["0"])

    def test_not_while_a_stream_is_captured(self):
        self.start_daemon(on_wait=lambda wait: [(pd.FAIL, 0)])
        program = self.python(
            """
            init()
            stream = c.c_void_p(8)
            assert cuda.cuStreamBeginCapture_v2(stream, 0) == 0
            say(alloc(2000)[0])
            assert cuda.cuStreamEndCapture(stream, None) == 0
            assert cuda.cuStreamEndCapture(stream, None) == 401
            say(alloc(1500)[0])
            """
        )
        self.assertEqual(self.output(program), ["2", "2"])
        self.assertEqual([wait.bytes for wait in self.daemon.waits], [1500 * MIB])

    def check_capture(self, text, *waits):
        """Which sizes of failed allocations waited."""
        self.start_daemon(on_wait=lambda wait: [(pd.FAIL, 0)])
        program = self.python(
            f"""
            init()
            stream = c.c_void_p(8)
            assert cuda.cuStreamBeginCapture_v2(stream, 0) == 0
            {text}
            """
        )
        self.output(program)
        self.assertEqual([wait.bytes for wait in self.daemon.waits], [mib * MIB for mib in waits])

    def test_a_capture_that_another_thread_cannot_end_goes_on(self):
        self.check_capture(
            """
            end = lambda: os.environ.update(got=str(cuda.cuStreamEndCapture(stream, None)))
            thread = threading.Thread(target=end)
            thread.start()
            thread.join()
            assert os.environ["got"] == "908"
            alloc(2000)
            assert cuda.cuStreamEndCapture(stream, None) == 0
            alloc(1500)
            """,
            1500,
        )

    def test_a_capture_ends_with_its_stream(self):
        self.check_capture(
            """
            other = c.c_void_p(16)
            assert cuda.cuStreamDestroy_v2(other) == 0
            os.environ["PRETEND_CUDA_REFUSES"] = "yes"
            assert cuda.cuStreamDestroy_v2(stream) == 201
            del os.environ["PRETEND_CUDA_REFUSES"]
            alloc(2000)
            assert cuda.cuStreamDestroy_v2(stream) == 0
            alloc(1500)
            """,
            1500,
        )

    def check_capture_ends_with(self, call):
        self.check_capture(
            f"""
            os.environ["PRETEND_CUDA_REFUSES"] = "yes"
            assert {call} == 201
            del os.environ["PRETEND_CUDA_REFUSES"]
            alloc(2000)
            assert {call} == 0
            alloc(1500)
            assert cuda.cuStreamBeginCapture_v2(stream, 0) == 0
            alloc(1400)
            assert cuda.cuStreamEndCapture(stream, None) == 0
            alloc(1300)
            """,
            1500,
            1300,
        )

    def test_a_capture_ends_with_its_context(self):
        self.check_capture_ends_with("cuda.cuDevicePrimaryCtxReset_v2(0)")

    def test_a_capture_ends_with_the_last_reference_of_its_context(self):
        self.check_capture_ends_with("cuda.cuDevicePrimaryCtxRelease_v2(0)")

    def test_a_capture_ends_with_a_context_that_is_destroyed(self):
        self.check_capture_ends_with("cuda.cuCtxDestroy_v2(c.c_void_p(32))")

    def test_a_capture_goes_on_when_that_of_another_stream_is_ended(self):
        self.check_capture(
            """
            assert cuda.cuStreamEndCapture(c.c_void_p(16), None) == 401
            alloc(2000)
            """
        )

    def test_threads_wait_by_themselves(self):
        self.start_daemon()
        self.gpu.set("used", 900 * MIB)
        program = self.python(
            """
            init()
            def work(mib): say(mib, alloc(mib)[0])
            threads = [threading.Thread(target=work, args=(m,)) for m in (200, 300, 400)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            """
        )
        self.wait_for_wait(3)
        self.gpu.set("used", 0)
        for wait in self.daemon.waits[:3]:
            self.daemon.answer(wait, pd.RETRY)
        words = self.output(program)
        self.assertEqual(sorted(words), ["0", "0", "0", "200", "300", "400"])


class Counting(Preload):
    def test_blocks_physical_memory_and_mappings(self):
        daemon = self.start_daemon()
        program = self.python(
            """
            init()
            blocks = [alloc(10)[1] for i in range(40)]
            for at in blocks[:30]: free(at)
            handles = [create(20)[1] for i in range(5)]
            for i, handle in enumerate(handles[:3]):
                assert map_at(1 << 40 | i * 20 * MIB, 20, handle) == 0
            for handle in handles: release(handle)   # two go, three are mapped
            say("held"); input()
            unmap(1 << 40, 60)
            for at in blocks[30:]: free(at)
            say("free"); input()
            """
        )
        self.assertEqual(program.stdout.readline(), "held\n")
        page = daemon.pages[program.pid]
        self.assertEqual((page.held(), page.peak()), (160 * MIB, 400 * MIB))
        self.assertEqual(page.uuid(0), b"0123456789abcdef")
        program.stdin.write("\n")
        program.stdin.flush()
        self.assertEqual(program.stdout.readline(), "free\n")
        self.assertEqual((page.held(), page.window_peak()), (0, 400 * MIB))
        program.stdin.write("\n")
        self.output(program)
        self.assertEqual(page.uses(), 0)

    def test_blocks_that_a_stream_frees(self):
        daemon = self.start_daemon()
        program = self.python(
            """
            init()
            blocks = [alloc(10)[1] for i in range(3)]
            say(cuda.cuMemFreeAsync(c.c_uint64(blocks[0]), None))
            say(cuda.cuMemFreeAsync_ptsz(c.c_uint64(blocks[1]), None))
            os.environ["PRETEND_CUDA_REFUSES"] = "yes"
            say(cuda.cuMemFreeAsync(c.c_uint64(blocks[2]), None))
            """
        )
        self.assertEqual(self.output(program), ["0", "0", "201"])
        page = daemon.pages[program.pid]
        self.assertEqual((page.held(), page.peak()), (10 * MIB, 30 * MIB))

    def test_blocks_go_with_the_context_that_is_destroyed(self):
        self.start_daemon()
        program = self.python(
            """
            init()
            context = c.c_void_p()
            assert cuda.cuCtxCreate_v2(c.byref(context), 0, 0) == 0
            alloc(100)
            assert cuda.cuCtxSetCurrent(None) == 0
            alloc(20)
            os.environ["PRETEND_CUDA_REFUSES"] = "yes"
            say(cuda.cuCtxDestroy_v2(context)); input()
            del os.environ["PRETEND_CUDA_REFUSES"]
            say(cuda.cuCtxDestroy_v2(context))
            """
        )
        self.check_memory(program, 201, held_mib=120, held_at_end_mib=20, peak_mib=120)

    def test_blocks_go_with_the_last_reference_of_the_primary_context(self):
        self.start_daemon()
        program = self.python(
            """
            init()
            for _ in range(2):
                assert cuda.cuDevicePrimaryCtxRetain(c.byref(c.c_void_p()), 0) == 0
            alloc(100)
            say(cuda.cuDevicePrimaryCtxRelease_v2(0)); input()
            say(cuda.cuDevicePrimaryCtxRelease_v2(0))
            """
        )
        self.check_memory(program, 0, held_mib=100, held_at_end_mib=0, peak_mib=100)

    def test_blocks_of_other_contexts_stay_when_the_primary_one_is_reset(self):
        self.start_daemon()
        program = self.python(
            """
            init()
            assert cuda.cuDevicePrimaryCtxRetain(c.byref(c.c_void_p()), 0) == 0
            alloc(100)
            context = c.c_void_p()
            assert cuda.cuCtxCreate_v2(c.byref(context), 0, 0) == 0
            alloc(20)
            say(cuda.cuDevicePrimaryCtxReset_v2(0)); input()
            say(cuda.cuCtxDestroy_v2(context))
            """
        )
        self.check_memory(program, 0, held_mib=20, held_at_end_mib=0, peak_mib=120)

    def test_the_peak_of_a_killed_process_stays(self):
        daemon = self.start_daemon()
        program = self.python("init(); alloc(321); os.kill(os.getpid(), 9)")
        program.wait(60)
        self.assertEqual(daemon.pages[program.pid].peak(), 321 * MIB)

    def test_pools(self):
        daemon = self.start_daemon()
        program = self.python(
            """
            init()
            alloc_async(100)
            time.sleep(0.2)  # the pools are looked at ten times a second
            alloc_async(50)
            """
        )
        self.output(program)
        page = daemon.pages[program.pid]
        self.assertEqual((page.pool_held(), page.pool_peak()), (100 * MIB, 100 * MIB))
        self.assertEqual(page.uses(), pd.USES_POOLS)

    def test_managed_memory_is_reported(self):
        daemon = self.start_daemon()
        program = self.python(
            "init(); cuda.cuMemAllocManaged(c.byref(c.c_uint64()), c.c_size_t(1), 1)"
        )
        self.output(program)
        self.assertEqual(daemon.pages[program.pid].uses(), pd.USES_MANAGED)

    def test_many_threads(self):
        daemon = self.start_daemon()
        program = self.python(
            """
            init()
            def work():
                for i in range(500):
                    kept = alloc(1)[1]
                    free(alloc(1)[1])
                    free(kept)
                alloc(2)
            threads = [threading.Thread(target=work) for i in range(8)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            """
        )
        self.output(program)
        page = daemon.pages[program.pid]
        self.assertEqual(page.held(), 16 * MIB)
        self.assertEqual(self.gpu.get("used"), 16 * MIB)
        self.assertLessEqual(page.peak(), 16 * MIB + 8 * 2 * MIB)

    def check_reuse(self, setup, give_back, take):
        """Another thread gets what the driver has freed before the call that frees it returns."""
        daemon = self.start_daemon()
        program = self.python(
            f"""
            init()
            {setup}
            say("ready"); input()
            thread = threading.Thread(target=lambda: say({give_back}))
            thread.start()
            input()
            say({take}[1] == at); input()
            """
        )

        def answer():
            program.stdin.write("\n")
            program.stdin.flush()

        self.assertEqual(program.stdout.readline(), "ready\n")
        self.gpu.set("busy", 1)
        answer()
        daemon.wait_until(lambda: self.gpu.get("synchronising") == 1)
        answer()
        self.assertEqual(program.stdout.readline(), "True\n")
        self.gpu.set("busy", 0)
        self.assertEqual(program.stdout.readline(), "0\n")
        self.assertEqual(daemon.pages[program.pid].held(), 30 * MIB)
        answer()
        self.output(program)

    def test_an_address_that_another_thread_gets_at_once(self):
        self.check_reuse("at = alloc(20)[1]", "free(at)", "alloc(30)")

    def test_a_handle_that_another_thread_gets_at_once(self):
        self.check_reuse("at = create(20)[1]", "release(at)", "create(30)")

    def test_a_mapped_handle_that_another_thread_gets_at_once(self):
        setup = "at = create(20)[1]; map_at(1 << 40, 20, at); release(at)"
        self.check_reuse(setup, "unmap(1 << 40, 20)", "create(30)")

    def test_what_the_driver_does_not_free_is_still_held(self):
        daemon = self.start_daemon()
        program = self.python(
            """
            init()
            block, handle, mapped = alloc(1)[1], create(2)[1], create(4)[1]
            map_at(1 << 40, 4, mapped)
            os.environ["PRETEND_CUDA_REFUSES"] = "yes"
            say(free(block), release(handle), release(mapped)); input()
            say(unmap(1 << 40, 4)); input()
            """
        )
        self.assertEqual(program.stdout.readline(), "201 201 201\n")
        page = daemon.pages[program.pid]
        self.assertEqual((page.held(), page.uses()), (7 * MIB, 0))
        program.stdin.write("\n")
        program.stdin.flush()
        self.assertEqual(program.stdout.readline(), "201\n")
        self.assertEqual(page.uses(), pd.INCOMPLETE)
        program.stdin.write("\n")
        self.output(program)

    def test_a_child_counts_for_itself(self):
        daemon = self.start_daemon()
        program = self.python(
            """
            init()
            alloc(100)
            child = os.fork()
            if child == 0:
                alloc(30)
                os._exit(0)
            say(child)
            os.waitpid(child, 0)
            alloc(1)
            """
        )
        child = int(self.output(program)[0])
        self.assertEqual(daemon.pages[program.pid].held(), 101 * MIB)
        self.assertEqual(daemon.pages[child].held(), 30 * MIB)

    def test_a_new_daemon_learns_all_of_it(self):
        self.start_daemon()
        program = self.python(
            """
            init()
            kept = alloc(100)[1]
            free(alloc(50)[1])
            say("ready"); input()
            while not os.path.exists(os.environ["PRETEND_CUDA"] + ".done"):
                free(alloc(1)[1])
                time.sleep(0.05)
            """
        )
        self.assertEqual(program.stdout.readline(), "ready\n")
        self.daemon.close()
        daemon = self.start_daemon()
        program.stdin.write("\n")
        program.stdin.flush()
        daemon.wait_until(
            lambda: program.pid in daemon.pages and daemon.pages[program.pid].held() >= 100 * MIB
        )
        self.assertEqual(daemon.pages[program.pid].peak(), 150 * MIB)
        open(self.gpu.path + ".done", "w").close()
        self.output(program)


class Cap(Preload):
    def test_over_the_cap_it_waits_and_the_cap_may_rise(self):
        daemon = self.start_daemon(cap_bytes=300 * MIB)
        program = self.probe("dlsym", "alloc", "200", "200")
        wait = self.wait_for_wait()
        self.assertEqual((wait.reason, wait.bytes, wait.held), (pd.OVER_CAP, 200 * MIB, 200 * MIB))
        self.assertEqual(self.gpu.get("tries"), 1)
        daemon.pages[program.pid].set_cap(500 * MIB)
        daemon.answer(wait, pd.RETRY)
        self.assertEqual(self.output(program), ["0", "0"])

    def test_the_daemon_may_refuse(self):
        self.start_daemon(on_wait=lambda wait: [(pd.FAIL, 0)], cap_bytes=300 * MIB)
        self.assertEqual(self.output(self.probe("dlsym", "alloc", "200", "200")), ["0", "2"])

    def test_it_is_soft(self):
        self.start_daemon(on_wait=lambda wait: [(pd.BOUND, 100)], cap_bytes=300 * MIB)
        self.assertEqual(self.output(self.probe("dlsym", "alloc", "200", "200")), ["0", "0"])

    def test_it_is_lifted_while_a_stream_is_captured(self):
        """Nothing waits then, so that the cap would be hard."""
        self.start_daemon(on_wait=lambda wait: [(pd.FAIL, 0)], cap_bytes=300 * MIB)
        program = self.python(
            """
            init()
            stream = c.c_void_p(8)
            assert cuda.cuStreamBeginCapture_v2(stream, 0) == 0
            say(alloc(200)[0], alloc(200)[0], alloc_async(400))
            assert cuda.cuStreamEndCapture(stream, None) == 0
            say(alloc(1)[0])
            """
        )
        self.assertEqual(self.output(program), ["0", "0", "0", "2"])
        self.assertEqual([wait.reason for wait in self.daemon.waits], [pd.OVER_CAP])

    def test_of_pools(self):
        self.start_daemon(on_wait=lambda wait: [(pd.FAIL, 0)], cap_bytes=300 * MIB)
        program = self.python("init(); say(alloc_async(200), alloc_async(200))")
        self.assertEqual(self.output(program), ["0", "2"])
        self.assertEqual(self.daemon.waits[0].reason, pd.OVER_CAP)


class Gate(Preload):
    SYNCHRONISE = """
        init()
        alloc(1)
        say("ready"); input()
        say(cuda.{call})
        """

    def check(self, call):
        daemon = self.start_daemon()
        program = self.python(self.SYNCHRONISE.format(call=call))
        self.assertEqual(program.stdout.readline(), "ready\n")
        page = daemon.pages[program.pid]
        page.set_gate(True)
        self.gpu.set("suspended", 1)
        program.stdin.write("\n")
        program.stdin.flush()
        daemon.wait_until(lambda: page.u32(pd.AT_GATE) == 1)
        self.assertIsNone(program.poll())
        self.assertEqual(page.u32(pd.IN_FLIGHT), 0)
        self.gpu.set("suspended", 0)
        page.set_gate(False)
        self.assertEqual(self.output(program), ["0"])
        self.assertEqual((page.u32(pd.AT_GATE), page.u32(pd.IN_FLIGHT)), (0, 0))

    def test_context(self):
        self.check("cuCtxSynchronize()")

    def test_stream(self):
        self.check("cuStreamSynchronize(None)")

    def test_without_the_gate_it_dies(self):
        """The test above can fail."""
        program = self.python(self.SYNCHRONISE.format(call="cuCtxSynchronize()"), preload=None)
        self.assertEqual(program.stdout.readline(), "ready\n")
        self.gpu.set("suspended", 1)
        program.communicate("\n", timeout=LIMIT_S)
        self.assertEqual(program.returncode, -11)

    def test_calls_in_flight_are_counted(self):
        daemon = self.start_daemon()
        program = self.python(self.SYNCHRONISE.format(call="cuCtxSynchronize()"))
        self.assertEqual(program.stdout.readline(), "ready\n")
        page = daemon.pages[program.pid]
        self.gpu.set("busy", 1)
        program.stdin.write("\n")
        program.stdin.flush()
        daemon.wait_until(lambda: self.gpu.get("synchronising") == 1)
        self.assertEqual(page.u32(pd.IN_FLIGHT), 1)
        self.gpu.set("busy", 0)
        self.assertEqual(self.output(program), ["0"])
        self.assertEqual(page.u32(pd.IN_FLIGHT), 0)


class EveryCall(Preload):
    """Calls without a hook are seen and held, with their arguments untouched."""

    def check(self, way):
        daemon = self.start_daemon()
        program = self.probe(way, "launch")
        self.assertEqual(program.stdout.readline(), "ready\n")
        page = daemon.pages[program.pid]
        self.assertTrue(page.u32(pd.FLAGS) & pd.COUNTS_CALLS)
        page.take_called()
        page.set_gate(True)
        program.stdin.write("\n")
        program.stdin.flush()
        # It needs no GPU: it is neither held nor seen.
        self.assertEqual(program.stdout.readline(), "13000\n")
        daemon.wait_until(lambda: page.u32(pd.AT_GATE) == 1)
        self.assertTrue(page.take_called())
        self.assertEqual(page.u32(pd.IN_FLIGHT), 0)
        page.set_gate(False)
        self.assertEqual(self.output(program), [str(sum(i * i for i in range(1, 12))), "25"])
        self.assertEqual(page.u32(pd.AT_GATE), 0)

    def test_by_cu_get_proc_address(self):
        self.check("table")

    def test_by_dlsym(self):
        self.check("dlsym")

    def test_nvml(self):
        """PyTorch counts GPUs by it, and the driver holds it in a suspended process."""
        daemon = self.start_daemon()
        nvml = os.path.join(TOOLS, "libnvidia-ml.so.pretend")
        program = self.python(
            f"""
            init(); alloc(1)
            nvml = c.CDLL({nvml!r})
            say("ready"); input()
            say(nvml.nvmlInit_v2())
            """
        )
        self.assertEqual(program.stdout.readline(), "ready\n")
        page = daemon.pages[program.pid]
        page.set_gate(True)
        program.stdin.write("\n")
        program.stdin.flush()
        daemon.wait_until(lambda: page.u32(pd.AT_GATE) == 1)
        page.set_gate(False)
        self.assertEqual(self.output(program), ["0"])

    def test_without_a_daemon_they_go_through(self):
        program = self.probe("table", "launch")
        program.stdin.write("\n")
        self.assertEqual(self.output(program), ["ready", "13000", "506", "25"])

    def test_a_function_has_one_stub(self):
        program = self.python(
            """
            twice = [c.cast(c.CDLL("libcuda.so.1").cuLaunchKernel, c.c_void_p) for _ in range(2)]
            say(twice[0].value == twice[1].value)
            """
        )
        self.assertEqual(self.output(program), ["True"])


class Steps(Preload):
    """The counter itself is tested in tests/unit/preload/test_step_counter.c."""

    def test_a_training(self):
        for way in ("table", "dlsym"):
            with self.subTest(way=way):
                self.start_daemon()
                program = self.probe(way, "train", "3000")
                self.assertEqual(program.stdout.readline(), "ready\n")
                (page,) = self.daemon.pages.values()
                self.assertEqual(page.u32(pd.STEPS_SOURCE), pd.STEPS_OF_CALLS)
                # Known after some windows of marks, which are to agree.
                self.assertTrue(2200 < page.u64(pd.STEPS) < 3000, page.u64(pd.STEPS))
                self.assertGreater(page.u64(pd.STEPS_TIMED_US), 0)
                program.stdin.write("\n")
                took = self.output(program)[0]
                print("ns a launch: %s with steps counted" % took)
                self.assertLess(float(took), 1000)
                self.daemon.close()

    def test_graphs(self):
        self.start_daemon()
        program = self.python(
            """
            init()
            alloc(1)
            for step in range(3000):
                cuda.cuGraphLaunch(c.c_void_p(4096), None)
            say("ready")
            sys.stdin.readline()
            """
        )
        self.assertEqual(program.stdout.readline(), "ready\n")
        (page,) = self.daemon.pages.values()
        self.assertEqual(page.u32(pd.STEPS_SOURCE), pd.STEPS_OF_CALLS)
        self.assertGreater(page.u64(pd.STEPS), 900)

    def test_without_a_period_they_are_unknown(self):
        self.start_daemon()
        program = self.python(
            """
            init()
            alloc(1)
            say("ready")
            sys.stdin.readline()
            """
        )
        self.assertEqual(program.stdout.readline(), "ready\n")
        (page,) = self.daemon.pages.values()
        self.assertEqual((page.u32(pd.STEPS_SOURCE), page.u64(pd.STEPS)), (pd.NO_STEPS, 0))

    def test_reported_steps_win(self):
        self.start_daemon()
        program = self.python(
            """
            init()
            alloc(1)
            step = c.CDLL(None).colloc_step
            step.argtypes = [c.c_long]
            for i in range(3000):
                cuda.cuGraphLaunch(c.c_void_p(4096), None)
            say(step(5), step(10), step(0), step(-1))
            for i in range(3000):
                cuda.cuGraphLaunch(c.c_void_p(4096), None)
            sys.stdin.readline()
            """
        )
        self.assertEqual(program.stdout.readline(), "0 0 -1 -1\n")
        (page,) = self.daemon.pages.values()
        self.assertEqual(page.u32(pd.STEPS_SOURCE), pd.STEPS_REPORTED)
        self.assertEqual(page.u64(pd.STEPS_MARKED), 15)

    def test_a_program_without_cuda_reports_steps(self):
        self.start_daemon()
        program = self.python(
            """
            say(c.CDLL(None).colloc_step(c.c_long(1)))
            sys.stdin.readline()
            """
        )
        self.assertEqual(program.stdout.readline(), "0\n")
        (page,) = self.daemon.pages.values()
        self.assertEqual(page.u64(pd.STEPS_MARKED), 1)

    def test_a_program_that_only_reports_finds_the_next_daemon(self):
        daemon = self.start_daemon()
        program = self.python(
            """
            import time
            step = c.CDLL(None).colloc_step
            while step(c.c_long(1)) == 0: time.sleep(0.01)
            say("gone"); input()
            while step(c.c_long(1)) != 0: time.sleep(0.01)
            say("found")
            """
        )
        daemon.wait_until(lambda: program.pid in daemon.pages)
        daemon.close()
        self.assertEqual(program.stdout.readline(), "gone\n")
        self.start_daemon()
        program.stdin.write("\n")
        program.stdin.flush()
        self.assertEqual(self.output(program), ["found"])

    def test_without_a_daemon_nothing_is_reported(self):
        program = self.python("say(c.CDLL(None).colloc_step(c.c_long(1)))")
        self.assertEqual(self.output(program), ["-1"])


class Cost(Preload):
    def test_what_a_call_costs(self):
        """Bounds far above what it takes (docs/preload.md). The least of five measurements: a
        loaded machine adds to some of them."""
        self.start_daemon()
        more = []
        for _ in range(5):
            without = [float(x) for x in self.output(self.probe("table", "cost", preload=None))]
            with_it = [float(x) for x in self.output(self.probe("table", "cost"))]
            more.append([w - o for w, o in zip(with_it, without)])
        allocation, synchronisation, launch = (min(column) for column in zip(*more))
        print(
            "ns more: allocation and free %.0f, synchronisation %.0f, launch %.1f"
            % (allocation, synchronisation, launch)
        )
        self.assertLess(allocation, 5000)
        self.assertLess(synchronisation, 1000)
        self.assertLess(launch, 500)  # at a load of 14: 180 to 260


if __name__ == "__main__":
    unittest.main()
