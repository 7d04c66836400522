# SPDX-License-Identifier: Apache-2.0
"""Tasks that give way to each other on one GPU: in time slots, and by priority."""

import unittest

from daemon_case import DaemonCase

OPTIONS = "--ramp-seconds=0 --smact=0.2"


class Slots(DaemonCase):
    gpus = "1xA100-40GB"
    settings = {"suspend-without-gate": "yes", "slots": "yes", "slot-length": "1s"}

    def test_two_tasks_take_turns(self):
        first = self.train(100, 1e6, OPTIONS, exclusive=True)
        self.wait_state(first, "RUNNING")
        second = self.train(100, 1e6, OPTIONS, exclusive=True, slot="no")
        self.wait_state(second, "RUNNING")
        found = self.task(first)
        self.assertEqual(found["state"], "SUSPENDED")
        self.assertIn("its time slot was over", found["reason_text"])
        self.act("cancel", second)
        self.wait_state(first, "RUNNING")
        self.assertEqual(self.task(first)["attempt_count"], 1)


class Priorities(DaemonCase):
    gpus = "1xA100-40GB"
    settings = {"suspend-without-gate": "yes", "preempt": "yes", "policy": "magm"}

    def test_an_urgent_task_takes_the_place_of_another(self):
        first = self.train(100, 1e6, OPTIONS, exclusive=True)
        self.wait_state(first, "RUNNING")
        second = self.train(100, 1e6, OPTIONS, exclusive=True, priority="urgent")
        self.wait_state(second, "RUNNING")
        found = self.task(first)
        self.assertEqual(found["state"], "SUSPENDED")
        self.assertIn(f"suspended for task {second}", found["reason_text"])
        self.act("cancel", second)
        self.wait_state(first, "RUNNING")
        self.assertEqual(self.task(first)["attempt_count"], 1)


if __name__ == "__main__":
    unittest.main()
