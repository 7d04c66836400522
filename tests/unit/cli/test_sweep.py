# SPDX-License-Identifier: Apache-2.0
"""colloc sweep: its rows are what colloc simulate says, in a fixed order, and all of them are whole
whatever happens.
"""

import csv
import io
import itertools
import json
import os
import signal
import unittest

from cli_case import CliCase

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
TRACE = os.path.join(ROOT, "data", "traces", "philly-60.txt")
RESULTS = [
    "total_s",
    "avg_wait_s",
    "avg_exec_s",
    "avg_jct_s",
    "oom",
    "completed",
    "energy_mj",
    "mean_smact",
    "lower_bound_s",
]
SMALL = ("sweep", "--trace", TRACE, "--policy=magm,lug", "--smact-max=0.7:0.9:0.1", "--seed=0:2")
LARGE = ("sweep", "--trace", TRACE, "--policy=magm", "--seed=1:3000")


class SweepCase(CliCase):
    def sweep(self, *words):
        return self.colloc("sweep", "--trace", TRACE, *words)

    @staticmethod
    def rows(text):
        return list(csv.DictReader(io.StringIO(text)))

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8", newline="") as file:
            return file.read()


class Rows(SweepCase):
    def test_each_is_what_simulate_says(self):
        axes = {
            "policy": ["magm", "predictive"],
            "estimator": ["none", "declared"],
            "known": ["activity", "all"],
            "sharing": ["streams", "mps"],
            "backfill": ["yes", "no"],
            "smact-max": ["0.7", "0.85"],
            "min-free-gib": ["3"],
            "margin-gib": ["0", "2.5"],
            "resample": ["0", "3"],
            "seed": ["7"],
        }
        rows = self.rows(
            self.sweep(*(f"--{name}={','.join(values)}" for name, values in axes.items()))
        )
        self.assertEqual(len(rows), 2**8)
        for row, values in list(zip(rows, itertools.product(*axes.values())))[::15]:
            self.assertEqual([row[name.replace("-", "_")] for name in axes], list(values))
            alone = json.loads(
                self.colloc(
                    "simulate",
                    "--trace",
                    TRACE,
                    "--json",
                    *(f"--{n}={v}" for n, v in zip(axes, values)),
                )
            )
            self.assertEqual(
                [float(row[name]) for name in RESULTS], [alone[name] for name in RESULTS], values
            )
            self.assertEqual((row["failed"], row["left_out"], row["fault"]), ("0", "0", ""))

    def test_ranges(self):
        rows = self.rows(self.sweep("--smact-max=0.1:0.5:0.1,1", "--seed=3"))
        self.assertEqual(
            [row["smact_max"] for row in rows], ["0.1", "0.2", "0.3", "0.4", "0.5", "1"]
        )

    def test_with_and_without_backfill(self):
        rows = self.rows(self.sweep("--known=all", "--backfill=yes,off"))
        self.assertEqual([row["backfill"] for row in rows], ["yes", "no"])
        self.assertLess(float(rows[0]["avg_wait_s"]), float(rows[1]["avg_wait_s"]))
        self.assertEqual(rows[:1], self.rows(self.sweep("--known=all")))

    def test_the_number_of_threads_changes_nothing(self):
        one, four = (self.colloc(*SMALL, f"--jobs={jobs}") for jobs in (1, 4))
        self.assertEqual(one, four)
        self.assertEqual(len(one.splitlines()), 1 + 2 * 3 * 3)

    def test_oracles_have_one_row_for_all_estimators(self):
        rows = self.rows(self.sweep("--policy=owf,magm", "--estimator=none,declared"))
        self.assertEqual(
            [(row["policy"], row["estimator"]) for row in rows],
            [("owf", "declared"), ("magm", "none"), ("magm", "declared")],
        )
        self.assertEqual(*([row[name] for name in RESULTS] for row in (rows[0], rows[2])))

    def test_names_with_commas_are_quoted(self):
        rows = self.rows(self.sweep("--gpus=2xA100-40GB,H100"))
        self.assertEqual((rows[0]["gpus"], rows[0]["trace"]), ("2xA100-40GB,H100", TRACE))

    def test_what_is_left_out_is_said_once(self):
        done = self.run_colloc("sweep", "--trace", TRACE, "--gpus=A100-40GB", "--seed=0:3")
        self.assertEqual(done.returncode, 0)
        self.assertNotEqual(self.rows(done.stdout)[3]["left_out"], "0")
        self.assertEqual(len(done.stderr.splitlines()), int(self.rows(done.stdout)[3]["left_out"]))


