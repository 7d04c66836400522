# SPDX-License-Identifier: Apache-2.0
"""colloc report: sums over a period that can be checked by hand."""

import csv
import io
import json
import os
import shutil
import subprocess
import unittest

from cli_case import CliCase
from fake_collocd import make_task

HOUR = 3600
DAY = "2026-11-01"
BEGIN = 1793491200  # its midnight, UTC
GPUS = [
    {"index": "0", "uuid": "GPU-a", "parent_uuid": None},
    {"index": "1", "uuid": "GPU-b", "parent_uuid": None},
]


def attempt(gpus, since_h, until_h, **members):
    return {
        "gpus": [{"GPU-a": "0", "GPU-b": "1"}.get(gpu, "9") for gpu in gpus],
        "gpu_uuids": list(gpus),
        "started_at": BEGIN + since_h * HOUR,
        "ended_at": None if until_h is None else BEGIN + until_h * HOUR,
        "reason": "None",
        "interruptions": [],
        **members,
    }


def ended(task_id, user, *attempts, submitted_h=0, **members):
    first, last = attempts[0], attempts[-1]
    run_s = sum(each["ended_at"] - each["started_at"] for each in attempts)
    return make_task(
        task_id,
        user=user,
        state="COMPLETED",
        submitted_at=BEGIN + submitted_h * HOUR,
        started_at=first["started_at"],
        ended_at=last["ended_at"],
        exec_s=run_s,
        jct_s=last["ended_at"] - BEGIN - submitted_h * HOUR,
        attempts=list(attempts),
        **{"smact_mean": None, "energy_j": None, **members},
    )


