# SPDX-License-Identifier: Apache-2.0
"""The pictures of the learned estimators: projections that do what they should, and a page from the
files of `colloc memnet eval`.
"""

import csv
import os
import sys
import tempfile
import unittest

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "python"))
from colloc_report import memnet  # noqa: E402


def clusters():
    rng = numpy.random.default_rng(3)
    return numpy.concatenate([rng.normal(centre, 0.1, (20, 5)) for centre in (0, 4, 8)])


class Projections(unittest.TestCase):
    def test_pca_finds_the_direction(self):
        along = numpy.linspace(-1, 1, 50)[:, None] * numpy.array([3, 4, 0]) / 5
        points, shares = memnet.pca(along)
        self.assertAlmostEqual(shares[0], 1)
        self.assertAlmostEqual(points[:, 0].max() - points[:, 0].min(), 2)

    def test_neighbourhood_has_the_perplexity(self):
        p = memnet.neighbourhood(memnet.squared_distances(clusters()), 10)
        self.assertAlmostEqual(p.sum(), 1)
        numpy.testing.assert_allclose(p, p.T)
        self.assertLess(p[:20, 20:].sum(), 1e-6)

    def test_tsne_keeps_neighbours_together(self):
        points = memnet.tsne(clusters())
        numpy.testing.assert_array_equal(points, memnet.tsne(clusters()))
        distances = memnet.squared_distances(points)
        numpy.fill_diagonal(distances, numpy.inf)
        nearest = distances.argmin(axis=1)
        self.assertEqual([i // 20 for i in range(60)], [int(i) // 20 for i in nearest])


def feature_row(i, kind, real):
    row = {name: 0.1 * (i % 7) for name in memnet.VALUES}
    row.update(
        id=f"r{i}",
        set=kind,
        real=real,
        family=kind,
        network=f"n{i // 4 if real else i}",
        batch=2 ** (i % 4),
        optimizer="adam",
        precision="fp32",
        measured_mib=1000 + 700 * (i % 5),
        states=2,
        half=0,
        log_parameters=14 + i % 5,
    )
    return row


def answer_row(i, net, part):
    return {
        "net": net,
        "id": f"r{i}",
        "part": part,
        "family": "x",
        "network": f"n{i}",
        "batch": 1,
        "optimizer": "adam",
        "precision": "fp32",
        "measured_mib": 1000 + i,
        "class": i % 2,
        "answered": 1,
        "edge_mib": 2048,
        "p50_mib": 1500,
        "p90_mib": 1900,
        "p99_mib": 2000,
    }


class ThePage(unittest.TestCase):
    def test_all_pictures(self):
        with tempfile.TemporaryDirectory() as folder:
            features = [feature_row(i, "mlp", 0) for i in range(30)] + [
                feature_row(i, "cnn", 1) for i in range(8)
            ]
            answers = [
                answer_row(i, "mlp-mlp-1gib", part)
                for i in range(10)
                for part in ("training", "test", "real")
            ]
            for name, rows in (("features.csv", features), ("answers.csv", answers)):
                with open(os.path.join(folder, name), "w") as file:
                    table = csv.DictWriter(file, rows[0])
                    table.writeheader()
                    table.writerows(rows)
            with open(memnet.draw(folder)) as file:
                self.assertIn("Accuracy", file.read())
            drawn = {name for name in os.listdir(folder) if name.endswith(".svg")}
            self.assertEqual(
                drawn,
                {
                    f"{name}.svg"
                    for name in (
                        "accuracy",
                        "answers-mlp-mlp-1gib",
                        "staircase",
                        "batches",
                        "pca-mlp",
                        "tsne-mlp",
                    )
                },
            )
            with open(os.path.join(folder, "accuracy.csv")) as file:
                self.assertEqual(list(csv.reader(file))[1], ["mlp-mlp-1gib", "0.5", "0.9542"])


if __name__ == "__main__":
    unittest.main()
