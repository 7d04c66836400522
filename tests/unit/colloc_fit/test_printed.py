# SPDX-License-Identifier: Apache-2.0
"""Printed networks and summaries: the shape of a sample, what cannot be built, errors by evidence
and by network."""
import csv
import os
import tempfile
import types
import unittest
from unittest import mock

import fit_case
from colloc_fit import study_summaries
from colloc_fit.study_printed import input_of, print_networks, summarize
from colloc_fit.study_summaries import size_of_error, worst_of


def network(name, feed="image", size=224):
    return types.SimpleNamespace(name=name, feed=feed, size=size)


class Printed(unittest.TestCase):
    def test_the_shape_of_one_sample(self):
        self.assertEqual(input_of(network("a", size=299)), "3x299x299")
        self.assertEqual(input_of(network("a", "video", 112)), "3x16x112x112")

    def test_a_network_that_cannot_be_built_is_skipped(self):
        def make(row):
            return getattr(types.SimpleNamespace(old="Linear()"), row.name)

        with tempfile.TemporaryDirectory() as folder:
            texts = print_networks([network("old"), network("new")], make, folder)
            self.assertEqual(list(texts), ["old"])
            with open(texts["old"], encoding="utf-8") as file:
                self.assertEqual(file.read(), "Linear()")

    def test_errors_by_evidence(self):
        def row(evidence, mib, p99):
            mine = {"model": "a", "evidence": evidence, "mib": mib, "p99_mib": p99}
            return {**mine, "measured_mib": 1000.0}

        rows = [row("declared", 1100, 1200), row("declared", 700, 900), row("declared", 1000, 1300)]
        rows += [row("doubtful summary", 2000, 3000), row("none", None, None)]
        found = summarize("declared", rows)
        self.assertEqual((found["runs"], found["networks"]), (3, 1))
        self.assertAlmostEqual(found["median_error"], 0.1)
        self.assertAlmostEqual(found["worst_error"], 0.3)
        self.assertAlmostEqual(found["above_p99"], 1 / 3)
        self.assertAlmostEqual(found["p99_over"], 0.4 / 3)
        found = summarize("none", rows)
        self.assertEqual((found["runs"], found["median_error"]), (1, None))

    def test_a_network_without_an_estimate_is_a_row(self):
        def row(model, mib):
            mine = {"model": model, "evidence": "declared", "mib": mib, "p99_mib": 1250}
            return {**mine, "measured_mib": 1000.0, "batch": 8, "precision": "amp"}

        rows = [row("a", 1100), row("a", 700), row("a", None), row("b", None)]
        found = worst_of("a", rows)
        self.assertEqual((found["runs"], found["evidence"], found["batch"]), (2, "declared", 8))
        self.assertAlmostEqual(found["worst_error"], -0.3)
        found = worst_of("b", rows)
        self.assertEqual((found["runs"], found["evidence"]), (0, "none"))
        self.assertIsNone(found["worst_error"])
        self.assertEqual(size_of_error(found), 0)

    def test_a_study_without_any_estimate_fails_and_writes_nothing(self):
        run = {name: 8 for name in ("id", "model", "batch", "optimizer", "precision")}
        runs = types.SimpleNamespace(
            runs=[{**run, "kind": "real", "driver_mib": 1000.0}], summaries={8: os.devnull}
        )
        with tempfile.TemporaryDirectory() as scratch:
            folder = os.path.join(scratch, "study")
            with mock.patch.object(study_summaries, "MemoryRuns", lambda *_: runs):
                with self.assertRaisesRegex(SystemExit, "false has no estimate for any run"):
                    study_summaries.main("false", folder)
            self.assertFalse(os.path.exists(folder))

    def test_the_page_names_the_runs_of_the_table(self):
        folder = os.path.join(fit_case.ROOT, "docs", "measured")
        with open(f"{folder}/printed/summary.csv", encoding="utf-8") as file:
            counts = {row["evidence"]: row["runs"] for row in csv.DictReader(file)}
        with open(f"{folder}/estimators.md", encoding="utf-8") as file:
            _, _, printed = file.read().partition("**Printed modules**")
        for evidence, runs in counts.items():
            self.assertRegex(printed, rf"\| `{evidence}` +\| +\d+ +\| +{runs} +\|")


if __name__ == "__main__":
    unittest.main()
