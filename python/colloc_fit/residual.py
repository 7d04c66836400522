# SPDX-License-Identifier: Apache-2.0
"""The learned correction of the physical model, with whole families left out.

src/estimator/physics/residual.c applies what is learned here.
"""
import math
import random
import statistics

import numpy as np

from colloc_fit.algebra import ridge
from colloc_fit.physics import weight_of

NO_CORRECTION = math.inf
RIDGES = (3, 30, 300, 3000, NO_CORRECTION)
TOLERANCE = 0.03  # a logarithm; with a larger error a rule has failed, which no ratio replaces
FACTOR_MOST = math.log(2)  # RESIDUAL_FACTOR_MAX in residual.h
FOLDS = 8


def dot(weights, point):
    return float(np.dot(weights, point.features))


def learn(points, strength):
    """The coefficients of the correction. strength: the ridge, or NO_CORRECTION."""
    if strength == NO_CORRECTION:
        return np.zeros(len(points[0].features))
    return ridge(
        [p.features for p in points],
        [p.y for p in points],
        [weight_of(p) for p in points],
        strength,
        TOLERANCE,
    )


def predict(weights, point):
    """The correction of one estimate, a logarithm."""
    return max(-FACTOR_MOST, min(FACTOR_MOST, dot(weights, point)))


def folds(points):
    """Divides the families into sets, so that each family is wholly in one set."""
    families = sorted({point.row["family"] for point in points})
    random.Random(1).shuffle(families)
    return [set(families[k::FOLDS]) for k in range(FOLDS)]


def left_out(points, strength, learn_from=None):
    """[(point, correction learned without its family)]"""
    result = []
    for families in folds(points):
        inside = [p for p in learn_from or points if p.row["family"] not in families]
        outside = [p for p in points if p.row["family"] in families]
        if outside and inside:
            weights = learn(inside, strength)
            result += [(p, predict(weights, p)) for p in outside]
    return result


def of_kind(pairs, real):
    """The points of real networks, or those of networks drawn at random."""
    return [(p, c) for p, c in pairs if (p.row["kind"] == "real") == real]


def choose_strength(name, points):
    """The ridge with the least error on real families that are left out. Errors are bounded: a
    network that is far off lacks a rule, which no ratio replaces."""

    def error_of(strength):
        pairs = of_kind(left_out(points, strength), True)
        return statistics.mean(min(abs(p.y - c), 0.1) for p, c in pairs)

    errors = {strength: error_of(strength) for strength in RIDGES}
    best = min(errors, key=errors.get)
    tried = ", ".join(f"{strength:g}: {error:.4f}" for strength, error in errors.items())
    print(f"ridge of {name}: {best:g} ({tried}); inf is no correction")
    return best