class Interrupted(SweepCase):
    def test_resume(self):
        whole = self.colloc(*SMALL)
        for size in (0, 10, len(whole.splitlines()[0]) + 1, len(whole) // 2, len(whole)):
            with open(self.path("half.csv"), "w", encoding="utf-8", newline="") as file:
                file.write(whole[:size])
            self.assertEqual(self.colloc(*SMALL, "--output=half.csv", "--resume"), "")
            self.assertEqual(self.read("half.csv"), whole)

    def test_resume_without_a_file_begins(self):
        self.colloc(*SMALL, "-o", "new.csv", "--resume")
        self.assertEqual(self.read("new.csv"), self.colloc(*SMALL))

    def test_rows_that_are_there_are_not_overwritten(self):
        self.write("rows.csv", "kept\n")
        self.assertEqual(
            self.complaint(*SMALL, "-o", "rows.csv", code=2),
            "rows.csv exists already: continue it with --resume or overwrite it with --force",
        )
        self.assertEqual(self.read("rows.csv"), "kept\n")
        self.colloc(*SMALL, "-o", "rows.csv", "--force")
        self.assertEqual(self.read("rows.csv"), self.colloc(*SMALL))
        self.write("empty.csv", "")
        self.colloc(*SMALL, "-o", "empty.csv")
        self.colloc(*SMALL, "-o", "/dev/null")
        self.assertIn(
            "give one of them",
            self.complaint(*SMALL, "-o", "rows.csv", "--force", "--resume", code=2),
        )

    def test_resume_of_another_sweep_is_refused(self):
        self.colloc(*SMALL, "-o", "other.csv")
        before = self.read("other.csv")
        words = [word.replace("0.7:0.9", "0.6:0.9") for word in SMALL]
        self.assertIn(
            "other.csv:2: the row belongs to another sweep: this one has ",
            self.complaint(*words, "-o", "other.csv", "--resume", code=2),
        )
        words = [word.replace("0:2", "0:1") for word in SMALL]
        self.assertIn(
            "other.csv:4: the row belongs to another sweep",
            self.complaint(*words, "-o", "other.csv", "--resume", code=2),
        )
        self.assertEqual(self.read("other.csv"), before)
        self.write("text.csv", "a,b\n")
        self.assertEqual(
            self.complaint(*SMALL, "-o", "text.csv", "--resume", code=2),
            "text.csv:1: not the columns of a sweep: give the output file of a sweep",
        )

    def test_an_interrupt_leaves_whole_rows(self):
        process = self.start_colloc(*LARGE)
        lines = [process.stdout.readline() for _ in range(5)]
        process.send_signal(signal.SIGINT)
        rest, said = process.stdout.read(), process.stderr.read()
        self.assertEqual(process.wait(60), -signal.SIGINT)
        process.stdout.close()
        process.stderr.close()
        rows = self.rows("".join(lines) + rest)
        self.assertRegex(
            said, rf"colloc: interrupted: the rows of {len(rows)} of 3000 runs are written\n"
        )
        self.assertTrue(rest == "" or rest.endswith("\n"))
        self.assertLess(len(rows), 3000)
        self.assertEqual([int(row["seed"]) for row in rows], list(range(1, len(rows) + 1)))
        self.assertTrue(all(row["lower_bound_s"] and row["fault"] == "" for row in rows))

    def test_progress_is_for_a_terminal(self):
        self.assertEqual(self.run_colloc(*SMALL, "-o", "rows.csv").stderr, "")
        shown = self.screen(80, *SMALL, "-o", "rows.csv", "--force")
        self.assertIn("of 18 runs, ", shown)
        self.assertTrue(shown.endswith("\r\x1b[K"), shown)


class BadInput(SweepCase):
    def test_options(self):
        for words, complaint in [
            (
                ["--policy=magn"],
                "--policy=magn: no such policy; did you mean magm; give one of exclusive, rr, ",
            ),
            (["--policy=magm,,lug"], "--policy=magm,,lug: empty value in the list"),
            (
                ["--smact-max=7"],
                '--smact-max: invalid value "7": give numbers from 0 to 1 or a range FROM:TO:STEP',
            ),
            (["--smact-max=nan"], '--smact-max: invalid value "nan": give numbers'),
            (["--smact-max=0.9:0.5:0.1"], '--smact-max: the range "0.9:0.5:0.1" is empty'),
            (["--smact-max=0.5:0.9:0"], '--smact-max: the range "0.5:0.9:0" is empty'),
            (["--smact-max=1:2:3:4"], '--smact-max: invalid value "1:2:3:4": give numbers'),
            (
                ["--min-free-gib=-1"],
                '--min-free-gib: invalid value "-1": give numbers from 0 to 1e+06',
            ),
            (
                ["--margin-gib=9999999"],
                '--margin-gib: invalid value "9999999": give numbers from 0 to 1e+06',
            ),
            (["--seed=0.5"], "--seed: 0.5 is not a whole number"),
            (["--seed=1:1000000"], "--seed=1:1000000: more than 100000 values: give fewer"),
            (
                ["--seed=1:100000", "--margin-gib=1:11"],
                "sweep: 1100000 combinations: at most 1000000 are possible; give fewer values",
            ),
            (["--resample=1.5"], "--resample: 1.5 is not a whole number"),
            (
                ["--known=nothing"],
                '--known: invalid value "nothing": give none, activity, time or all',
            ),
            (
                ["--trace=-"],
                "sweep: --trace=- is not supported: every run reads the trace, so give a file",
            ),
            (["--sharing=mig"], '--sharing: invalid value "mig": give streams, mps or auto'),
            (["--backfill=yes,maybe"], "--backfill=maybe: not yes or no"),
            (["--estimator=psychic"], 'estimator "psychic": the tasks have no column'),
            (["--gpus=0xA100-40GB"], '"0" GPUs: there must be 1 to 100000'),
            (["--jobs=0"], "--jobs=0: must be from 1 to 1024"),
            (["--resume"], "--resume needs --output=FILE"),
            (["--output=/nowhere/x.csv"], "/nowhere/x.csv: No such file or directory"),
            (["--json"], "sweep: --json is not supported: the rows of a sweep are CSV"),
            (
                [
                    "--trace="
                    + self.write("bad.csv", "submit_s,task\n5,resnet50-b32\n4,resnet50-b32\n")
                ],
                "bad.csv:3: out of order",
            ),
        ]:
            with self.subTest(words):
                self.assertIn(complaint, self.complaint("sweep", "--trace", TRACE, *words, code=2))
        self.assertIn("no trace given: add --trace=FILE", self.complaint("sweep", code=2))

    def test_a_full_disk(self):
        self.assertIn(
            "/dev/full: write error: some rows are missing",
            self.complaint("sweep", "--trace", TRACE, "-o", "/dev/full", code=2),
        )


if __name__ == "__main__":
    unittest.main()
