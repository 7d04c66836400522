# SPDX-License-Identifier: Apache-2.0
"""The learned correction: whole families are left out, and it finds what was put in."""
import math
import random
import unittest

from fit_case import Point
from colloc_fit import residual
from colloc_fit.fit_estimators import lines


def points_of(n, y_of, noise=0.0, families=24):
    drawn = random.Random(3)
    points = []
    for i in range(n):
        features = [1.0, drawn.random(), drawn.random()]
        points.append(
            Point(f"family {i % families}", features, y_of(*features) + noise * drawn.gauss(0, 1))
        )
    return points


class Residual(unittest.TestCase):
    def test_finds_a_line(self):
        points = points_of(2000, lambda _, a, b: 0.1 + 0.2 * a - 0.1 * b)
        weights = residual.learn(points, 1e-6)
        for found, put in zip(weights, (0.1, 0.2, -0.1), strict=True):
            self.assertAlmostEqual(found, put, 4)

    def test_no_correction_is_none(self):
        points = points_of(50, lambda *_: 0.3)
        weights = residual.learn(points, residual.NO_CORRECTION)
        self.assertEqual([residual.predict(weights, p) for p in points], [0.0] * 50)

    def test_a_correction_is_bounded(self):
        points = points_of(50, lambda *_: 5.0)
        weights = residual.learn(points, 1e-6)
        self.assertAlmostEqual(residual.predict(weights, points[0]), math.log(2))

    def test_folds_are_whole_families(self):
        points = points_of(100, lambda *_: 0)
        folds = residual.folds(points)
        self.assertEqual(
            sorted(family for fold in folds for family in fold),
            sorted({p.row["family"] for p in points}),
        )
        self.assertEqual(folds, residual.folds(points), "the same each time")

    def test_a_family_does_not_teach_its_own_correction(self):
        points = points_of(480, lambda *_: 0.0)
        for p in points:
            if p.row["family"] == "family 5":
                p.y = 0.5
        found = {p.row["family"]: c for p, c in residual.left_out(points, 1e-6)}
        self.assertEqual(len(found), 24)
        self.assertAlmostEqual(found["family 5"], 0, 4)

    def test_chooses_no_correction_where_families_contradict(self):
        """Each family has a different offset, which the others cannot predict."""
        points = points_of(480, lambda *_: 0.0)
        for p in points:
            p.y = 0.05 if int(p.row["family"].split()[1]) % 3 == 0 else 0.0
        self.assertEqual(residual.choose_strength("contradiction", points), residual.NO_CORRECTION)

    def test_chooses_a_correction_where_one_helps(self):
        points = points_of(480, lambda _, a, b: 0.3 * a - 0.1, noise=0.005)
        self.assertNotEqual(residual.choose_strength("a line", points), residual.NO_CORRECTION)


class Lines(unittest.TestCase):
    def test_two_other_batches_are_a_line(self):
        """Memory of 2 + 3 batch: two other batches tell it exactly."""
        pairs = []
        for batch in (1, 2, 4):
            p = Point("f", [1], math.log((2 + 3 * batch) / (4 * batch)))
            p.row.update(model="m", optimizer="adam", precision="fp32", batch=batch)
            p.measured, p.reserved = 2 + 3 * batch, 4 * batch
            pairs.append((p, 0.0))
        more = lines(pairs)
        self.assertEqual(len(more), 3)
        for p, log_ratio in more:
            self.assertAlmostEqual(p.reserved * math.exp(log_ratio), p.measured)


if __name__ == "__main__":
    unittest.main()
