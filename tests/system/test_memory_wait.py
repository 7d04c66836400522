# SPDX-License-Identifier: Apache-2.0
"""Allocations of tasks that wait for GPU memory: the daemon, its emulated GPUs, and the preloaded
library before a pretend libcuda, whose memory the test takes and frees."""

import os
import signal
import socket
import struct
import subprocess
import sys
import unittest

from daemon_case import BUILD, MIB, DaemonCase, at_least, at_most, until

TOOLS = os.path.abspath(os.path.join(BUILD, "tests", "preload"))
LIBRARY = os.path.abspath(os.path.join(BUILD, "src", "preload", "libcolloc-preload.so"))
FORK_SERVER = os.path.abspath(
    os.path.join(os.path.dirname(__file__), "..", "..", "workloads", "fork_server.py")
)
PROBE = os.path.join(TOOLS, "probe")


KINDS = ("managed", "shared")  # of GPU memory


class PretendCuda(DaemonCase):
    gpus = "1xA100-40GB"

    def setUp(self):
        super().setUp()
        self.env["LD_LIBRARY_PATH"] = TOOLS + ":" + self.env["LD_LIBRARY_PATH"]
        self.env["PRETEND_CUDA"] = os.path.join(self.folder, "pretend-gpu")
        uuid = bytes.fromhex(self.get("/v1/gpus")["gpus"][0]["uuid"][4:].replace("-", ""))
        with open(self.env["PRETEND_CUDA"], "wb") as file:
            file.write(struct.pack("=8Q16s", 40000 * MIB, *[0] * 7, uuid))

    def fill(self, mib):
        """What others hold: for the daemon by NVML, for the task's process by its driver."""
        self.emulator("set", "0", f"foreign-mib={mib}")
        with open(self.env["PRETEND_CUDA"], "r+b") as file:
            file.seek(8)
            file.write(struct.pack("=Q", mib * MIB))

    def allocating(self, mib, **members):
        return self.submit(f"exec {PROBE} dlsym alloc {mib}", memory_mib=500, **members)

    def waiting(self, task):
        return until(
            lambda: next((t for t in [self.task(task)] if t["memory_waits"]), None),
            f"a wait of task {task}",
        )

    def answer_to(self, task):
        found = self.wait(task, "COMPLETED")
        return self.output(task).split(), found


