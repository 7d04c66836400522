# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/measured against the measurements beside them: a page that was not made anew
after its measurements, or after the program whose output it prints, fails here."""

import csv
import json
import lzma
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "python"))

from colloc_evaluate import chapter6, inputs, runs, saved  # noqa: E402
from colloc_fit import study_activity, study_energy, study_transformers  # noqa: E402
from colloc_fit import trace_tables  # noqa: E402
from colloc_pipeline import results  # noqa: E402

MEASURED = os.path.join(ROOT, "docs", "measured")
BUILD = os.environ.get("COLLOC_BUILD", os.path.join(ROOT, "build"))
COLLOC = os.path.join(BUILD, "src", "cli", "colloc")


def read(*names):
    with open(os.path.join(ROOT, "docs", *names), encoding="utf-8") as file:
        return file.read()


def table_rows(text):
    """The cells of all rows of all tables of a page."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|") and not re.match(r"\|[ :|-]+\|$", line)
    ]


def list_entries(text):
    """Name -> text of the entries "- **name**: text" of all lists of a page."""
    found = re.findall(r"^- \*\*(.+?)\*\*: (.*(?:\n  .+)*)", text, re.M)
    return {name: " ".join(entry.split()) for name, entry in found}


def blocks(text):
    """Name of a block of a page -> what is between its marks."""
    return {
        name: block.strip("\n")
        for name, block in re.findall(
            r"<!-- ((?!prettier-)[\w-]+) -->\n(.*?)<!-- end -->", text, re.S
        )
    }


