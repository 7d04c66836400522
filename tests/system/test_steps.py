# SPDX-License-Identifier: Apache-2.0
"""Steps a second of tasks (docs/steps.md): found in the calls of a program before a pretend
libcuda, or reported by it."""

import sys
import unittest

from daemon_case import SANITIZED, program, until
from test_memory_wait import PROBE, PretendCuda

STEPS = 600000  # some 5 s
REPORTS = """
import ctypes, sys, time
step = ctypes.CDLL(None).colloc_step
step.argtypes = [ctypes.c_long]
while True:
    step(int(sys.argv[1]))
    time.sleep(0.01)
"""


class Steps(PretendCuda):
    def known_speed(self, task):
        return until(
            lambda: next((t for t in [self.task(task)] if t["steps_per_s"]), None),
            f"a speed of task {task}",
        )

    def test_steps_are_found_in_the_calls(self):
        task = self.submit(f"exec {PROBE} table train {STEPS} < /dev/null", memory_mib=500)
        self.assertEqual(self.known_speed(task)["step_source"], "calls")
        metrics = self.request("GET", "/v1/metrics").data.decode()
        self.assertIn(f'colloc_task_steps_per_second{{task="{task}"', metrics)
        found = self.wait(task, "COMPLETED")
        self.assertIsNone(found["steps_per_s"])
        self.assertTrue(0.9 * STEPS < found["steps"] <= STEPS, found["steps"])
        self.assertGreater(found["steps_per_s_mean"], 0)
        self.assertRegex(self.colloc("show", str(task)).stdout, r"Steps/s mean +\d")
        self.assertRegex(self.colloc("history", "-o", "id,steps").stdout, r"STEPS/S")

    @unittest.skipIf(SANITIZED, "the training makes its steps too slowly")
    def test_they_are_recorded_over_time_and_survive_a_restart(self):
        task = self.train(seconds=30000, options="--steps=300000")

        def recorded():
            answer = self.request("GET", f"/v1/tasks/{task}/series?metrics=steps_per_s").json
            return [v for s in answer["series"] for v in s["values"].get("steps_per_s", []) if v]

        def is_recorded():
            speed = self.known_speed(task)["steps_per_s"]
            return any(speed / 3 < value < 3 * speed for value in recorded())

        until(is_recorded, "its speed in a series", explain=recorded)
        steps = until(lambda: self.task(task)["steps"], "its steps")
        self.restart()
        self.assertGreaterEqual(self.task(task)["steps"], steps)
        self.known_speed(task)
        self.assertGreater(
            until(lambda: self.task(task)["steps"], "its steps after the restart"), steps
        )

    def test_without_steps_the_speed_is_unknown(self):
        task = self.submit(f"{PROBE} dlsym alloc 1; exec sleep 1000", memory_mib=500)
        until(lambda: self.output(task), "its allocation")
        found = self.task(task)
        for key in ("steps", "steps_per_s", "steps_per_s_mean", "step_source"):
            self.assertIsNone(found[key])
        self.assertNotIn("Steps", self.colloc("show", str(task)).stdout)

    def test_a_pretend_training_reports_its_steps(self):
        task = self.train(seconds=3000, options="--steps=30000")

        def speed():
            found = self.known_speed(task)
            self.assertEqual(found["step_source"], "reported")
            return found["steps_per_s"] / self.speed

        # Where the machine stops it for a second, that is a break, but the steps are counted.
        until(lambda: 5 < speed() < 11, "ten steps a second of the emulated clock", explain=speed)

    def test_lines_of_the_output_are_steps(self):
        """They win over the steps in the calls, which come a thousand times as fast."""
        lines = 'i=0; while sleep 0.05; do i=$((i+10)); echo "step $i: loss 1"; done'
        calls = f"{PROBE} table train {1000 * STEPS} < /dev/null > /dev/null & "
        for script in (lines, calls + lines):
            task = self.submit(script, memory_mib=500, step_pattern="step {step}: *loss")
            until(lambda: self.task(task)["step_source"] == "reported", "reported steps")
            found = self.known_speed(task)
            self.assertLess(found["steps_per_s"], 1000)
            self.assertRegex(self.colloc("show", str(task)).stdout, r"Step pattern +step \{step\}:")
            self.assertEqual(self.act("cancel", task).status, 200)
        for pattern in ("*", "{step} {step}"):
            self.refused(400, "step-pattern", step_pattern=pattern)

    def test_a_shell_script_reports_steps(self):
        colloc = program("colloc")
        task = self.submit(f"while sleep 0.1; do {colloc} step 2; done", memory_mib=500)
        found = self.known_speed(task)
        self.assertEqual(found["step_source"], "reported")
        self.assertLess(found["steps_per_s"], 20)

    def test_bad_reports(self):
        self.assertIn("no task of colloc", self.colloc("step", code=2).stderr)
        for count in ("0", "-1", "x", "1000001"):
            with self.subTest(count=count):
                self.assertIn("give one from 1", self.colloc("step", "--", count, code=2).stderr)
        self.assertIn(
            "without the preloaded library", self.colloc("step", code=1, COLLOC_TASK_ID="1").stderr
        )

    def test_a_false_report_is_no_speed(self):
        path = self.write("reports.py", REPORTS)
        run = f"exec {sys.executable} -I -S {path}"
        liar = self.submit(f"{run} 1000000000", memory_mib=500)
        honest = self.submit(f"{run} 1", memory_mib=500)
        self.known_speed(honest)
        self.assertIsNone(self.task(liar)["steps_per_s"])


if __name__ == "__main__":
    unittest.main()
