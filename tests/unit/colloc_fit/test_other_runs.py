# SPDX-License-Identifier: Apache-2.0
"""What other runs of a network say, and that the program's weights are those of the fit."""
import math
import os
import re
import unittest

import fit_case
from colloc_fit import other_runs

SOURCE = os.path.join(fit_case.ROOT, "src", "estimator")


class Run(fit_case.Point):
    """A run that took exp(y) times what physics says."""

    def __init__(self, y, batch=64, optimizer="adam", precision="fp32", model="net"):
        super().__init__("family", [], y)
        self.row.update(
            batch=batch, optimizer=optimizer, precision=precision, model=model, sequence=0
        )


class OtherRuns(unittest.TestCase):
    def test_constants_are_those_of_the_program(self):
        with open(os.path.join(SOURCE, "other_runs.c"), encoding="utf-8") as file:
            text = file.read()
        for name in (
            "OWN_WEIGHT",
            "RUN_WEIGHT",
            "OPTIMIZER_FACTOR",
            "PRECISION_FACTOR",
            "BATCH_FACTOR",
        ):
            value = re.search(rf"{name.lower()} = ([0-9.]+);", text)[1]
            self.assertEqual(float(value), getattr(other_runs, name), name)
        with open(os.path.join(SOURCE, "other_runs.h"), encoding="utf-8") as file:
            most = re.search(r"OTHER_RUNS_MAX = (\d+)", file.read())[1]
        self.assertEqual(int(most), other_runs.RUNS_MOST)

    def test_weights(self):
        run = Run(0)
        self.assertEqual(other_runs.weight_of(run, Run(0, batch=32)), 3.2)
        self.assertEqual(other_runs.weight_of(run, Run(0, batch=32, optimizer="sgd")), 0.8)
        self.assertEqual(other_runs.weight_of(run, Run(0, precision="amp")), 1)

    def test_a_mean_of_logarithms(self):
        others = [(Run(0.08, batch=32), 0.0), (Run(0.02, precision="amp"), 0.02)]
        found = other_runs.correction_from(Run(9), others)
        self.assertAlmostEqual(found, 3.2 * 0.08 / (3.2 + 1 + 1))
        nearer = [(Run(0.0, batch=65 + i), 0.0) for i in range(4)]
        self.assertEqual(other_runs.correction_from(Run(9), nearer + others[1:]), 0)

    def test_each_run_is_estimated_from_the_others_of_its_network(self):
        pairs = [
            (Run(0.1), 0.0),
            (Run(0.2, batch=32), 0.0),
            (Run(0.3, batch=32, precision="amp"), 0.0),
            (Run(0.4, model="other"), 0.0),
        ]
        one = other_runs.from_one_run(pairs)
        self.assertEqual(
            sorted(kind for *_, kind in one), sorted(2 * ["batch", "batch+precision", "precision"])
        )
        self.assertTrue(all(math.isfinite(c) for _, c, _ in one))
        self.assertEqual(len(other_runs.from_all_runs(pairs)), 3)

    def test_another_optimizer_alone_is_told_apart(self):
        pairs = [(Run(0.1), 0.0), (Run(0.2, optimizer="sgd"), 0.0), (Run(0.2, batch=8), 0.0)]
        self.assertNotIn("optimizer", [kind for *_, kind in other_runs.from_one_run(pairs)])
        self.assertEqual([p.row["batch"] for p, _ in other_runs.from_all_runs(pairs)], [8])


if __name__ == "__main__":
    fit_case.main()