def read_csv(*names):
    with open(os.path.join(MEASURED, *names), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


class Blocks(unittest.TestCase):
    maxDiff = None

    def test_trace(self):
        self.assertEqual(blocks(read("measured", "trace.md")), trace_tables.tables())

    def test_activity(self):
        self.assertEqual(blocks(read("measured", "activity.md")), study_activity.tables())

    def test_memnet(self):
        self.assertEqual(blocks(read("measured", "memnet.md")), study_transformers.tables())


class Pipelines(unittest.TestCase):
    def setUp(self):
        self.rows = read_csv("pipelines", "h200", "pipelines.csv")
        self.page = read("measured", "pipelines.md")

    def together(self, mode):
        return [row for row in self.rows if row["mode"] == mode]

    @staticmethod
    def figures(rows):
        return [
            {
                "power_w": float(row["power_w"]),
                "requests": int(row["requests"]),
                "seconds": float(row["seconds"]),
            }
            for row in rows
        ]

    def test_energy_per_request(self):
        for mode in ("apart", "streams", "mps"):
            rows = self.together(mode)
            for group in [[row] for row in rows] if mode == "apart" else [rows]:
                figures = self.figures(group)
                results.add_energy(figures)
                for row, figure in zip(group, figures):
                    self.assertAlmostEqual(
                        float(row["energy_per_request_j"]), figure["energy_per_request_j"], places=4
                    )

    def test_page(self):
        cells = next(row for row in table_rows(self.page) if row[0] == "all three")
        apart = sum(f["power_w"] * f["seconds"] for f in self.figures(self.together("apart")))
        shared = [
            max(f["power_w"] * f["seconds"] for f in self.figures(self.together(mode)))
            for mode in ("streams", "mps")
        ]
        self.assertEqual(cells[2:], [f"{joule:,.0f}" for joule in (apart, *shared)])
        less = [round(100 * (1 - joule / apart)) for joule in shared]
        self.assertIn(f"{less[0]} % less than one after the other ({less[1]} % by MPS)", self.page)
        for row in self.together("apart"):
            self.assertIn(f"{float(row['energy_per_request_j']):.2f} J", self.page)

    def test_values_below_one(self):
        counts = []
        for names in (("matrix.csv",), ("h200", "matrix.csv")):
            values = [float(row["slowdown"]) for row in read_csv("pipelines", *names)]
            counts.append((sum(value < 1 for value in values), len(values)))
        self.assertIn(f"**{counts[0][0]} of the {counts[0][1]}", self.page)
        self.assertIn(f"{counts[1][0]} of the {counts[1][1]} values are under 1", self.page)
        below = "{} of {} and {} of {} values are below 1".format(*counts[0], *counts[1])
        self.assertIn(below, " ".join(read("seeds.md").split()))


class Memnet(unittest.TestCase):
    # Chosen: other compilers round sums of millions of terms elsewhere.
    NEAR = 0.25

    @classmethod
    def setUpClass(cls):
        done = subprocess.run(
            [COLLOC, "memnet", "eval", os.path.join(ROOT, "data", "memory")],
            capture_output=True,
            text=True,
            check=True,
        )
        cls.memory = done.stdout.split("Memory:")[1].split("The same by family")[0]

    def printed(self, network, rows_of):
        """n, median, p95, most, under, over, p50, <=p50, <=p90, <=p99, in the bin."""
        line = next(
            line
            for line in self.memory.splitlines()
            if re.match(rf"{network} +{re.escape(rows_of)}  ", line)
        )
        return [
            float(word)
            for word in line[len(network) :].replace(rows_of, "", 1).split()
            if word != "%"
        ]

    def test_errors_of_the_page(self):
        rows = [
            row
            for row in table_rows(read("measured", "memnet.md"))
            if len(row) == 13
            and row[0].startswith("`")
            and row[1] != "rows of"
            and row[1].startswith(("test", "real"))
        ]
        self.assertEqual(len(rows), 24)
        for network, rows_of, n, in_bin, *errors in rows:
            values = [float(cell.rstrip(" %")) for cell in (n, *errors, in_bin)]
            for mine, theirs in zip(values, self.printed(network.strip("`"), rows_of)):
                self.assertAlmostEqual(mine, theirs, delta=self.NEAR, msg=(network, rows_of))


class Seeds(unittest.TestCase):
    """docs/seeds.md repeats figures of other pages."""

    @classmethod
    def setUpClass(cls):
        cls.rows = {row[0]: row for row in table_rows(read("seeds.md"))}
        cls.entries = list_entries(read("seeds.md"))
        cls.runs = saved.SavedRuns(os.path.join(MEASURED, "chapter6", "runs.jsonl.xz"))

    def less(self, settings, row, name="total_s"):
        base = settings["Exclusive"]
        return f"-{self.runs.less_percent([settings[row]], [base], name).median:.1f} %"

    def test_simulated_totals(self):
        estimated = chapter6.ESTIMATORS, "MAGM (SMACT ≤ 80 % and GMem ≥ GPUMemNet)"
        for row, (settings, setting, *name) in {
            "total time, MAGM with GPUMemNet, 90 tasks": estimated,
            "total time, best oracle on MPS, 90 tasks": (chapter6.ORACLES, "OWF on MPS"),
            "total time, LUG without estimates, 90 tasks": (
                chapter6.RECOVERY,
                "LUG (SMACT ≤ 80 % and GMem ≥ 5 GB)",
            ),
            "total time, MAGM with GPUMemNet, 60 tasks": (
                chapter6.HEAVY,
                "MAGM + GPUMemNet (80 %)",
            ),
            "total time, MAGM and recovery on MPS, 60 tasks": (
                chapter6.HEAVY,
                "MAGM (2 GB, 80 %) + recovery",
            ),
            "energy, MAGM with GPUMemNet, 60 tasks": (
                chapter6.ENERGY,
                "MAGM + GPUMemNet on MPS",
                "energy_mj",
            ),
        }.items():
            less = self.less(settings, setting, *name)
            for shown in (self.rows[row][2], self.entries.get(row, less)):
                self.assertTrue(shown.startswith(less), (row, shown))

    def test_simulated_crashes_and_energy(self):
        def median(setting, name):
            return self.runs.of(setting, name).median

        crashes = median(chapter6.RECOVERY["RR (no condition)"], "oom")
        row = self.rows["crashes without preconditions, round-robin, 90 tasks"]
        self.assertEqual(row[2], f"{crashes:.1f}")
        heavy = [
            median(chapter6.HEAVY[f"RR on {how} + recovery"], "oom") for how in ("streams", "MPS")
        ]
        row = self.rows["... 60 tasks, time-sliced and MPS"]
        self.assertEqual(row[2], "{:.1f} and {:.1f}".format(*heavy))
        energy = median(chapter6.ENERGY["Exclusive"], "energy_mj")
        self.assertEqual(self.rows["energy, exclusive, 60 tasks"][2], f"{energy:.2f} MJ")

    def test_measured_totals(self):
        """Of docs/measured/trace.md, whose tables another test compares with the measurements."""
        gains = {}
        for name, columns in trace_tables.TABLES.items():
            for label, (file, way) in columns.items():
                seen = trace_tables.read(file)
                gains[name, label] = trace_tables.Run(seen, way, None).gain()
        ninety = self.entries["total time, MAGM with GPUMemNet, 90 tasks"]
        self.assertIn(gains["h200x4-90", "MAGM, estimates, MPS"], ninety)
        sixty = self.entries["total time, MAGM and recovery on MPS, 60 tasks"]
        for label in ("MAGM, MPS", "MAGM, estimates, MPS", "predictive, MPS"):
            self.assertIn(gains["h200x4", label], sixty)

    def test_activity_alone(self):
        """What makes the gains with decoding larger than the dissertation's."""
        for file in ("h100x4-loading-1", "h200x4-90-1"):
            with lzma.open(os.path.join(MEASURED, "trace", f"{file}.json.xz"), "rt") as raw:
                alone = json.load(raw)["ways"]["exclusive"]["mean_smact"]
            self.assertIn(f"{alone:.2f}", read("seeds.md"))
            with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
                self.assertIn(f"{alone:.2f}", file.read())


class Simulated(unittest.TestCase):
    """Pages against what the program simulates now. After a change of the policies or the core that
    fails here: scripts/simulated-pages, and read the sentences beside its tables."""

    # Chosen: what a median of ten seeds differs by after a change that moves single tasks.
    NEAR = 0.03
    HINT = "the page is older than the program: scripts/simulated-pages makes it anew"

    def assert_near(self, shown, now, what):
        self.assertLessEqual(abs(shown / now - 1), self.NEAR, f"{what}: {self.HINT}")

    def test_chapter6(self):
        """The saved runs, of which test_docs compares the page: a few settings of each kind."""
        was = saved.SavedRuns(os.path.join(MEASURED, "chapter6", "runs.jsonl.xz"))
        with tempfile.TemporaryDirectory() as folder:
            mine = inputs.Inputs(folder, inputs.OWN_TRACES, {"": None}, (), "")
            now = runs.Runs(COLLOC, mine, was.seeds)
            settings = [
                chapter6.exclusive(60),
                chapter6.ORACLES["OWF on MPS"],
                chapter6.RECOVERY["RR (no condition)"],
                chapter6.RECOVERY["LUG (SMACT ≤ 80 % and GMem ≥ 5 GB)"],
                chapter6.HEAVY["MAGM (2 GB, 80 %) + recovery"],
                runs.Setting(60, "predictive"),
                runs.Setting(90, "predictive", "declared"),
            ]
            now.prepare(settings)
            for setting in settings:
                for figure in ("total_s", "energy_mj"):
                    shown, today = (of.of(setting, figure).median for of in (was, now))
                    self.assert_near(shown, today, f"{setting} {figure}")

    def test_energy(self):
        page = {row[0]: row[1:] for row in table_rows(read("energy.md")) if len(row) == 5}
        now = study_energy.medians(COLLOC)
        for row, figures in now.items():
            for cell, (name, value) in zip(page[row], figures.items()):
                if name != "mean wait":  # of a wait seeds differ by more
                    self.assert_near(float(cell.split()[0]), value, f"{row}: {name}")


class Baselines(unittest.TestCase):
    def test_errors_of_the_page(self):
        page = {row[0].strip("`"): row[1:] for row in table_rows(read("measured", "baselines.md"))}
        for row in read_csv("baselines", "summary.csv"):
            name = {"horus": "Horus", "faketensor": "FakeTensor"}.get(row["estimator"], "graph")
            runs, *percents, under, over = page[name]
            self.assertEqual(runs, row["runs"])
            for shown, column in zip(percents, ("median_error", "p95_error", "under")):
                places = len(shown.rstrip(" %").partition(".")[2])
                self.assertEqual(shown, f"{100 * float(row[column]):.{places}f} %", name)
            self.assertEqual(under, f"{-float(row['most_under_gib']):.1f} GiB")
            self.assertAlmostEqual(
                float(over[: -len(" GiB")].replace(",", "")),
                float(row["most_over_gib"]),
                delta=0.051,
            )


class Calibrate(unittest.TestCase):
    """Median errors of speeds, which scripts/fit-sharing prints of the measurements."""

    def errors(self, folder, constants, measured):
        library = os.path.join(BUILD, "src", "sharing", "libcolloc-sharing.so")
        words = [f"--constants={MEASURED}/{folder}/{constants}.txt"] if constants else []
        done = subprocess.run(
            [sys.executable, os.path.join(ROOT, "scripts", "fit-sharing"), "--quick", *words]
            + [f"--library={library}", os.path.join(MEASURED, folder, f"{measured}.csv")],
            capture_output=True,
            text=True,
            check=False,
        )
        if "runtime does not come first" in done.stderr or "undefined symbol: __" in done.stderr:
            self.skipTest("the library has sanitizers, which Python has not")
        found = dict(re.findall(r"^speed, (\w+): median ([\d.]+)%", done.stdout, re.M))
        self.assertEqual(set(found), {"streams", "mps"}, done.stderr)
        return found

    def test_page(self):
        rows = [
            row
            for row in table_rows(read("measured", "calibrate.md"))
            if len(row) == 5 and "with the constants of" in row[0]
        ]
        self.assertEqual(len(rows), 4)
        for i, (label, *cells) in enumerate(rows):
            folder = "calibrate/h100" if i < 2 else "calibrate"
            measured, constants = re.findall(r"`(\w+)`", label)
            fitted = self.errors(folder, constants, measured)
            built_in = self.errors(folder, None, measured)
            self.assertEqual(
                cells,
                [f"{found[mode]} %" for mode in ("streams", "mps") for found in (fitted, built_in)],
                (folder, label),
            )


class Allocator(unittest.TestCase):
    TRAININGS = {"resnet26": "ResNet-26", "large": "ResNet-152", "heavy": "ResNet-50",
                 "decoder": "GPT-2"}  # fmt: skip

    def test_page(self):
        """Samples a second and the peak of the process, of each allocator."""
        cells = {}
        with open(os.path.join(MEASURED, "allocator.jsonl"), encoding="utf-8") as file:
            for run in map(json.loads, file):
                mib = run["record"]["gpus"][0]["command_mem_peak_mib"]
                left = f"{run['left_mib']:,.0f} MiB" if run["left_mib"] else "all"
                row = cells.setdefault((run["training"], left), [])
                row.append(f"{run['samples_per_s']:,.0f}, {mib:,.0f}")
        page = [row for row in table_rows(read("measured", "allocator.md")) if len(row) == 5][1:]
        self.assertEqual(len(page), len(cells))
        for (training, left), made in cells.items():
            mine = [row for row in page if row[0].split(",")[0] == self.TRAININGS[training]]
            self.assertIn([left, *made], [row[1:] for row in mine], training)


class Collocation(unittest.TestCase):
    def test_throughput_of_the_page(self):
        """The first table, without the values in parentheses, which are of another run."""
        speeds = {
            row["group"]: float(row["samples_per_s"])
            for row in read_csv("collocation", "summary.csv")
            if row["samples_per_s"]
        }
        checked = 0
        for label, alone, *relative in table_rows(read("measured", "collocation.md")):
            name, _, mode = label.lower().partition(", ")
            if (
                f"{name} streams" not in speeds
                or mode not in ("streams", "mps")
                or len(relative) != 4
            ):
                continue
            base = speeds[f"{name} streams"]
            shown = f"{base:,.0f}" if mode == "streams" else f"{speeds[f'{name} mps'] / base:.2f}"
            self.assertEqual(alone, shown, label)
            for n, cell in zip((2, 3, 4, 7), relative):
                value = re.match(r"\*{0,2}([\d.]+)", cell)
                if value:
                    ratio = speeds[f"{name}*{n} {mode}"] / base
                    self.assertEqual(value[1], f"{ratio:.2f}", (label, n))
                    checked += 1
        self.assertGreater(checked, 20)


if __name__ == "__main__":
    unittest.main()