class Report(CliCase):
    def setUp(self):
        super().setUp()
        self.daemon.gpus = GPUS
        self.daemon.share = {"users": [{"user": "ada", "project": "vision"}]}
        self.daemon.settings = {"co2_g_per_kwh": 500}

    def report(self, *words):
        words = ("--from", DAY, "--to", "2026-11-02", *words)
        return json.loads(self.colloc("report", "--json", *words))

    def rows(self, *words, by="user"):
        return {row[by]: row for row in self.report(f"--by={by}", *words)["rows"]}

    def check(self, row, **hours):
        for name, value in hours.items():
            self.assertAlmostEqual(row[name], value, places=6, msg=name)

    def test_one_task(self):
        self.daemon.tasks = [
            ended(1, "ada", attempt(["GPU-a"], 2, 6), smact_mean=0.5, energy_j=3.6e6)
        ]
        answer = self.report()
        self.assertEqual((answer["gpus"], answer["by"], answer["co2_g_per_kwh"]), (2, "user", 500))
        self.check(answer, gpu_hours_free=44)
        row = answer["rows"][0]
        self.check(row, gpu_hours_held=4, gpu_hours_used=2, gpu_hours_idle=0, energy_kwh=1)
        self.check(row, co2_kg=0.5, gpu_hours_saved=0, gpu_hours_repeated=0, tasks=1, attempts=1)
        self.assertEqual(
            {**row, "user": None},
            {**answer["total"], "user": None, **{}}
            | {"finish_time_fairness": row["finish_time_fairness"]},
        )
        self.check(self.rows("--co2-per-kwh=100")["ada"], co2_kg=0.1)

    def test_the_table_explains_itself(self):
        self.daemon.tasks = [
            ended(1, "ada", attempt(["GPU-a"], 0, 4)),  # of unknown activity and energy
            ended(2, "ada", attempt(["GPU-a"], 0, 4), smact_mean=0.0, energy_j=0.0),
            ended(3, "bob", attempt(["GPU-a"], 0, 4), smact_mean=0.5, energy_j=3.6e6),
        ]
        text = self.colloc("report", "--from", DAY, "--to", "2026-11-02")
        ada = next(line for line in text.splitlines() if line.startswith("ada"))
        # A lower bound of 0 says nothing.
        self.assertEqual(ada.split()[:8], ["ada", "2", "8.0", "h", "-", ">4.0", "h", "0.0"])
        self.assertRegex(text, r"all +3 12\.0 h >2\.0 h >4\.0 h ")
        self.assertIn("HELD counts a GPU once for each task on it", text)
        self.assertIn("FAIRNESS: mean completion time", text)
        self.daemon.tasks = []
        self.assertNotIn("FAIRNESS", self.colloc("report"))

    def shared(self, task, user, since_h, until_h, speed, **ledger):
        """A task beside others for all of its time, at a speed that is known within 10 %."""
        held_s = (until_h - since_h) * HOUR
        ledger = {
            "held_s": held_s,
            "shared_s": held_s,
            "measured_s": held_s,
            "unknown_s": 0,
            "alone_s": speed * held_s,
            "alone_low_s": 0.9 * speed * held_s,
            "alone_high_s": 1.1 * speed * held_s,
            **ledger,
        }
        return ended(task, user, attempt(["GPU-a"], since_h, until_h), ledger=ledger)

    def test_the_ledger(self):
        self.daemon.gpus = [
            {**GPUS[0], "name": "NVIDIA H200", "mem_total_mib": 143771},
            {**GPUS[1], "name": "Unheard-of", "mem_total_mib": 1000},
        ]
        self.daemon.tasks = [
            self.shared(1, "ada", 0, 4, 0.7),
            self.shared(2, "bob", 0, 4, 0.8, measured_s=0),
            ended(3, "bob", attempt(["GPU-b"], 0, 2)),  # by a daemon that did not keep it
        ]
        answer = self.report("--saved")
        self.check(answer["total"], gpu_hours_held=10, gpu_hours_alone=6, gpu_hours_occupied=4)
        self.check(answer["total"], gpu_hours_saved=2, gpu_hours_saved_low=1.4)
        self.check(answer["total"], gpu_hours_saved_high=2.6, gpu_hours_speed_measured=4)
        self.check(answer["total"], gpu_hours_speed_unknown=2, gpu_hours_energy_unknown=2)
        # Alone the first ends after 2.8 hours and the second after 6, not both after 4.
        self.check(answer["total"], hours_sooner=-1.2 + 2)
        # An H200 draws 45 W more awake than idle, as data/gpu-kinds.txt has it.
        self.check(answer["total"], energy_saved_kwh=2 * (120 - 75) / 1000)
        rows = self.rows("--saved")
        self.check(rows["ada"], gpu_hours_saved=2.8 - 2, hours_sooner=-1.2)
        self.check(rows["bob"], gpu_hours_saved=3.2 - 2, hours_sooner=2)
        by_gpu = self.rows("--saved", by="gpu")
        self.check(by_gpu["0"], gpu_hours_saved=2)
        self.assertIsNone(by_gpu["1"]["gpu_hours_saved"])
        self.assertEqual(
            [row["task"] for row in self.report("--saved", "--by=task")["rows"]], list("123")
        )
        text = self.colloc("report", "--saved", "--from", DAY, "--to", "2026-11-02")
        self.assertRegex(
            text, r"ada +1 +4\.0 h +2\.8 h +0\.8 h +0\.5 and 1\.1 h +29 % +-1\.2 h .*100 % +0 %"
        )
        self.assertIn("ALONE: GPU hours that the same work takes", text)

    def test_what_a_task_says_of_itself(self):
        """A record of a task that counted a billion steps: no part is more than its time."""
        figures = ("measured_s", "alone_s", "alone_low_s", "alone_high_s")
        for lie in (1e15, -1e15):
            self.daemon.tasks = [
                self.shared(1, "ada", 0, 4, 0.7, **dict.fromkeys(figures, lie)),
                self.shared(2, "bob", 0, 4, 0.8),
            ]
            total = self.report("--saved")["total"]
            self.check(total, gpu_hours_alone=(4 if lie > 0 else 0) + 3.2)
            self.assertLess(abs(total["gpu_hours_saved"]), 8)
            self.assertLess(abs(total["gpu_hours_saved_high"]), 8)
            self.assertLess(abs(total["hours_sooner"]), 8)

    def test_a_young_installation(self):
        """What is less than 0.2 h is in a smaller unit, and what nothing can say is not 0."""
        self.daemon.tasks = [
            ended(
                1,
                "ada",
                attempt(["GPU-a"], 0, 40 / 3600),
                ledger={
                    **dict.fromkeys(("held_s", "alone_s", "alone_low_s", "alone_high_s"), 40),
                    **dict.fromkeys(("shared_s", "measured_s", "unknown_s"), 0),
                },
            )
        ]
        words = ("report", "--from", DAY, "--to", "2026-11-02")
        text = self.colloc(*words, "--saved")
        self.assertRegex(text, r"ada +1 +40 s +40 s +- +- +- +- +- +- +0 %")
        self.assertIn("nothing is known yet of what sharing saves", text)
        self.assertRegex(self.colloc(*words), r"ada +1 +40 s +- +- +0\.0 h +0\.0 h ")
        self.daemon.tasks = [self.shared(task, "ada", 0, 100 / 3600, 0.7) for task in (1, 2)]
        text = self.colloc(*words, "--saved")
        self.assertRegex(text, r"ada +2 +3\.3 min +2\.3 min +40 s +26 and 54 s +29 % ")
        self.assertNotIn("nothing is known yet", text)
        self.daemon.tasks = [
            self.shared(task, "ada", 0, 100 / 3600, 0.7, unknown_s=99.9, alone_s=0.1)
            for task in (1, 2)
        ]
        text = self.colloc(*words, "--saved")
        self.assertRegex(text, r"ada +2 +3\.3 min +- +- +- +- +- +- +.* 100 %")
        self.daemon.tasks = [self.shared(task, "ada", 0, 100 / 3600, 0.7) for task in (1, 2)]
        for task in self.daemon.tasks:
            task.update(ended_at=None, energy_j=22500)
            task["attempts"][0]["ended_at"] = None
        text = self.colloc("report", "--saved", "--from", DAY, "--to", f"{DAY} 00:02")
        self.assertRegex(text, r"ada +2 .* 29 % +- ")  # none has ended: no sum of SOONER
        text = self.colloc("report", "--from", DAY, "--to", f"{DAY} 00:02")
        self.assertRegex(text, r": 2 GPUs, free for 2\.0 of 4\.0 GPU min\n")
        self.assertRegex(text, r" 12\.5 Wh +[0-9.]+ g ")

    def test_a_lower_bound_has_the_unit_of_held(self):
        """Of 6 min of one task the activity is known: not ">0.1 h" beside "10.0 min"."""
        self.daemon.tasks = [
            ended(1, "ada", attempt(["GPU-a"], 0, 0.1), smact_mean=0.5),
            ended(2, "ada", attempt(["GPU-b"], 0, 4 / 60), smact_mean=None),
        ]
        text = self.colloc("report", "--from", DAY, "--to", "2026-11-02")
        self.assertRegex(text, r"ada +2 +10\.0 min +>3\.0 min ")
        self.assertIn("`colloc report --saved` does", text)

    def test_the_first_line_is_wrapped_between_words(self):
        self.daemon.tasks = []
        text = self.screen(60, "report", "--from", DAY, "--to", "2026-11-02")
        first = text.replace("\r", "").split("\n\n")[0].splitlines()
        self.assertEqual(len(first), 2, text)
        self.assertLessEqual(max(map(len, first)), 60)

    def test_a_ledger_of_one_period(self):
        """Half of the time of two tasks is in the period: half of what they saved."""
        self.daemon.tasks = [self.shared(1, "ada", -4, 4, 0.9), self.shared(2, "ada", -4, 4, 0.9)]
        self.check(self.report("--saved")["total"], gpu_hours_saved=4 * 0.8, gpu_hours_alone=7.2)

    def test_bad_words_of_the_ledger(self):
        self.daemon.tasks = [self.shared(1, "ada", 0, 4, 0.7, held_s=0)]
        self.assertIsNone(self.report("--saved")["total"]["gpu_hours_saved"])
        self.assertIn("--saved", self.complaint("report", "--saved", "--estimates", code=2))

    def test_the_period_cuts(self):
        self.daemon.tasks = [
            ended(1, "ada", attempt(["GPU-a"], -6, 2), smact_mean=1, energy_j=8 * 3.6e6),
            ended(2, "ada", attempt(["GPU-b"], 23, 25), smact_mean=1, energy_j=3.6e6),
            ended(3, "bob", attempt(["GPU-b"], -3, -1), smact_mean=1, energy_j=3.6e6),
        ]
        rows = self.rows()
        self.assertEqual(list(rows), ["ada"])
        self.check(rows["ada"], gpu_hours_held=3, energy_kwh=2.5, tasks=2)

    def test_it_begins_with_the_first_task(self):
        self.daemon.tasks = [ended(1, "ada", attempt(["GPU-a"], 20, 22), submitted_h=20)]
        for submitted_h, free_h, from_h in ((20, 6, 20), (-5, 46, 0), (30, 0, 24)):
            self.daemon.first_submitted_at = BEGIN + submitted_h * HOUR
            answer = Report.report(self)
            self.check(answer, gpu_hours_free=free_h)
            self.assertEqual(answer["from"], BEGIN + from_h * HOUR)

    def test_what_sharing_saved(self):
        self.daemon.tasks = [
            ended(1, "ada", attempt(["GPU-a"], 0, 4)),
            ended(2, "bob", attempt(["GPU-a"], 2, 6)),
        ]
        answer = self.report()
        self.check(answer, gpu_hours_free=42)
        self.check(answer["total"], gpu_hours_held=8, gpu_hours_saved=2)
        self.check(self.rows()["bob"], gpu_hours_held=4, gpu_hours_saved=1)
        gpus = self.rows(by="gpu")
        self.assertEqual(list(gpus), ["0"])
        self.check(gpus["0"], gpu_hours_held=8, gpu_hours_saved=2)
        self.assertIsNone(gpus["0"]["tasks"])

    def test_three_on_one_gpu_and_one_on_two(self):
        self.daemon.tasks = [
            ended(1, "ada", attempt(["GPU-a", "GPU-b"], 0, 3)),
            ended(2, "bob", attempt(["GPU-a"], 0, 3)),
            ended(3, "bob", attempt(["GPU-a"], 0, 3)),
        ]
        self.check(self.report(), gpu_hours_free=42)
        rows = self.rows()
        self.check(rows["ada"], gpu_hours_held=6, gpu_hours_saved=2)
        self.check(rows["bob"], gpu_hours_held=6, gpu_hours_saved=4)

    def test_attempts_that_were_run_again(self):
        self.daemon.tasks = [
            ended(
                1,
                "ada",
                attempt(["GPU-a"], 0, 1, reason="OutOfMemory"),
                attempt(["GPU-b"], 2, 5),
            )
        ]
        row = self.rows()["ada"]
        self.check(row, gpu_hours_held=4, gpu_hours_repeated=1, tasks=1, attempts=2)

    def test_suspended_tasks_hold_no_gpu(self):
        off = {"kind": "suspended", "since": BEGIN + HOUR, "until": BEGIN + 4 * HOUR}
        paused = {"kind": "paused", "since": BEGIN + 5 * HOUR, "until": BEGIN + 6 * HOUR}
        off.update(gpus=["1"], gpu_uuids=["GPU-b"])
        paused.update(gpus=None, gpu_uuids=None)
        self.daemon.tasks = [ended(1, "ada", attempt(["GPU-a"], 0, 7, interruptions=[off, paused]))]
        gpus = self.rows(by="gpu")
        self.check(gpus["0"], gpu_hours_held=1)
        self.check(gpus["1"], gpu_hours_held=3)

    def test_running_tasks_count_until_now(self):
        self.daemon.tasks = [
            make_task(1, user="ada", state="RUNNING", attempts=[attempt(["GPU-a"], 20, None)])
        ]
        row = self.rows()["ada"]
        self.check(row, gpu_hours_held=4, gpu_hours_activity_unknown=4)
        self.assertIsNone(row["finish_time_fairness"])

    def test_unknown_is_not_zero(self):
        self.daemon.tasks = [
            ended(1, "ada", attempt(["GPU-a"], 0, 1)),
            ended(2, "bob", attempt(["GPU-a"], 0, 1)),
            ended(3, "bob", attempt(["GPU-a"], 0, 1), smact_mean=0.001, energy_j=0),
        ]
        rows = self.rows()
        self.assertIsNone(rows["ada"]["gpu_hours_used"])
        self.assertIsNone(rows["ada"]["energy_kwh"])
        self.check(rows["bob"], gpu_hours_idle=1, energy_kwh=0, gpu_hours_energy_unknown=1)
        text = self.colloc("report", "--from", DAY, "--to", "2026-11-02")
        self.assertRegex(text, r"ada +1 +1.0 h +- +- +0.0 h +0.7 h +- +- ")
        self.assertRegex(text, r"bob +2 +2.0 h +- +>1.0 h ")

    def test_by_project(self):
        self.daemon.tasks = [
            ended(1, "ada", attempt(["GPU-a"], 0, 1)),
            ended(2, "eve", attempt(["GPU-a"], 1, 3)),
        ]
        rows = self.rows(by="project")
        self.assertEqual(list(rows), ["default", "vision"])
        self.check(rows["default"], gpu_hours_held=2)

    def test_fairness(self):
        """Alone on one GPU of two, bob's tasks would end after 1 and 2 h, not 3 and 4."""
        self.daemon.tasks = [
            ended(1, "ada", attempt(["GPU-a"], 0, 3)),
            ended(2, "bob", attempt(["GPU-b"], 2, 3)),
            ended(3, "bob", attempt(["GPU-b"], 3, 4)),
        ]
        rows = self.rows()
        self.check(rows["ada"], finish_time_fairness=1)
        self.check(rows["bob"], finish_time_fairness=7 / 3)

    def test_mig(self):
        self.daemon.gpus = [
            {"index": "0", "uuid": "GPU-a", "parent_uuid": None},
            {"index": "0:0", "uuid": "MIG-1", "parent_uuid": "GPU-a"},
            {"index": "0:1", "uuid": "MIG-2", "parent_uuid": "GPU-a"},
        ]
        self.assertEqual(self.report()["gpus"], 2)

    def test_text_and_csv(self):
        self.assertIn("No task held a GPU.", self.colloc("report"))
        self.daemon.tasks = [ended(1, "a,b", attempt(["GPU-a"], 0, 1), smact_mean=0.5, energy_j=9)]
        words = ("report", "--from", DAY, "--to", "2026-11-02")
        text = self.colloc(*words)
        self.assertIn("2 GPUs, free for 47.0 of 48.0 GPU hours", text)
        self.assertRegex(text, r"\nall +1 +1.0 h +0.5 h ")
        rows = list(csv.DictReader(io.StringIO(self.colloc(*words, "--csv"))))
        self.assertEqual(rows[0]["user"], "a,b")
        self.assertEqual(float(rows[0]["gpu_hours_held"]), 1)

    def test_what_is_wrong(self):
        for words, says in (
            (("--from=later",), "--from=later: invalid time"),
            (("--from=2026-11-02", "--to=2026-11-01"), "the period is empty"),
            (("--month", "--from=2026-11-02"), "give --month, or --from and --to"),
            (("--by=team",), "--by"),
            (("--csv", "--json"), "give --json or --csv"),
            (("--co2-per-kwh=-1",), "--co2-per-kwh"),
        ):
            self.assertIn(says, self.complaint("report", *words, code=2))

    def test_bad_records_do_no_harm(self):
        self.daemon.tasks = [
            make_task(1, state="COMPLETED", attempts=7),
            make_task(2, state="COMPLETED", attempts=[{}, 5, {"gpu_uuids": [7, None]}]),
            ended(3, "ada", attempt(["GPU-gone"], 3, 1)),
            ended(4, "ada", attempt(["GPU-gone"], 1, 2)),
        ]
        rows = self.rows(by="gpu")
        self.assertEqual(list(rows), ["GPU-gone"])
        self.check(rows["GPU-gone"], gpu_hours_held=1)


