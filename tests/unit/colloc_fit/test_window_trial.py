# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/window_trial.py: which tasks a window has, and how it is composed from mixes."""
import csv
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path[:0] = [os.path.join(ROOT, "tests", "gpu"), os.path.join(ROOT, "python")]

import window_trial  # noqa: E402

TASKS = [
    {"name": "a", "at_s": 0, "alone_s": 100},
    {"name": "b", "at_s": 10, "alone_s": 50},
    {"name": "c", "at_s": 200, "alone_s": 50},
]
# Both run from second 1 on, and make 10 and 5 steps a second.
SAMPLES = [[0, 100, 0.0, {"0:a": None}]] + [
    [second, 300, 0.9, {"0:a": 10 * second, "1:b": 5 * second}] for second in range(1, 12)
]
WINDOW = {
    "way": "magm",
    "measured_on": ["H200", "580"],
    "seconds": 11,
    "energy_j": 3200,
    "tasks": [
        {"name": "0:a", "steps": 110, "attempt_count": 1, "oom_count": 0},
        {"name": "1:b", "steps": 55, "attempt_count": 1, "oom_count": 0},
    ],
    "samples": SAMPLES,
}


class Windows(unittest.TestCase):
    def test_what_waits_when_the_window_begins(self):
        left = window_trial.waiting_at(TASKS, 120)
        self.assertEqual([(task["name"], task["at_s"]) for task in left], [("b", 0), ("c", 80)])
        self.assertEqual(len(window_trial.waiting_at(TASKS, 0)), 3)
        self.assertEqual(window_trial.waiting_at(TASKS, 1000), [])

    def test_progress_by_the_rates_alone(self):
        self.assertAlmostEqual(window_trial.progress_of(WINDOW, {"a": 20, "b": 10}), 11)
        self.assertIsNone(window_trial.progress_of(WINDOW, {"a": 20}))

    def test_a_window_is_composed_from_its_mixes(self):
        progress, joules, known = window_trial.compose(WINDOW, {("a", "b"): ([0.5, 0.5], 300.0)})
        self.assertAlmostEqual(progress, 10)
        self.assertAlmostEqual(joules, 100 + 10 * 300)
        self.assertEqual(known, 1)
        self.assertEqual(window_trial.compose(WINDOW, {})[2], 0)

    def test_energy_is_power_by_time(self):
        self.assertAlmostEqual(window_trial.energy_of(SAMPLES), 200 + 10 * 300)
        self.assertIsNone(window_trial.energy_of([[0, None, None, {}], [1, None, None, {}]]))

    def test_the_missing_mixes_are_written(self):
        self.assertEqual(window_trial.missing_of([WINDOW], {("a", "b"): None}), [])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "missing.csv")
            window_trial.write_missing(path, window_trial.missing_of([WINDOW], {}))
            with open(path, encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
        self.assertEqual([row["trainings"] for row in rows], ["a + b"])
        self.assertEqual(rows[0]["simulated_s"], "10")


class Mixes(unittest.TestCase):
    """The table of mixes that --compare is given."""

    HEAD = "gpu,driver,sharing,trainings,speeds,smact,power_w,crashed"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "mixes.csv")

    def read(self, *lines):
        with open(self.path, "w", encoding="ascii") as file:
            print(*lines, sep="\n", file=file)
        return window_trial.read_mixes(self.path, [WINDOW])

    def test_mixes_under_mps_in_any_order(self):
        found = self.read(
            self.HEAD,
            "H200,580,mps,b + a,0.5 + 0.7,0.9,300,",
            "H200,580,streams,a + b,0.2 + 0.3,0.9,300,",
            "H200,580,mps,a + a,,,,1",
        )
        self.assertEqual(found, {("a", "b"): ([0.5, 0.7], 300.0)})

    def test_another_gpu_or_driver_and_what_is_no_table_are_refused(self):
        here = "windows on H200 with driver 580"
        for lines, complaint in (
            ([self.HEAD, "H100,580,mps,a + b,0.5 + 0.7,0.9,300,"], f":2: measured on H100.*{here}"),
            ([self.HEAD, "H200,575,mps,a + b,0.5 + 0.7,0.9,300,"], f":2:.*driver 575.*{here}"),
            ([self.HEAD, "H200,580,mps,a + b,0.5 + x,0.9,300,"], ":2: could not convert"),
            (["a,b", "1,2"], "no column gpu"),
        ):
            with self.assertRaisesRegex(SystemExit, complaint):
                self.read(*lines)
        with self.assertRaisesRegex(SystemExit, "nosuch: No such file"):
            window_trial.read_mixes(self.path + "nosuch", [WINDOW])
        with self.assertRaisesRegex(SystemExit, "nosuch.*No such file"):
            window_trial.read([self.path + "nosuch"])


if __name__ == "__main__":
    unittest.main()
