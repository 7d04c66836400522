# SPDX-License-Identifier: Apache-2.0
"""The baseline FakeTensor, counted from an export, and the histogram of differences."""
import csv
import os
import unittest

import fit_case
from colloc_fit.study_baselines import ESTIMATORS, fake_peak_bytes, histogram, summarize

EXPORT = {
    "classes": ["param", "saved", "temp", "grad", "state"],
    "phases": [{"input": 2, "forward": 3, "loss": 6, "backward": 7, "optimizer": 20}],
    "tensors": [
        [100, 0, 0, -1, 0],  # a parameter
        [0, 10, 3, 9, 1],  # saved for the backward pass: 10 bytes a sample
        [0, 5, 4, 5, 1],  # released before the backward pass
        [5000, 0, 4, 5, 2],  # scratch of a kernel does not count
        [100, 0, 8, 25, 3],  # a gradient
        [200, 0, 21, -1, 4],  # the optimizer comes later
    ],
}


class Baselines(unittest.TestCase):
    def test_the_peak_of_one_pass(self):
        self.assertEqual(fake_peak_bytes(EXPORT, 2), 100 + 20 + 100)
        self.assertEqual(fake_peak_bytes(EXPORT, 100), 100 + 1000 + 500)

    def test_errors(self):
        rows = [
            {"measured_mib": 1024.0, "horus_mib": 4096.0},
            {"measured_mib": 2048.0, "horus_mib": 1024.0},
            {"measured_mib": 1024.0, "horus_mib": None},
            {"measured_mib": 1024.0, "horus_mib": 1e9},
        ]
        found = summarize("horus", rows)
        self.assertEqual((found["runs"], found["median_error"]), (3, 3))
        self.assertAlmostEqual(found["under"], 1 / 3)
        self.assertEqual(found["most_under_gib"], -1)
        self.assertEqual(histogram("horus", rows), {2: 1, -2: 1, 20: 1})

    def test_the_page_has_all_estimators(self):
        folder = os.path.join(fit_case.ROOT, "docs", "measured")
        with open(f"{folder}/baselines/summary.csv", encoding="utf-8") as file:
            names = [row["estimator"] for row in csv.DictReader(file)]
        self.assertEqual(names, list(ESTIMATORS))


if __name__ == "__main__":
    unittest.main()
