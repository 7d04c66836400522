# SPDX-License-Identifier: Apache-2.0
"""The algebra of the fits: each function states a problem, which NumPy and SciPy solve."""
import math

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.stats


def ridge(features, targets, weights, strength, tolerance=math.inf, rounds=4):
    """Coefficients of a linear model with an intercept in the first column.

    features: one row for each observation; targets: what they should give.
    weights: how much each observation counts.
    strength: the ridge. The intercept's is a thousandth of it, so that it is hardly shrunk.
    tolerance: residuals beyond it count as absolute instead of squared deviations (iteratively
        reweighted least squares, `rounds` times), so that a rule that fails for one kind of layer
        does not bend all the others.
    Returns an array as long as a row of features.
    """
    features, targets = np.asarray(features, float), np.asarray(targets, float)
    weights = np.asarray(weights, float)
    penalty = np.full(features.shape[1], float(strength))
    penalty[0] = max(1e-9, strength / 1e3)
    scale = np.ones(len(targets))
    for _ in range(rounds):
        weighted = features * (weights * scale)[:, None]
        normal = features.T @ weighted + np.diag(penalty)
        found = scipy.linalg.solve(normal, weighted.T @ targets, assume_a="pos")
        if tolerance == math.inf:
            break
        scale = tolerance / np.maximum(tolerance, np.abs(targets - features @ found))
    return found


def order_statistic(values, q):
    """The value that a new one of the same kind does not exceed with probability q, by split
    conformal prediction: the ceil(q (n + 1))-th of n values; the largest where n is too small."""
    values = np.sort(np.asarray(values, float))
    place = math.ceil(q * (len(values) + 1)) - 1
    return float(values[min(len(values) - 1, max(0, place))])


def rank_correlation(xs, ys):
    """Spearman's rank correlation; equal values share the mean of their ranks."""
    return float(scipy.stats.spearmanr(xs, ys)[0])


def minimise(function, start, rounds=500, tolerance=1e-6):
    """The point where the function is least, by Nelder and Mead's simplex.

    start: its first corner; in each other corner one coordinate is 30 % larger.
    tolerance: the search ends when the values at all corners are as near to each other.
    """
    start = np.asarray(start, float)
    simplex = np.vstack([start, start * (1 + 0.3 * np.eye(len(start)))])
    found = scipy.optimize.minimize(
        function,
        start,
        method="Nelder-Mead",
        options={
            "initial_simplex": simplex,
            "maxiter": rounds,
            "maxfev": None,
            "fatol": tolerance,
            "xatol": math.inf,
        },
    )
    return [float(x) for x in found.x]


def descend(grid, start, error_of, rounds=2):
    """Coordinate by coordinate over the grid's values, `rounds` times over all of them.

    grid: name -> the values to try; start: name -> the first value.
    Returns the best choice and its error.
    """
    best, least = dict(start), error_of(start)
    for _ in range(rounds):
        for name, values in grid.items():
            for value in values:
                trial = {**best, name: value}
                error = error_of(trial) if trial != best else least
                if error < least:
                    best, least = trial, error
    return best, least
