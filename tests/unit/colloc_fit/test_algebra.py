# SPDX-License-Identifier: Apache-2.0
"""The algebra of the fits, on problems whose answers are known."""
import random
import unittest

from fit_case import main
from colloc_fit.algebra import descend, minimise, order_statistic, rank_correlation, ridge


class Ridge(unittest.TestCase):
    def setUp(self):
        drawn = random.Random(7)
        self.rows = [[1, drawn.gauss(0, 1), drawn.gauss(0, 1)] for _ in range(200)]
        self.targets = [0.5 + 2 * a - 3 * b for _, a, b in self.rows]
        self.ones = [1.0] * 200

    def assert_near(self, found, wanted, within):
        for x, y in zip(found, wanted, strict=True):
            self.assertAlmostEqual(x, y, delta=within)

    def test_exact_without_strength(self):
        self.assert_near(ridge(self.rows, self.targets, self.ones, 1e-9), (0.5, 2, -3), 1e-8)

    def test_agrees_with_the_normal_equations(self):
        """(sum x^2 + s) w = sum x y for one feature besides an intercept of nothing."""
        rows = [[0, x] for x in (1.0, 2.0, 3.0)]
        found = ridge(rows, [2.0, 3.0, 7.0], [1, 1, 2], 5)
        self.assertAlmostEqual(found[1], (2 + 6 + 2 * 21) / (1 + 4 + 2 * 9 + 5))

    def test_strength_shrinks_all_but_the_intercept(self):
        found = ridge(self.rows, self.targets, self.ones, 1e4)
        self.assertLess(abs(found[1]) + abs(found[2]), 0.2)
        self.assertGreater(found[0], 0.4)

    def test_a_tolerance_outvotes_the_wild(self):
        wild = [y + 100 if i % 20 == 0 else y for i, y in enumerate(self.targets)]
        plain = ridge(self.rows, wild, self.ones, 1e-9)
        robust = ridge(self.rows, wild, self.ones, 1e-9, tolerance=0.03, rounds=12)
        self.assertGreater(abs(plain[0] - 0.5), 3)
        self.assert_near(robust, (0.5, 2, -3), 0.1)

    def test_weights_count(self):
        found = ridge([[1], [1]], [0.0, 1.0], [1, 3], 1e-9)
        self.assertAlmostEqual(found[0], 0.75)


class Others(unittest.TestCase):
    def test_order_statistic(self):
        nine = [5, 1, 4, 2, 3, 9, 8, 7, 6]
        self.assertEqual(order_statistic(nine, 0.5), 5)
        self.assertEqual(order_statistic(nine, 0.9), 9)
        self.assertEqual(order_statistic(nine, 0.99), 9, "too few: the largest")
        self.assertEqual(order_statistic(range(1, 100), 0.9), 90)
        self.assertEqual(order_statistic([3], 0.01), 3)

    def test_rank_correlation(self):
        self.assertAlmostEqual(rank_correlation([1, 2, 3, 4], [1, 8, 27, 64]), 1)
        self.assertAlmostEqual(rank_correlation([1, 2, 3, 4], [4, 3, 2, 1]), -1)
        self.assertAlmostEqual(rank_correlation([1, 2, 2, 3], [1, 3, 2, 4]), 0.9486833, 6)

    def test_minimise(self):
        """Rosenbrock's valley, which a descent along the axes does not leave."""
        found = minimise(lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2, [0.4, 0.4])
        self.assertAlmostEqual(found[0], 1, 1)
        self.assertAlmostEqual(found[1], 1, 1)

    def test_minimise_stays_out_of_what_is_infinite(self):
        found = minimise(lambda x: float("inf") if x[0] < 1 else x[0], [3.0])
        self.assertAlmostEqual(found[0], 1, 3)

    def test_descend(self):
        grid = {"a": (0, 1, 2, 3), "b": (0, 5, 10)}
        best, least = descend(
            grid, {"a": 0, "b": 0, "c": 9}, lambda c: (c["a"] - 2) ** 2 + abs(c["b"] - 6)
        )
        self.assertEqual((best, least), ({"a": 2, "b": 5, "c": 9}, 1))


if __name__ == "__main__":
    main()
