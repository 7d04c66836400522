# SPDX-License-Identifier: Apache-2.0
"""The trees and the scores of the dissertation's first attempts, where the answer is known."""
import os
import tempfile
import unittest

import fit_case
import numpy
from colloc_fit import study_regression
from colloc_fit.extra_trees import Forest


class Trees(unittest.TestCase):
    def setUp(self):
        chance = numpy.random.default_rng(7)
        self.features = chance.uniform(0, 1, (300, 3))
        self.steps = 1000.0 * (self.features[:, 1] > 0.4)  # only the second feature counts

    def test_a_step_is_learned_and_its_feature_found(self):
        forest = Forest(self.features, self.steps[:, None], n_trees=20)
        answers = forest.predict(numpy.array([[0.9, 0.1, 0.9], [0.1, 0.9, 0.1]]))[:, 0]
        self.assertLess(answers[0], 50)
        self.assertGreater(answers[1], 950)
        importances = forest.importances()
        self.assertAlmostEqual(importances.sum(), 1)
        self.assertGreater(importances[1], 0.8)

    def test_samples_of_the_fit_are_answered_as_they_were(self):
        targets = numpy.arange(300.0)[:, None]
        forest = Forest(self.features, targets, n_trees=3)
        self.assertEqual(forest.predict(self.features).tolist(), targets.tolist())

    def test_targets_that_are_alike_are_one_leaf(self):
        forest = Forest(self.features, numpy.full((300, 1), 5.0), n_trees=2)
        self.assertEqual(forest.predict(self.features[:2]).tolist(), [[5], [5]])

    def test_folds_do_not_see_their_own_samples(self):
        chance = numpy.random.default_rng(3).normal(size=(300, 1))
        predicted = study_regression.cross_validate(
            study_regression.fit_neighbour, self.features, chance
        )
        self.assertFalse((predicted == chance).any())


class Scores(unittest.TestCase):
    def test_scores_by_hand(self):
        truth, answers = numpy.array([0, 0, 0, 1]), numpy.array([0, 0, 1, 1])
        accuracy, precision, recall, f1 = study_regression.class_scores(truth, answers)
        self.assertAlmostEqual(accuracy, 0.75)
        self.assertAlmostEqual(precision, 0.75 * 1 + 0.25 * 0.5)
        self.assertAlmostEqual(recall, accuracy)
        self.assertAlmostEqual(f1, 0.75 * 0.8 + 0.25 * 2 / 3)

    def test_a_straight_line_is_found(self):
        features = numpy.array([[1.0, 2], [2, 1], [3, 5], [4, 4]])
        predict = study_regression.fit_line(features, features @ [[2.0], [3]] + 7)
        self.assertAlmostEqual(predict(numpy.array([[10.0, 10]]))[0, 0], 57)


class Tables(unittest.TestCase):
    def test_the_mlps_of_the_tree(self):
        path = os.path.join(fit_case.ROOT, "data", "memory", "runs.csv.xz")
        features, mib = study_regression.read_own(path)
        self.assertEqual(features.shape, (733, 4))
        self.assertEqual(mib.max(), 3818)

    def test_a_table_of_gpumemnet(self):
        text = (
            "Activations-Params,Total Activations,Total Parameters,Batch Size,"
            "Max GPU Memory (MiB)\n"
            "\"[('linear', 3, 4), ('ReLU', 3, 0)]\",6,4,32,1545\n"
        )
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write(text)
            file.flush()
            features, mib = study_regression.read_gpumemnet(file.name)
        self.assertEqual(features.tolist(), [[2, 32, 4, 6]])
        self.assertEqual(mib.tolist(), [1545])


if __name__ == "__main__":
    fit_case.main()
