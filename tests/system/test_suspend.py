# SPDX-License-Identifier: Apache-2.0
"""Tasks that are suspended, resumed, moved and paused by their users, and what goes wrong."""
import concurrent.futures
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

from daemon_case import (
    BUILD,
    MIB,
    SANITIZED,
    DaemonCase,
    at_least,
    at_most,
    cgroup_of,
    is_alive,
    proc,
    processes_with,
    program,
    read,
    until,
)


sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import kill_counts  # noqa: E402

SEED = int(os.environ.get("COLLOC_SUSPEND_SEED", "1"))
TASK_MIB = 600  # small: the host must have as much memory free, and 2 GiB in reserve
LARGE_MIB = 3000


other_host = unittest.skipIf(SANITIZED, "the sanitizer wants to be loaded first")


class Suspend(DaemonCase):
    gpus = "2xA100-40GB"
    speed = 100
    settings = {"sample-period": "100ms", "suspend-without-gate": "yes"}

    def restart_on_host(self, **memory):
        """Its memory is not that of this machine (small_host.c)."""
        environment = dict(self.env)
        self.env.update(
            memory, LD_PRELOAD=os.path.abspath(f"{BUILD}/tests/system/libsmall-host.so")
        )
        self.restart()
        self.env = environment

    def show(self):
        return subprocess.run(
            [program("emulator"), "show"], env=self.env, capture_output=True, text=True, check=True
        ).stdout

    def start_task(self, mib=TASK_MIB, seconds=1e6, options="", **members):
        """A task that has all its memory."""
        task = self.train(mib, seconds, "--ramp-seconds=0 " + options, **members)
        self.wait_state(task, "RUNNING")
        self.pid(task, mib)
        return task

    def processes(self):
        """pid: (GPU, MiB, state) as colloc-emulator shows them."""
        rows = re.findall(
            r"pid (\d+) +GPU (\d)\D* +(\d+) MiB .*? s(?:  (\w+))?$",
            self.show(),
            re.M,
        )
        return {int(pid): (int(gpu), int(mib), state) for pid, gpu, mib, state in rows}

    def pid(self, task, mib=TASK_MIB):
        def find():
            shims = processes_with(f"{self.state}/tasks/{task}/")
            return next(
                (p for p, row in self.processes().items() if p in shims and row[1] == mib), None
            )

        return until(find, f"the process of task {task}")

    def helpers(self):
        return [
            pid
            for pid in processes_with(self.folder)
            if proc(pid, "comm").strip() == "colloc-checkpoi"
        ]

    def refused_move(self, task, status, **body):
        reply = self.request("POST", f"/v1/tasks/{task}/move", body or None)
        self.assertEqual(reply.status, status, reply.data)

    def events(self, task):
        return [event["event"] for event in self.task(task)["events"]]

    def settled_client(self, task):
        """A client is only paused until the next daemon has heard of its carrier."""

        def state():
            now = self.task(task)["state"]
            now = "SUSPENDED" if now == "PAUSED" else now
            return now if now in ("RUNNING", "SUSPENDED") else None

        return until(state, "the task to run or to be suspended")


class Commands(Suspend):
    def test_suspended_and_resumed(self):
        task, end = self.train_until_ended(TASK_MIB)
        pid = self.pid(task)
        done = self.colloc("suspend", str(task))
        self.assertIn(f"Task {task} SUSPENDED", done.stdout)
        self.assertEqual(self.processes()[pid], (0, 0, "suspended"))
        shown = self.task(task)
        self.assertEqual((shown["state"], shown["gpus"]), ("SUSPENDED", []))
        queue = json.loads(self.colloc("queue", "--state=suspended", "--json").stdout)
        self.assertEqual([each["id"] for each in queue["tasks"]], [task])
        self.colloc("wait", "--timeout=0", str(task), code=124)
        # Its GPU is free for another task, which uses all of it.
        other = self.train(30000, 100, exclusive=True, memory_mib=30000)
        self.wait(other, "COMPLETED")
        self.colloc("resume", str(task))
        self.wait_state(task, "RUNNING")
        end()
        self.wait(task, "COMPLETED")
        shown = self.task(task)
        self.assertEqual((shown["suspensions"], shown["moves"]), (1, 0))
        self.assertGreater(shown["suspended_s"], 0)
        cost_s = shown["suspension_cost_s"]  # of the record in the log
        self.assertTrue(0 < cost_s <= shown["suspended_s"], shown)
        self.assertEqual(shown["attempt_count"], 1)
        self.assertFalse(os.path.exists(f"{self.state}/suspended/{task}"))
        events = self.events(task)
        self.assertEqual(
            [e for e in events if e in ("SUSPENDED", "RESUMED")], ["SUSPENDED", "RESUMED"]
        )

    def warned(self, warning):
        """The GPUs as a task saw them when it was warned of its suspension, and whether a process
        that it had started was warned, too. They have four seconds for it."""
        seen, child = f"{self.folder}/seen", f"{self.folder}/child"
        task = self.submit(
            f"""trap 'colloc-emulator show > {seen}' USR1
            bash -c 'trap "touch {child}.warned" USR1; touch {child}; while :; do sleep 0.1; done' &
            colloc-pretend-train --memory-mib={TASK_MIB} --seconds=1e6 --ramp-seconds=0 &
            while :; do wait; done""",
            warning_signal=warning,
        )
        self.wait_state(task, "RUNNING")
        pid = self.pid(task)
        until(lambda: os.path.exists(child), "the child's trap")
        self.colloc("suspend", str(task))
        self.assertEqual(self.processes()[pid][2], "suspended")
        self.colloc("cancel", str(task))
        self.wait(task, "CANCELLED")
        was_warned = os.path.exists(f"{child}.warned")
        os.remove(child)
        return read(seen), was_warned

    def test_a_task_is_warned_before(self):
        shown, child_was_warned = self.warned("USR1@4")
        self.assertIn(f"{TASK_MIB} MiB", shown)
        self.assertNotIn("suspended", shown)
        self.assertTrue(child_was_warned)

    def test_only_the_script_is_warned(self):
        shown, child_was_warned = self.warned("B:USR1@4")
        self.assertIn(f"{TASK_MIB} MiB", shown)
        self.assertFalse(child_was_warned)

    def test_the_memory_limit_of_its_cgroup_is_raised_meanwhile(self):
        task = self.start_task(600, host_memory_mib=256)
        path = (cgroup_of(self.pid(task, 600)) or "") + "/memory.max"
        if not os.path.exists(path):
            self.skipTest("cgroups have no memory controller here")
        self.assertEqual(int(read(path)), 256 * MIB)
        self.colloc("suspend", str(task))
        self.assertGreater(int(read(path)), (600 + 256) * MIB)
        self.colloc("resume", str(task))
        until(lambda: int(read(path)) == 256 * MIB, "its own limit again")

    def test_moved(self):
        task = self.start_task()
        pid = self.pid(task)
        source = int(self.task(task)["gpus"][0])
        done = self.colloc("move", f"--gpu={1 - source}", str(task))
        self.assertIn(f"Task {task} RUNNING", done.stdout)
        self.assertEqual(self.processes()[pid], (1 - source, TASK_MIB, ""))
        shown = self.task(task)
        self.assertEqual((shown["gpus"], shown["moves"]), ([str(1 - source)], 1))

    def test_two_processes_of_one_task(self):
        train = f"colloc-pretend-train --memory-mib={TASK_MIB} --seconds=1e6 --ramp-seconds=0"
        task = self.submit(f"{train} &\n{train} &\nwait")
        until(lambda: len(self.processes()) == 2, "two processes")
        until(lambda: {row[1] for row in self.processes().values()} == {TASK_MIB}, "their memory")
        self.colloc("suspend", str(task))
        self.assertEqual({row[2] for row in self.processes().values()}, {"suspended"})
        self.colloc("resume", str(task))
        until(lambda: {row[2] for row in self.processes().values()} == {""}, "both to run")

    def test_more_processes_than_are_suspended_together(self):
        """Of a task with 70, 64 would stand still while the others wait for them."""
        train = "colloc-pretend-train --memory-mib=20 --seconds=1e6 --ramp-seconds=0"
        task = self.submit(f"for i in {{1..70}}; do {train} & done\nwait")
        until(lambda: [row[1] for row in self.processes().values()] == [20] * 70, "their memory")
        until(lambda: (self.task(task)["mem_peak_mib"] or 0) >= 70 * 20, "it to be counted")
        refused = self.colloc("suspend", str(task), code=1)
        self.assertIn("more than 64 processes", refused.stderr)
        self.assertIn("more than 64 processes", self.colloc("show", str(task)).stdout)
        self.assertEqual({row[2] for row in self.processes().values()}, {""})

    def test_cancelled_while_suspended(self):
        task = self.start_task()
        pid = self.pid(task)
        self.colloc("suspend", str(task))
        self.colloc("cancel", str(task))
        self.wait(task, "CANCELLED")
        self.wait_gone(pid)
        self.assertFalse(os.path.exists(f"{self.state}/suspended/{task}"))

    def test_what_cannot_be(self):
        waiting = self.submit("true", gpus=2)
        self.wait(waiting)
        self.assertIn("ended", self.colloc("suspend", str(waiting), code=1).stderr)
        task = self.start_task()
        gpu = self.task(task)["gpus"][0]
        self.assertIn("running", self.colloc("resume", str(task), code=1).stderr)
        self.colloc("move", f"--gpu={gpu}", str(task), code=1)
        self.assertIn("no GPU 7", self.colloc("move", "--gpu=7", str(task), code=1).stderr)
        self.assertIn("give the GPUs", self.colloc("move", str(task), code=2).stderr)
        self.refused_move(task, 400)
        self.refused_move(task, 400, gpus=[])
        self.refused_move(task, 400, gpus=[1])
        self.assertEqual(self.task(task)["state"], "RUNNING")


