# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the daemon at any time.

No task is lost, none runs twice, running tasks continue, and their ends are known.
"""

import collections
import contextlib
import ctypes
import itertools
import os
import platform
import random
import resource
import shutil
import signal
import threading
import time
import unittest

from daemon_case import DaemonCase, is_alive, program, read, until

ACCEPTED_MIN = 5  # tasks of a campaign; a busy machine needs more kills until then


class Crash(DaemonCase):
    speed = 1000
    settings = {"sharing": "streams", "policy": "rr", "min-free": "0", "smact-max": "1"}
    rounds = 12
    seed = int(os.environ.get("COLLOC_SEED", random.randrange(1 << 30)))

    # What runs writes its number down first; with the status that it will end with.
    SHORT = "echo $COLLOC_TASK_ID $((COLLOC_TASK_ID % 3)) >> ran; exit $((COLLOC_TASK_ID % 3))"
    LONG = "echo $COLLOC_TASK_ID 0 >> ran; for i in 1 2 3 4 5; do sleep 0.1; done"

    def setUp(self):
        super().setUp()
        self.random = random.Random(self.seed)
        self.accepted, self.cancelled, self.stop_submitting = [], set(), False

    def submit_stream(self):
        """Submits until told to stop; what was answered counts, whatever happens next."""
        bodies = [self.body(self.SHORT), self.body(self.LONG)]
        while not self.stop_submitting:
            try:
                reply = self.request("POST", "/v1/tasks", self.random.choice(bodies))
                self.accepted.append(reply.json["id"])
                if self.random.random() < 0.15:
                    self.cancelled.add(reply.json["id"])  # may or may not come through
                    self.act("cancel", reply.json["id"])
            except (OSError, ConnectionError, ValueError, KeyError):
                pass
            except Exception as error:  # pylint: disable=broad-except
                if not type(error).__module__.startswith("http"):
                    raise
            self.pause(0.03)

    def pause(self, longest):
        """A pause between two kills; no test waits for anything with it."""
        threading.Event().wait(self.random.random() * longest)

    def test_killed_again_and_again(self):
        stream = threading.Thread(target=self.submit_stream)
        stream.start()
        try:
            for i in itertools.count():
                if i >= self.rounds and len(self.accepted) > ACCEPTED_MIN:
                    break
                self.pause(0.35)
                self.restart(signal.SIGTERM if i % 4 == 3 else signal.SIGKILL)
        finally:
            self.stop_submitting = True
            stream.join()
        self.check()

    def check(self):
        why = f"COLLOC_SEED={self.seed}"
        self.assertEqual(len(set(self.accepted)), len(self.accepted), why)
        ended = {task: self.wait(task) for task in self.accepted}
        lines = [line.split() for line in self.read("ran").splitlines()]
        ran = collections.Counter(int(line[0]) for line in lines)
        self.assertEqual([task for task, times in ran.items() if times > 1], [], why)
        for task, found in ended.items():
            if found["state"] == "CANCELLED":
                self.assertIn(task, self.cancelled, why)
                continue
            self.assertEqual(ran[task], 1, (why, found))
            status = next(int(line[1]) for line in lines if int(line[0]) == task)
            if status == 0 or found["name"] == "long":
                self.assertEqual(
                    (found["state"], found["exit_code"]), ("COMPLETED", 0), (why, found)
                )
            else:
                self.assertEqual(
                    (found["state"], found["exit_code"]), ("FAILED", status), (why, found)
                )
        until(
            lambda: not self.tasks(),
            "the end of what was accepted but not answered any more, " + why,
        )
        self.assertEqual([gpu["tasks"] for gpu in self.get("/v1/gpus")["gpus"]], [[]] * 4, why)

    def test_submit_that_was_answered_survives(self):
        for _ in range(5):
            connection = self.connection()
            task = self.submit("echo $COLLOC_TASK_ID >> ran", gpus=4)
            self.process.kill()
            connection.close()
            self.stop(signal.SIGKILL)
            self.start()
            self.wait(task, "COMPLETED")
        self.assertEqual(self.read("ran").split(), ["1", "2", "3", "4", "5"])


class Restart(DaemonCase):
    def test_running_tasks_go_on_and_their_ends_are_known(self):
        os.mkfifo(self.work + "/go")
        script = "echo $$ > pid-$COLLOC_TASK_ID; read line < go; exit 5"
        for how in (signal.SIGKILL, signal.SIGTERM):
            task = self.submit(script)
            pid = int(self.wait_file(f"pid-{task}"))
            self.wait_state(task, "RUNNING")
            self.stop(how)
            self.assertTrue(is_alive(pid))
            self.start()
            self.assertEqual(self.task(task)["state"], "RUNNING")
            self.stop(how)
            self.write("go", "\n")
            self.wait_gone(pid)
            self.start()
            ended = self.wait(task, "FAILED")
            self.assertEqual((ended["exit_code"], ended["attempt_count"]), (5, 1))
            os.unlink(f"{self.work}/pid-{task}")

    def test_an_end_that_cannot_be_read_at_once_is_read_later(self):
        task = self.submit("while [ ! -e go ]; do sleep 0.02; done; exit 7")
        self.wait_state(task, "RUNNING")
        limits = resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        self.write("go", "")
        self.wait_log("Too many open files")
        resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, limits)
        self.assertEqual(self.wait(task, "FAILED")["exit_code"], 7)

    def test_what_waits_keeps_its_place_and_held_stays_held(self):
        blockers = [self.submit("while :; do sleep 1; done", exclusive=True) for _ in range(4)]
        for task in blockers:
            self.wait_state(task, "RUNNING")
        waiting = [self.submit(name=f"w{i}") for i in range(5)]
        held = self.submit(hold=True)
        self.act("hold", waiting[1])
        self.restart(signal.SIGKILL)
        queue = [t for t in self.tasks() if t["state"] == "PENDING"]
        self.assertEqual([t["id"] for t in queue], [*waiting, held])
        self.assertEqual(
            [t["id"] for t in queue if t["reason"] == "JobHeldUser"], [waiting[1], held]
        )

    def test_cancel_then_killed(self):
        task = self.submit("trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done", grace_s=1)
        self.wait_state(task, "RUNNING")
        pid = int(self.wait_file("pid"))
        self.act("cancel", task)
        self.restart(signal.SIGKILL)
        ended = self.wait(task, "CANCELLED")
        self.assertEqual(ended["cancelled_by"], ended["user"])
        self.assertEqual(ended["reason_text"], f"cancelled by {ended['user']}")
        self.wait_gone(pid)

    def test_shim_killed(self):
        task = self.submit(
            "(setsid sleep 1000 & echo $! > left); echo $PPID > shim; while :; do sleep 0.1; done"
        )
        shim = int(self.wait_file("shim"))
        self.wait_state(task, "RUNNING")
        os.kill(shim, signal.SIGKILL)
        ended = self.wait(task, "FAILED")
        self.assertEqual((ended["reason"], ended["failure"]), ("Lost", "lost"))
        until(lambda: not is_alive(int(self.read("left"))), "the end of what the task left")

    def test_shim_killed_while_no_daemon_ran(self):
        task = self.submit(
            "(setsid sleep 1000 & echo $! > left); echo $PPID > shim; while :; do sleep 0.1; done"
        )
        shim = int(self.wait_file("shim"))
        self.wait_state(task, "RUNNING")
        self.stop(signal.SIGKILL)
        os.kill(shim, signal.SIGKILL)
        until(lambda: not is_alive(shim))
        self.start()
        self.assertEqual(self.wait(task, "FAILED")["reason"], "Lost")
        until(lambda: not is_alive(int(self.read("left"))), "the end of what the task left")

    def test_time_limit_while_no_daemon_ran(self):
        task = self.submit("while :; do sleep 0.05; done", time_limit_s=0.3, grace_s=0.1)
        self.wait_begun(task)
        shim = int(self.submit_shim(task))
        self.stop(signal.SIGKILL)
        until(lambda: not is_alive(shim))
        self.start()
        self.wait(task, "TIMEOUT")

    def test_failure_in_time_while_no_daemon_ran(self):
        """What failed by itself before its limit is no timeout, however late that is learned."""
        for limit_s in (8, 40, 200):  # more where the machine is too slow for less
            task = self.submit(
                f"while [ ! -e go-{limit_s} ]; do sleep 0.02; done; echo no such layer >&2; exit 3",
                time_limit_s=limit_s,
            )
            self.wait_begun(task)
            limit = self.task(task)["started_at"] + limit_s
            shim = int(self.submit_shim(task))
            self.stop(signal.SIGKILL)
            self.write(f"go-{limit_s}", "")
            until(lambda shim=shim: not is_alive(shim))
            is_in_time = time.time() < limit - 1
            if is_in_time:
                break
            self.start()
        self.assertTrue(is_in_time, "the machine is too slow for this test")
        until(lambda: time.time() > limit + 0.5, limit_s=300)  # what the test is about
        self.start()
        ended = self.wait(task, "FAILED")
        self.assertEqual((ended["exit_code"], ended["reason"]), (3, "NonZeroExitCode"))
        self.assertIn("no such layer", ended["evidence"])

    def running_with_shim(self, **members):
        task = self.submit("echo $PPID > shim; exec sleep 1000", grace_s=0.1, **members)
        shim = int(self.wait_file("shim"))
        os.unlink(self.work + "/shim")
        self.wait_begun(task)
        return task, shim

    def wait_begun(self, task):
        """Of a task whose time limit is short: it may have ended by then."""
        until(lambda: self.task(task)["started_at"], "its start")

    def test_a_stopped_shim_ends_its_task(self):
        """By a command, and at its time limit: the exit is known, and the GPU is free."""
        for state, members in (("CANCELLED", {}), ("TIMEOUT", {"time_limit_s": 1.5})):
            task, shim = self.running_with_shim(**members)
            with contextlib.suppress(ProcessLookupError):  # on a slow machine the limit came first
                os.kill(shim, signal.SIGSTOP)
            if state == "CANCELLED":
                self.act("cancel", task)
            self.assertEqual(self.wait(task, state)["signal"], signal.SIGTERM)

    def test_a_shim_that_stays_stopped_is_killed(self):
        """Under a debugger."""
        libc = ctypes.CDLL(None, use_errno=True)
        attach = 16  # linux/ptrace.h
        task, shim = self.running_with_shim()
        if libc.ptrace(attach, shim, None, None) < 0:
            self.skipTest("no process can be traced here")
        until(lambda: read(f"/proc/{shim}/stat").rpartition(")")[2].split()[0] == "t")
        self.act("cancel", task)
        self.wait_log(f"task {task}: its shim, process {shim}, stays stopped")
        os.waitpid(shim, 0x40000000)  # __WALL: its tracer learns of its end first
        self.wait(task, "CANCELLED")

    def submit_shim(self, task):
        claim = f"{self.state}/tasks/{task}/1/claim"
        until(lambda: os.path.exists(claim), "the shim's claim")
        return read(claim)


class Moments(DaemonCase):
    """What is known of an attempt whose beginning or end the daemon did not see."""

    gpus = "1xA100-40GB"

    def test_a_daemon_that_was_stopped_learns_when_a_task_ended(self):
        task = self.submit("echo $$ >pid; while [ ! -e go ]; do sleep 0.02; done")
        pid = int(self.wait_file("pid"))
        self.process.send_signal(signal.SIGSTOP)
        asks = self.connection()  # what it hears of first when it goes on
        asks.request("GET", "/v1/tasks")
        begun = time.time()
        self.write("go", "")
        self.wait_gone(pid)
        ended = time.time()
        until(lambda: time.time() > ended + 6)  # the time itself is what the test is about
        self.process.send_signal(signal.SIGCONT)
        asks.getresponse().read()
        asks.close()
        found = self.wait(task, "COMPLETED")
        self.assertGreater(found["ended_at"], begun - 0.1)
        self.assertLess(found["ended_at"], ended + 4)
        self.assertLess(found["exec_s"], found["ended_at"] - found["started_at"] + 0.01)

    def test_an_attempt_that_came_to_nothing_is_not_counted(self):
        """collocd is killed while a start waits for MPS."""
        slow = os.path.join(self.work, "nvidia-cuda-mps-control")
        self.write(
            "nvidia-cuda-mps-control", f"#!/bin/bash\necho slow >{self.work}/asked; sleep 1000\n"
        )
        os.chmod(slow, 0o755)
        path, self.env["PATH"] = self.env["PATH"], f"{self.work}:{self.env['PATH']}"
        self.restart(sharing="mps")
        self.env["PATH"] = path
        task = self.submit("echo ran >>ran; echo words")
        until(
            lambda: "PLACE" in [entry["event"] for entry in self.task(task)["events"]],
            "its placement",
        )
        self.wait_file("asked")
        self.restart(signal.SIGKILL, sharing="mps")
        found = self.wait(task, "COMPLETED")
        self.assertEqual(found["attempt_count"], 1)
        self.assertEqual(
            (self.read("ran"), self.output(task, attempt=len(found["attempts"]))),
            ("ran\n", "words\n"),
        )

    def test_a_start_that_was_logged_but_never_began_is_made_again(self):
        """collocd is killed between logging STARTED and the claim of the shim, which comes late."""
        slow, shim = os.path.join(self.work, "slow-shim"), program("shim")
        self.write(
            "slow-shim",
            f"#!/bin/bash\necho $$ >>{self.work}/shims\n"
            f'while [ ! -e {self.work}/go ]; do sleep 0.02; done\nexec {shim} "$@"\n',
        )
        os.chmod(slow, 0o755)
        self.restart(shim=slow, policy="rr", min_free="0", settle="1ms", settle_max="1ms")
        task, cancelled = self.submit("echo ran >>ran"), self.submit("echo ran >>ran")
        until(lambda: len(self.read_if("shims").split()) == 2, "both shims")
        for one in (task, cancelled):
            self.wait_state(one, "RUNNING")
        self.act("cancel", cancelled)
        self.restart(signal.SIGKILL)
        found = self.wait(task, "COMPLETED")
        self.write("go", "")
        for pid in self.read("shims").split():
            self.wait_gone(int(pid))
        self.assertEqual(
            [(attempt["reason"], attempt["exit_code"]) for attempt in found["attempts"]],
            [("NotStarted", None), ("None", 0)],
        )
        self.assertEqual((found["attempt_count"], self.read("ran")), (1, "ran\n"))
        self.wait(cancelled, "CANCELLED")

    def test_a_task_that_ran_without_its_claim_is_lost(self):
        task = self.submit("echo $$ >pid; sleep 1000")
        pid = int(self.wait_file("pid"))
        self.wait_state(task, "RUNNING")
        self.stop(signal.SIGKILL)
        os.unlink(f"{self.state}/tasks/{task}/1/claim")
        self.start()
        found = self.wait(task, "FAILED")
        self.assertEqual((found["reason"], found["attempt_count"]), ("Lost", 1))
        self.wait_gone(pid)

    def test_a_task_without_its_folder_is_lost(self):
        task = self.submit("echo $$ >pid; while [ ! -e go ]; do sleep 0.02; done; exit 8")
        self.wait_file("pid")
        self.wait_state(task, "RUNNING")
        shutil.rmtree(f"{self.state}/tasks/{task}/1")
        self.write("go", "")
        found = self.wait(task, "FAILED")
        self.assertEqual(found["reason"], "Lost")
        self.assertIn("folder is gone", found["reason_text"])


FAKETIME = "/usr/lib/{}-linux-gnu/faketime/libfaketime.so.1".format(platform.machine())


@unittest.skipUnless(os.path.exists(FAKETIME), "libfaketime is not installed")
@unittest.skipIf(
    "ASAN_OPTIONS" in os.environ, "libfaketime and the address sanitizer do not go together"
)
class Clocks(DaemonCase):
    """The wall clock is wrong when collocd starts, as before NTP has answered."""

    gpus = "1xA100-40GB"

    def restart_at(self, wall):
        wrong = {
            "LD_PRELOAD": FAKETIME,
            "FAKETIME": wall,
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        before = dict(self.env)
        self.env.update(wrong)
        self.restart(signal.SIGKILL)
        self.env = before

    def test_a_wrong_wall_clock_ends_nothing_and_does_not_last(self):
        begin = time.time()
        task = self.submit("echo $$ >pid; while [ ! -e go ]; do sleep 0.02; done", time_limit_s=600)
        self.wait_file("pid")
        for wall in ("+40y", "-10y"):
            self.restart_at(wall)
            self.assertEqual(self.task(task)["state"], "RUNNING")
            self.assertLess(self.task(task)["exec_s"], 300)
        self.restart(signal.SIGKILL)
        later = self.submit(hold=True)
        self.write("go", "")
        found = self.wait(task, "COMPLETED")
        for moment in (
            found["submitted_at"],
            found["started_at"],
            found["ended_at"],
            self.task(later)["submitted_at"],
        ):
            self.assertGreater(moment, begin - 2)
            self.assertLess(moment, time.time() + 2)
        self.assertLess(found["exec_s"], 300)

    def test_a_log_from_the_future_shows_todays_times(self):
        """It was begun under a wrong clock, by a boot that is over."""
        self.stop()
        shutil.rmtree(self.state)
        self.env.update(
            {"LD_PRELOAD": FAKETIME, "FAKETIME": "+40y", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        )
        self.start()
        for name in ("LD_PRELOAD", "FAKETIME", "FAKETIME_DONT_FAKE_MONOTONIC"):
            self.env.pop(name)
        self.wait(self.submit(), "COMPLETED")
        self.stop()
        os.unlink(f"{self.state}/clock")
        self.start()
        found = self.wait(self.submit(), "COMPLETED")
        self.assertLess(abs(found["submitted_at"] - time.time()), 60)
        self.assertLess(abs(found["ended_at"] - time.time()), 60)
        self.assertLess(abs(found["attempts"][0]["ended_at"] - time.time()), 60)
        self.assertLess(found["wait_s"] + found["exec_s"], 60)


if __name__ == "__main__":
    unittest.main()