# A report of the web page for what stands on standard input, each row with the names of `--json`.
PAGE = """
import { readFileSync } from "node:fs";
import { fairnessOf, makeReport } from "%s";
const given = JSON.parse(readFileSync(0, "utf8"));
const { gpuCount, freeHours, rows, total } = makeReport(given);
const known = (value, unknown, row) => (unknown > 0 && unknown >= row.held ? null : value);
const ledger = ({ name, held, ledger: sums }) => {
  const is_known = sums.alone > 0;
  return {
    name, gpu_hours_held: held, gpu_hours_shared: sums.shared,
    gpu_hours_speed_measured: sums.measured, gpu_hours_speed_unknown: sums.unknown,
    gpu_hours_alone: is_known ? sums.alone : null,
    gpu_hours_occupied: is_known ? sums.occupied : null,
    gpu_hours_saved: is_known ? sums.alone - sums.occupied : null,
    gpu_hours_saved_low: is_known ? sums.low - sums.occupied : null,
    gpu_hours_saved_high: is_known ? sums.high - sums.occupied : null,
  };
};
const figures = given.saved ? ledger : (row) => ({
  name: row.name, tasks: row.name !== null && given.by === "gpu" ? null : row.tasks,
  gpu_hours_held: row.held, gpu_hours_repeated: row.repeated, gpu_hours_saved: row.saved,
  gpu_hours_used: known(row.used, row.unknownActivity, row),
  gpu_hours_idle: known(row.idle, row.unknownActivity, row),
  energy_kwh: known(row.kwh, row.unknownEnergy, row), finish_time_fairness: fairnessOf(row),
});
console.log(JSON.stringify({
  gpus: gpuCount, gpu_hours_free: freeHours, total: figures(total), rows: rows.map(figures),
}));
"""
REPORT_JS = os.path.join(os.path.dirname(__file__), "..", "..", "..", "web", "src", "report.js")


