# SPDX-License-Identifier: Apache-2.0
"""What runs of a network in other configurations say of a run, as src/estimator/other_runs.c does
it; and how the estimates from them were, leaving out each run once.

A pair is a point of colloc_fit.physics and the logarithm of its learned correction.
"""
import collections
import math

OWN_WEIGHT, RUN_WEIGHT = 1, 4
OPTIMIZER_FACTOR, PRECISION_FACTOR, BATCH_FACTOR = 4, 4, 0.25
RUNS_MOST = 4  # OTHER_RUNS_MAX


def differences(one, other):
    """In what the configurations of two points differ: "batch+optimizer"; "" for equal ones."""
    names = ("batch", "optimizer", "precision")
    return "+".join(name for name in names if one.row[name] != other.row[name])


def weight_of(point, other):
    """The weight of what another run says."""
    doublings = abs(math.log2(other.row["batch"] / point.row["batch"]))
    weight = RUN_WEIGHT / (1 + BATCH_FACTOR * doublings)
    if other.row["optimizer"] != point.row["optimizer"]:
        weight /= OPTIMIZER_FACTOR
    if other.row["precision"] != point.row["precision"]:
        weight /= PRECISION_FACTOR
    return weight


def correction_from(point, others):
    """The logarithm by which a point's estimate is raised for the others that say most."""
    others = sorted(others, key=lambda pair: -weight_of(point, pair[0]))[:RUNS_MOST]
    weights = [weight_of(point, other) for other, _ in others]
    errors = [other.y - correction for other, correction in others]
    return sum(w * e for w, e in zip(weights, errors)) / (sum(weights) + OWN_WEIGHT)


def networks_of(pairs):
    """The pairs of each network, by batch."""
    groups = collections.defaultdict(list)
    for p, c in sorted(pairs, key=lambda pair: pair[0].row["batch"]):
        groups[p.row["model"], p.row["sequence"]].append((p, c))
    return groups.values()


def other_configurations(pair, group):
    """The runs of the group in other configurations than that of the pair."""
    return [other for other in group if differences(pair[0], other[0])]


def from_one_run(pairs):
    """Each run, estimated from each other run of its network that differs in more than the
    optimizer: with the difference's name."""
    return [
        (p, c + correction_from(p, [other]), differences(p, other[0]))
        for group in networks_of(pairs)
        for p, c in group
        for other in other_configurations((p, c), group)
        if differences(p, other[0]) != "optimizer"
    ]


def from_all_runs(pairs):
    """Each run, estimated from all others of its network in other configurations, where there are
    several and none differs in the optimizer alone."""
    found = []
    for group in networks_of(pairs):
        for p, c in group:
            others = other_configurations((p, c), group)
            if len(others) > 1 and "optimizer" not in [differences(p, o) for o, _ in others]:
                found.append((p, c + correction_from(p, others)))
    return found
