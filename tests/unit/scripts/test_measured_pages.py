# SPDX-License-Identifier: Apache-2.0
"""Tables of measured pages are what their command prints of the raw results."""

import json
import lzma
import os
import re
import statistics
import subprocess
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "gpu"))
import carrier_ends_page  # noqa: E402

START = (
    "start-newcomer.jsonl.xz",
    "start.jsonl",
    "start-two.jsonl",
    "start-again.jsonl",
    "start-array-small.jsonl",
    "start-array-middle.jsonl",
    "start-array-again.jsonl",
    "start-array-loaded.jsonl",
    "start-array-long.jsonl",
    "start-array-long-again.jsonl",
    "start-array-turns.jsonl.xz",
    "start-array-uneven.jsonl.xz",
    "start-array-pairs.jsonl.xz",
)
MEASURED = os.path.join(ROOT, "docs", "measured")


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows(text):
    """The cells of each row of a table, without the lines of dashes, which Prettier widens."""
    found = [cells(line) for line in text.splitlines() if line.startswith("|")]
    return [row for row in found if not set("".join(row)) <= set("-: ")]


def prose(text):
    """Its words, without tables: Prettier breaks lines elsewhere."""
    return " ".join(line for line in text.splitlines() if not line.startswith("|")).split()


class Pages(unittest.TestCase):
    def made_by(self, program, *words):
        return subprocess.run(
            [sys.executable, os.path.join(ROOT, *program), *words],
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        ).stdout

    def test_start(self):
        made = ""
        for name in START:
            path = os.path.join(MEASURED, name)
            made += self.made_by(("tests", "gpu", "start_trial.py"), "--page", path)
        with open(os.path.join(MEASURED, "start.md"), encoding="utf-8") as file:
            page = rows(file.read())
        self.assertGreater(len(page), 4)
        self.assertEqual(page, rows(made))

    def entry_of(self, page, begin, end):
        with open(os.path.join(ROOT, page), encoding="utf-8") as file:
            return " ".join(re.search(f"{begin}.*?{end}", file.read(), re.M | re.S)[0].split())

    def test_figures_of_a_newcomer_in_other_pages(self):
        """The means of each way, and of how many runs; and the pairs of an array."""
        totals = {}
        with lzma.open(os.path.join(MEASURED, "start-newcomer.jsonl.xz"), "rt") as lines:
            for run in map(json.loads, lines):
                totals.setdefault(run["way"], []).append(run["total_s"])
        ways = [totals[way] for way in ("unset", "by-hand", "one-by-one")]
        means = [f"{statistics.fmean(way):.1f}" for way in ways]
        entry = self.entry_of("README.md", "^- \\*\\*Nothing to set", "^- ")
        self.assertEqual(re.findall(r"(\d+\.\d) s", entry), means)
        self.assertIn("mean of {}, {} and {} runs".format(*map(len, ways)), entry)
        entry = self.entry_of("docs/collocation.md", "On an H200 it took", "start.md")
        self.assertEqual(re.findall(r"(\d+\.\d) s", entry), [means[0], means[2]])
        path = os.path.join(MEASURED, "start-array-pairs.jsonl.xz")
        made = self.made_by(("tests", "gpu", "start_trial.py"), "--page", path)
        pairs = self.entry_of("docs/arrays.md", "How many at a time", "start.md")
        self.assertIn(re.search(r"\d\.\d+ ± \d\.\d+", pairs)[0], made)

    def test_progress_at_true_speed_in_readme(self):
        with open(os.path.join(MEASURED, "windows.md"), encoding="utf-8") as file:
            made = re.search(r"Sharing made (\S+) to (\S+) times the progress", file.read())
        entry = self.entry_of("README.md", "At true speed", "measured")
        said = re.search(r"\*\*(\S+) times\*\*", entry)[1]
        self.assertEqual({f"{float(times):.1f}" for times in made.groups()}, {said})

    def assert_has(self, page, made):
        """A page with other tables too."""
        self.assertGreater(len(made), 2)
        with open(os.path.join(MEASURED, page), encoding="utf-8") as file:
            written = rows(file.read())
        self.assertEqual([row for row in made if row not in written], [])

    def test_promise(self):
        for name in ("again", "probe", "probe-again", "ledger"):
            path = os.path.join(MEASURED, f"promise-{name}.jsonl")
            made = self.made_by(("tests", "gpu", "promise_trial.py"), "--page", path)
            self.assert_has("promise.md", rows(made))

    def test_steps(self):
        replaced = []
        runs = ("", "-again", "-third", "-fourth", "-fifth", "-sixth", "-seventh", "-eighth")
        for run in runs:
            path = os.path.join(MEASURED, f"steps{run}.jsonl.xz")
            made = self.made_by(("tests", "gpu", "step_rate_trial.py"), "--page", path)
            self.assert_has("steps.md", [row for row in rows(made) if len(row) == 9])
            if run not in runs[:3]:  # no marks were replaced in the others
                continue
            line = next(
                line for line in made.splitlines() if line.startswith("jax, shared: other marks")
            )
            replaced.append(re.findall(r"-?[0-9.]+ s|-?[0-9]+ of [0-9]+", line))
        with open(os.path.join(MEASURED, "steps.md"), encoding="utf-8") as file:
            page = [row[1:] for row in rows(file.read()) if len(row) == 4]
        self.assertEqual(page[1:], replaced)

    def test_asking_without_privileges_gets_the_same_answers(self):
        estimates = []
        for run in ("", "-again", "-third"):  # as root; as root; as cudnn-user
            path = os.path.join(MEASURED, "kernels", f"asking{run}.jsonl")
            with open(path, encoding="utf-8") as file:
                rows = [row for row in map(json.loads, file) if row["what"] == "ask"]
            estimates.append({(row["name"], row["batch"]): row["mib"] for row in rows})
        as_root = {**estimates[0], **estimates[1]}
        self.assertEqual(len(estimates[2]), 14)
        self.assertEqual({key: as_root[key] for key in estimates[2]}, estimates[2])

    def test_tries_again(self):
        def taken(name):
            with open(os.path.join(MEASURED, "timm", name), encoding="utf-8") as file:
                rows = [json.loads(line) for line in file]
            return {(r["name"], r["batch"], r["benchmark"]): r["mib"] for r in rows}

        first, again = taken("tries.jsonl"), taken("tries-again.jsonl")
        self.assertEqual(set(first), set(again))
        self.assertEqual(sum(key[2] for key in first), 17)
        for key, mib in first.items():
            self.assertAlmostEqual(again[key], mib, delta=0.005 * mib if key[2] else 0, msg=key)

    def test_closed_and_containers(self):
        for name, program in (("closed", "closed_page.py"), ("containers", "container_page.py")):
            path = os.path.join(MEASURED, f"{name}.jsonl")
            made = rows(self.made_by(("tests", "gpu", program), path))
            with open(os.path.join(MEASURED, f"{name}.md"), encoding="utf-8") as file:
                page = rows(file.read())
            self.assertGreater(len(page), 8)
            self.assertEqual(page, made)

    def test_memory_waits(self):
        paths = [os.path.join(MEASURED, f"memory-waits-carrier-{gpu}.json.xz") for gpu in range(10)]
        made = rows(self.made_by(("scripts", "study-trace"), "--table", *paths))
        with open(os.path.join(MEASURED, "memory-waits.md"), encoding="utf-8") as file:
            page = [row for row in rows(file.read()) if len(row) == len(made[0])]
        self.assertGreater(len(made), 2)
        self.assertEqual([row for row in page if row in made], made)

    def test_commands_of_pages_can_be_run(self):
        """Programs of the source tree that a page calls by their path alone."""
        called = {}
        for name in filter(lambda name: name.endswith(".md"), os.listdir(MEASURED)):
            with open(os.path.join(MEASURED, name), encoding="utf-8") as page:
                for command in re.findall(
                    r"^    ((?:tests/gpu|scripts)/[\w./-]+)", page.read(), re.M
                ):
                    called[command] = name
        self.assertGreater(len(called), 20)
        for command, name in called.items():
            self.assertTrue(os.access(os.path.join(ROOT, command), os.X_OK), f"{name}: {command}")

    def test_whole_pages(self):
        """Those that a program of tests/gpu makes of raw results: their tables and their words."""
        for name, program, *words in (
            ("ranks", "ranks_page.py", "ranks.jsonl", "145"),
            ("groups", "groups_page.py", "groups.jsonl", "324"),
            ("carrier", "carrier_page.py", "carrier.json"),
            ("carrier-near", "carrier_near_page.py", "carrier-near.jsonl"),
            (
                "carrier-pool",
                "pool_page.py",
                "carrier-pool-copies.jsonl",
                "carrier-pool-trainings.jsonl",
            ),
            ("carrier-ends", "carrier_ends_page.py", "carrier-ends.jsonl"),
            ("carrier-slots", "carrier_slots_page.py", "carrier-slots.jsonl"),
            ("carrier-more", "carrier_more_page.py", "carrier-more.jsonl"),
            ("carrier-ipc", "ipc_page.py", "carrier-ipc.jsonl"),
            ("carrier-mps", "carrier_mps_page.py", "carrier-mps.jsonl"),
            (
                "windows",
                "window_page.py",
                "windows-mixes.csv",
                "windows.jsonl",
                "windows-predictive.jsonl",
            ),
        ):
            given = [os.path.join(MEASURED, word) if "." in word else word for word in words]
            made = self.made_by(("tests", "gpu", program), *given)
            with open(os.path.join(MEASURED, f"{name}.md"), encoding="utf-8") as file:
                page = file.read()
            self.assertGreater(len(rows(page)), 4, name)
            self.assertEqual(rows(page), rows(made), name)
            self.assertEqual(prose(page), prose(made), name)


