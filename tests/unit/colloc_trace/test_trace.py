#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python/colloc_trace: dates, lists in JSON, the choice of tasks, synthetic jobs.

tests/data/trace-recorded has the outputs of the C program that colloc_trace replaced, byte for
byte, for the logs in tests/data/trace.
"""

import datetime
import io
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.abspath(__file__)) + "/../../.."
sys.path.insert(0, os.path.join(ROOT, "python"))

# pylint: disable=wrong-import-position
from colloc_trace import synth  # noqa: E402
from colloc_trace.formats.philly import OBJECT_MAX, ObjectStream  # noqa: E402
from colloc_trace.log import BreaksOff  # noqa: E402
from colloc_trace.mapping import Mapping, Task  # noqa: E402
from colloc_trace.parse import SECOND_US, format_date, llround, parse_date  # noqa: E402
from colloc_trace.statistics import Statistics  # noqa: E402

LOGS = os.path.join(ROOT, "tests/data/trace")
RECORDED = os.path.join(ROOT, "tests/data/trace-recorded")
FORMATS = {
    "alibaba": "alibaba.csv",
    "helios": "helios.csv",
    "swf": "log.swf",
    "philly": "philly.json",
    "sacct": "sacct.txt",
}


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Recorded(unittest.TestCase):
    """The same bytes as the C program wrote."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def trace(self, *words):
        return subprocess.run(
            [os.environ["COLLOC"], "trace", *words], cwd=LOGS, capture_output=True, check=False
        )

    def compare(self, name, data):
        with self.subTest(name):
            self.assertEqual(data, read(os.path.join(RECORDED, name)))

    def test_logs(self):
        trace, tasks = self.folder + "/T.csv", self.folder + "/tasks.csv"
        for form, log in FORMATS.items():
            words = (f"--from={form}", "--keep-partial", log)
            done = self.trace("import", "-o", trace, *words)
            self.compare(f"{form}.import.txt", done.stderr)
            self.compare(f"{form}.trace.csv", read(trace))
            options = ("--seed=5", "--arrival-scale=0.5", "-o", "/dev/null", "--tasks-out", tasks)
            self.trace("import", *options, *words)
            self.compare(f"{form}.tasks.csv", read(tasks))
            self.compare(f"{form}.info.txt", self.trace("info", *words).stdout)
            self.compare(f"{form}.info.json", self.trace("info", "--json", *words).stdout)

    def test_modules_in_the_folder_of_the_log_are_not_run(self):
        for name in ("csv.py", "random.py", "json.py", "argparse.py"):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write("raise SystemExit(99)\n")
        words = ["trace", "info", "--from=swf", os.path.join(os.path.abspath(LOGS), "log.swf")]
        done = subprocess.run([os.environ["COLLOC"], *words], cwd=self.folder, check=False)
        self.assertEqual(done.returncode, 0)

    def test_synthetic_jobs(self):
        trace, tasks = self.folder + "/T.csv", self.folder + "/tasks.csv"
        for like in ("helios", "philly"):
            options = ("--jobs=60", "--days=2", "--gpus=4", "--seed=9")
            done = self.trace(
                "synth", f"--like={like}", *options, "-o", trace, "--tasks-out", tasks
            )
            self.compare(f"synth-{like}.txt", done.stderr)
            self.compare(f"synth-{like}.trace.csv", read(trace))
            self.compare(f"synth-{like}.tasks.csv", read(tasks))


class Dates(unittest.TestCase):
    def test_dates(self):
        for text, seconds in (
            ("1970-01-01", 0),
            ("1970-01-01 00:00:01", 1),
            ("2000-02-29T12:00:00", 951825600),
            ("2017-10-07 01:11:39", 1507338699),
            ("2017-10-07T01:11", 1507338660),
            ("2100-03-01 00:00:00", 4107542400),
            ("2023-05-17 11:00:58+00:00", 1684321258),
            ("2023-05-17 13:00:58+02:00", 1684321258),
            ("2023-05-17T06:30:58.25-0430", 1684321258),
            ("2023-05-17T11:00:58Z", 1684321258),
            ("2023-05-17T11:00Z", 1684321200),
        ):
            self.assertEqual(parse_date(text), seconds * SECOND_US, text)
            self.assertEqual(parse_date(text), seconds * SECOND_US, text)  # remembered

    def test_no_dates(self):
        for text in (
            "", "None", "2017", "2017-13-01", "2017-00-01", "2017-02-29", "2100-02-29",
            "1969-12-31", "2200-01-01", "2017-10-07 24:00:00", "2017-10-07 01:60:00",
            "2017-10-07 01:11:39 PDT", "2017-10-07 01", "2017/10/07", "2017-10-07Z",
            "2017-10-07 01:11:39+15", "2017-10-07 01:11:39+0", "2017-10-07 01:11:39+01:00x",
            "1970-01-01 00:00:00+01:00", "2017-10-7", "-017-10-07", "2017-10-07x01:11:39",
            "2017-10-07 01-11:39", "2017-10-07 \u0661\u0661:11:39",
        ):  # fmt: skip
            self.assertIsNone(parse_date(text), text)

    def test_there_and_back(self):
        end = int(datetime.datetime(2199, 12, 31, tzinfo=datetime.timezone.utc).timestamp())
        for s in range(0, end, 86400 * 70 + 12345):
            self.assertEqual(parse_date(format_date(s * SECOND_US)), s * SECOND_US)

    def test_halves_are_rounded_away_from_zero(self):
        values = [(0.5, 1), (1.5, 2), (2.5, 3), (-0.5, -1), (0.49999999999999994, 0), (7.0, 7)]
        for value, rounded in values:
            self.assertEqual(llround(value), rounded)