class MemoryWait(PretendCuda):
    def test_it_goes_on_when_the_memory_is_free(self):
        self.fill(30000)
        task = self.allocating(15000)
        self.assertEqual(self.waiting(task)["state"], "RUNNING")
        self.wait_log(rf"task {task}: process \d+ waits for 14.6 GiB of memory of GPU 0")
        self.fill(0)
        words, found = self.answer_to(task)
        self.assertEqual(words, ["0"])
        self.assertEqual(found["memory_waits"], 1)
        self.assertGreater(found["memory_wait_s"], 0)
        self.wait_log(rf"task {task}: process \d+ goes on after")
        shown = self.colloc("show", str(task)).stdout
        self.assertRegex(shown, r"Memory waits +1\n")

    def test_what_it_can_never_have_fails_at_once(self):
        task = self.allocating(50000)
        words, found = self.answer_to(task)
        self.assertEqual((words, found["memory_waits"]), (["2"], 1))

    def test_a_program_does_not_fill_the_log(self):
        task = self.submit("exec sleep 1000", memory_mib=500)
        self.wait_state(task, "RUNNING")
        magic, wait, needs_memory = 0x50434C43, 2, 1  # src/preload/protocol.h
        packet = struct.pack(
            "=I4BQIIQQQ16s", magic, 1, wait, needs_memory, 0, task, 1, 0, MIB, 0, 0, bytes(16)
        )
        for _ in range(2000):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as program:
                program.connect(self.socket + ".preload")
                program.send(packet)
        self.get("/v1/info")
        lines = [line for line in self.log if f"task {task}: process" in line]
        self.assertLess(len(lines), 200)

    def test_the_wait_is_bounded(self):
        self.restart(memory_wait="500ms")
        self.fill(30000)
        words, _ = self.answer_to(self.allocating(15000))
        self.assertEqual(words, ["2"])

    def test_memory_that_the_driver_does_not_give_is_not_tried_for_ever(self):
        self.fill(30000)
        self.emulator("set", "0", "foreign-mib=0")
        words, _ = self.answer_to(self.allocating(15000))
        self.assertEqual(words, ["2"])

    def test_a_cancelled_task_does_not_wait(self):
        self.fill(30000)
        task = self.submit(
            f"trap 'echo ended; exit 0' TERM; {PROBE} dlsym alloc 15000; exit 0",
            memory_mib=500,
            grace_s=50,
        )
        self.waiting(task)
        self.act("cancel", task)
        self.wait(task, "CANCELLED")

    def test_the_refused_memory_of_a_cancelled_task_is_no_crash(self):
        """Its program may end before it gets SIGTERM."""
        self.fill(30000)
        task = self.submit(
            f"trap '' TERM; {PROBE} dlsym alloc 15000\n"
            "echo torch.OutOfMemoryError: CUDA out of memory. >&2; exit 1",
            memory_mib=500,
        )
        self.waiting(task)
        self.act("cancel", task)
        found = self.wait(task, "CANCELLED")
        self.assertEqual(found["oom_count"], 0)
        self.wait_log(f"audit event=end task={task} ")
        self.assertNotIn("event=crash", "\n".join(self.log))

    def test_the_next_daemon_goes_on(self):
        self.fill(30000)
        task = self.allocating(15000)
        self.waiting(task)
        self.restart(signal.SIGKILL)
        self.waiting(task)
        self.fill(0)
        words, found = self.answer_to(task)
        self.assertEqual((words, found["memory_waits"]), (["0"], 1))

    def test_a_wait_that_ended_while_no_daemon_ran(self):
        self.fill(30000)
        task = self.submit(f"{PROBE} dlsym alloc 15000 >got; exec sleep 1000", memory_mib=500)
        until(lambda: self.task(task)["reason"] == "MemoryWait", "the wait")
        self.stop(signal.SIGKILL)
        self.fill(0)
        until(lambda: self.read_if("got") == "0\n", "the memory")
        self.start()
        self.assertEqual(self.task(task)["memory_waits"], 1)
        until(lambda: self.task(task)["reason"] == "None", "the end of the wait")

    def test_an_exclusive_task_gets_the_error(self):
        self.fill(0)
        words, found = self.answer_to(self.allocating(50000, exclusive=True))
        self.assertEqual((words, found["memory_waits"]), (["2"], 1))
        self.assertLess(found["memory_wait_s"], 3)

    def test_two_tasks(self):
        script = f"until [ -e go ]; do sleep 0.01; done; exec {PROBE} dlsym alloc 15000"
        tasks = [self.submit(script, memory_mib=500) for _ in range(2)]
        for task in tasks:
            self.wait_state(task, "RUNNING")
        self.fill(30000)
        self.write("go", "")
        for task in tasks:
            self.waiting(task)
        self.fill(0)
        for task in tasks:
            self.assertEqual(self.answer_to(task)[0], ["0"])


# Takes each number of MiB, gives negative ones back at once, and waits for each file.
TAKES = """
import ctypes as C, os, sys, time
cuda, context, at = C.CDLL("libcuda.so.1"), C.c_void_p(), C.c_uint64()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(C.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
def take(mib, function=cuda.cuMemAlloc_v2, *flags):
    print(function(C.byref(at), C.c_size_t(mib << 20), *flags), flush=True)
for word in sys.argv[1:]:
    if word == "managed":
        take(64, cuda.cuMemAllocManaged, 1)
    elif word == "shared":
        take(64)
        assert cuda.cuIpcGetMemHandle((C.c_char * 64)(), at) == 0
    elif word.lstrip("-").isdigit():
        take(abs(int(word)))
        if word.startswith("-"):
            assert cuda.cuMemFree_v2(at) == 0
    while word.startswith("/") and not os.path.exists(word):
        time.sleep(0.01)
"""


class Takes(DaemonCase):
    """Tasks whose program takes memory by the emulator's libcuda, with the preloaded library."""

    python = "python3"

    def take(self, *words, memory_mib=500):
        path = self.write("takes.py", TAKES)
        words = [
            self.path(word) if str(word).isidentifier() and word not in KINDS else word
            for word in words
        ]
        program = f"exec {self.python} {path} {' '.join(map(str, words))}"
        return self.submit(program, memory_mib=memory_mib, preload="yes")

    def path(self, name):
        return os.path.join(self.work, name)

    def go(self, name):
        return self.write(name, "")

    def wait_output(self, task, *results):
        until(lambda: self.output(task).split() == list(results), f"{results} of task {task}")


