# SPDX-License-Identifier: Apache-2.0
"""What a run of a command took is the memory requirement of its next run, and of the tasks of its
array that wait: at its end, and as soon as its training has made two steps."""

import signal
import unittest

from daemon_case import DaemonCase, until
from test_memory_wait import PretendCuda

PEAK_MIB = 6000


class SameCommand(DaemonCase):
    gpus = "1xA100-40GB"
    settings = {"sample-period": "100ms"}

    def run_once(self):
        task = self.train(PEAK_MIB, 300)
        self.assertIsNone(self.task(task)["need_mib"])
        return self.wait(task, "COMPLETED")

    def is_estimated(self, task):
        return "ESTIMATE" in [event["event"] for event in task["events"]]

    def check_estimate(self, task, peak_mib):
        self.assertEqual(task["estimator"], "same-command")
        self.assertAlmostEqual(task["need_mib"], peak_mib, delta=1)
        self.assertAlmostEqual(task["predicted_mib"], peak_mib, delta=1)

    def test_the_next_run_is_estimated(self):
        peak = self.run_once()["mem_peak_mib"]
        self.assertGreaterEqual(peak, PEAK_MIB)
        self.check_estimate(self.task(self.train(PEAK_MIB, 300)), peak)
        self.restart(signal.SIGKILL)
        task = self.train(PEAK_MIB, 300)
        self.check_estimate(self.task(task), peak)
        self.assertIn("same-command", self.colloc("show", str(task)).stdout)

    def test_what_is_said_counts_more(self):
        first = self.run_once()
        self.assertIsNotNone(first["smact_mean"])
        declared = self.task(self.train(PEAK_MIB, 300, memory_mib=9 * 1024))
        self.assertEqual((declared["estimator"], declared["need_mib"]), ("declared", 9 * 1024))
        self.assertAlmostEqual(declared["smact_expected"], first["smact_mean"], delta=0.001)
        unknown = self.task(self.train(PEAK_MIB, 300, estimator="none"))
        self.assertEqual((unknown["estimator"], unknown["need_mib"]), (None, None))

    def test_another_command_stays_unknown(self):
        self.run_once()
        self.assertIsNone(self.task(self.train(PEAK_MIB + 1, 300))["need_mib"])

    def test_waiting_tasks_of_an_array_learn_from_the_first(self):
        array = self.train(PEAK_MIB, 300, array="0-3%1")
        first = self.wait(array + 1, "COMPLETED")
        last = until(
            lambda: next((t for t in [self.task(array + 4)] if self.is_estimated(t)), None),
            "the estimate of the last task in the log",
        )
        self.check_estimate(last, first["mem_peak_mib"])
        self.restart(signal.SIGKILL)
        self.check_estimate(self.task(array + 4), first["mem_peak_mib"])
        self.wait(array + 4, "COMPLETED")

    def test_declared_tasks_of_an_array_learn_the_activity(self):
        array = self.train(PEAK_MIB, 300, array="0-3%1", memory_mib=9 * 1024)
        self.assertIsNone(self.task(array + 4)["smact_expected"])
        first = self.wait(array + 1, "COMPLETED")
        until(lambda: self.is_estimated(self.task(array + 4)), "its estimate in the log")
        for code in (None, signal.SIGKILL):
            if code:
                self.restart(code)
            last = self.task(array + 4)
            self.assertEqual((last["estimator"], last["need_mib"]), ("declared", 9 * 1024))
            self.assertAlmostEqual(last["smact_expected"], first["smact_mean"], delta=0.001)


class SecondStep(PretendCuda):
    """A training that makes steps and does not end."""

    settings = {"sample-period": "100ms"}

    def train_on(self, mib=PEAK_MIB, **members):
        return self.train(mib, 100000, options="--steps=1000000", **members)

    def estimate_of(self, task, least_mib):
        return until(
            lambda: next((t for t in [self.task(task)] if (t["need_mib"] or 0) >= least_mib), None),
            f"an estimate of task {task}",
        )

    def test_siblings_learn_before_its_end(self):
        array = self.train_on(array="0-2%1")
        last = self.estimate_of(array + 3, PEAK_MIB)
        self.assertEqual(last["estimator"], "same-command")
        running = self.task(array + 1)
        self.assertEqual(running["state"], "RUNNING")
        self.assertLessEqual(last["need_mib"], running["mem_peak_mib"] + 1)
        self.restart(signal.SIGKILL)
        self.assertGreaterEqual(self.task(array + 3)["need_mib"], PEAK_MIB)

    def activity_of(self, task):
        return until(lambda: self.task(task)["smact_expected"], f"the activity of task {task}")

    def test_siblings_learn_the_activity_before_its_end(self):
        array = self.train_on(array="0-2%1", memory_mib=PEAK_MIB + 1000)
        smact = self.activity_of(array + 3)
        self.assertEqual(self.task(array + 1)["state"], "RUNNING")
        self.assertTrue(0.2 < smact < 0.9, smact)
        self.assertRegex(
            self.colloc("show", str(array + 3)).stdout, r"(?m)^SMACT exp\.\s+\d+ %, which counts"
        )
        self.restart(signal.SIGKILL)
        self.assertAlmostEqual(self.task(array + 3)["smact_expected"], smact, delta=0.001)

    def test_running_siblings_show_what_each_does(self):
        """The first reading of the activity is of the time before them, too, and repeats."""
        options = "--steps=1000000 --smact=0.5"
        array = self.train(3000, 100000, options=options, array="0-3%3", sharing="mps")
        self.assertAlmostEqual(self.activity_of(array + 4), 0.5, delta=0.05)

    def test_beside_another_command_the_activity_stays_unknown(self):
        other = self.train_on(1000, sharing="mps")
        until(lambda: (self.task(other)["mem_peak_mib"] or 0) >= 1000, "its peak")
        array = self.train_on(array="0-1%1", sharing="mps")
        self.estimate_of(array + 2, PEAK_MIB)
        self.assertIsNone(self.task(array + 2)["smact_expected"])
        self.assertRegex(
            self.colloc("show", str(array + 2)).stdout, r"(?m)^SMACT exp\.\s+unknown: it counts"
        )

    def test_the_next_submission_learns_before_its_end(self):
        first = self.train_on()
        until(lambda: (self.task(first)["mem_peak_mib"] or 0) >= PEAK_MIB, "its peak")
        until(lambda: (self.task(first)["steps"] or 0) >= 2, "its steps")
        second = until(
            lambda: next((t for t in [self.task(self.train_on(hold=True))] if t["need_mib"]), None),
            "an estimate at the submission",
        )
        self.assertEqual(second["estimator"], "same-command")

    def test_a_declared_requirement_stays(self):
        array = self.train_on(array="0-2%1", memory_mib=1000)
        until(lambda: (self.task(array + 1)["mem_peak_mib"] or 0) >= PEAK_MIB, "its peak")
        until(lambda: (self.task(array + 1)["steps"] or 0) >= 2, "its steps")
        self.assertEqual(self.task(array + 3)["need_mib"], 1000)

    def test_without_steps_nothing_is_learned(self):
        array = self.train(PEAK_MIB, 100000, array="0-2%1")
        until(lambda: (self.task(array + 1)["mem_peak_mib"] or 0) >= PEAK_MIB, "its peak")
        self.assertIsNone(self.task(array + 3)["need_mib"])


if __name__ == "__main__":
    unittest.main()