class Lists(unittest.TestCase):
    def objects(self, text):
        stream = ObjectStream(io.BytesIO(text.encode()), "log")
        return [(value, stream.begins) for value in stream.objects()]

    def test_whole_lists(self):
        for text, n in (
            ("[]", 0),
            (" [ ] \n", 0),
            ("\ufeff[{}]", 1),
            ('[{"a":[1,{"b":2}]}\n,\n{"c":"}]\\"{["}]\n', 2),
            ("[{},{},{}]", 3),
        ):
            self.assertEqual(len(self.objects(text)), n, text)
        self.assertEqual(self.objects("[\n{\n},\n\n{}]")[-1][1], 5)

    def test_an_object_across_pieces(self):
        long = '{"a":"' + "x" * (3 << 20) + '"}'
        self.assertEqual(
            [begins for _, begins in self.objects(f"[{{}},\n{long},\n{{}}]")], [1, 2, 3]
        )

    def test_broken_lists(self):
        for text, message in (
            ("{}", 'log:1: the list of jobs must begin with "["'),
            (
                '[{},\n{"a":\n1',
                "log:3: the log breaks off within job 2, which begins in line 2",
            ),
            ('[{"a":"un', "log:1: the log breaks off within job 1, which begins in line 1"),
            ("[{},\n", "log:2: the log breaks off: the list has no end"),
            ("[{}", "log:1: the log breaks off: the list has no end"),
            ("[{}\n{}]", 'log:2: a comma or the list\'s "]" is missing behind a job'),
            ("[7]", 'log:1: a job must begin with "{"'),
            ("[{}]\nmore", "log:2: there is something behind the list of jobs"),
            ('[{},\n{"a"\n;}]', "log:3: no JSON: Expecting ':' delimiter"),
            ('[{"a":NaN}]', "log:1: no JSON: NaN is no number of JSON"),
        ):
            with self.assertRaises(BreaksOff, msg=text) as caught:
                self.objects(text)
            self.assertEqual(str(caught.exception), message)

    def test_no_bound(self):
        with self.assertRaisesRegex(BreaksOff, "log:2: one job of more than 16 MiB, from line 2"):
            self.objects('[\n{"a":"' + "x" * (4 * OBJECT_MAX))
        with self.assertRaises(BreaksOff):
            self.objects('[{"a":' + "[" * 100000)


class Tasks(unittest.TestCase):
    def setUp(self):
        of = (0.0,) * 5
        lengths = [("none", 1, 0), ("short", 1, 100), ("long", 1, 10000), ("twin", 1, 10100)]
        lengths += [("pair", 2, 500), ("eight", 8, 500)]
        self.tasks = [Task(name, gpus, solo_s, 0, of) for name, gpus, solo_s in lengths]

    def nearest(self, seed, gpus, length_s):
        return Mapping(self.tasks, seed).nearest(gpus, int(length_s * SECOND_US)).name

    def test_nearest(self):
        for gpus, length_s, name in (
            (1, 1, "short"),  # by ratio: nothing is near to no time
            (1, 0.0015, "none"),
            (1, 900, "short"),
            (2, 1e6, "pair"),
            (3, 500, "pair"),
            (4, 500, "pair"),  # as near as eight: the fewer
            (5, 500, "eight"),
            (100000, 500, "eight"),
        ):
            self.assertEqual(self.nearest(0, gpus, length_s), name)

    def test_ties_are_left_to_the_seed(self):
        names = [self.nearest(seed, 1, 12000) for seed in range(200)]
        self.assertEqual(set(names), {"long", "twin"})
        self.assertTrue(60 <= names.count("twin") <= 140)

    def test_any(self):
        mapping = Mapping(self.tasks, 7)
        names = [mapping.any(1).name for _ in range(400)]
        for name in ("none", "short", "long", "twin"):
            self.assertTrue(50 <= names.count(name) <= 150)
        self.assertEqual(mapping.any(16).name, "eight")


class Synthetic(unittest.TestCase):
    def check(self, like, gpus_max, shares, mean_s):
        """Each within what chance does to 20,000 jobs (three standard deviations)."""
        profile = synth.PROFILES[like]
        jobs = synth.make_jobs(profile, 20000, 75, gpus_max, 1)
        statistics = Statistics(jobs)
        found = {size.gpus: size.jobs / statistics.jobs for size in statistics.sizes}
        for gpus, share in shares.items():
            self.assertAlmostEqual(found[gpus], share, delta=0.011)
        if mean_s:
            self.assertAlmostEqual(statistics.under_ten_minutes, 0.5, delta=0.02)
            self.assertAlmostEqual(statistics.mean_length_s / mean_s, 1, delta=0.2)
        return jobs

    def test_published_figures(self):
        jobs = self.check("helios", 2490, {1: 0.525, 8: 0.226, 16: 0.103}, 6652)
        hours = [us // (3600 * SECOND_US) % 24 for us in jobs.submit_us]
        day = sum(14 <= hour < 18 for hour in hours) / sum(2 <= hour < 6 for hour in hours)
        self.assertAlmostEqual(day, 2.8, delta=0.4)  # 1 + 0.478 to 1 - 0.478
        self.check("philly", 0, {1: 0.70, 2: 0.10, 4: 0.15, 8: 0.05}, 28329)

    def test_what_fits(self):
        self.check("helios", 4, {1: 0.525 / 0.671}, 0)
        self.assertAlmostEqual(synth.share_up_to(synth.PROFILES["helios"], 4), 0.671)


if __name__ == "__main__":
    unittest.main()
