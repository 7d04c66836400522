# SPDX-License-Identifier: Apache-2.0
"""Tasks that give way to each other on one GPU: in time slots, and by priority."""

import json
import os
import sqlite3
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


class LatestStarts(DaemonCase):
    gpus = "1xA100-40GB"
    settings = {"preempt": "yes", "policy": "predictive"}

    def latest_start_s(self, task):
        """Its latest start, as the event log has it, from its submission on."""
        with sqlite3.connect(os.path.join(self.state, "colloc.db")) as log:
            query = "SELECT time_us, body FROM events WHERE kind = ? AND task = ? ORDER BY seq"
            ((submitted_us, _),) = log.execute(query, ("SUBMIT", task)).fetchall()
            *_, (_, body) = log.execute(query, ("LATEST_START", task)).fetchall()
        return (json.loads(body)["latest_us"] - submitted_us) / 1e6

    def test_a_cancelled_task_delays_none_before_and_after_a_restart(self):
        long = self.train(100, 1e6, expected_s=864000)
        self.wait_state(long, "RUNNING")
        late = self.train(100, 1e6, expected_s=100)
        self.assertGreater(self.latest_start_s(late), 864000)
        self.act("cancel", long)
        self.wait_state(long, "CANCELLED")
        tasks = [self.train(100, 1e6, expected_s=100)]
        self.restart()
        tasks.append(self.train(100, 1e6, expected_s=100))
        first, second = map(self.latest_start_s, tasks)
        self.assertLess(first, 1.5 * 100 + 60)
        self.assertAlmostEqual(second - first, 1.5 * 100, delta=60)


if __name__ == "__main__":
    unittest.main()