class Paused(Suspend):
    settings = {"sample-period": "100ms", "suspend-without-gate": "yes", "sharing": "mps"}

    def test_an_mps_client_is_paused(self):
        task = self.start_task()
        pid = self.pid(task)
        done = self.colloc("suspend", str(task))
        self.assertIn("PAUSED", done.stdout)
        self.assertEqual(self.processes()[pid][1:], (TASK_MIB, ""))
        progress = lambda: re.search(rf"pid {pid} .* done (\d+) s", self.show())[1]
        self.assertIn("RUNNING", self.colloc("resume", str(task)).stdout)
        before = progress()
        until(lambda: progress() != before, "it to go on")


# A restore with pairs that are no permutation of all GPUs: the driver loses the process for ever.
LOSES = """
import ctypes as C, sys
cuda, function, status, pairs = C.CDLL("libcuda.so.1"), C.c_void_p(), C.c_int(), (C.c_ubyte * 32)()
assert cuda.cuInit(0) == 0
cuda.cuDeviceGetUuid_v2(C.byref(pairs), 0)
cuda.cuDeviceGetUuid_v2(C.byref(pairs, 16), 1)
args = (C.c_uint64 * 8)(C.addressof(pairs), 1)
name = b"cuCheckpointProcessRestore"
cuda.cuGetProcAddress_v2(name, C.byref(function), 13000, C.c_uint64(0), C.byref(status))
restore = C.CFUNCTYPE(C.c_int, C.c_int, C.c_void_p)(function.value)
assert restore(int(sys.argv[1]), C.byref(args)) == 1
"""

TRAINING = os.path.abspath(os.path.join(BUILD, "tests", "system", "carried-training"))
SYNCHRONIZES = "--blocks=0 --pool-mib=64"  # in each step it does nothing else
NEVER_RETURNS = "--hangs=1"  # a call, as the library counts it
OTHER_MEMORY = "--pool-mib=400"  # most of its memory is of a kind that is not carried
NCCL = "--nccl=1"  # linked with it, as PyTorch is
RANK = "--rank=$RANK"
USABLE_MIB = 40336  # of an A100-40GB: the driver keeps the rest
SHARES = "--shares=1"  # its first block, with a child


