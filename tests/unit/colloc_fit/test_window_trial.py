# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/window_trial.py: which tasks a window has, and how it is composed from mixes."""
import contextlib
import csv
import io
import json
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path[:0] = [os.path.join(ROOT, "tests", "gpu"), os.path.join(ROOT, "python")]

import mixes_trial  # noqa: E402
import window_page  # noqa: E402
import window_trial  # noqa: E402

TASKS = [
    {"name": "a", "at_s": 0, "alone_s": 100},
    {"name": "b", "at_s": 10, "alone_s": 50},
    {"name": "c", "at_s": 200, "alone_s": 50},
]
# Both run from second 1 on, and make 10 and 5 steps a second.
SAMPLES = [[0, 100, 0.0, {"0:a": None}, "mps"]] + [
    [second, 300, 0.9, {"0:a": 10 * second, "1:b": 5 * second}, "mps"] for second in range(1, 12)
]
PLACE = {"measured_on": ["H200", "580"], "loaders": 4}
CUT = {"way": "magm", "seconds": 11, "samples": SAMPLES, **PLACE}
WINDOW = {
    **CUT,
    "energy_j": 3200,
    "tasks": [
        {"name": "0:a", "steps": 110, "attempt_count": 1, "oom_count": 0},
        {"name": "1:b", "steps": 55, "attempt_count": 1, "oom_count": 0},
    ],
}
MPS = ("mps", ("a", "b"))


def alone(name, rate, trace_s=(), start_s=10):
    line = {"alone": name, "steps_per_s": rate, "power_w": 300, "start_s": start_s}
    return {**line, "start_j": 1000, "trace_s": list(trace_s), **PLACE}


