# SPDX-License-Identifier: Apache-2.0
"""Promises of speed (docs/promise.md): measured, held by pausing the task beside it, refused."""

import json
import signal
import unittest

from daemon_case import DaemonCase, until


class PromiseCase(DaemonCase):
    def promised(self, smact, max_slowdown, **members):
        """A training without an end, ten steps a second of the emulated clock."""
        options = f"--steps=100000000 --smact={smact}"
        return self.train(
            2000, 1e7, options, memory_mib=2000, smact=smact, max_slowdown=max_slowdown, **members
        )

    def measured(self, task):
        return until(
            lambda: next((t for t in [self.task(task)] if t["slowdown"]), None),
            f"a measured slowdown of task {task}",
        )


class Promises(PromiseCase):
    gpus = "1xA100-40GB"
    settings = {"suspend": "no", "policy": "predictive"}

    def test_a_task_beside_it_is_paused(self):
        task = self.promised(0.5, 1.5)
        alone = self.measured(task)
        self.assertEqual(alone["max_slowdown"], 1.5)
        self.assertAlmostEqual(alone["slowdown"], 1, delta=0.3)
        self.assertEqual(alone["promise_text"], "kept")
        self.assertRegex(self.colloc("show", str(task)).stdout, r"Promise +kept")
        # It says less of its activity than is true: it is predicted to be no trouble.
        other = self.train(2000, 1e6, "--smact=0.95", memory_mib=2000, smact=0.25)
        paused = self.wait_state(other, "PAUSED")
        self.assertIn(f"task {task}, which did not have its promised", paused["reason_text"])
        until(lambda: (self.task(task)["slowdown"] or 9) < 1.5, "its promised speed")
        self.assertIn("given way to it 1 time", self.task(task)["promise_text"])
        # What is known of its speed alone survives; the pause, too.
        self.restart(signal.SIGTERM)
        self.assertEqual(self.task(other)["state"], "PAUSED")
        self.measured(task)
        self.assertEqual(self.act("cancel", task).status, 200)
        self.wait_state(other, "RUNNING")

    def test_the_ledger(self):
        """Two tasks that share a GPU: what it says of them is what the emulator did to them."""
        one, two = (self.promised(0.6, 100) for _ in range(2))
        beside = lambda task: (self.task(task)["ledger"] or {"shared_s": 0})["shared_s"]
        until(lambda: beside(one) > 8 and beside(two) > 8, "time beside each other")
        self.assertEqual(self.act("cancel", two).status, 200)
        self.measured(one)  # it is alone now: its steps beside the other one are measured
        until(lambda: self.task(one)["ledger"]["measured_s"] > 3, "a measured ledger")
        self.assertEqual(self.act("cancel", one).status, 200)
        for task, is_measured in ((one, True), (two, False)):
            found = self.wait(task)["ledger"]
            self.assertEqual(found["unknown_s"], 0)
            self.assertEqual(found["measured_s"] > 0, is_measured)
            # By the interference model two such tasks run at 0.6 of their speed.
            lost = (found["held_s"] - found["alone_s"]) / found["shared_s"]
            self.assertAlmostEqual(lost, 0.4, delta=0.1)
            self.assertLessEqual(found["alone_low_s"], found["alone_s"])
            self.assertLessEqual(found["alone_s"], found["alone_high_s"])
        shown = self.colloc("report", "--saved", "--by=task").stdout
        self.assertRegex(shown, r"(?m)^all +2 ")

    def test_a_client_of_mps_alone(self):
        """What was not shared saved and cost nothing, and its speed alone is the measured one."""
        task = self.train(
            2000, 1500, "--steps=100000000 --smact=0.3", memory_mib=2000, smact=0.3, sharing="mps"
        )
        until(lambda: self.task(task)["steps_per_s_alone"], "its speed alone")
        found = self.wait(task, "COMPLETED")
        held = found["ledger"]["held_s"]
        for key in ("alone_s", "alone_low_s", "alone_high_s"):
            self.assertAlmostEqual(found["ledger"][key], held, delta=0.001 * held)
        self.assertAlmostEqual(found["steps_per_s_alone"] / found["steps_per_s_mean"], 1, delta=0.2)
        shown = self.colloc("report", "--saved", "--by=task", "--json").stdout
        total = json.loads(shown)["total"]
        self.assertAlmostEqual(total["gpu_hours_saved"], 0, delta=0.001 * held / 3600)

    def test_an_earlier_run_says_its_speed_alone(self):
        options = "--steps=100000000 --smact=0.5"
        run = lambda seconds, **members: self.train(
            2000, seconds, options, memory_mib=2000, smact=0.5, **members
        )
        earlier = run(2500)
        until(lambda: self.task(earlier)["steps_per_s_alone"], "its speed alone")
        found = self.wait(earlier, "COMPLETED")
        self.assertGreater(found["steps_per_s_alone"], 0)
        other = self.promised(0.3, 100)
        self.wait_state(other, "RUNNING")
        again = self.measured(run(2500, max_slowdown=50))
        self.assertIsNone(again["steps_per_s_alone"])  # it was never alone
        self.assertGreater(again["slowdown"], 1)

    def test_it_is_not_placed_where_it_would_be_slower(self):
        task = self.promised(0.9, 1.1)
        self.wait_state(task, "RUNNING")
        other = self.train(2000, 1, memory_mib=2000, smact=0.9)
        why = "at most 1.10 is promised"
        until(lambda: why in self.task(other)["reason_text"], "why it waits")

    def test_bad_promises(self):
        for value in (0.99, -1, 101, "1.2", True):
            with self.subTest(value=value):
                self.refused(400, "max_slowdown", max_slowdown=value)
        for text in ("0.9", "x", "1.2.3", "nan", "inf"):
            with self.subTest(text=text):
                shown = self.colloc("submit", f"--max-slowdown={text}", "--wrap=true", code=2)
                self.assertIn("must be a number from 1 to 100", shown.stderr)


