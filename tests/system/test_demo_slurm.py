# SPDX-License-Identifier: Apache-2.0
"""scripts/demo-slurm on short traces. It takes half a minute, so `make soak` runs it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from daemon_case import BUILD, LIMIT_S, processes_with, until, words_of

from colloc_slurm import loopback

DEMO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "demo-slurm")
SPEED = 200

# Two GPUs, and two pairs of tasks that fit on one GPU together, in memory and in SM activity.
TRACE = ["0 mobilenet_v2-b32", "1 efficientnet_b0-b32", "2 mnist_cnn-b32", "3 mnist_cnn-b32"]


def why_not():
    return "jobs of several users need root" if os.geteuid() else loopback.why_not()


@unittest.skipIf(why_not(), why_not())
class DemoSlurm(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="demo-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.temporary = os.path.join(self.folder, "tmp")
        os.mkdir(self.temporary)
        os.chmod(self.folder, 0o755)
        os.chmod(self.temporary, 0o755)
        self.result = os.path.join(self.folder, "out", "slurm.json")

    def start(self, lines):
        trace = os.path.join(self.folder, "trace.txt")
        with open(trace, "w", encoding="utf-8") as file:
            file.write("\n".join(["arrival_s task", *lines, ""]))
        options = [f"--trace={trace}", f"--speed={SPEED}", f"--build={BUILD}"]
        return subprocess.Popen(
            [sys.executable, DEMO, *options, f"--result={self.result}", "--nodes=1", "--gpus=2"],
            env={**os.environ, "TMPDIR": self.temporary},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait(self, process):
        """Exit status and output, and that nothing of it lives on."""
        text, _ = process.communicate(timeout=LIMIT_S)
        until(lambda: not processes_with(self.temporary), "the end of all processes")
        self.assertEqual(os.listdir(self.temporary), [])
        return process.returncode, text

    def test_figures(self):
        status, text = self.wait(self.start(TRACE))
        self.assertEqual(status, 0, text)
        with open(self.result, encoding="utf-8") as file:
            result = json.load(file)
        self.assertEqual(sorted(result), ["exclusive", "magm"])
        for name in ("exclusive", "magm"):
            figures = result[name]
            self.assertEqual((figures["tasks_completed"], figures["tasks_failed"]), (4, 0), text)
            self.assertEqual(figures["speed"], SPEED)
            self.assertAlmostEqual(
                figures["avg_jct_s"], figures["avg_wait_s"] + figures["avg_exec_s"], delta=1
            )
            self.assertGreater(figures["mean_smact"], 0)
            self.assertGreater(figures["energy_mj"], 0)
        # On exclusive GPUs the third task waits for the end of the first; on shared ones none does.
        self.assertGreater(result["exclusive"]["avg_wait_s"], 2 * result["magm"]["avg_wait_s"])
        self.assertRegex(text, r"Completed tasks +4 +4\n")
        self.assertIn("both completed, none crashed", " ".join(text.split()))

    def test_interrupted(self):
        process = self.start(TRACE)
        until(
            lambda: [
                pid
                for pid in processes_with(self.temporary)
                if "colloc-pretend-train" in words_of(pid)[0]
            ],
            "a training",
        )
        process.send_signal(signal.SIGINT)
        status, text = self.wait(process)
        self.assertEqual(status, 130, text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