@unittest.skipUnless(shutil.which("node"), "no node here")
class InThePage(Report):
    """The web page computes the same from the same answers (web/src/report.js)."""

    def report(self, *words):
        expected = super().report(*words)
        if expected["by"] == "task":  # the page has no such rows
            return expected
        given = {"tasks": self.daemon.tasks, "gpus": self.daemon.gpus, "by": expected["by"]}
        given.update(
            saved="--saved" in words,
            users=self.daemon.share["users"],
            **{"from": BEGIN, "until": BEGIN + 24 * HOUR},
        )
        done = subprocess.run(
            ["node", "--input-type=module", "-e", PAGE % os.path.abspath(REPORT_JS)],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        for name in ("gpus", "gpu_hours_free"):
            self.assertAlmostEqual(found[name], expected[name], places=6, msg=name)
        rows = [expected["total"], *expected["rows"]]
        self.assertEqual(len(found["rows"]) + 1, len(rows))
        for page, row in zip([found["total"], *found["rows"]], rows):
            self.compare(page, {**row, "name": row.get(expected["by"])})
        return expected

    def compare(self, page, row):
        for name, value in page.items():
            if isinstance(value, float):
                self.assertAlmostEqual(value, row[name], places=6, msg=name)
            else:
                self.assertEqual(value, row[name], name)

    test_bad_records_do_no_harm = None  # the page reads the daemon's answers only


class Estimates(CliCase):
    """Estimates against peaks: errors that can be computed by hand."""

    def setUp(self):
        super().setUp()
        self.daemon.gpus = GPUS

    def task(self, task_id, estimator, estimate, peak, **members):
        return ended(
            task_id,
            "ada",
            attempt(["GPU-a"], 2, 6),
            estimator=estimator,
            estimate_mib=estimate,
            mem_peak_mib=peak,
            preallocated=False,
            **members,
        )

    def estimates(self, *words):
        words = ("--from", DAY, "--to", "2026-11-02", "--estimates", *words)
        return self.colloc("report", *words)

    def test_errors(self):
        self.daemon.tasks = [
            self.task(1, "graph", 1010, 1000),
            self.task(2, "graph", 950, 1000),  # it took more
            self.task(3, "graph", 1200, 1000),
            self.task(4, "declared", 4096, 2048, gpus_requested=2),  # 1024 on each GPU
        ]
        answer = json.loads(self.estimates("--json"))
        declared, graph = answer["rows"]
        self.assertEqual((declared["estimator"], graph["estimator"]), ("declared", "graph"))
        self.assertEqual((graph["tasks"], graph["exceeded"]), (3, 1))
        self.assertAlmostEqual(graph["median_error"], 0.05)
        self.assertAlmostEqual(graph["p95_error"], 0.2)
        self.assertAlmostEqual(graph["estimate_mib"], 3160)
        self.assertAlmostEqual(declared["median_error"], 3)
        self.assertAlmostEqual(answer["total"]["median_error"], 0.05)
        self.assertIn("4 tasks: median error 5.0 %, 1 took more than estimated", self.estimates())
        rows = list(csv.DictReader(io.StringIO(self.estimates("--csv"))))
        self.assertEqual([row["estimator"] for row in rows], ["declared", "graph"])
        self.assertEqual(float(rows[1]["peak_mib"]), 3000)

    def test_tasks_that_say_nothing_do_not_count(self):
        self.daemon.tasks = [
            self.task(1, "graph", 1000, None),
            self.task(2, None, None, 1000),
            self.task(3, "none", None, 1000),
            {**self.task(4, "graph", 1000, 500), "state": "CANCELLED"},
            {**self.task(5, "graph", 1000, 60000), "preallocated": True},
            {**self.task(6, "graph", 1000, 500), "ended_at": BEGIN + 25 * HOUR},
        ]
        self.assertIn("No task completed", self.estimates())
        total = json.loads(self.estimates("--json"))["total"]
        self.assertEqual((total["tasks"], total["median_error"]), (0, None))

    def test_not_beside_by(self):
        done = self.run_colloc("report", "--estimates", "--by=user")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--estimates or --by", done.stderr)


if __name__ == "__main__":
    unittest.main()