class Crowding(PromiseCase):
    """Nothing is promised, and slowdown-max is exceeded, as measured: the newer task leaves."""

    gpus = "1xA100-40GB"
    settings = {
        "policy": "predictive",
        "slowdown-max": "1.45",
        "thin-out": "yes",
        "suspend-without-gate": "yes",
    }

    def test_the_newer_task_gives_way_and_comes_back(self):
        # It says less of its activity than is true, so it is predicted to be no trouble.
        options = "--steps=100000000 --smact=0.95"
        run = lambda: self.train(2000, 2500, options, memory_mib=2000, smact=0.25)
        earlier = run()
        until(lambda: self.task(earlier)["steps_per_s_alone"], "its speed alone")
        self.wait(earlier, "COMPLETED")
        older = self.train(2000, 1e7, "--steps=100000000 --smact=0.5", memory_mib=2000, smact=0.5)
        until(lambda: self.task(older)["steps_per_s_alone"], "its speed alone")
        newer = run()
        stopped = self.wait_state(newer, "SUSPENDED")
        self.assertIn(
            f"too many shared its GPU, of which task {older} was the slowest",
            stopped["reason_text"],
        )
        self.assertEqual(self.act("cancel", older).status, 200)
        self.wait_state(newer, "RUNNING")
        [interruption] = self.task(newer)["attempts"][0]["interruptions"]
        self.assertEqual((interruption["reason"], interruption["for"]), ("speed", older))


class ProbeCase(PromiseCase):
    """A promised task that is never alone: the one beside it pauses, for up to half of its time."""

    settings = {"suspend": "no", "policy": "predictive", "probe-share": "0.5"}

    def beside(self):
        """The promised task, and the one that was there before it."""
        other = self.train(2000, 1e7, "--steps=100000000 --smact=0.3", memory_mib=2000, smact=0.3)
        self.wait_state(other, "RUNNING")
        return self.promised(0.3, 3), other

    def probed(self, task):
        """The interruptions of the task for probes, once there is one."""
        listed = lambda: [
            each
            for attempt in self.task(task)["attempts"]
            for each in attempt["interruptions"]
            if each["reason"] == "probe"
        ]
        return until(listed, f"a probe for which task {task} pauses")

    def check_measurement(self):
        """It is measured while the other one pauses."""
        task, other = self.beside()
        first = self.probed(other)[0]
        self.assertEqual((first["kind"], first["for"]), ("paused", task))
        self.measured(task)
        self.assertIsNotNone(self.task(task)["steps_per_s_alone"])
        found = self.wait_state(other, "RUNNING")
        self.assertRegex(found["probes_text"], f"^paused .* s .*task {task}")
        self.assertRegex(self.colloc("show", str(other)).stdout, r"Probes +paused ")
        self.assertIsNone(self.task(task)["probes_text"])


class Probes(ProbeCase):
    gpus = "1xA100-40GB"

    def test_on_a_gpu(self):
        self.check_measurement()

    def test_it_goes_on_after_a_crash(self):
        task, other = self.beside()
        self.probed(other)
        self.restart(signal.SIGKILL)
        self.wait_state(other, "RUNNING")
        steps = lambda: self.task(other)["steps"] or 0
        before = steps()
        until(lambda: steps() > before, "steps after the crash")
        self.assertEqual(self.act("cancel", task).status, 200)
        self.wait(task, "CANCELLED")
        self.wait_state(other, "RUNNING")


class ProbesOnInstances(ProbeCase):
    gpus = "A100-40GB:3g.20gb"

    def test_on_an_instance(self):
        self.check_measurement()


class Moves(PromiseCase):
    """Where the driver can move a task."""

    gpus = "2xA100-40GB"
    settings = {"policy": "predictive", "suspend-without-gate": "yes"}

    def test_a_task_beside_it_is_moved(self):
        filler = self.train(38000, 1e7, "--smact=0.1", memory_mib=38000, smact=0.1)
        task = self.promised(0.5, 1.5)
        self.measured(task)
        other = self.train(2000, 1e7, "--smact=0.95", memory_mib=2000, smact=0.25)
        self.wait_state(other, "RUNNING")
        self.assertEqual(self.task(other)["gpus"], self.task(task)["gpus"])
        self.act("cancel", filler)
        moved = until(lambda: next((t for t in [self.task(other)] if t["moves"]), None), "a move")
        self.wait_state(other, "RUNNING")
        self.assertEqual(moved["attempt_count"], 1)
        self.assertNotEqual(self.task(other)["gpus"], self.task(task)["gpus"])
        until(lambda: (self.task(task)["slowdown"] or 9) < 1.5, "its promised speed")
        self.assertIn("given way to it 1 time", self.task(task)["promise_text"])


if __name__ == "__main__":
    unittest.main()
