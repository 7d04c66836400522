# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the daemon at any moment: no task lost, none run twice, what runs goes on, and how it ended is known."""

import collections
import os
import random
import resource
import signal
import threading
import unittest

from daemon_case import DaemonCase, Connection, is_alive, read, until


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
        """Not a wait for anything: a moment of its own for what comes next."""
        threading.Event().wait(self.random.random() * longest)

    def test_killed_again_and_again(self):
        stream = threading.Thread(target=self.submit_stream)
        stream.start()
        try:
            for i in range(self.rounds):
                self.pause(0.35)
                self.restart(signal.SIGTERM if i % 4 == 3 else signal.SIGKILL)
        finally:
            self.stop_submitting = True
            stream.join()
        self.check()

    def check(self):
        why = f"COLLOC_SEED={self.seed}"
        self.assertGreater(len(self.accepted), 5, why)
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
                self.assertEqual((found["state"], found["exit_code"]), ("COMPLETED", 0), (why, found))
            else:
                self.assertEqual((found["state"], found["exit_code"]), ("FAILED", status), (why, found))
        until(lambda: not self.tasks(), "the end of what was accepted but not answered any more, " + why)
        self.assertEqual([gpu["tasks"] for gpu in self.get("/v1/gpus")["gpus"]], [[]] * 4, why)

    def test_submit_that_was_answered_survives(self):
        for _ in range(5):
            connection = Connection(self.socket)
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
        self.assertEqual([t["id"] for t in queue if t["reason"] == "JobHeldUser"], [waiting[1], held])

    def test_cancel_then_killed(self):
        task = self.submit("trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done", grace_s=1)
        self.wait_state(task, "RUNNING")
        pid = int(self.wait_file("pid"))
        self.act("cancel", task)
        self.restart(signal.SIGKILL)
        self.assertEqual(self.wait(task)["state"], "CANCELLED")
        self.wait_gone(pid)

    def test_shim_killed(self):
        task = self.submit("(setsid sleep 1000 & echo $! > left); echo $PPID > shim; while :; do sleep 0.1; done")
        shim = int(self.wait_file("shim"))
        self.wait_state(task, "RUNNING")
        os.kill(shim, signal.SIGKILL)
        ended = self.wait(task, "FAILED")
        self.assertEqual((ended["reason"], ended["failure"]), ("Lost", "lost"))
        until(lambda: not is_alive(int(self.read("left"))), "the end of what the task left")

    def test_shim_killed_while_nobody_looked(self):
        task = self.submit("(setsid sleep 1000 & echo $! > left); echo $PPID > shim; while :; do sleep 0.1; done")
        shim = int(self.wait_file("shim"))
        self.wait_state(task, "RUNNING")
        self.stop(signal.SIGKILL)
        os.kill(shim, signal.SIGKILL)
        until(lambda: not is_alive(shim))
        self.start()
        self.assertEqual(self.wait(task, "FAILED")["reason"], "Lost")
        until(lambda: not is_alive(int(self.read("left"))), "the end of what the task left")

    def test_time_limit_while_nobody_looked(self):
        task = self.submit("while :; do sleep 0.05; done", time_limit_s=0.3, grace_s=0.1)
        self.wait_state(task, "RUNNING")
        shim = int(self.submit_shim(task))
        self.stop(signal.SIGKILL)
        until(lambda: not is_alive(shim))
        self.start()
        self.wait(task, "TIMEOUT")

    def submit_shim(self, task):
        claim = f"{self.state}/tasks/{task}/1/claim"
        until(lambda: os.path.exists(claim), "the shim's claim")
        return read(claim)


if __name__ == "__main__":
    unittest.main()
