# SPDX-License-Identifier: Apache-2.0
"""The rate of a loader, by a clock that the loader itself moves; and the command."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "..", "python"))

from colloc_export.loader_command import made_before, measure, samples_of  # noqa: E402
from colloc_export.user_code import Mistake  # noqa: E402


class Batch:
    def __init__(self, *shape):
        self.shape = shape


class Loader:
    """Batches of 32; the first of an epoch takes 1 s, each other one 50 ms."""

    def __init__(self, batches, ready=0):
        self.batches, self.ready, self.now = batches, ready, 0.0
        self.num_workers = 1 if ready else 0
        self.prefetch_factor = ready or None

    def clock(self):
        return self.now

    def __iter__(self):
        for i in range(self.batches):
            if self.ready:  # lies ready: takes no time
                self.ready -= 1
            else:
                self.now += 1.0 if i == 0 else 0.05
            yield [Batch(32, 3, 224, 224), Batch(32)]


class Rates(unittest.TestCase):
    def test_of_one_epoch(self):
        loader = Loader(1000)
        samples, took = measure(loader, 2.0, loader.clock)
        self.assertAlmostEqual(samples / took, 32 / 0.05, delta=1)

    def test_the_start_of_each_further_epoch_counts(self):
        loader = Loader(21)
        samples, took = measure(loader, 20.0, loader.clock)
        self.assertAlmostEqual(samples / took, 21 * 32 / 2.0, delta=15)

    def test_what_lies_ready_does_not(self):
        loader = Loader(1000, ready=4)
        self.assertEqual(made_before(loader), 4)
        samples, took = measure(loader, 2.0, loader.clock)
        self.assertLess(samples / took, 641)

    def test_forms_of_batches(self):
        self.assertEqual(samples_of({"labels": Batch(), "ids": Batch(8, 512)}), 8)
        self.assertEqual(samples_of(("name", [Batch(16, 1)])), 16)
        self.assertEqual(samples_of("text"), 0)

    def test_loaders_that_say_nothing(self):
        for loader in ([], [["text"]]):
            with self.assertRaises(Mistake):
                measure(loader, 1)


class Command(unittest.TestCase):
    def run_command(self, source, *words):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mine.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(source)
            command = [sys.executable, "-m", "colloc_export", f"--loader={path}:make", *words]
            here = os.path.dirname(os.path.abspath(__file__))
            python = os.path.normpath(os.path.join(here, "..", "..", "..", "python"))
            return subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "PYTHONPATH": python},
            )

    def test_without_torch(self):
        done = self.run_command(
            "import time\n"
            "class Rows(list):\n"
            "    shape = (10, 4)\n"
            "def make():\n"
            "    print('made')\n"
            "    def batches():\n"
            "        while True:\n"
            "            time.sleep(0.01)\n"
            "            yield Rows()\n"
            "    return batches()\n",
            "--seconds=0.5",
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertGreater(answer["loader_rate"], 20)
        self.assertLess(answer["loader_rate"], 1001)
        self.assertTrue(answer["option"].startswith("--loader-rate="))

    def test_mistakes(self):
        done = self.run_command("def other():\n    pass\n")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("make", done.stderr)
        self.assertNotEqual(self.run_command("def make(): return []", "--seconds=0").returncode, 0)


if __name__ == "__main__":
    unittest.main()