class Carried(Suspend):
    """With `carrier` the library takes the blocks away, and the driver only the context."""

    settings = {"sample-period": "100ms", "carrier": "yes"}
    rounds = int(os.environ.get("COLLOC_SUSPEND_KILLS", "6"))

    def start_program(self, extra="", fails="", **members):
        task = self.submit(f"{fails} exec {TRAINING} {extra}", **members)
        self.wait_steps(task, 0)
        shims = processes_with(f"{self.state}/tasks/{task}/")
        pid = until(lambda: next((p for p in self.processes() if p in shims), None), "its process")
        return task, pid

    def wait_steps(self, task, before):
        until(
            lambda: self.output(task).count("step") > before + 3,
            "further steps",
            explain=lambda: "\n".join(
                [
                    self.colloc("show", str(task), code=None).stdout,
                    self.output(task)[-500:],
                    Suspend.show(self),
                    *self.log[-40:],
                ]
            ),
        )

    def goes_on(self, task):
        self.wait_state(task, "RUNNING")
        self.wait_steps(task, self.output(task).count("step"))

    def check_suspended(self, pid, by_carrier=True):
        self.assertEqual(self.processes()[pid][2], "suspended")
        ways = "its memory has left", "the driver copies its memory"
        taken, other = ways if by_carrier else reversed(ways)
        self.wait_words(taken)
        self.assertFalse(any(other in line for line in self.log))

    def test_suspended_and_resumed(self):
        task, pid = self.start_program()
        for _ in range(3):
            self.assertIn("SUSPENDED", self.colloc("suspend", str(task)).stdout)
            self.check_suspended(pid)
            self.colloc("resume", str(task))
            self.goes_on(task)

    def test_moved(self):
        task, pid = self.start_program()
        before = self.processes()[pid]
        self.colloc("move", str(task), f"--gpu={1 - before[0]}")
        self.goes_on(task)
        self.assertEqual(self.processes()[pid], (1 - before[0], before[1], ""))

    def test_the_next_daemon_brings_it_back(self):
        task, pid = self.start_program()
        self.colloc("suspend", str(task))
        self.restart(signal.SIGKILL)
        self.colloc("resume", str(task))
        self.goes_on(task)

    def test_what_it_cannot_is_left_to_the_driver(self):
        task, pid = self.start_program(OTHER_MEMORY)
        until(lambda: self.task(task)["carrier_obstacle"], "the page to say so")
        self.colloc("suspend", str(task))
        self.check_suspended(pid, by_carrier=False)
        self.wait_words("most of its memory is in pools")
        self.colloc("resume", str(task))
        self.goes_on(task)

    def leaves_its_context(self, task, pid):
        """The driver has not taken the rest: it is suspended, and its context stays."""
        self.wait_state(task, "SUSPENDED")
        self.wait_words("its context stays on its GPU")
        row = self.processes()[pid]
        self.assertEqual((row[1], row[2]), (CarriedClients.context_mib, ""))
        self.restart(signal.SIGKILL)
        self.colloc("resume", str(task))
        self.goes_on(task)
        self.assertEqual(self.task(task)["attempt_count"], 1)

    def test_a_driver_that_fails_leaves_the_context(self):
        task, pid = self.start_program()
        until(lambda: self.task(task)["carried"], "its carrier")
        self.emulator("set", "machine", "checkpoint-fails=on")
        self.colloc("suspend", str(task))
        self.leaves_its_context(task, pid)

    def test_a_driver_that_does_not_say_what_it_holds(self):
        task, pid = self.start_program()
        until(lambda: self.task(task)["carried"], "its carrier")
        self.emulator("set", "machine", "checkpoint-fails=mute")
        asks = threading.Thread(target=self.colloc, args=("suspend", str(task)))
        asks.start()
        self.wait_words("retried every 5 s")
        self.emulator("set", "machine", "checkpoint-fails=off")
        asks.join()
        self.leaves_its_context(task, pid)

    def test_memory_that_it_shares(self):
        """With a child that it starts. Neither way takes it; it goes on with what that wrote."""
        task, pid = self.start_program(SHARES)
        self.assertIn("opened", self.output(task))
        why = "it shares GPU memory with another process"
        until(lambda: why in self.colloc("show", str(task)).stdout, "the page to say so")
        self.check_sharing_is_refused(task)
        self.goes_on(task)

    def check_sharing_is_refused(self, task):
        refused = self.colloc("suspend", str(task), code=1)
        self.assertIn("share GPU memory (CUDA IPC)", refused.stderr)

    def start_two(self, extra, fails=""):
        task = self.submit(
            f"for RANK in 0 1; do export RANK; {fails} {TRAINING} {NCCL} {extra} & done; wait"
        )
        until(lambda: len(self.processes_of(task)) == 2, "two processes")
        self.wait_steps(task, 6)
        return task

    def processes_of(self, task):
        shims = processes_with(f"{self.state}/tasks/{task}/")
        return [pid for pid in self.processes() if pid in shims]

    def test_two_processes_that_have_loaded_nccl(self):
        """As two trainings by PyTorch in one task."""
        task = self.start_two("")
        self.colloc("suspend", str(task))
        for pid in self.processes_of(task):
            self.check_suspended(pid)
        self.colloc("resume", str(task))
        self.goes_on(task)

    def test_two_ranks_of_nccl(self):
        """The driver takes no part: their contexts stay."""
        task = self.start_two(RANK)
        self.colloc("suspend", str(task))
        ranks = self.processes_of(task)
        self.assertEqual([self.processes()[pid][1:] for pid in ranks], [(32, "")] * 2)
        self.colloc("resume", str(task))
        self.goes_on(task)

    def test_it_is_cancelled_while_it_is_away(self):
        task, pid = self.start_program()
        self.colloc("suspend", str(task))
        self.colloc("cancel", str(task))
        self.wait(task, "CANCELLED")
        until(lambda: pid not in self.processes(), "its memory to be free")

    def test_kills(self):
        """collocd or its helper is killed at random instants."""
        with kill_counts.of(self, SEED) as killed:
            task, pid = self.start_program()
            chance = random.Random(SEED)
            for _ in range(self.rounds):
                killed[self.kill_in_the_middle(task, chance)] += 1
                said = "\n".join(self.log[-60:]) + self.output(task)[-500:]
                self.assertTrue(is_alive(pid), said)
            self.bring_back(task)
            self.assertEqual(self.task(task)["attempt_count"], 1)

    def bring_back(self, task):
        """What the last request asks may still be done, whatever the state is now."""
        before = self.output(task).count("step")

        def goes_on():
            if self.task(task)["state"] in ("SUSPENDED", "PAUSED"):
                self.colloc("resume", str(task), code=None)
            return self.output(task).count("step") > before + 3

        until(goes_on, "further steps")

    def kill_in_the_middle(self, task, chance):
        """Returns which of the two was killed."""
        verb = "resume" if self.settled(task) == "SUSPENDED" else "suspend"
        connection = self.connection()
        connection.request("POST", f"/v1/tasks/{task}/{verb}", "{}")
        end = time.monotonic() + chance.random() * 0.3
        until(lambda: time.monotonic() > end)
        helpers = self.helpers()
        is_helper = bool(helpers) and chance.random() < 0.3
        if is_helper:
            os.kill(helpers[0], signal.SIGKILL)
        else:
            self.restart(signal.SIGKILL)
        connection.close()
        return "helper" if is_helper else "collocd"

    def test_a_copy_back_fails(self):
        """Its process can never compute again: it is ended, and the task run again."""
        task, pid = self.start_program(fails="COLLOC_EMULATOR_FAILS=cuMemcpyHtoDAsync_v2")
        until(lambda: self.task(task)["carried"], "its carrier")
        self.colloc("suspend", str(task))
        self.colloc("resume", str(task), code=None)
        until(lambda: self.task(task)["attempt_count"] == 2, "the next attempt")
        until(lambda: pid not in self.processes(), "its memory to be free")
        self.wait_words("the copy of its memory was lost")

    def test_too_little_host_memory(self):
        """Nothing is changed: the task computes on."""
        self.stop()
        self.start(**{"suspend-memory-max": "1MiB"})
        task, pid = self.start_program()
        until(lambda: self.task(task)["carried"], "its carrier")
        self.assertIn("suspend-memory-max", self.colloc("suspend", str(task), code=1).stderr)
        self.assertIn("suspend-memory-max", self.task(task)["suspension_error"])
        self.goes_on(task)
        self.assertEqual(self.task(task)["attempt_count"], 1)

    def descriptors(self, pid):
        """Sockets and memory that the process has open."""
        folder = f"/proc/{pid}/fd"
        links = [os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder) if int(fd) > 2]
        return [link for link in links if "socket:" in link or "memfd:" in link]

    def load_another(self, options):
        """A suspended task in which another program runs by now."""
        task, pid = self.start_program("--execs=go " + options)
        until(lambda: self.task(task)["carried"], "its carrier")
        self.colloc("suspend", str(task))
        self.wait_state(task, "SUSPENDED")
        self.assertTrue(self.descriptors(pid))
        self.write("go", "")
        until(lambda: proc(pid, "comm").strip() == "sleep", "the other program")
        until(lambda: pid not in self.processes(), "its memory to be free")
        return task, pid

    def test_it_loads_another_program_meanwhile(self):
        """The memory goes with the old program: there is nothing to bring back. The next one has
        nothing of the library open."""
        task, pid = self.load_another("")
        self.assertEqual(self.descriptors(pid), [])
        self.colloc("resume", str(task))
        self.wait_state(task, "RUNNING")
        self.assertTrue(is_alive(pid))
        self.assertEqual(self.task(task)["attempt_count"], 1)

    def test_another_program_that_has_its_descriptors(self):
        """The library does not answer on them: the task goes on all the same."""
        task, pid = self.load_another("--keeps=1")
        self.assertTrue(self.descriptors(pid))
        self.colloc("resume", str(task))
        self.wait_state(task, "RUNNING")
        self.assertTrue(is_alive(pid))
        self.assertEqual(self.task(task)["attempt_count"], 1)

    def test_its_memory_is_taken_where_it_is_moved_to(self):
        """The driver takes its context from there: it is in no other task's way, and goes on where
        there is room."""
        task, pid = self.start_program(f"--short={self.work}/full")
        until(lambda: self.task(task)["carried"], "its carrier")
        gpu = 1 - int(self.task(task)["gpus"][0])
        self.write("full", "")
        until(lambda: "short" in self.output(task), "the GPU to be full")
        refused = self.colloc("move", f"--gpu={gpu}", str(task), code=1)
        self.assertIn("cannot be put back now", refused.stderr)
        self.assertIn("tried again in", self.colloc("show", str(task)).stdout)
        self.assertEqual(self.processes()[pid][2], "suspended")
        os.remove(f"{self.work}/full")
        self.goes_on(task)
        self.assertEqual(self.task(task)["attempt_count"], 1)

    def test_its_gpu_is_lost_on_the_way(self):
        """The task computes on the other GPU then, from its copy or anew. Or it could not leave, or
        came back before the loss was seen, and computes on where it was, if that can be."""
        task, pid = self.start_program()
        until(lambda: self.task(task)["carried"], "its carrier")
        gpu = self.task(task)["gpus"][0]
        with concurrent.futures.ThreadPoolExecutor(1) as beside:
            beside.submit(self.colloc, "suspend", str(task), code=None)
            until(lambda: "SUSPENDING" in self.events(task), "the way out to begin")
            self.emulator("set", gpu, "lost=on")
        ways_on = {"SUSPENDED", "SUSPENSION_FAILED", "EVICT"}
        until(lambda: ways_on & set(self.events(task)), "the end of the way out")
        self.colloc("resume", str(task), code=None)
        stays = {"SUSPENSION_FAILED", "RESUMED"}
        until(
            lambda: self.task(task)["gpus"] not in ([], [gpu]) or stays & set(self.events(task)),
            "the other GPU, or that it is back",
        )
        self.goes_on(task)
        self.assertNotIn("lost", self.output(task).splitlines())

    def test_one_fails_and_another_is_lost(self):
        """One of two processes cannot leave; the other one, which has left, cannot come back."""
        calls = "CALLS=(cuMemcpyDtoHAsync_v2 cuMemcpyHtoDAsync_v2)"
        task = self.start_two("", f"{calls}; COLLOC_EMULATOR_FAILS=${{CALLS[$RANK]}}")
        until(lambda: self.task(task)["carried"], "both carriers")
        self.colloc("suspend", str(task), code=None)
        until(lambda: self.task(task)["attempt_count"] == 2, "the next attempt")
        self.wait_words("the copy of its memory was lost")

    def test_killed_tasks(self):
        """SIGKILL of the process at random instants of its way out and back."""
        with kill_counts.of(self, SEED) as killed:
            neighbour, beside = self.start_program()
            chance = random.Random(SEED)
            for _ in range(self.rounds):
                self.kill_on_its_way(chance)
                killed["task"] += 1
            self.assertIn(beside, self.processes())
            self.goes_on(neighbour)

    def kill_on_its_way(self, chance):
        task, pid = self.start_program()
        if chance.random() < 0.5:
            self.colloc("suspend", str(task))
        verb = "resume" if self.task(task)["state"] == "SUSPENDED" else "suspend"
        connection = self.connection()
        connection.request("POST", f"/v1/tasks/{task}/{verb}", "{}")
        end = time.monotonic() + chance.random() * 0.3
        until(lambda: time.monotonic() > end)
        os.kill(pid, signal.SIGKILL)
        self.wait_killed(task)
        connection.close()
        until(lambda: pid not in self.processes(), "its memory to be free")
        self.assertEqual(self.task(task)["attempt_count"], 1)

    def settled(self, task):
        def state():
            now = self.task(task)["state"]
            return now if now in ("RUNNING", "SUSPENDED") else None

        return until(state, "the task to run or to be suspended")


