# SPDX-License-Identifier: Apache-2.0
"""What a host learns of the interference model from measured speeds (docs/promise.md, "What the
host learns"): on emulated GPUs that behave as the model says, so what differs from it is the steps
that a task reports."""

import os
import re
import signal
import unittest

from daemon_case import until
from test_users import ADA, BOB, Several, may_run

# A step after each period, whose seconds stand in a file.
REPORTS = """
import ctypes, sys, time
step = ctypes.CDLL(None).colloc_step
step.argtypes = [ctypes.c_long]
while True:
    step(1)
    with open(sys.argv[1]) as file:
        time.sleep(float(file.read()))
"""
ALONE_S, BESIDE_S = 0.05, 0.3  # six times as long; the model says three times
SETTINGS = {"suspend": "no", "sharing": "streams", "policy": "rr", "smact_max": 1, "min_free": 0}


@unittest.skipUnless(may_run(ADA), "other users cannot reach the build")
class Learning(Several):
    gpus = "1xA100-40GB"
    settings = {**SETTINGS, "margin": 0}

    def set_period(self, user, seconds):
        path = os.path.join(self.work, f"period-{user}")
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(str(seconds))
        os.rename(path + ".new", path)

    def learned(self):
        return self.get("/v1/info")["learned_delays"]["streams"]

    def share_a_gpu(self, user):
        """Three tasks of the user, of which the first is slowed down more than the model says.
        Returns what is learned once that is in the log, and the tasks."""
        train = "colloc-pretend-train --memory-mib=1000 --seconds=1e7 --ramp-seconds=1 --smact=0.9"
        begin = lambda script, **members: self.submit_as(
            user, script, memory_mib=1000, smact=0.9, **members
        )
        self.set_period(user, ALONE_S)
        with open(os.path.join(self.work, "reports.py"), "w", encoding="utf-8") as file:
            file.write(REPORTS)
        users = self.learned()["users"]
        first = begin(f"python3 reports.py period-{user} & exec {train}", max_slowdown=100)
        until(lambda: self.task(first)["steps_per_s_alone"], "its speed alone")
        others = [begin(f"exec {train}") for _ in range(2)]
        for task in others:
            self.wait_state(task, "RUNNING")
        self.set_period(user, BESIDE_S)
        until(lambda: self.learned()["users"] > users, "delays in the log")
        return [first, *others]

    def test_delays_are_learned_and_kept(self):
        self.assertEqual(self.learned(), {"factor": 1, "users": 0, "delay_predicted_s": 0})
        tasks = self.share_a_gpu(ADA)
        alone = self.learned()  # the only user of the host counts
        self.assertEqual(alone["users"], 1)
        self.assertGreaterEqual(alone["delay_predicted_s"], 30)
        self.assertTrue(1.1 < alone["factor"] <= 2, alone)
        shown = re.search(r"(?m)^ +streams *\n +factor +(\S+)$", self.colloc("info").stdout)
        self.assertAlmostEqual(float(shown.group(1)), alone["factor"], places=6)
        # One user among others decides nothing.
        self.wait(self.submit_as(BOB), "COMPLETED")
        self.assertEqual(self.learned()["factor"], 1)
        for task in tasks:
            self.assertEqual(self.request_as(ADA, "POST", f"/v1/tasks/{task}/cancel").status, 200)
        # Two that agree do.
        tasks = self.share_a_gpu(BOB)
        agreed = self.learned()
        self.assertEqual(agreed["users"], 2)
        self.assertTrue(1.1 < agreed["factor"] <= 2, agreed)
        self.assertIn(
            f"delay each other {agreed['factor']:.2f} times as much as by the model, as measured "
            "speeds of the tasks of 2 users show",
            self.task(tasks[0])["promise_text"],
        )
        for how in (signal.SIGTERM, signal.SIGKILL):
            self.restart(how)
            self.assertEqual(self.learned(), agreed)
        self.restart(learn_delays="no")
        self.assertEqual(self.learned()["factor"], 1)


if __name__ == "__main__":
    unittest.main()
