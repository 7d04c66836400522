# SPDX-License-Identifier: Apache-2.0
"""Quantiles of the errors of estimates, by kind of evidence and of network.

An outcome is an estimate and what the training took. Its score is the logarithm of measured to
estimated memory of the whole process, in units of the estimate's scale (quantile.h). A quantile of
the scores of other families is what suffices for a new network, however the scores are distributed
(split conformal prediction). src/estimator/physics/quantile.c applies what is calibrated here.
"""
import dataclasses
import math
import statistics

from colloc_fit.algebra import order_statistic

QUANTILES = (0.5, 0.9, 0.99)
NETWORKS = ("convolutions", "products")  # network_kind_name in quantile.c
REAL_LEAST = 50  # chosen: with as many real networks, those drawn at random are left out
TAIL_LEAST = 3  # chosen: errors beyond a quantile, for it to be known of one kind of network
GROUP_LEAST = 100  # chosen: the fewest runs with one beyond their P99, so that a tail is known
# The kind of evidence from which one with too few runs takes the shape of its tail.
PARENTS = {
    "doubtful summary": "declared",
    "export": "declared",
    "export with kernels": "export",
    "one other run": "declared",
    "several runs": "one other run",
    "other runs": "one other run",
}


@dataclasses.dataclass
class Outcome:
    """An estimate in bytes and what the run took."""

    row: dict
    network: str
    estimated: float
    actual: float
    scale: float = 1.0

    @property
    def score(self):
        return math.log(self.actual / self.estimated) / self.scale

    def reserved_at(self, level):
        """The memory that a quantile of this level reserves."""
        return self.estimated * math.exp(level * self.scale)


def basis_of(outcomes):
    """Those of real networks, which are the harder ones, where there are enough."""
    real = [o for o in outcomes if o.row["kind"] == "real"]
    return real if len(real) >= REAL_LEAST else outcomes


def level_of(outcomes, network, q):
    """Quantile q of the scores: of this kind of network alone, where enough lie beyond it."""
    own = [o.score for o in outcomes if o.network == network]
    known = len(own) * (1 - q) >= TAIL_LEAST
    return order_statistic(own if known else [o.score for o in outcomes], q)


def levels_of(outcomes, network):
    """P50, P90 and P99 of the scores, in order."""
    levels = [level_of(outcomes, network, q) for q in QUANTILES]
    return [max(levels[: i + 1]) for i in range(len(levels))]


def calibrate(outcomes):
    """Kind of network -> p50, p90, p99 and the number of its outcomes."""
    basis = basis_of(outcomes)
    return {
        network: (*levels_of(basis, network), sum(o.network == network for o in outcomes))
        for network in NETWORKS
    }


def with_parents(name, rows):
    """The calibration of a kind of evidence. One with few runs borrows its parent's tail.

    rows: kind of evidence -> calibrate(its outcomes). Returns None where nothing is known.
    """
    own = rows.get(name)
    parent = with_parents(PARENTS[name], rows) if name in PARENTS else None
    if own is None or parent is None or sum(row[3] for row in own.values()) >= GROUP_LEAST:
        return own or parent
    return {
        network: (p50, p90, max(p99, p90 * parent[network][2] / parent[network][1]), n)
        for network, (p50, p90, p99, n) in own.items()
    }


def reserves(outcomes, counted, q):
    """What quantile q reserves for the outcomes of `counted`, each calibrated on the other
    families of `outcomes`.

    Returns the share for which it is too little, and how much too much it is in the mean.
    """
    basis, under, over = basis_of(outcomes), [], []
    for family in sorted({o.row["family"] for o in counted}):
        others = [o for o in basis if o.row["family"] != family]
        levels = {network: levels_of(others, network) for network in NETWORKS} if others else {}
        for o in counted:
            if o.row["family"] == family and levels:
                reserved = o.reserved_at(levels[o.network][QUANTILES.index(q)])
                under.append(reserved < o.actual)
                over.append(max(0.0, reserved / o.actual - 1))
    return (statistics.mean(under), statistics.mean(over)) if under else (0.0, 0.0)
