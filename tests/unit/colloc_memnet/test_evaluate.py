# SPDX-License-Identifier: Apache-2.0
"""The metrics by which networks are compared, checked by hand."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "..", "python"))

from colloc_memnet import evaluate, feed  # noqa: E402

GIB = 2**30
PLAN = feed.Plan("mlp-mlp-1gib", "mlp", "mlp", 1024, (), (), ())


def row(i, size_gib, **changes):
    told = {
        "id": f"r{i}",
        "set": "mlp",
        "real": False,
        "part": "test",
        "family": "mlp-uniform" if i < 3 else "mlp-pyramid",
        "network": f"m{i}",
        "batch": 8,
        "optimizer": "sgd" if i % 2 else "adamw",
        "precision": "fp32",
        "bytes": size_gib * GIB,
        "values": (),
        "tokens": (),
    }
    return feed.Row(**{**told, **changes})


def make_answers(changes=None):
    """Classes 0 0 0 1 1 2, answered as 0 0 1 1 1 0."""
    pairs = zip((0, 0, 0, 1, 1, 2), (0, 0, 1, 1, 1, 0))
    return [
        feed.Answer(
            row(i, measured + 0.5, **(changes or {}).get(i, {})),
            3,
            (answered + 1) * GIB,
            (answered + 0.5) * GIB,
            (answered + 0.9) * GIB,
            9 * GIB,
        )
        for i, (measured, answered) in enumerate(pairs)
    ]


class Metrics(unittest.TestCase):
    def test_by_hand(self):
        m = evaluate.measure(PLAN, make_answers())
        self.assertAlmostEqual(m.accuracy, 4 / 6)
        self.assertAlmostEqual(m.recall, m.accuracy)
        self.assertAlmostEqual(m.precision, (3 * (2 / 3) + 2 * (2 / 3) + 0) / 6)
        self.assertAlmostEqual(m.f1, (3 * (2 / 3) + 2 * 0.8 + 0) / 6)
        self.assertAlmostEqual(m.commonest_class, 0.5)
        self.assertAlmostEqual(m.under, 1 / 6)
        self.assertAlmostEqual(m.error_most, 3)
        self.assertAlmostEqual(m.over_mean, (1 + 1 + 3 + 2 * (2 / 1.5 - 1) + 0) / 6)
        self.assertAlmostEqual(m.covered_p50, 5 / 6)
        self.assertAlmostEqual(m.covered_p99, 1)
        self.assertAlmostEqual(m.p50_error_median, 0)

    def test_groups(self):
        answers = make_answers({0: {"part": "training"}, 1: {"real": True}})
        groups = {
            (group.group, group.family): group.rows for group in evaluate.groups_of(PLAN, answers)
        }
        self.assertEqual(
            groups,
            {
                ("test", None): 4,
                ("test, Adam and fp32", None): 2,
                ("real networks", None): 1,
                ("test", "mlp-uniform"): 1,
                ("real networks", "mlp-uniform"): 1,
                ("test", "mlp-pyramid"): 3,
            },
        )

    def test_the_last_class_has_no_upper_end(self):
        self.assertEqual(PLAN.class_of(40 * GIB, 3), 2)
        self.assertEqual(PLAN.class_of(1 * GIB - 1, 3), 0)
        self.assertEqual(PLAN.class_of(1 * GIB, 3), 1)


class Text(unittest.TestCase):
    def test_columns_are_aligned(self):
        lines = evaluate.table(["NAME", "OF", "N"], [["a", "test", "5"], ["long", "x", "123"]])
        self.assertEqual(lines.splitlines(), ["NAME OF     N", "a    test   5", "long x    123"])

    def test_published_results_are_beside_test_rows_only(self):
        groups = list(evaluate.groups_of(PLAN, make_answers({1: {"real": True}})))
        text = evaluate.as_text(groups)
        self.assertIn("0.6000 (0.9542)", text)
        self.assertEqual(text.count("(0.9542)"), 2)  # accuracy and recall of "test"
        rows = evaluate.as_json(groups)["memnet"]
        self.assertEqual([row["group"] for row in rows if "published" in row], ["test"])


if __name__ == "__main__":
    unittest.main()
