# SPDX-License-Identifier: Apache-2.0
"""The search for the best order (colloc_fit.study_orders), and the program that simulates them."""
import os
import random
import subprocess
import sys
import unittest

import fit_case

sys.path.insert(0, os.path.join(fit_case.ROOT, "python"))
from colloc_fit import study_orders  # noqa: E402

BUILD = os.environ["COLLOC_BUILD"]


class Search(unittest.TestCase):
    def test_a_neighbour_has_each_task_once(self):
        chance = random.Random(1)
        order, choices = list(range(9)), [study_orders.Choice(study_orders.ANY_GPU, 3.0)] * 9
        seen = set()
        for _ in range(300):
            order, choices = study_orders.changed(order, choices, chance)
            self.assertEqual(sorted(order), list(range(9)))
            seen.add((tuple(order), tuple(choices)))
        self.assertGreater(len(seen), 250)

    def test_it_finds_the_best_order(self):
        class Reversed:
            """Of eight tasks: the last one first is the best."""

            n = 8

            def outcome(self, order, choices):
                total = 100 + sum(abs(task - (7 - i)) for i, task in enumerate(order))
                return study_orders.Outcome(total, 1, 1)

        cost_of = lambda outcome: outcome.total_s
        found = study_orders.anneal(Reversed(), [list(range(8))], cost_of, 2000, random.Random(2))
        self.assertEqual(found.total_s, 100)


class Program(unittest.TestCase):
    def setUp(self):
        self.simulator = study_orders.Simulator(BUILD, "philly-60", 0)
        self.addCleanup(self.simulator.close)

    def outcome(self, order, gpu=study_orders.ANY_GPU, limit=3.0):
        choices = [study_orders.Choice(gpu, limit)] * self.simulator.n
        return self.simulator.outcome(order, choices)

    def test_orders_decide(self):
        n = self.simulator.n
        self.assertEqual(n, 60)
        in_turn = self.outcome(range(n))
        self.assertEqual(in_turn, self.outcome(range(n)))
        self.assertNotEqual(in_turn, self.outcome(list(reversed(range(n)))))
        # No task shares a GPU: far longer, too.
        self.assertGreater(self.outcome(range(n), limit=1.0).total_s, 1.2 * in_turn.total_s)
        # Tasks of one GPU all on the first: far longer than on four.
        self.assertGreater(self.outcome(range(n), gpu=0).total_s, 2 * in_turn.total_s)

    def test_what_is_no_order(self):
        program = os.path.join(BUILD, "tools", "colloc-orders")
        trace = os.path.join(fit_case.ROOT, "data", "traces", "philly-60.txt")
        for arguments, text, status in (
            ([], "", 2),
            ([trace, "0"], "1:2\n", 1),
            (["-", "0"], "", 1),
        ):
            done = subprocess.run(
                [program, *arguments], input=text, capture_output=True, text=True, check=False
            )
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn("colloc-orders", done.stderr)


if __name__ == "__main__":
    unittest.main()