class Pooled(Suspend):
    """The carrier's copies go to host memory that the daemon has made ready (docs/carrier.md)."""

    settings = {"sample-period": "100ms", "carrier": "yes", "suspend-memory-max": "4GiB"}
    blocks_mib, blocks = 350, "--blocks=20 --first-mib=8"
    start_program, wait_steps, goes_on = Carried.start_program, Carried.wait_steps, Carried.goes_on

    def rooms(self):
        """path: MiB of each file that the daemon holds ready."""
        folder, found = f"/proc/{self.process.pid}/fd", {}
        for name in os.listdir(folder):
            path = f"{folder}/{name}"
            try:
                if "colloc-room" in os.readlink(path):
                    found[path] = os.stat(path).st_blocks * 512 // MIB
            except OSError:
                pass  # closed meanwhile
        return found

    def start_with_room(self, **members):
        task, pid = self.start_program(self.blocks, **members)
        return task, pid, self.wait_room()

    def wait_room(self):
        def find():
            return next((p for p, mib in self.rooms().items() if mib > self.blocks_mib), None)

        room = until(find, "its room")
        until(lambda: os.stat(room).st_blocks * 512 == os.stat(room).st_size, "its last page")
        until(lambda: not self.is_mapped_by_daemon(), "the end of the daemon's work")
        return room

    def is_mapped_by_daemon(self):
        return "colloc-room" in read(f"/proc/{self.process.pid}/maps")

    def mapped_mib(self, pid):
        """Of its room, in the process."""
        lines = [line for line in read(f"/proc/{pid}/maps").splitlines() if "colloc-room" in line]
        ends = [[int(end, 16) for end in line.split()[0].split("-")] for line in lines]
        return sum(end - begin for begin, end in ends) // MIB

    def own_mib(self, pid):
        return int(re.search(r"RssAnon:\s+(\d+)", read(f"/proc/{pid}/status"))[1]) // 1024

    def out_and_back(self, task, pid):
        before = self.own_mib(pid)
        self.assertIn("SUSPENDED", self.colloc("suspend", str(task)).stdout)
        self.assertGreaterEqual(self.mapped_mib(pid), self.blocks_mib)
        self.assertLess(self.own_mib(pid), before + self.blocks_mib // 4)
        self.colloc("resume", str(task))
        self.goes_on(task)

    def test_it_is_the_same_memory_each_time(self):
        task, pid, room = self.start_with_room()
        inode = os.stat(room).st_ino
        for _ in range(3):
            self.out_and_back(task, pid)
            self.assertEqual(os.stat(room).st_ino, inode)

    def test_who_has_it_is_shown(self):
        task, pid, _ = self.start_with_room()
        ready = r"Copy memory +[\d.]+ MiB are ready; its user has "
        until(lambda: re.search(ready, self.colloc("show", str(task)).stdout), "all of it")
        self.assertGreaterEqual(self.task(task)["copy_room_mib"], self.blocks_mib)
        metrics = self.request("GET", "/v1/metrics").data.decode()
        (made,) = re.findall(rf'colloc_task_carrier_pool_bytes{{task="{task}".*}} (\d+)', metrics)
        self.assertIn(f'colloc_carrier_pool_bytes{{state="ready"}} {made}\n', metrics)
        self.colloc("suspend", str(task))
        metrics = self.request("GET", "/v1/metrics").data.decode()
        self.assertIn(f'colloc_carrier_pool_bytes{{state="used"}} {made}\n', metrics)
        pool = self.get("/v1/info")["carrier_pool"]
        self.assertEqual((pool["files"], pool["used_mib"]), (1, int(made) / MIB))
        self.assertIn("have its copy", self.colloc("show", str(task)).stdout)
        self.colloc("resume", str(task))
        self.goes_on(task)

    def test_it_needs_none_of_the_tasks_own_limit(self):
        task, pid, _ = self.start_with_room(host_memory_mib=256)
        path = (cgroup_of(pid) or "") + "/memory.max"
        if not os.path.exists(path):
            self.skipTest("cgroups have no memory controller here")
        self.colloc("suspend", str(task))
        self.assertLess(int(read(path)), (self.blocks_mib + 256) * MIB)
        self.colloc("resume", str(task))
        self.goes_on(task)

    def test_nothing_of_it_is_left_for_another_task(self):
        task, pid, room = self.start_with_room()
        self.out_and_back(task, pid)
        with open(room, "rb") as file:
            self.assertTrue(any(file.read(64 * MIB)))
        self.colloc("cancel", str(task))
        self.wait_state(task, "CANCELLED")
        until(lambda: not self.rooms(), "the end of its room")
        task, pid, room = self.start_with_room()
        with open(room, "rb") as file:
            while piece := file.read(64 * MIB):
                self.assertFalse(any(piece))
        self.out_and_back(task, pid)

    def test_the_next_daemon_brings_it_back(self):
        task, pid, _ = self.start_with_room()
        self.colloc("suspend", str(task))
        self.restart(signal.SIGKILL)
        self.assertGreaterEqual(self.mapped_mib(pid), self.blocks_mib)
        self.colloc("resume", str(task))
        self.goes_on(task)
        until(lambda: not self.mapped_mib(pid), "the end of the first daemon's room")
        self.wait_room()
        self.out_and_back(task, pid)

    def test_a_room_that_it_has_from_a_daemon_that_was_killed(self):
        task, pid, _ = self.start_with_room()
        self.out_and_back(task, pid)
        self.restart(signal.SIGKILL)
        until(lambda: not self.mapped_mib(pid), "the end of the first daemon's room")
        self.wait_room()
        self.out_and_back(task, pid)

    @other_host
    def test_by_default_it_grows_for_what_gave_way(self):
        """As 47 GiB of a host of 251 GiB: more than a sixteenth, less than a quarter."""
        self.restart_on_host(COLLOC_TEST_HOST_MIB="1870")
        task, pid = self.start_program(self.blocks)
        self.assertAlmostEqual(self.get("/v1/info")["carrier_pool"]["max_mib"], 1870 / 16, delta=1)
        self.assertIn("SUSPENDED", self.colloc("suspend", str(task)).stdout)
        self.assertEqual((self.mapped_mib(pid), self.rooms()), (0, {}))
        self.colloc("resume", str(task))
        self.goes_on(task)
        self.wait_room()
        self.assertAlmostEqual(self.get("/v1/info")["carrier_pool"]["max_mib"], 1870 / 4, delta=1)
        self.out_and_back(task, pid)

    def test_without_enough_it_is_its_own_memory(self):
        self.restart(carrier_pool="256MiB")
        task, pid = self.start_program(self.blocks)
        self.assertIn("SUSPENDED", self.colloc("suspend", str(task)).stdout)
        self.assertEqual((self.mapped_mib(pid), self.rooms()), (0, {}))
        self.colloc("resume", str(task))
        self.goes_on(task)


class GivesWayOnTheOnlyGpu(Suspend):
    """To an allocation. Its context stays, and the driver takes no part."""

    gpus = "1xA100-40GB"
    settings = {"sample-period": "100ms", "carrier": "yes", "smact-max": "1", "min-free": "0"}
    start_program, wait_steps, goes_on = Carried.start_program, Carried.wait_steps, Carried.goes_on

    def test_its_context_stays(self):
        self.emulator("set", "machine", "checkpoint-fails=on")
        task, pid = self.start_program(memory_mib=1000)
        grows = f"--grows={self.work}/go --grows-mib=300"
        other, other_pid = self.start_program(grows, memory_mib=3000)
        for each in (task, other):
            until(lambda each=each: self.task(each)["carried"], "its carrier")
        rows = self.processes()
        held_mib = rows[pid][1] + rows[other_pid][1]
        self.emulator("set", "0", f"foreign-mib={USABLE_MIB - held_mib - 270}")
        self.write("go", "")
        until(lambda: "SUSPENDED" in self.events(task), "its memory to leave")
        self.assertEqual(self.processes()[pid][1:], (CarriedClients.context_mib, ""))
        until(lambda: "grew" in self.output(other), "the memory of the other")
        self.act("cancel", other)
        self.emulator("set", "0", "foreign-mib=0")
        self.goes_on(task)
        self.assertFalse(any("its memory has left" in line for line in self.log))

    def test_its_memory_is_taken_on_its_way_back(self):
        """The driver takes its context again: it is in no other task's way until there is room."""
        task, pid = self.start_program(f"--short={self.work}/full")
        until(lambda: self.task(task)["carried"], "its carrier")
        self.colloc("suspend", str(task))
        self.write("full", "")
        until(lambda: "short" in self.output(task), "the GPU to be full")
        self.assertIn("cannot be put back now", self.colloc("resume", str(task), code=1).stderr)
        self.assertEqual(self.processes()[pid][2], "suspended")
        os.remove(f"{self.work}/full")
        self.goes_on(task)
        self.assertEqual(self.task(task)["attempt_count"], 1)


class TakesTurnsOnTheOnlyGpu(Suspend):
    """Contexts stay, and the driver takes no part, as long as their memory is not wanted."""

    gpus = "1xA100-40GB"
    settings = {
        "sample-period": "100ms",
        "carrier": "yes",
        "sharing": "streams",
        "slots": "yes",
        "slot-length": "5s",
        "tasks-per-gpu": "1",
    }
    start_program, wait_steps, goes_on = Carried.start_program, Carried.wait_steps, Carried.goes_on

    def state_and_context(self, pid):
        return self.processes()[pid][1:]

    def test_a_slot_is_as_short_as_is_set(self):
        self.emulator("set", "machine", "checkpoint-fails=on")
        task, pid = self.start_program(memory_mib=1000)
        until(lambda: self.task(task)["carried"], "its carrier")
        other = self.submit(f"{TRAINING}", memory_mib=1000)
        until(lambda: "SUSPENDED" in self.events(task), "the end of its slot")
        self.assertEqual(self.state_and_context(pid), (CarriedClients.context_mib, ""))
        self.assertIn("its context has stayed on GPU 0", self.colloc("show", str(task)).stdout)
        self.wait_steps(other, 6)
        until(lambda: "RESUMED" in self.events(task), "its next slot")
        self.goes_on(task)
        until(lambda: self.events(task).count("SUSPENDED") == 2, "the end of its next slot")
        at = {}
        for event in self.task(task)["events"]:
            at.setdefault(event["event"], []).append(event["at"])
        slot_s = at["SUSPENDING"][1] - at["RESUMED"][0]
        self.assertTrue(4.5 <= slot_s < 15, slot_s)
        self.assertFalse(any("its memory has left" in line for line in self.log))

    def test_where_its_memory_is_wanted_it_leaves(self):
        """The other task is to have the GPU to itself."""
        task, pid = self.start_program(memory_mib=1000)
        until(lambda: self.task(task)["carried"], "its carrier")
        other = self.submit(f"{TRAINING}", exclusive=True, memory_mib=1000)
        until(lambda: "SUSPENDED" in self.events(task), "the end of its slot")
        self.assertEqual(self.state_and_context(pid), (0, "suspended"))
        self.wait_steps(other, 3)

    def submit_one_that_wants_the_gpu(self, driver="off"):
        """It comes next, when another one has ended, and wants no context there. Returns a task
        whose context has stayed there, its process, and the last one."""
        ends, _ = self.start_program(f"--end={self.work}/end", memory_mib=1000)
        task, pid = self.start_program(memory_mib=1000)
        until(lambda: "SUSPENDED" in self.events(task), "the end of its slot")
        self.assertEqual(self.state_and_context(pid), (CarriedClients.context_mib, ""))
        self.emulator("set", "machine", f"checkpoint-fails={driver}")
        exclusive = {"exclusive": True, "slot": "no", "priority": "high"}
        last = self.submit(f"{TRAINING} --steps=20", memory_mib=1000, **exclusive)
        self.write("end", "")
        self.wait(ends, "COMPLETED")
        return task, pid, last

    def comes_back(self, task, last):
        self.wait(last, "COMPLETED")
        self.goes_on(task)
        self.assertEqual(self.task(task)["attempt_count"], 1)

    def test_it_leaves_while_its_task_is_away(self):
        task, pid, last = self.submit_one_that_wants_the_gpu()
        until(lambda: "RELOCATED" in self.events(task), "its context to leave")
        self.assertEqual(self.state_and_context(pid), (0, "suspended"))
        self.comes_back(task, last)

    def test_what_the_driver_does_not_take_stays(self):
        task, pid, last = self.submit_one_that_wants_the_gpu(driver="on")
        until(lambda: self.task(task)["suspension_error"], "the driver to refuse it")
        self.assertEqual(self.state_and_context(pid), (CarriedClients.context_mib, ""))
        self.emulator("set", "machine", "checkpoint-fails=off")
        self.comes_back(task, last)

    def test_collocd_is_killed_while_it_leaves(self):
        task, pid, last = self.submit_one_that_wants_the_gpu(driver="mute")
        until(lambda: "RELOCATING" in self.events(task), "its context to begin to leave")
        self.restart(signal.SIGKILL)
        self.emulator("set", "machine", "checkpoint-fails=off")
        self.comes_back(task, last)

    def test_its_user_wants_the_gpu_to_be_empty(self):
        task, pid = self.start_program(memory_mib=1000)
        until(lambda: self.task(task)["carried"], "its carrier")
        self.colloc("suspend", str(task))
        self.assertEqual(self.state_and_context(pid), (0, "suspended"))
        self.colloc("resume", str(task))
        self.goes_on(task)


class CarriedClients(Carried):
    """Clients of MPS are suspended by the carrier alone: their contexts stay on their GPU."""

    settings = {"sample-period": "100ms", "carrier": "yes", "sharing": "mps"}
    context_mib = 32  # of the emulated driver

    def start_program(self, extra="", fails="", **members):
        task, pid = super().start_program(extra, fails, **members)
        self.assertIn("MPS", self.show())
        if not extra:
            until(lambda: self.task(task)["carried"], "its carrier")
        return task, pid

    def start_two(self, extra, fails=""):
        task = super().start_two(extra, fails)
        until(lambda: self.task(task)["carried"], "both carriers")
        return task

    def check_suspended(self, pid):
        row = self.processes()[pid]
        self.assertEqual((row[1], row[2]), (self.context_mib, ""))

    settled = Suspend.settled_client
    test_a_driver_that_fails_leaves_the_context = None  # it is not asked
    test_a_driver_that_does_not_say_what_it_holds = None
    test_its_memory_is_taken_where_it_is_moved_to = None  # it is never moved

    def servers(self):
        def program_of(pid):
            try:
                return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
            except OSError:
                return ""

        found = processes_with(self.folder)
        return [pid for pid in found if program_of(pid) == "nvidia-cuda-mps-server"]

    def check_sharing_is_refused(self, task):
        self.colloc("suspend", str(task))
        self.wait_state(task, "PAUSED")
        self.colloc("resume", str(task))

    def test_moved(self):
        """Never: also not while it is suspended, though another GPU is free."""
        task, pid = self.start_program()
        gpu = self.processes()[pid][0]
        moved = self.colloc("move", str(task), f"--gpu={1 - gpu}", code=1)
        self.assertIn("whose context stays on its GPU", moved.stderr)
        self.colloc("suspend", str(task))
        self.colloc("resume", str(task))
        self.goes_on(task)
        self.assertEqual(self.processes()[pid][0], gpu)

    def test_what_it_cannot_is_left_to_the_driver(self):
        """Which takes no client of MPS."""
        task, pid = self.start_program(OTHER_MEMORY)
        until(lambda: self.task(task)["carrier_obstacle"], "the page to say so")
        self.assertIs(self.task(task)["carried"], False)
        shown = self.colloc("show", str(task)).stdout
        self.assertIn(f"process {pid}: most of its memory is in pools", shown)
        self.colloc("suspend", str(task))
        self.wait_state(task, "PAUSED")

    def test_suspended_right_after_its_return(self):
        """The last sample is of its way back, which takes longer than any sample is old."""
        self.restart(sample_period="1s")
        task, pid = self.start_program(fails="COLLOC_EMULATOR_PCIE=20")
        self.colloc("suspend", str(task))
        self.colloc("resume", str(task))
        self.act("suspend", task)
        self.wait_state(task, "SUSPENDED")
        self.assertNotIn("PAUSED", self.events(task))
        self.colloc("resume", str(task))
        self.goes_on(task)

    def test_the_context_is_no_process_of_others(self):
        task, pid = self.start_program()
        gpu = self.processes()[pid][0]
        self.colloc("suspend", str(task))
        self.assertEqual(self.task(task)["state"], "SUSPENDED")
        shown = until(
            lambda: next(
                (
                    g
                    for g in self.get("/v1/gpus")["gpus"]
                    if g["index"] == str(gpu) and at_most(g["mem_used_mib"], 899)
                ),
                None,
            ),
            "a poll",
        )
        self.assertEqual(shown["contexts"], [task])
        self.assertFalse([line for line in self.log if "it was not given" in line])

    def test_another_process_of_it_beside_the_context(self):
        """Its script starts one while it is suspended, on the GPU that it does not have."""
        flag = os.path.join(self.folder, "go")
        train = "colloc-pretend-train --memory-mib=3000 --seconds=1e6 --ramp-seconds=0"
        task, _ = self.start_program(
            fails=f"(while [ ! -e {flag} ]; do sleep 0.05; done; exec {train}) &\n"
        )
        self.colloc("suspend", str(task))
        self.assertEqual(self.task(task)["state"], "SUSPENDED")
        with open(flag, "w", encoding="ascii"):
            pass
        until(lambda: 3000 in [row[1] for row in self.processes().values()], "its memory")

        def misplaced():
            gpus = self.get("/v1/gpus")["gpus"]
            return [one for gpu in gpus for one in gpu["misplaced_processes"]]

        until(lambda: [one["task"] for one in misplaced()] == [task], "it to be counted")
        self.colloc("cancel", str(task))

    def test_its_server_stays(self):
        """While the only client is away."""
        task, pid = self.start_program()
        before = self.servers()
        self.assertEqual(len(before), 1)
        self.colloc("suspend", str(task))
        other = self.submit("exec true", sharing="mps")
        self.wait(other, "COMPLETED")
        self.restart(signal.SIGKILL)
        self.assertEqual(self.servers(), before)
        self.colloc("resume", str(task))
        self.goes_on(task)
        self.assertEqual(self.servers(), before)


class Gate(Suspend):
    """A program whose next call is a synchronize: the driver would crash it."""

    settings = {"sample-period": "100ms"}

    def start_program(self, **members):
        task = self.submit(f"exec {TRAINING} {SYNCHRONIZES}", **members)
        until(lambda: "step" in self.output(task), "its steps")
        return task

    def steps(self, task):
        return self.output(task).count("step")

    def test_with_the_library_it_waits_at_the_gate(self):
        task = self.start_program(preload="yes")
        for daemon_is_killed in (False, True):
            self.assertIn("SUSPENDED", self.colloc("suspend", str(task)).stdout)
            if daemon_is_killed:
                self.restart(signal.SIGKILL)
            steps = self.steps(task)
            self.assertIn(str(task), self.colloc("resume", str(task)).stdout)
            self.wait_state(task, "RUNNING")
            until(lambda: self.steps(task) > steps + 3, "further steps")

    def test_without_the_library_it_is_refused(self):
        task = self.start_program(preload="no")
        self.assertIn("--preload", self.colloc("suspend", str(task), code=1).stderr)
        steps = self.steps(task)
        until(lambda: self.steps(task) > steps + 3, "further steps")

    @unittest.skipIf(os.geteuid(), "needs root")
    def test_a_setgid_program_runs_without_it(self):
        """The dynamic linker ignores LD_PRELOAD, whatever the environment says."""
        path = os.path.join(self.folder, "setgid-training")
        shutil.copy(TRAINING, path)
        os.chown(path, 0, 65534)
        os.chmod(path, 0o2755)
        task = self.submit(f"exec {path} {SYNCHRONIZES}", preload="yes")
        until(lambda: "step" in self.output(task), "its steps")
        self.assertIn("setgid", self.colloc("suspend", str(task), code=1).stderr)
        shown = self.colloc("show", str(task)).stdout
        self.assertRegex(shown, "Not carried +a process of it runs without the preloaded library")
        self.assertRegex(shown, "(?s)Suspension.*setgid")
        steps = self.steps(task)
        until(lambda: self.steps(task) > steps + 3, "further steps")

    def test_where_that_is_allowed_it_crashes(self):
        self.restart(**{"suspend-without-gate": "yes"})
        task = self.start_program(preload="no")
        self.colloc("suspend", str(task), code=None)
        self.assertEqual(self.wait(task, "FAILED")["signal"], signal.SIGSEGV)


class BusyGates(Suspend):
    """Tasks whose calls do not return: orders wait for them, and those of other tasks do not."""

    settings = {"sample-period": "100ms", "tasks-per-gpu": "8", "smact-max": "1"}

    def start_program(self, options):
        task = self.submit(f"exec {TRAINING} {options}", memory_mib=500)
        until(lambda: "step" in self.output(task), "its steps")
        return task

    def test_they_delay_no_other_task(self):
        other = self.start_program(SYNCHRONIZES)
        self.assertEqual(self.act("suspend", other).status, 200)
        busy = [self.start_program(NEVER_RETURNS) for _ in range(4)]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            replies = [pool.submit(self.act, "suspend", task) for task in busy]
            for task in busy:
                until(lambda task=task: "SUSPENDING" in self.events(task), "its order")
            self.assertEqual(self.act("resume", other).status, 200)
            self.wait_state(other, "RUNNING")
            self.assertEqual(self.act("suspend", other).status, 200)
            for task in busy:
                self.assertNotIn("SUSPENSION_FAILED", self.events(task))
            for task, reply in zip(busy, replies):
                self.assertEqual(reply.result().status, 409)
                self.assertIn("does not return", str(reply.result().json))
                self.assertEqual(self.task(task)["state"], "RUNNING")
        self.assertEqual(self.act("suspend", busy[0]).status, 200)  # it is not tried again
        self.wait_state(busy[0], "PAUSED")


class WhileSuspended(Suspend):
    def test_a_process_ends(self):
        """The task goes on with the others."""
        train = f"colloc-pretend-train --memory-mib={TASK_MIB} --seconds=1e6 --ramp-seconds=0"
        task = self.submit(f"{train} & wait; echo alone; exec sleep 1000")
        self.wait_state(task, "RUNNING")
        pid = self.pid(task)
        self.colloc("suspend", str(task))
        os.kill(pid, signal.SIGKILL)
        until(lambda: "alone" in self.output(task), "its end")
        self.colloc("resume", str(task))
        self.wait_state(task, "RUNNING")
        self.assertEqual(self.task(task)["attempt_count"], 1)

    def test_its_shim_does_not_count_the_time(self):
        task = self.start_task(time_limit_s=3600)
        path = f"{self.state}/tasks/{task}/1/time-limit"

        def hours():
            return int(read(path)) / 3600e6 if os.path.exists(path) else 0

        self.colloc("suspend", str(task))
        until(lambda: hours() > 1e6, "a limit that is never over")
        self.colloc("resume", str(task))
        until(lambda: 1 < hours() < 2, "the limit and the time that it was suspended")


# Waits for each file; then calls CUDA once, first by a function that the library has no hook for,
# or, if the file is "often", again and again.
CALLS_NOW_AND_THEN = """
import ctypes as C, os, sys, time
cuda, context, at = C.CDLL("libcuda.so.1"), C.c_void_p(), C.c_uint64()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(C.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(C.byref(at), C.c_size_t(300 << 20)) == 0
print("ready", flush=True)
for path in sys.argv[1:]:
    while not os.path.exists(path):
        time.sleep(0.01)
    device = C.c_int(7)
    assert cuda.cuCtxGetDevice(C.byref(device)) == 0
    assert cuda.cuCtxSynchronize() == 0
    print("device", device.value, flush=True)
    while path.endswith("often"):
        assert cuda.cuCtxSynchronize() == 0
        time.sleep(0.01)
time.sleep(1000)
"""


class Unused(Suspend):
    gpus = "1xA100-40GB"
    settings = {
        "sample-period": "100ms",
        "unused-after": "300ms",
        "suspend-unused-after": "600ms",
    }

    def start_notebook(self, *files):
        path = self.write("notebook.py", CALLS_NOW_AND_THEN)
        files = " ".join(os.path.join(self.work, name) for name in files)
        return self.submit(f"exec python3 {path} {files}", memory_mib=4000)

    def wait_suspended(self, task, times=1):
        until(lambda: self.events(task).count("SUSPENDED") == times, f"suspension {times}")
        self.assertEqual(self.task(task)["reason"], "SuspendedUnused")

    def test_it_comes_back_when_it_calls_cuda(self):
        task = self.start_notebook("first", "second")
        self.wait_suspended(task)
        self.assertIn("when it calls CUDA", self.colloc("show", str(task)).stdout)
        self.assertEqual(self.output(task).split(), ["ready"])
        self.restart(signal.SIGKILL)
        self.assertEqual(self.task(task)["reason"], "SuspendedUnused")
        self.write("first", "")
        until(lambda: "device 0" in self.output(task), "the call")
        self.wait_suspended(task, 2)
        self.colloc("resume", str(task))
        until(lambda: self.events(task).count("RESUMED") == 2, "its user's command")
        self.wait_suspended(task, 3)
        self.assertEqual(self.events(task).count("WAKE"), 1)

    def test_after_a_restart_it_is_tried_again(self):
        """Until it calls CUDA, the new daemon has no gate for it."""
        self.restart(suspend_unused_after="0")
        task = self.start_notebook("often")
        until(lambda: "ready" in self.output(task), "its memory")
        self.restart(signal.SIGKILL, suspend_unused_after="600ms")
        until(lambda: "SUSPENSION_FAILED" in self.events(task), "the first try")
        self.assertIn("has not called CUDA since", self.task(task)["suspension_error"])
        self.write("often", "")
        suspend = ("suspend", str(task))
        until(lambda: "SUSPENDED" in self.colloc(*suspend, code=None).stdout, "a suspension")

    def test_beside_a_task_that_uses_the_gpu(self):
        busy = self.start_task(memory_mib=4000)
        task = self.start_notebook("first")
        self.wait_suspended(task)
        self.assertEqual(self.task(busy)["state"], "RUNNING")
        self.assertNotIn("IDLE", self.events(busy))
        self.act("cancel", task)
        self.wait(task, "CANCELLED")

    def test_without_the_setting_it_stays(self):
        self.restart(suspend_unused_after="0")
        task = self.start_notebook()
        until(lambda: "IDLE" in self.events(task), "the report")
        self.assertEqual(self.task(task)["state"], "RUNNING")

    def test_without_the_setting_it_gives_way_to_a_task_that_waits(self):
        self.restart(suspend_unused_after="0")
        task = self.start_notebook("first")
        until(lambda: "IDLE" in self.events(task), "the report")
        other = self.submit("exec true", memory_mib=37000)
        self.wait(other, "COMPLETED")
        self.wait_suspended(task)
        self.write("first", "")
        until(lambda: "device 0" in self.output(task), "the call")
        self.assertEqual(self.events(task).count("WAKE"), 1)


class Off(Suspend):
    settings = {"sample-period": "100ms", "suspend": "no"}

    def test_without_the_setting_it_is_paused(self):
        task = self.start_task()
        pid = self.pid(task)
        self.assertIn("PAUSED", self.colloc("suspend", str(task)).stdout)
        self.assertEqual(self.processes()[pid][1:], (TASK_MIB, ""))
        self.colloc("move", f"--gpu={1 - int(self.task(task)['gpus'][0])}", str(task), code=1)
        self.assertIn("RUNNING", self.colloc("resume", str(task)).stdout)


class OffPooled(Suspend):
    """Where no task is suspended, no host memory is made ready."""

    settings = {**Pooled.settings, "suspend": "no"}
    start_program, wait_steps, rooms = Pooled.start_program, Pooled.wait_steps, Pooled.rooms

    def test_no_memory_is_made_ready(self):
        task, _ = self.start_program(Pooled.blocks)
        used = Pooled.blocks_mib
        until(
            lambda: at_least(self.task(task)["mem_peak_mib"], used + 1),
            "a poll that has its memory",
        )
        self.wait_steps(task, 100)  # as many polls as a room takes
        self.assertEqual(self.rooms(), {})
        self.assertIsNone(self.task(task)["copy_room_text"])


@unittest.skipIf(os.geteuid(), "becoming another user needs root")
class Shares(Suspend):
    """Of suspend-memory-max another user's share is kept for its tasks."""

    settings = {**Suspend.settings, "suspend-memory-max": f"{3 * TASK_MIB + 100}MiB"}
    OTHER = 64001

    def start_as(self, uid):
        """Only the submission is the user's: a sanitized program that is not its user's fails."""
        os.setegid(uid)
        os.seteuid(uid)
        try:
            task = self.train(TASK_MIB, 1e6, "--ramp-seconds=0", memory_mib=TASK_MIB)
        finally:
            os.seteuid(0)
            os.setegid(0)
        self.wait_state(task, "RUNNING")
        self.pid(task)
        return task

    def test_one_user_does_not_take_all(self):
        subprocess.run(["chmod", "-R", "a+rwX", self.env["COLLOC_EMULATOR"]], check=True)
        os.chmod(self.work, 0o777)
        first, second, third = (self.start_task(memory_mib=TASK_MIB) for _ in range(3))
        other = self.start_as(self.OTHER)
        for task in (first, second):
            self.colloc("suspend", str(task))
        until(lambda: "kept for other users" in (self.task(third)["suspension_error"] or ""))
        self.assertIn("suspend-memory-max", self.colloc("show", str(third)).stdout)
        self.assertIn("share", self.colloc("suspend", str(third), code=1).stderr)
        self.colloc("suspend", str(other))
        self.assertEqual(self.task(other)["state"], "SUSPENDED")
        self.colloc("resume", str(first))
        self.wait_state(first, "RUNNING")
        self.colloc("suspend", str(third))


class TwoAtOnce(Suspend):
    """The driver needs seconds for each GiB: a task on another GPU does not wait for that."""

    speed = 0.2  # 3 GiB leave in 7.3 s
    settings = {**Suspend.settings, "carrier": "no"}
    rounds = int(os.environ.get("COLLOC_SUSPEND_KILLS", "3"))

    def start_two(self):
        large = self.start_task(LARGE_MIB, exclusive=True)
        small = self.start_task(exclusive=True)
        return large, small

    def post(self, task, verb):
        """Does not wait for the answer, which comes when it is done."""
        connection = self.connection()
        self.addCleanup(connection.close)
        connection.request("POST", f"/v1/tasks/{task}/{verb}", "{}")

    def test_the_small_one_is_away_and_back_before_the_large_one_is_away(self):
        large, small = self.start_two()
        began = time.monotonic()
        self.post(large, "suspend")
        until(lambda: "SUSPENDING" in self.events(large), "the large one to be on its way")
        self.colloc("suspend", str(small))
        took_s = time.monotonic() - began
        self.assertIn("SUSPENDED", self.events(small))
        self.colloc("resume", str(small))
        self.assertIn("RESUMED", self.events(small))
        self.assertNotIn("SUSPENDED", self.events(large), f"small: {took_s:.1f} s")
        until(lambda: "SUSPENDED" in self.events(large), "the large one to be away")

    def test_kills_while_both_are_with_the_driver(self):
        """One helper of two, or collocd: each task comes to where it was ordered."""
        large, small = self.start_two()
        pids = {large: self.pid(large, LARGE_MIB), small: self.pid(small)}
        for i in range(self.rounds):
            verb, state, before = (
                ("suspend", "SUSPENDED", "RUNNING"),
                ("resume", "RUNNING", "SUSPENDED"),
            )[i % 2]
            self.post(large, verb)
            self.post(small, verb)
            until(lambda: all(self.task(t)["state"] != before for t in pids), "both orders")
            helpers = until(lambda: len(self.helpers()) == 2 and self.helpers(), "two helpers")
            if i % 3 == 2:
                self.restart(signal.SIGKILL)
            else:
                os.kill(helpers[i % 3], signal.SIGKILL)
            for task, pid in pids.items():
                end = "suspended" if state == "SUSPENDED" else ""
                until(lambda: self.processes()[pid][2] == end, f"task {task} to be {state}")
                self.wait_state(task, state)
        for task, pid in pids.items():
            self.assertTrue(is_alive(pid))
            self.assertEqual(self.task(task)["attempt_count"], 1)


class MemoryTakenInARestore(Suspend):
    """Another process takes memory in the moment in which it is freed for a restore: of what was
    free besides, of what a carried task's blocks need, or of what the driver needs itself."""

    settings = {"sample-period": "100ms", "carrier": "yes", "sharing": "streams", "margin": "0"}
    start_program, wait_steps, goes_on = Carried.start_program, Carried.wait_steps, Carried.goes_on
    spare_mib = 256 + 16  # of SUSPENSION_RESTORE_SPARE_BYTES, and 2 MiB for each of its blocks

    def leave_free(self, mib, taken_mib):
        """Of both GPUs, for what has been suspended."""
        for gpu in "01":
            foreign_mib = USABLE_MIB - mib - self.spare_mib
            self.emulator("set", gpu, f"foreign-mib={foreign_mib}", f"restore-mib={taken_mib}")
        for gpu in (0, 1):
            self.wait_gpu(lambda found: at_least(found["mem_used_mib"], foreign_mib), gpu)

    def leave_all_free(self):
        for gpu in "01":
            self.emulator("set", gpu, "foreign-mib=0", "restore-mib=0")

    def test_of_what_its_blocks_need(self):
        """The driver has put its context back, and takes it again."""
        task, pid = self.start_program()
        until(lambda: self.task(task)["carried"], "its carrier")
        mib = self.processes()[pid][1]
        self.colloc("suspend", str(task))
        self.leave_free(mib, self.spare_mib + mib // 2)
        refused = self.colloc("resume", str(task), code=1)
        self.assertIn("cannot be put back now", refused.stderr)
        self.assertEqual(self.processes()[pid][2], "suspended")
        self.leave_all_free()
        self.goes_on(task)
        self.assertEqual(self.task(task)["attempt_count"], 1)


class MemoryTakenFromTheDriver(MemoryTakenInARestore):
    settings = {**Suspend.settings, "carrier": "no", "sharing": "streams", "margin": "0"}
    test_of_what_its_blocks_need = None

    def suspended(self, taken_mib):
        task = self.start_task(LARGE_MIB)
        pid = self.pid(task, LARGE_MIB)
        self.colloc("suspend", str(task))
        self.leave_free(LARGE_MIB, taken_mib)
        return task, pid

    def test_of_what_was_free_besides(self):
        task, pid = self.suspended(200)
        self.colloc("resume", str(task))
        self.assertEqual(self.processes()[pid][1:], (LARGE_MIB, ""))
        self.assertEqual(self.task(task)["attempt_count"], 1)

    def test_of_what_the_driver_needs(self):
        """It can never be restored: its task is run again, and says why."""
        task, pid = self.suspended(1000)
        lost = self.colloc("resume", str(task), code=1)
        self.assertIn("restore: CUDA_ERROR_OUT_OF_MEMORY", lost.stderr)
        self.wait_gone(pid)
        self.leave_all_free()
        until(lambda: self.task(task)["attempt_count"] == 2, "its second attempt")
        self.pid(task, LARGE_MIB)


class Huge(Suspend):
    """132 GiB in one process. Its memory is emulated; that of its host is what a file says."""

    gpus = "1xH200"
    speed = 300
    mib = 132 << 10
    settings = {**Suspend.settings, "carrier": "no"}

    def host_has(self, available_gib):
        self.write("meminfo", f"MemAvailable: {available_gib << 20} kB\n")

    @other_host
    def test_132_gib(self):
        self.host_has(64)
        self.restart_on_host(
            COLLOC_TEST_HOST_MIB=str(512 << 10), COLLOC_TEST_MEMINFO=f"{self.work}/meminfo"
        )
        task = self.start_task(self.mib)
        pid = self.pid(task, self.mib)
        refused = self.colloc("suspend", str(task), code=1).stderr
        self.assertIn("the host has too little free memory for the task's GPU memory", refused)
        self.assertIn("(132.0 GiB wanted, 64.0 GiB free)", refused)
        self.assertEqual(self.processes()[pid][1:], (self.mib, ""))
        self.host_has(256)
        self.colloc("suspend", str(task))
        self.assertEqual(self.processes()[pid], (0, 0, "suspended"))
        self.colloc("resume", str(task))
        self.wait_state(task, "RUNNING")
        self.assertEqual(self.processes()[pid][1:], (self.mib, ""))
        self.assertEqual(self.task(task)["attempt_count"], 1)

    @other_host
    def test_half_of_the_host_is_less(self):
        """The default of suspend-memory-max, on a host of 251 GiB."""
        self.host_has(240)
        self.restart_on_host(
            COLLOC_TEST_HOST_MIB=str(251 << 10), COLLOC_TEST_MEMINFO=f"{self.work}/meminfo"
        )
        task = self.start_task(self.mib)
        refused = self.colloc("suspend", str(task), code=1).stderr
        self.assertIn("suspend-memory-max", refused)
        self.assertIn("(132.0 GiB wanted, 125.5 GiB free)", refused)
        self.assertEqual(self.task(task)["state"], "RUNNING")


class Faults(Suspend):
    def refused_suspension(self, task, *words):
        done = self.colloc("suspend", str(task), code=1)
        for word in words:
            self.assertIn(word, done.stderr)
        shown = self.task(task)
        self.assertEqual(shown["state"], "RUNNING")
        self.assertIn(words[0], shown["suspension_error"])
        self.assertIn("SUSPENSION_FAILED", self.events(task))

    def test_a_profiler(self):
        self.refused_suspension(self.start_task(options="--profiler"), "NOT_SUPPORTED")

    def test_managed_memory(self):
        task = self.start_task(options="--managed")
        self.refused_suspension(task, "NOT_SUPPORTED")
        self.assertEqual(self.processes()[self.pid(task)][2], "")

    def test_a_refusal_after_a_move_of_another_task(self):
        """The process that the driver has taken already comes back where it was."""
        moved = self.start_task(exclusive=True)
        self.move(moved)
        train = f"colloc-pretend-train --memory-mib={TASK_MIB} --seconds=1e6 --ramp-seconds=0"
        task = self.submit(f"{train} &\n{train} --managed &\nwait")
        until(lambda: len(self.processes()) == 3, "their processes")
        until(lambda: {row[1] for row in self.processes().values()} == {TASK_MIB}, "their memory")
        before = self.processes()
        self.refused_suspension(task, "NOT_SUPPORTED")
        self.assertEqual(self.processes(), before)

    def move(self, task):
        gpu = int(self.task(task)["gpus"][0])
        self.colloc("move", f"--gpu={1 - gpu}", str(task))

    def test_an_old_driver(self):
        task = self.start_task()
        self.emulator("set", "machine", "cuda=12040")
        self.refused_suspension(task, "driver", "570")

    def test_too_little_host_memory(self):
        self.stop()
        self.start(**{"suspend-memory-max": "500MiB"})
        self.refused_suspension(self.start_task(), "suspend-memory-max", "600.0 MiB wanted")

    def test_a_task_without_cuda(self):
        task = self.submit("sleep 1000")
        self.wait_state(task, "RUNNING")
        self.refused_suspension(task, "no process of the task uses CUDA")

    def test_the_gpu_is_full_when_it_comes_back(self):
        task = self.start_task(LARGE_MIB)
        pid = self.pid(task, LARGE_MIB)
        self.colloc("suspend", str(task))
        for gpu in "01":
            self.emulator("set", gpu, "foreign-mib=39000")
        for gpu in (0, 1):
            self.wait_gpu(lambda found: at_least(found["mem_used_mib"], 38001), gpu)
        self.colloc("resume", str(task))
        self.assertEqual(self.processes()[pid][2], "suspended")
        for gpu in "01":
            self.emulator("set", gpu, "foreign-mib=0")
        self.wait_state(task, "RUNNING")
        self.assertEqual(self.processes()[pid][1:], (LARGE_MIB, ""))

    def test_beside_a_process_that_lasts(self):
        """It comes back to what it had there: what is to be free besides would never be."""
        task = self.start_task(LARGE_MIB)
        pid = self.pid(task, LARGE_MIB)
        used = self.wait_gpu(lambda found: at_least(found["mem_used_mib"], LARGE_MIB))
        foreign = int(used["mem_total_mib"] - used["mem_used_mib"]) - 1000
        for gpu in "01":
            self.emulator("set", gpu, f"foreign-mib={foreign}")
        self.colloc("suspend", str(task))
        for gpu in (0, 1):
            self.wait_gpu(lambda found: at_least(found["mem_used_mib"], foreign), gpu)
        self.colloc("resume", str(task))
        self.assertIn("GiB short", self.colloc("show", str(task)).stdout)
        until(
            lambda: self.task(task)["state"] == "RUNNING",
            "its return",
            150,
            lambda: "\n".join([self.colloc("show", str(task)).stdout, *self.log[-40:]]),
        )
        self.assertEqual(self.processes()[pid][1:], (LARGE_MIB, ""))

    def test_one_that_the_driver_has_lost_is_run_again(self):
        task = self.start_task()
        pid = self.pid(task)
        self.colloc("suspend", str(task))
        subprocess.run([sys.executable, "-c", LOSES, str(pid)], env=self.env, check=True)
        self.assertIn("has lost a process", self.colloc("resume", str(task), code=1).stderr)
        self.wait_gone(pid)
        until(lambda: self.task(task)["attempt_count"] == 2, "its second attempt")
        self.pid(task)

    def test_it_crashes_while_it_is_suspended(self):
        task = self.start_task()
        pid = self.pid(task)
        self.colloc("suspend", str(task))
        os.kill(pid, signal.SIGKILL)
        self.wait_killed(task)


class Kills(Suspend):
    """collocd or its helper is killed at random instants of suspensions, resumptions and moves."""

    speed = 20
    mib = LARGE_MIB
    rounds = int(os.environ.get("COLLOC_SUSPEND_KILLS", "6"))

    def settle(self, task, pid):
        """The task once it runs or is suspended: the daemon comes to that by itself."""

        def settled():
            row, found = self.processes().get(pid), self.task(task)
            if found["state"] == "RUNNING":
                return row and row[1:] == (self.mib, "") and found
            return row and row[2] == "suspended" and not found["gpus"] and found

        return until(settled, f"task {task} to run or to be suspended")

    def test_nothing_is_lost(self):
        chance = random.Random(SEED)
        task = self.start_task(LARGE_MIB)
        pid = self.pid(task, LARGE_MIB)
        for i in range(self.rounds):
            found = self.settle(task, pid)
            if found["state"] == "SUSPENDED":
                verb, body = "resume", None
            elif chance.random() < 0.5:
                verb, body = "suspend", None
            else:
                gpu = 1 - int(found["gpus"][0])
                verb, body = "move", {"gpus": [str(gpu)]}
            connection = self.connection()
            connection.request("POST", f"/v1/tasks/{task}/{verb}", json.dumps(body or {}))
            delay = chance.random() * 0.25
            end = time.monotonic() + delay
            until(lambda: time.monotonic() > end)
            helpers = self.helpers()
            if helpers and chance.random() < 0.5:
                os.kill(helpers[0], signal.SIGKILL)
            else:
                self.restart(signal.SIGKILL)
            connection.close()
            self.assertTrue(is_alive(pid))
        until(lambda: self.is_back(task, pid), "the task to run at the end")
        self.assertEqual(self.task(task)["attempt_count"], 1)

    def is_back(self, task, pid):
        """What the last request asks may still be done, whatever the state is now."""
        if self.settle(task, pid)["state"] == "RUNNING":
            return True
        self.colloc("resume", str(task), code=None)
        return False


class KillsOfSeveral(Kills):
    """The driver works for several GPUs at a time when collocd, a helper or a task is killed."""

    gpus = "4xA100-40GB"
    speed = 2  # 1 GiB leaves in a quarter of a second
    mib = 1024
    settings = {**Suspend.settings, "carrier": "no"}

    def ask(self, task, pid, chance):
        """An order that changes where the task is; its answer is not waited for."""
        found = self.settle(task, pid)
        verb, body = "resume", {}
        if found["state"] == "RUNNING":
            verb = chance.choice(["suspend", "suspend", "move"])
        if verb == "move":
            body = {
                "gpus": [str(chance.choice([g for g in range(4) if str(g) != found["gpus"][0]]))]
            }
        connection = self.connection()
        self.addCleanup(connection.close)
        connection.request("POST", f"/v1/tasks/{task}/{verb}", json.dumps(body))

    def kill_one(self, tasks, chance):
        """Returns which of the three was killed, and the task, if it was one."""
        victim, helpers = chance.random(), self.helpers()
        if victim < 0.15:
            task = chance.choice(list(tasks))
            os.kill(tasks[task], signal.SIGKILL)
            return "task", task
        if helpers and victim < 0.6:
            os.kill(chance.choice(helpers), signal.SIGKILL)
            return "helper", None
        self.restart(signal.SIGKILL)
        return "collocd", None

    def start_one(self):
        task = self.start_task(self.mib)
        return task, self.pid(task, self.mib)

    def check_killed(self, task, pid):
        """Its memory is free, and nothing of it is run again by mistake."""
        until(lambda: pid not in self.processes(), "its memory to be free")
        until(lambda: self.task(task)["state"] == "FAILED", f"the end of task {task}")

    def test_nothing_is_lost(self):
        tasks = dict(self.start_one() for _ in range(3))
        with kill_counts.of(self, SEED) as killed:
            self.kill_in_rounds(tasks, random.Random(SEED), killed)
            for task, pid in tasks.items():
                until(lambda: self.is_back(task, pid), f"task {task} to run at the end")
                self.assertEqual(self.task(task)["attempt_count"], 1)

    def kill_in_rounds(self, tasks, chance, killed):
        for _ in range(self.rounds):
            for task, pid in tasks.items():
                self.ask(task, pid, chance)
            end = time.monotonic() + chance.random() * 0.6
            until(lambda: time.monotonic() > end)
            victim, task = self.kill_one(tasks, chance)
            killed[victim] += 1
            if task:
                self.check_killed(task, tasks.pop(task))
                tasks.update([self.start_one()])
            for pid in tasks.values():
                self.assertTrue(is_alive(pid))


if __name__ == "__main__":
    unittest.main()
