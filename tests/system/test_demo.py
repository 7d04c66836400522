# SPDX-License-Identifier: Apache-2.0
"""scripts/demo on a short trace whose outcome can be worked out by hand."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from daemon_case import BUILD, LIMIT_S, SANITIZED, processes_with, until, words_of

DEMO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "demo")
# The faster, the more of a hold-off is gone before a process has started. Sanitizers start slowly.
SPEED = 100 if SANITIZED else 500

# On four GPUs of 40336 MiB: beside four tasks with 19018 MiB each a task of 22978 MiB does not fit.
# But more is free than the 5 GiB that MAGM requires of an unknown task, and SM activity is low. So
# the fifth task crashes beside one of them, and gets a GPU when the first one ends.
CALCULABLE = ["0 inception_v3-b128"] * 4 + ["900 xception-b128"]
FIRST_S, FIFTH_S = 2691.2, 2666.4
IDEAL_TOTAL_S = FIRST_S + FIFTH_S
IDEAL_EXEC_S = (4 * FIRST_S + FIFTH_S) / 5
IDEAL_WAIT_S = (FIRST_S - 900) / 5
IDLE_W, INCEPTION_W, XCEPTION_W = (
    50,
    85 + 190 * (0.25 * 0.776 + 0.75 * 0.64),
    85 + 190 * (0.25 * 0.965 + 0.75 * 0.85),
)
IDEAL_MJ = (4 * FIRST_S * INCEPTION_W + FIFTH_S * (XCEPTION_W + 3 * IDLE_W)) / 1e6


class Demo(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="demo-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.temporary = os.path.join(self.folder, "tmp")
        os.mkdir(self.temporary)
        self.result = os.path.join(self.folder, "out", "result.json")

    def start(self, lines):
        trace = os.path.join(self.folder, "trace.txt")
        with open(trace, "w", encoding="utf-8") as file:
            file.write("\n".join(["# a trace", "arrival_s task", *lines, ""]))
        return subprocess.Popen(
            [
                sys.executable,
                DEMO,
                f"--trace={trace}",
                f"--speed={SPEED}",
                f"--build={BUILD}",
                f"--result={self.result}",
            ],
            env={**os.environ, "TMPDIR": self.temporary},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait(self, process):
        """Exit status and output, and that nothing of it lives on."""
        text, _ = process.communicate(timeout=LIMIT_S)
        until(lambda: not processes_with(self.temporary), "the end of its processes")
        return process.returncode, text

    def trainings(self):
        return [
            pid
            for pid in processes_with(self.temporary)
            if words_of(pid)[0] == "colloc-pretend-train"
        ]

    def assert_little_more(self, value, ideal):
        """SPEED stretches starts of processes; a task submitted late waits less by that time."""
        self.assertGreaterEqual(value, 0.98 * ideal)
        self.assertLess(value, 2 * ideal)

    def test_figures(self):
        """A machine that is busy for a while lengthens what is emulated: one of three is right."""
        for _ in range(2):
            with contextlib.suppress(AssertionError):
                return self.check_figures()
        return self.check_figures()

    def check_figures(self):
        status, text = self.wait(self.start(CALCULABLE))
        self.assertEqual(status, 0, text)
        self.assertNotIn("warning", text.lower())
        self.assertEqual(os.listdir(self.temporary), [])
        with open(self.result, encoding="utf-8") as file:
            result = json.load(file)
        for server, crashes in (("exclusive", 0), ("magm", 1)):
            figures = result[server]
            counted = [figures[key] for key in ("tasks_completed", "oom", "recovered", "speed")]
            self.assertEqual(counted, [5, crashes, crashes, SPEED], server)
            self.assert_little_more(figures["total_s"], IDEAL_TOTAL_S)
            self.assert_little_more(figures["avg_exec_s"], IDEAL_EXEC_S)
            self.assertAlmostEqual(
                figures["avg_jct_s"],
                figures["avg_wait_s"] + figures["avg_exec_s"],
                delta=0.05 * FIRST_S,
            )
            self.assertGreaterEqual(figures["energy_mj"], 0.97 * IDEAL_MJ)
            self.assertLess(figures["energy_mj"], 1.5 * IDEAL_MJ)
            self.assertGreater(figures["mean_smact"], 0.2)
            self.assertLess(figures["mean_smact"], 0.64)
        self.assert_little_more(result["exclusive"]["avg_wait_s"], IDEAL_WAIT_S)
        self.assertRegex(text, r"OOM crashes +0 +1\n")
        self.check_simulated(result, text)

    def check_simulated(self, result, text):
        """The emulator follows the model of the simulator.

        Starts sometimes take longer here than on average: a server with three consecutive starts
        may take that much more.
        """
        simulated, slow_starts_s = result["simulated"], 3 * max(
            0, result["exclusive"]["avg_exec_s"] - IDEAL_EXEC_S
        )
        for server in "exclusive", "magm":
            total_s, figures = result[server]["total_s"], simulated[server]
            self.assertLess(figures["min_s"], figures["max_s"])
            self.assertGreaterEqual(total_s, 0.97 * figures["total_s"])
            self.assertLessEqual(total_s, 1.03 * figures["total_s"] + slow_starts_s)
        self.assertGreater(
            simulated["magm"]["total_s"], 1.03 * simulated["exclusive"]["total_s"]
        )  # MPS costs a task alone something
        self.assertRegex(text, r"Simulated: total time +1h\d\d \(\d+ min\) +1h\d\d \(\d+ min\)\n")
        self.assertRegex(text, r"  emulated: longer by +[+-][\d.]+ % +[+-][\d.]+ %\n")

    def test_a_task_that_ends_badly(self):
        process = self.start(CALCULABLE[:1])
        os.kill(until(self.trainings, "a training")[0], signal.SIGKILL)
        status, text = self.wait(process)
        self.assertEqual(status, 1, text)
        self.assertRegex(text, r"task 1 \(inception_v3-b128\) ended as FAILED")
        logs = re.search(r"The logs are in (.*)", text)[1]
        self.assertTrue(os.path.exists(os.path.join(logs, "magm", "collocd.log")), text)

    def test_interrupted(self):
        process = self.start(CALCULABLE)
        until(self.trainings, "a training")
        process.send_signal(signal.SIGINT)
        status, text = self.wait(process)
        self.assertEqual(status, 130, text)
        self.assertEqual(os.listdir(self.temporary), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