class Windows(unittest.TestCase):
    def test_what_waits_when_the_window_begins(self):
        left = window_trial.waiting_at(TASKS, 120)
        self.assertEqual([(task["name"], task["at_s"]) for task in left], [("b", 0), ("c", 80)])
        self.assertEqual(len(window_trial.waiting_at(TASKS, 0)), 3)
        self.assertEqual(window_trial.waiting_at(TASKS, 1000), [])

    def test_progress_by_the_rates_alone(self):
        rates = {"a": alone("a", 20), "b": alone("b", 10)}
        self.assertAlmostEqual(window_trial.progress_of(WINDOW, rates), 11)
        self.assertIsNone(window_trial.progress_of(WINDOW, {"a": rates["a"]}))
        rates["b"]["steps_per_s"] = None  # it was cut off before its first steps
        self.assertIsNone(window_trial.progress_of(WINDOW, rates))

    def test_figures_alone_begin_with_the_first_steps(self):
        rows = [(0, 100, 0), (10, 100, 0), (20, 300, 5), (30, 300, 25), (40, 300, 45)]
        found = window_trial.alone_figures(rows, 2)
        self.assertEqual((found["steps_per_s"], found["power_w"], found["start_s"]), (2, 300, 20))
        self.assertEqual(found["start_j"], 1000 + 2000)
        self.assertIsNone(window_trial.alone_figures(rows, 4)["steps_per_s"])
        self.assertIsNone(window_trial.alone_figures(rows, None)["steps_per_s"])

    def test_exclusive_is_composed_by_the_time_in_the_trace(self):
        found = window_trial.exclusive_of({"a": alone("a", 20, [90, 90])})
        self.assertAlmostEqual(found[0], 0.9)
        self.assertAlmostEqual(found[1], (2 * 1000 + 180 * 300) / 180)
        self.assertIsNone(window_trial.exclusive_of({"a": alone("a", None, [90])}))
        self.assertIsNone(window_trial.exclusive_of({}))

    def test_a_window_is_composed_from_its_mixes(self):
        progress, joules, known = window_trial.compose(WINDOW, {MPS: ([0.5, 0.5], 300.0)})
        self.assertAlmostEqual(progress, 10)
        self.assertAlmostEqual(joules, 100 + 10 * 300)
        self.assertEqual(known, 1)
        self.assertEqual(window_trial.compose(WINDOW, {})[2], 0)
        of_streams = {("streams", ("a", "b")): ([0.5, 0.5], 300.0)}
        self.assertEqual(window_trial.compose(WINDOW, of_streams)[2], 0)

    def test_time_is_divided_among_mixes_and_trainings_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "missing.csv")
            with open(path, "w", encoding="utf-8") as file:
                file.write("sharing,trainings\nmps,a + b + c\nmps,a + b\n")
            self.assertAlmostEqual(mixes_trial.window_of(path, 200), 200 / 5 - 9)
            self.assertEqual(mixes_trial.window_of(path, 3), 5)
            self.assertEqual(mixes_trial.window_of(path, 9000), 60)

    def test_speeds_in_parts_begin_when_all_make_steps(self):
        rows = [[0, 100, 0.0, {"0:a": 0}, "mps"], [10, 100, 0.5, {"0:a": 999, "1:b": None}, "mps"]]
        for second in range(11, 120):
            steps = {"0:a": 1000 + 10 * second, "1:b": 5 * second}
            rows.append([second, 300, 0.9, steps, "mps"])
        rates = {"a": alone("a", 20), "b": alone("b", 10)}
        parts = window_page.parts_of({**WINDOW, "samples": rows}, rates)
        self.assertEqual(parts, [{"a": 0.5, "b": 0.5}] * 2)

    def test_energy_is_power_by_time(self):
        self.assertAlmostEqual(window_trial.energy_of(SAMPLES), 200 + 10 * 300)
        self.assertIsNone(
            window_trial.energy_of([[0, None, None, {}, ""], [1, None, None, {}, ""]])
        )

    def test_the_missing_mixes_are_written(self):
        self.assertEqual(window_trial.missing_of([WINDOW], {MPS: None}), [])
        both = {**WINDOW, "samples": [[*row[:4], "mps+streams"] for row in SAMPLES]}
        self.assertEqual(window_trial.missing_of([both], {}), [])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "missing.csv")
            window_trial.write_missing(path, window_trial.missing_of([CUT], {}))
            with open(path, encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
        self.assertEqual([(row["sharing"], row["trainings"]) for row in rows], [("mps", "a + b")])
        self.assertEqual(rows[0]["simulated_s"], "10")


class Files(unittest.TestCase):
    """What a run leaves, also one that was cut off."""

    BEGIN = {"window": "magm", "seconds": 11, **PLACE}
    END = {"ended": "magm", "energy_j": 3200, "tasks": WINDOW["tasks"]}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "windows.jsonl")

    def write(self, *lines, rest=""):
        with open(self.path, "w", encoding="ascii") as file:
            for line in lines:
                print(json.dumps(line), file=file)
            file.write(rest)

    def table(self, **more):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            window_trial.compare([self.path], more.get("mixes"), more.get("missing"))
        return out.getvalue()

    def samples(self):
        return [{"sample": row} for row in SAMPLES]

    def test_whole_windows_and_one_that_was_cut_off(self):
        rates = [alone("a", 20, [990]), alone("b", 10, [990])]
        cut_off = [self.BEGIN, *self.samples()[:6]]
        self.write(*rates, self.BEGIN, *self.samples(), self.END, *cut_off, rest='{"sample": [7')
        lines = self.table().splitlines()
        self.assertEqual(lines[2], "| exclusive, composed of each alone | 0.99 |  | 301 |"
                         + "  |" * 5)  # fmt: skip
        self.assertEqual(lines[3], "| magm | 1.00 | 3 | 291 | 2 | 0 |  |  |  |")
        self.assertEqual(lines[4], "| magm, cut off after 5 of 11 s |" + "  |" * 8)

    def test_the_missing_mixes_and_how_long_measuring_takes(self):
        self.write(self.BEGIN, *self.samples(), self.END)
        mixes = os.path.join(os.path.dirname(self.path), "mixes.csv")
        with open(mixes, "w", encoding="ascii") as file:
            print(Mixes.HEAD, file=file)
        said = self.table(mixes=mixes)
        self.assertIn("lacks 1 mixes, which takes about 27 s to measure; the longest, 10 s, is a + "
                      "b (mps)", said)  # fmt: skip

    def test_lines_of_two_places_are_refused(self):
        for other in ({"loaders": 0}, {"measured_on": ["H200", "575"]}):
            self.write({**alone("a", 20), **other}, self.BEGIN, *self.samples(), self.END)
            with self.assertRaisesRegex(SystemExit, "measured on .* and .*: compare those of one"):
                self.table()

    def test_what_is_no_window(self):
        self.write({"sample": SAMPLES[0]})
        with self.assertRaisesRegex(SystemExit, "samples of no window"):
            self.table()
        self.write(self.BEGIN, rest="{\n{}\n")
        with self.assertRaisesRegex(SystemExit, "windows.jsonl: "):
            self.table()


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

    def test_mixes_in_any_order(self):
        found = self.read(
            self.HEAD,
            "H200,580,mps,b + a,0.5 + 0.7,0.9,300,",
            "H200,580,streams,a + b,0.2 + 0.3,0.9,300,",
            "H200,580,mps,a + a,,,,1",
        )
        streams = ("streams", ("a", "b"))
        self.assertEqual(found, {MPS: ([0.5, 0.7], 300.0), streams: ([0.2, 0.3], 300.0)})

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