def losses(compared, control=None, equal=True, sharing="mps", task=1):
    """A training whose losses were compared with a run without colloc, and with the control."""
    control = compared if control is None else control
    row = {"result": "losses of a training", "sharing": sharing, "worker": 0, "task": task}
    row.update(equal=equal and compared > 0, compared=compared)
    return {**row, "control": {"equal": control > 0, "compared": control}}


class CarrierEnds(unittest.TestCase):
    def test_what_has_no_loss_does_not_count(self):
        rows = [losses(7), losses(5), losses(0), losses(0, control=3)]
        text = carrier_ends_page.losses_of(rows, "mps")
        self.assertIn("2 of 2 trainings", text.replace("\n", " "))
        self.assertIn("2 further ones", text.replace("\n", " "))

    def test_the_last_of_a_collocd_had_no_time(self):
        rows = [losses(7), losses(0, task=2), losses(0, task=3), {"result": "took"}]
        self.assertEqual(carrier_ends_page.spares_of(rows, "mps"), 1)
        self.assertEqual(carrier_ends_page.spares_of(rows, "streams"), 0)
        rows = [losses(0), losses(7, task=2), {"result": "took"}, *rows]
        self.assertEqual(carrier_ends_page.spares_of(rows, "mps"), 1, "each run has its own")

    def test_kills_of_each_run(self):
        kill = {"result": "kill task away", "sharing": "mps", "phase_seen": "away"}
        rows = [kill, kill, {"result": "took"}, kill, {**kill, "not_tried": "no helper"}]
        rows += [{"result": "kill task away", "sharing": "mps", "error": "?"}, {"result": "took"}]
        other_way = [{**kill, "sharing": "streams"}, {"result": "took"}]
        runs = carrier_ends_page.kills_of_each_run(rows + other_way, "mps")
        made = [carrier_ends_page.kinds_of(run) for run in runs]
        self.assertEqual(made, [{"kill task away": 2}, {"kill task away": 1}])

    def test_a_training_that_differs_counts(self):
        text = carrier_ends_page.losses_of([losses(7), losses(5, equal=False)], "mps")
        self.assertIn("1 of 2 trainings", text.replace("\n", " "))

    def run_with_kills(self, *phases):
        kills = [{"result": f"kill task {phase}", "sharing": "streams"} for phase in phases]
        return [*kills, losses(7, sharing="streams"), {"result": "took"}]

    def test_what_is_open_until_a_kill_of_that_phase_was_compared(self):
        text = carrier_ends_page.predicted_kills(self.run_with_kills("copying"))
        self.assertIn("still to be compared", text.replace("\n", " "))
        text = carrier_ends_page.predicted_kills(self.run_with_kills("copying", "away"))
        self.assertNotIn("still to be compared", text.replace("\n", " "))

    def test_kills_are_counted_by_the_phase(self):
        rows = self.run_with_kills("away", "releasing", "away")
        text = carrier_ends_page.losses_of(rows, "streams").replace("\n", " ")
        self.assertIn("after 3 kills (1 releasing, 2 away)", text)

    def test_a_way_in_which_a_training_made_no_step(self):
        one, other = {"loss_marks": ["aaaabbbb", "cccc"]}, {"loss_marks": ["aaaa", ""]}
        self.assertEqual(carrier_ends_page.marks_equal(one, other), ([True], [1]))

    def test_a_way_that_has_not_ended_is_a_bound(self):
        row = {"ends_s": [9, 12, 15, None], "exec_s": [9, 3, 3, 5], "wait_s": [0, 9, 12, 15]}
        row.update(started_at=[100, 109, 112, 115], shorter_half_mean_s=None)
        row["state"] = ["COMPLETED"] * 3 + ["RUNNING"]
        self.assertEqual(carrier_ends_page.time_had(row), 20)
        self.assertEqual(carrier_ends_page.half_of_fifo(7, row), "< 0.40")


if __name__ == "__main__":
    unittest.main()