class Counted(Takes):
    gpus = "1xA100-40GB"

    def test_a_peak_between_two_samples(self):
        task = self.take(500, "counted", -3000, "end")
        self.wait_output(task, "0")
        context_mib = 32
        until(lambda: self.task(task)["mem_peak_mib"] == 500 + context_mib, "a sample")
        self.go("counted")
        self.wait_output(task, "0", "0")
        peak_mib = 3500 + context_mib
        until(lambda: self.task(task)["mem_peak_mib"] == peak_mib, "two polls without allocations")
        self.go("end")
        self.assertEqual(self.wait(task, "COMPLETED")["mem_peak_mib"], peak_mib)

    def test_over_its_cap_it_waits_until_as_much_is_free(self):
        self.restart(memory_cap="yes", margin="0")
        task = self.take(400, 300, 100, memory_mib=500)
        found = self.wait(task, "COMPLETED")
        self.assertEqual(self.output(task).split(), ["0", "0", "0"])
        self.assertEqual(found["memory_waits"], 2)

    def test_without_the_setting_there_is_no_cap(self):
        found = self.wait(self.take(400, 300, memory_mib=500), "COMPLETED")
        self.assertEqual(found["memory_waits"], 0)

    def test_kinds_of_memory_that_the_driver_cannot_copy(self):
        for kind, why in zip(KINDS, ("managed memory", "CUDA IPC")):
            task = self.take(kind, "end")
            self.wait_output(task, "0")
            refused = self.colloc("suspend", str(task), code=1)
            self.assertIn(why, refused.stderr)
            self.assertEqual(self.task(task)["state"], "RUNNING")
            self.act("cancel", task)
            self.wait(task, "CANCELLED")


class GivingWay(Takes):
    """A task's allocation waits, and the scheduler moves it or suspends another. The neighbour
    runs without the library: it is a program that does not synchronize."""

    gpus = "2xA100-40GB"
    settings = {"smact-max": "1", "suspend-without-gate": "yes"}

    def setUp(self):
        super().setUp()
        self.emulator("set", "1", "foreign-mib=40000")
        self.emulator("set", "0", "foreign-mib=30000")
        until(lambda: at_least(self.gpu(1)["mem_used_mib"], 40000), "GPU 1 to be full")
        # It holds more than it declared, as the task does: otherwise it would not give way.
        self.neighbour = self.train(3000, 1e6, "--ramp-seconds=0", memory_mib=500)
        until(lambda: at_least(self.gpu(0)["mem_used_mib"], 33000), "the neighbour's memory")

    def test_the_neighbour_is_suspended_and_comes_back(self):
        task = self.take(1000, 7000, "end")
        self.wait_output(task, "0", "0")
        yielding = self.task(self.neighbour)
        self.assertEqual((yielding["state"], yielding["gpus"]), ("SUSPENDED", []))
        self.assertIn(f"suspended for task {task}", yielding["reason_text"])
        self.go("end")
        found = self.wait(task, "COMPLETED")
        self.assertEqual((found["memory_waits"], found["oom_count"], found["moves"]), (1, 0, 0))
        self.wait_state(self.neighbour, "RUNNING")
        yielding = self.task(self.neighbour)
        self.assertEqual((yielding["suspensions"], yielding["attempt_count"]), (1, 1))
        self.assertGreater(yielding["suspension_cost_s"], 0)

    def test_the_daemon_is_killed_meanwhile(self):
        task = self.take(1000, 7000, "end")
        until(lambda: self.task(task)["memory_waits"], "the wait")
        self.restart(signal.SIGKILL)
        self.wait_output(task, "0", "0")
        self.assertEqual(self.task(task)["memory_waits"], 1)
        self.restart(signal.SIGKILL)
        self.go("end")
        self.wait(task, "COMPLETED")
        self.wait_state(self.neighbour, "RUNNING")
        self.assertEqual(self.task(self.neighbour)["attempt_count"], 1)

    def test_it_is_moved_to_a_gpu_with_room(self):
        task = self.take(1000, "room", 7000, "end")
        self.wait_output(task, "0")
        self.emulator("set", "1", "foreign-mib=0")
        until(lambda: at_most(self.gpu(1)["mem_used_mib"], 999), "GPU 1 to be free")
        self.go("room")
        self.wait_output(task, "0", "0")
        found = self.task(task)
        self.assertEqual((found["moves"], found["gpus"]), (1, ["1"]))
        self.assertEqual(self.task(self.neighbour)["suspensions"], 0)
        self.go("end")
        self.wait(task, "COMPLETED")


