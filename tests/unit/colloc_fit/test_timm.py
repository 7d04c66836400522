# SPDX-License-Identifier: Apache-2.0
"""The study of a table of timm's networks: which runs count, the constant, and the page."""
import contextlib
import io
import json
import lzma
import os
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "python")
)

from colloc_fit import study_timm  # noqa: E402

HEAD = "timm_model,batch,measured_mib,faketensor_mib\n"
CONSTANT = 1000  # MiB of the device


def row(model, batch, measured, fake):
    return {"model": model, "batch": batch, "measured_mib": measured, "faketensor_mib": fake}


def answer_of(_, export, __):
    """As colloc's: with kernels that are tried P99 is twice as much."""
    with open(export, encoding="utf-8") as file:
        tries = json.load(file)["flags"].get("cudnn_benchmark")
    estimate = {"mib": 2000, "p90_mib": 2100, "p99_mib": 2200}
    return {"estimates": [estimate], "reserve_mib": 4400 if tries else 2200}


class Sheet(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def sheet(self, text):
        path = os.path.join(self.folder, "sheet.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_runs_that_ran_out_of_memory_do_not_count(self):
        rows = study_timm.read_sheet(
            self.sheet(HEAD + "a,8,3000,900\na,16,2500,2600\na,32,39000,9\n")
        )
        self.assertEqual(
            [one["batch"] for one in study_timm.usable_runs(rows["a"])], [8]
        )  # 16: less than its live tensors, 32: the device is full

    def test_another_table_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "the first line is not timm_model,batch"):
            study_timm.read_sheet(self.sheet("model,batch\na,8\n"))

    def test_the_constant_is_that_of_the_other_half(self):
        names = [f"net{i}" for i in range(20)]
        rows = [
            {**row(name, 8, 2000 + CONSTANT, 500), "mib": 2000, "p90_mib": 2100, "p99_mib": 2200}
            for name in names
        ]
        half = study_timm.rank(names[0]) % 2
        others = [one for one in rows if study_timm.rank(one["model"]) % 2 != half]
        for one in others:
            one["measured_mib"] += 300
        study_timm.add_constants(rows)
        self.assertEqual(rows[0]["constant_mib"], CONSTANT + 300)
        self.assertAlmostEqual(rows[0]["error"], 300 / 3000)
        self.assertEqual((others[0]["constant_mib"], others[0]["above_p99"]), (CONSTANT, True))

    def test_runs_above_their_neighbours(self):
        """At 16 the line from 1,000 at 8 to 4,000 at 32 has 2,000."""
        networks = {
            "straight": [
                row("straight", 8 << i, 1000 + 1000 * (2**i - 1), 500) for i in range(4)
            ],
            "jumping": [
                row("jumping", 8, 1000, 500),
                row("jumping", 16, 4100, 500),
                row("jumping", 32, 4000, 500),
            ],
            "alone": [row("alone", 8, 1000, 500)],
        }
        self.assertEqual(study_timm.jumps(networks), ([("jumping", 16)], 3, 1))

    def test_growth_is_told_of_networks_with_small_and_large_batches(self):
        rows = [
            {**row("a", batch, 1000 + excess, 0), "mib": 1000, "loader_mib": excess}
            for batch, excess in ((8, 10), (64, 500), (128, 160))
        ]
        self.assertEqual(study_timm.growth(rows), 150)
        for one in rows:
            one.update(p90_mib=0, p99_mib=0)
        self.assertEqual(study_timm.growth(study_timm.with_loader(rows)), 0)
        self.assertIsNone(study_timm.growth(rows[:2]))

    def test_the_page(self):
        page = os.path.join(self.folder, "page.md")
        names = ("counts", "errors", "loader", "sources", "batches", "families", "jumps", "halves",
                 "h200")  # fmt: skip
        with open(page, "w", encoding="utf-8") as file:
            file.writelines(f"<!-- {name} -->\n\nold\n\n<!-- end -->\n" for name in names)
        exports = os.path.join(self.folder, "exports")
        os.mkdir(exports)
        lines = []
        for i in range(12):
            with open(os.path.join(exports, f"net{i}.json"), "w", encoding="utf-8") as file:
                convs = 5 * [{"phase": "forward"}]
                shape = [1, 1024, 1024]
                json.dump({"inputs": [{"shape": shape}], "convs": convs, "flags": {}}, file)
            lines.append(f"net{i},8,{3000 if i < 10 else 4500},900\n")  # the last two jump
        with mock.patch.object(study_timm, "ask", answer_of), mock.patch.object(
            study_timm, "unpack_exports", lambda *_: {}
        ), contextlib.redirect_stdout(io.StringIO()):
            study_timm.judge(
                "colloc", self.sheet(HEAD + "".join(lines)), exports, self.folder, page
            )
        with open(page, encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn("old", text)
        self.assertIn("12 of 12 networks, 12 of 12 runs", text)
        self.assertIn("| `graph`, from an export | 0.0% | 33.3% | 33.3% | 16.7% | 16.7% |", text)
        self.assertIn("| `graph`, where kernels are tried |  |  |  |  | 0.0% |", text)
        self.assertIn("| more | 12 | 12 | 0.0% |  | 0.0% |  |", text)
        self.assertIn("| this study, in view | 12 | 0.0% |", text)
        self.assertIn("| net | 12 | 0.0% |", text)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "runs.csv")))

    def test_exports_of_a_file(self):
        """Those of the table's networks alone, in fp32 and with its optimizer."""
        path = os.path.join(self.folder, "exports.jsonl.xz")
        momentum, adam = {"name": "momentum"}, {"name": "adam"}
        rows = [
            {"model": "a", "precision": "fp32", "optimizer": momentum},
            {"model": "b", "model_key": "c", "precision": "fp32", "optimizer": momentum},
            {"model": "d", "precision": "amp", "optimizer": momentum},
            {"model": "e", "precision": "fp32", "optimizer": adam},
            {"model": "f", "precision": "fp32", "optimizer": momentum},
        ]
        with lzma.open(path, "wt") as file:
            file.writelines(json.dumps(one) + "\n" for one in rows)
        found = study_timm.read_exports(path, {"a", "b", "c", "d", "e"}, self.folder)
        self.assertEqual(sorted(found), ["a", "c"])
        with open(found["c"], encoding="utf-8") as file:
            self.assertEqual(json.load(file), rows[1])
        self.assertEqual(study_timm.read_exports(self.folder, found, ""), found)

    def test_networks_in_view(self):
        names = [f"net{i}" for i in range(study_timm.IN_VIEW + 10)]
        sources = study_timm.sources_of(names, names[:1], names[1:])
        said = list(sources.values())
        self.assertEqual(said.count("data/memory"), 1)
        self.assertIn(said.count("this study, not in view"), (9, 10))
        last = max(names[1:], key=study_timm.rank)
        self.assertEqual(sources[last], "this study, not in view")

    def test_runs_beside_an_h200(self):
        path = os.path.join(self.folder, "h200.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            for batch, benchmark, most in ((8, False, 900), (8, True, 800), (16, False, 1000)):
                steps = [[0.1, most - 10, most - 10], [0.1, most, most]]
                line = {"name": "a", "batch": batch, "benchmark": benchmark, "steps": steps}
                file.write(json.dumps(line) + "\n")
        taken = study_timm.read_h200(path)
        self.assertEqual(taken["a", 8], {False: 900, True: 800})
        table = study_timm._beside_h200({"a": [row("a", 8, 900 + 2048, 500)]}, taken)
        self.assertEqual(table.splitlines()[2:], ["| a | 8 | 900 | 800 | +2.0 GiB |"])

    def test_families(self):
        for name, family in (("resnet50d", "resnet"), ("tf_mixnet_l", "tf_mixnet")):
            self.assertEqual(study_timm.family_of(name), family)


if __name__ == "__main__":
    unittest.main()
