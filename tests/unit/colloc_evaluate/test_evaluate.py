# SPDX-License-Identifier: Apache-2.0
"""scripts/evaluate from outside: its page says what colloc simulate says, and needs nothing but
itself.
"""

import csv
import html.parser
import json
import lzma
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
COLLOC = os.path.join(
    os.environ.get("COLLOC_BUILD", os.path.join(ROOT, "build")), "src", "cli", "colloc"
)
NONE = "–"


class Reader(html.parser.HTMLParser):
    """The tables of a page: caption -> rows of cells; those without a caption by their number."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.rows, self.caption, self.inside, self.outside = {}, [], "", "", []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.inside = tag if tag in ("caption", "td", "th") else self.inside
        if tag == "table":
            self.rows, self.caption = [], ""
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        self.outside += [
            value
            for name, value in attrs
            if name in ("src", "href", "xlink:href") and not value.startswith("#")
        ]

    def handle_endtag(self, tag):
        if tag == self.inside:
            self.inside = ""
        if tag == "table":
            self.tables[self.caption or len(self.tables)] = self.rows

    def handle_data(self, data):
        if self.inside == "caption":
            self.caption += data
        elif self.inside:
            self.rows[-1][-1] += data


def run(*words, **environment):
    env = {name: value for name, value in os.environ.items() if name != "COLLOC_EVAL_DATA"}
    return subprocess.run(
        words, capture_output=True, text=True, check=False, env={**env, **environment}
    )


MACHINE = os.path.join(ROOT, "data", "published", "rad-rm.txt")
STOPS = "--recovery=stop-queue"


def simulate(trace, policy, *words):
    done = run(
        COLLOC,
        "simulate",
        f"--trace={ROOT}/data/traces/philly-{trace}.txt",
        f"--policy={policy}",
        *([] if policy == "predictive" else ["--backfill=no"]),
        "--json",
        "--gpus=4xA100-40GB-DGX-Station",
        *([] if any("--gpu-kinds" in word for word in words) else [f"--gpu-kinds={MACHINE}"]),
        *([] if any("--hold-off" in word for word in words) else ["--hold-off=170s"]),
        *words,
    )
    return json.loads(done.stdout)


# What a row of a table is as a command.
NO_CONDITION = ("--estimator=none", STOPS, "--smact-max=1", "--min-free-gib=0")
ORACLES = {
    "Exclusive": (90, "exclusive"),
    "OFF on streams": (90, "off", "--sharing=streams"),
    "OFF on MPS": (90, "off"),
    "OBF on streams": (90, "obf", "--sharing=streams"),
    "OBF on MPS": (90, "obf"),
    "OWF on streams": (90, "owf", "--sharing=streams"),
    "OWF on MPS": (90, "owf"),
    "OLUG on streams": (90, "olug", "--sharing=streams"),
    "OLUG on MPS": (90, "olug"),
}
TABLE_6_3 = {
    "RR (no condition)": (90, "rr", *NO_CONDITION),
    "MAGM (no condition)": (90, "magm", *NO_CONDITION),
    "MAGM (SMACT ≤ 80 %)": (90, "magm", STOPS, "--estimator=none", "--min-free-gib=0"),
    "MAGM (SMACT ≤ 80 % and GMem ≥ 2 GB)": (
        90,
        "magm",
        STOPS,
        "--estimator=none",
        "--min-free-gib=2",
    ),
    "MAGM (SMACT ≤ 80 % and GMem ≥ 5 GB)": (90, "magm", STOPS, "--estimator=none"),
    "LUG (SMACT ≤ 80 % and GMem ≥ 5 GB)": (90, "lug", STOPS, "--estimator=none"),
    "MAGM (SMACT ≤ 75 % and GMem ≥ 5 GB)": (
        90,
        "magm",
        STOPS,
        "--estimator=none",
        "--smact-max=0.75",
    ),
    "MAGM (SMACT ≤ 85 % and GMem ≥ 5 GB)": (
        90,
        "magm",
        STOPS,
        "--estimator=none",
        "--smact-max=0.85",
    ),
}
TABLE_6_6 = {
    "Exclusive": (60, "exclusive"),
    "RR on streams": (60, "rr", *NO_CONDITION, "--sharing=streams"),
    "RR on MPS": (60, "rr", *NO_CONDITION),
    "MAGM on MPS": (60, "magm", STOPS, "--estimator=none", "--min-free-gib=2"),
}


class EvaluateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.done = run(
            os.path.join(ROOT, "scripts", "evaluate"),
            "--seeds=0",
            f"--colloc={COLLOC}",
            f"--output={cls.folder.name}",
        )
        if cls.done.returncode:
            raise AssertionError(cls.done.stderr)
        with open(cls.done.stdout.strip(), encoding="utf-8") as file:
            cls.text = file.read()
        cls.page = Reader(cls.text)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def table(self, start):
        rows = next(
            rows for caption, rows in self.page.tables.items() if str(caption).startswith(start)
        )
        return rows[0], {row[0]: row[1:] for row in rows[1:]}

    def with_row(self, label):
        """The table of total times with this row."""
        return next(
            {row[0]: row[1:] for row in rows[1:]}
            for caption, rows in self.page.tables.items()
            if isinstance(caption, int) and any(row[0] == label and len(row) == 6 for row in rows)
        )

    def machine(self, more):
        """A file with the machine of the page, and more constants."""
        path = os.path.join(self.folder.name, "kinds.txt")
        with open(MACHINE, encoding="utf-8") as machine, open(path, "w", encoding="utf-8") as file:
            file.write(machine.read() + more)
        self.addCleanup(os.remove, path)
        return path

    def rerun(self):
        """A file of the tasks with the memory of the rerun, where it is known."""
        path = os.path.join(self.folder.name, "tasks.txt")
        with open(os.path.join(ROOT, "data/traces/tasks.txt"), encoding="utf-8") as file:
            head, *lines = [line.split() for line in file if line.strip() and line[0] != "#"]
        with open(path, "w", encoding="utf-8") as file:
            print(*head, file=file)
            for line in lines:
                row = dict(zip(head, line))
                if row["rerun_mib"] != "-":
                    row["memory_mib"] = row["rerun_mib"]
                print(*row.values(), file=file)
        self.addCleanup(lambda: os.path.exists(path) and os.remove(path))
        return path

    def test_published_activity_is_that_of_the_tasks(self):
        with open(os.path.join(ROOT, "data/published/activity.csv"), encoding="utf-8") as file:
            rows = list(csv.DictReader(line for line in file if line[0] != "#"))
        with open(os.path.join(ROOT, "data/traces/tasks.txt"), encoding="utf-8") as file:
            head, *lines = [line.split() for line in file if line.strip() and line[0] != "#"]
        tasks = {line[0]: dict(zip(head, line)) for line in lines}
        self.assertEqual(len(rows), 21)
        for row in rows:
            task = tasks[row["task"]]
            self.assertAlmostEqual(float(task["smact"]), float(row["smact"]), delta=0.0051)
            self.assertEqual(task["power_w"], row["power_w"])

    def test_published_power_is_that_of_the_kind(self):
        with open(os.path.join(ROOT, "data/published/power.csv"), encoding="utf-8") as file:
            rows = list(csv.DictReader(line for line in file if line[0] != "#"))
        with open(os.path.join(ROOT, "data/gpu-kinds.txt"), encoding="utf-8") as file:
            lines = [line.split() for line in file if line.startswith("power ")]
        self.assertEqual(lines, [["power", *(f"{row['smact']}:{row['power_w']}" for row in rows)]])

    def test_needs_nothing_from_elsewhere(self):
        self.assertEqual(self.page.outside, [])
        self.assertNotIn("http", self.text)

    def test_crashes(self):
        _, rows = self.table("Table 6.3")
        delayed = self.machine("constant startup_s 65\n")
        self.assertEqual(list(rows), list(TABLE_6_3))
        for label, words in TABLE_6_3.items():
            variants = (
                (),
                ("--hold-off=1s",),
                ("--hold-off=1s", "--decision-delay=30s", f"--gpu-kinds={delayed}"),
            )
            oom, *others = (float(simulate(*words, *more)["oom"]) for more in variants)
            rerun = (f"--tasks={self.rerun()}",)
            others += (float(simulate(*words, *rerun, *more)["oom"]) for more in ((), variants[-1]))
            words = [word for word in words if word != STOPS]
            others.append(float(simulate(*words)["oom"]))
            published = int(rows[label][0])
            self.assertEqual(
                rows[label][1:],
                [
                    f"{oom:.1f}",
                    f"{oom:.0f}",
                    f"{oom:.0f}",
                    f"{oom - published:.1f}",
                    *(f"{each:.1f}" for each in others),
                ],
                label,
            )

    def test_total_times(self):
        rows = self.with_row("OWF on MPS")
        self.assertEqual(list(rows), list(ORACLES))
        exclusive = simulate(90, "exclusive")["total_s"]
        for label, words in ORACLES.items():
            result = simulate(*words)
            total = f"{result['total_s'] / 60:.1f}"
            self.assertEqual(
                rows[label],
                [
                    total,
                    total,
                    total,
                    f"{100 * (1 - result['total_s'] / exclusive):.1f}",
                    f"{result['total_s'] / result['lower_bound_s']:.2f}",
                ],
                label,
            )

    def test_claims(self):
        rows = next(
            {row[0]: row[1:] for row in rows[1:]}
            for rows in self.page.tables.values()
            if "free launches" in rows[0]
        )
        kinds = self.machine("constant launch_cost 0\n")
        owf, exclusive = (90, "owf"), (90, "exclusive")
        less = [
            100 * (1 - simulate(*mine)["total_s"] / simulate(*other)["total_s"])
            for mine, other in [(owf, exclusive), ((*owf, f"--gpu-kinds={kinds}"), exclusive)]
        ]
        cells = rows["OWF on MPS, 90 tasks: total time, % less than exclusive"]
        self.assertEqual(
            cells,
            [
                "30.13",
                *[f"{less[0]:.1f}"] * 3,
                f"{less[0] - 30.13:.1f}",
                f"{less[1]:.1f}",
                *cells[6:],
            ],
        )
        self.assertTrue(all(0 < float(cell) < 60 for cell in cells[6:]), cells)

    def test_energy(self):
        _, rows = self.table("Table 6.6")
        for label, words in TABLE_6_6.items():
            energy = simulate(*words)["energy_mj"]
            self.assertEqual(rows[label][1:4], [f"{energy:.2f}"] * 3, label)
        self.assertEqual(rows["Exclusive"][0], "33.20")

    def test_suspending(self):
        head, rows = self.table("60 tasks: running tasks give way")
        known = ("--estimator=declared", "--sharing=streams", "--known=activity")
        alone = simulate(60, "las", *known, "--preempt")
        self.assertGreater(alone["suspensions"], 0)
        shown = rows["least attained service, streams"]
        self.assertEqual(shown[0], f"{alone['total_s'] / alone['lower_bound_s']:.3f}")
        self.assertEqual(shown[4], str(alone["suspensions"]))
        self.assertEqual(shown[6], f"{alone['max_stretch']:.2f}")
        before, after = (
            simulate(60, "predictive", "--estimator=declared", "--known=all", *more)["avg_jct_s"]
            for more in ((), ("--preempt",))
        )
        gain = rows["predictive, MPS, preemption"][2]
        self.assertEqual(gain, f"{100 * (1 - after / before):.1f}")
        self.assertEqual(rows["MAGM, streams"][4:7], [NONE] * 3)
        turns = simulate(60, "magm", *known, "--slots=10m")["suspensions"]
        self.assertEqual(rows["MAGM, streams, slots of 10 min"][4], str(turns))

    def test_what_cannot_be_run_is_a_dash(self):
        _, rows = self.table("Table 6.4")
        self.assertEqual(len(rows), 6)
        for cells in rows.values():
            self.assertEqual(set(cells[1:]), {NONE})

    def test_every_figure_is_there_with_its_numbers(self):
        names = {os.path.splitext(name)[0] for name in os.listdir(self.folder.name)} - {"index"}
        self.assertLessEqual({f"figure-6-{number}" for number in range(5, 16)}, names)
        for name in names:
            self.assertTrue(os.path.getsize(os.path.join(self.folder.name, f"{name}.svg")))
            with open(
                os.path.join(self.folder.name, f"{name}.csv"), encoding="utf-8", newline=""
            ) as file:
                rows = list(csv.reader(file))
            self.assertGreater(len(rows), 1, name)
            self.assertTrue(all(len(row) == len(rows[0]) for row in rows), name)
        with open(
            os.path.join(self.folder.name, "figure-6-5.csv"), encoding="utf-8", newline=""
        ) as file:
            totals = {row["setting"]: float(row["total"]) for row in csv.DictReader(file)}
        self.assertAlmostEqual(totals["OWF on MPS"], simulate(90, "owf")["total_s"] / 60, places=2)

    def test_no_row_of_the_published_is_lost(self):
        with open(
            os.path.join(ROOT, "data", "published", "chapter6.csv"), encoding="utf-8", newline=""
        ) as file:
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
        for row in rows:
            if row["source"].startswith("table"):
                _, ours = self.table(row["source"].capitalize())
                self.assertAlmostEqual(float(ours[row["row"]][0]), float(row["value"]), places=2)

    def test_a_program_that_is_not_there(self):
        done = run(os.path.join(ROOT, "scripts", "evaluate"), "--colloc=/nowhere/colloc")
        self.assertEqual(done.returncode, 1)
        self.assertIn("evaluate: ", done.stderr)
        self.assertIn("/nowhere/colloc", done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_stored_page_is_that_of_the_stored_runs(self):
        measured = os.path.join(ROOT, "docs", "measured")
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "chapter6.md")
            done = run(
                os.path.join(ROOT, "scripts", "evaluate"),
                f"--from={measured}/chapter6/runs.jsonl.xz",
                f"--output={folder}/html",
                f"--markdown={page}",
            )
            self.assertEqual(done.stderr, "")
            made = {"chapter6.md", *(f"chapter6/{n}" for n in os.listdir(page[: -len(".md")]))}
            self.assertLessEqual(
                {f"chapter6/{n}" for n in os.listdir(f"{measured}/chapter6")} - made,
                {"chapter6/runs.jsonl.xz"},
            )
            for name in made:
                if not name.endswith(".svg"):  # these depend on matplotlib's version
                    with open(f"{folder}/{name}", "rb") as new, open(
                        f"{measured}/{name}", "rb"
                    ) as stored:
                        self.assertEqual(new.read(), stored.read(), name)

    def test_saved_runs_that_are_none(self):
        with tempfile.NamedTemporaryFile(suffix=".xz") as file:
            file.write(b"not compressed")
            file.flush()
            done = run(os.path.join(ROOT, "scripts", "evaluate"), f"--from={file.name}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no runs of scripts/evaluate --raw", done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_runs_that_were_not_saved(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "runs.xz")
            with lzma.open(path, "wt", encoding="utf-8") as file:
                file.write('{"seeds": [1], "estimators": [], "story": ""}\n')
            done = run(
                os.path.join(ROOT, "scripts", "evaluate"), f"--from={path}", f"--output={folder}"
            )
        self.assertEqual(done.returncode, 1)
        self.assertIn("not among the saved runs", done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    @unittest.skipUnless(os.environ.get("COLLOC_EVAL_DATA"), "needs COLLOC_EVAL_DATA")
    def test_with_the_estimators(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run(
                os.path.join(ROOT, "scripts", "evaluate"),
                "--seeds=1",
                f"--colloc={COLLOC}",
                f"--output={folder}",
                COLLOC_EVAL_DATA=os.environ["COLLOC_EVAL_DATA"],
            )
            self.assertEqual(done.stderr, "")
            with open(done.stdout.strip(), encoding="utf-8") as file:
                rows = Reader(file.read()).tables
        for caption, table in rows.items():
            if str(caption).startswith("Table 6"):
                self.assertNotIn(NONE, [cell for row in table for cell in row], caption)


if __name__ == "__main__":
    unittest.main()