# A process that never allocates, and asks for memory that its neighbour has, again and again
# (src/preload/protocol.h).
ONLY_SAYS = """
import os, socket, struct, sys
MAGIC, VERSION, WAIT, NEEDS_MEMORY, RETRY, FAIL = 0x50434C43, 1, 2, 1, 5, 6
task, attempt = int(os.environ["COLLOC_TASK_ID"]), int(os.environ["COLLOC_ATTEMPT_NUMBER"])
mib, rounds = map(int, sys.argv[1:])
packet = struct.pack(
    "=I4BQIIQQQ16s",
    MAGIC, VERSION, WAIT, NEEDS_MEMORY, 0, task, attempt, 0, mib << 20, 0, 0, bytes(16)
)
for _ in range(rounds):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as daemon:
        daemon.connect(os.environ["COLLOC_PRELOAD_SOCKET"])
        daemon.settimeout(5)  # longer than a stop of the neighbour takes
        try:
            daemon.send(packet)
            while (answer := daemon.recv(64)) and answer[5] not in (RETRY, FAIL):
                pass
        except TimeoutError:
            pass
"""


class OnlySays(DaemonCase):
    """What a process says costs its neighbours no more than what it takes."""

    gpus = "1xA100-40GB"
    settings = {"smact-max": "1", "suspend-without-gate": "yes", "tasks-per-gpu": "3"}

    def suspensions_of(self, neighbour_mib, **members):
        self.emulator("set", "0", "foreign-mib=30000")
        neighbour = self.train(3000, 1e6, "--ramp-seconds=0", memory_mib=neighbour_mib)
        until(lambda: at_least(self.gpu(0)["mem_used_mib"], 33000), "the neighbour's memory")
        self.write("only-says.py", ONLY_SAYS)
        script = f"exec {sys.executable} {self.work}/only-says.py 9000 4"
        says = self.submit(script, **members)
        self.assertEqual(self.wait(says, "COMPLETED")["memory_waits"], 4)
        self.wait_state(neighbour, "RUNNING")
        return self.task(neighbour)["suspensions"]

    def test_a_neighbour_gives_way_once_in_a_while(self):
        self.assertEqual(self.suspensions_of(500, memory_mib=400), 1)

    def test_a_neighbour_within_its_requirement_does_not_give_way(self):
        self.assertEqual(self.suspensions_of(4000), 0)


@unittest.skipIf(os.geteuid() != 0, "the fork server needs root")
class ForkedGivingWay(GivingWay):
    """The same for a script that a fork server runs. The server loads the library, and the fork
    has the socket of its task."""

    def setUp(self):
        super().setUp()
        address = os.path.join(self.folder, "fork-server")
        server = subprocess.Popen(
            [sys.executable, FORK_SERVER, "serve", address],
            stdout=subprocess.PIPE,
            text=True,
            env={**self.env, "LD_PRELOAD": LIBRARY},
        )
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        self.assertEqual(server.stdout.readline(), "ready\n")
        self.python = f"{sys.executable} -I -S {FORK_SERVER} run {address}"


class WithoutIt(PretendCuda):
    """Where it is not wanted, an allocation fails as ever."""

    def check(self, **members):
        self.fill(30000)
        words, found = self.answer_to(self.allocating(15000, **members))
        self.assertEqual((words, found["memory_waits"]), (["2"], 0))

    def test_the_setting(self):
        self.restart(preload="no")
        self.check()

    def test_the_tasks_option(self):
        self.check(preload="no")

    def test_the_option_beats_the_setting(self):
        self.restart(preload="no")
        words, found = self.answer_to(self.allocating(50000, preload="yes"))
        self.assertEqual((words, found["memory_waits"]), (["2"], 1))
        self.assertIn("Preload      yes", self.colloc("show", str(found["id"])).stdout)

    def test_a_library_that_is_not_there(self):
        self.restart(preload_library="/nowhere/lib.so")
        self.log_seen = 0  # it is logged before the daemon listens
        self.wait_log("tasks run without the preloaded library: /nowhere/lib.so")
        self.check()

    def test_libraries_of_the_user_come_after_it(self):
        own = os.path.join(TOOLS, "libinterposer.so")
        task = self.submit("echo $LD_PRELOAD", environment={"LD_PRELOAD": own})
        self.wait(task, "COMPLETED")
        first, second = self.output(task).strip().split(":")
        self.assertTrue(first.endswith("libcolloc-preload.so"))
        self.assertEqual(second, own)


if __name__ == "__main__":
    unittest.main()
