# SPDX-License-Identifier: Apache-2.0
"""Quantiles of errors: of real networks, of other families, and of a parent where few are known."""
import math
import random
import unittest

import fit_case
from colloc_fit.quantiles import NETWORKS, Outcome, calibrate, levels_of, reserves, with_parents


def outcome(error, family="f", network=NETWORKS[0], kind="real", scale=1.0):
    row = {"family": family, "kind": kind}
    return Outcome(row, network, 1000.0, 1000.0 * math.exp(error * scale), scale)


class Quantiles(unittest.TestCase):
    def test_of_enough_real_networks_alone(self):
        some = [outcome(0.01 * i) for i in range(99)]
        some += [outcome(9.0, kind="random") for _ in range(500)]
        levels = calibrate(some)[NETWORKS[0]]
        for found, known in zip(levels, (0.49, 0.89, 0.98, 599), strict=True):
            self.assertAlmostEqual(found, known)

    def test_a_kind_of_network_has_its_own_where_its_tail_is_known(self):
        """Forty have four beyond P90, but none beyond P99: that is taken from all."""
        some = [outcome(0.001 * i, network=NETWORKS[1]) for i in range(40)]
        some += [outcome(0.01 * i) for i in range(260)]
        p50, p90, p99 = levels_of(some, NETWORKS[1])
        self.assertLess(p90, 0.04)
        self.assertGreater(p99, 2.4)
        self.assertLess(p50, p90)

    def test_levels_are_in_order(self):
        """The own P90 is above the P99 of all."""
        some = [outcome(0.5, network=NETWORKS[1]) for _ in range(30)]
        some += [outcome(0.0) for _ in range(9000)]
        p50, p90, p99 = levels_of(some, NETWORKS[1])
        self.assertTrue(p50 <= p90 <= p99)
        self.assertAlmostEqual(p99, 0.5)

    def test_a_short_tail_is_borrowed(self):
        rows = {
            "declared": {"convolutions": (0, 1.0, 4.0, 500)},
            "export": {"convolutions": (0, 2.0, 3.0, 20)},
        }
        self.assertEqual(with_parents("export", rows), {"convolutions": (0, 2.0, 8.0, 20)})
        self.assertEqual(with_parents("declared", rows), rows["declared"])
        self.assertEqual(
            with_parents("export with kernels", rows), {"convolutions": (0, 2.0, 8.0, 20)}
        )
        self.assertIsNone(with_parents("summary", rows))

    def test_a_family_is_not_calibrated_on_itself(self):
        """One family takes twice the estimate, which no other shows."""
        some = [outcome(0.0, family=f"f{i % 20}") for i in range(400)]
        odd = [outcome(math.log(2), family="odd") for _ in range(5)]
        under, over = reserves(some + odd, odd, 0.99)
        self.assertEqual((under, over), (1.0, 0.0))

    def test_holds_for_as_many_as_it_says(self):
        drawn = random.Random(7)
        some = [
            outcome(drawn.gauss(0, 0.05), f"f{i % 40}", scale=drawn.uniform(0.5, 2))
            for i in range(4000)
        ]
        for q, share in ((0.9, 0.1), (0.99, 0.01)):
            under, over = reserves(some, some, q)
            self.assertAlmostEqual(under, share, delta=0.25 * share)
            self.assertGreater(over, 0)


if __name__ == "__main__":
    fit_case.main()
