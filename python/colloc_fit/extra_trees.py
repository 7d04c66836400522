# SPDX-License-Identifier: Apache-2.0
"""Extremely randomised trees (Geurts, Ernst and Wehenkel, Machine Learning 63, 2006).

A node of a tree tries a random threshold for each feature, and keeps the one that leaves the least
variance of the targets below it. A leaf answers with the mean of its targets; a forest with the
mean of its trees. With targets that are 1 for a class and 0 for the others the variance is Gini's
impurity: the same code sorts into classes.
"""
import numpy

LEAST_TO_SPLIT = 2  # as scikit-learn's defaults: leaves are pure, all features are tried


class Forest:
    def __init__(self, features, targets, n_trees=50, seed=1):
        """features: a row for each sample; targets: a row for each, of one or more columns"""
        self._random = numpy.random.default_rng(seed)
        self._features, self._targets = features, targets
        self._gains = numpy.zeros(features.shape[1])
        rows = numpy.arange(len(features))
        self._trees = [self._grow(rows) for _ in range(n_trees)]

    def _grow(self, rows):
        """A node: the mean of its targets, or (feature, threshold, node up to it, node above)."""
        targets = self._targets[rows]
        split = self._split(rows, targets) if len(rows) >= LEAST_TO_SPLIT else None
        if not split:
            return targets.mean(axis=0)
        gain, feature, threshold, is_low = split
        self._gains[feature] += gain
        return feature, threshold, self._grow(rows[is_low]), self._grow(rows[~is_low])

    def _split(self, rows, targets):
        """Of one random threshold for each feature the best one; None where all are alike."""
        spread = ((targets - targets.mean(axis=0)) ** 2).sum()
        found = None
        for feature in range(self._features.shape[1]) if spread > 1e-12 else ():
            values = self._features[rows, feature]
            low, high = values.min(), values.max()
            if low == high:
                continue
            threshold = self._random.uniform(low, high)
            is_low = values <= threshold
            if is_low.all():
                continue
            left, right = targets[is_low], targets[~is_low]
            gain = spread - sum(((part - part.mean(axis=0)) ** 2).sum() for part in (left, right))
            if not found or gain > found[0]:
                found = gain, feature, threshold, is_low
        return found

    def importances(self):
        """The part of each feature in what all splits took off the variance; they sum to 1."""
        return self._gains / self._gains.sum()

    def predict(self, features):
        return numpy.array([self._predict(row) for row in features])

    def _predict(self, row):
        total = 0
        for node in self._trees:
            while isinstance(node, tuple):
                feature, threshold, low, high = node
                node = low if row[feature] <= threshold else high
            total = total + node
        return total / len(self._trees)
