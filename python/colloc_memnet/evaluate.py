# SPDX-License-Identifier: Apache-2.0
"""The error of trained networks on measured runs: by class, as in the thesis, and in bytes.

A network answers with probabilities of bins, which are ranges of memory. So two things are
measured: how often it names the right bin, and how far its estimate is from the measured bytes,
above and below. An estimate below is the worse one: such a task runs out of memory.
"""

import collections
import dataclasses

# Accuracy, precision, recall and F1 in the thesis, tables 5.3, 5.5 and 5.7.
PUBLISHED = {
    "mlp-mlp-1gib": (0.9542, 0.9251, 0.9542, 0.9386),
    "mlp-mlp-2gib": (0.9706, 0.9621, 0.9706, 0.9662),
    "mlp-transformer-1gib": (0.9673, 0.9599, 0.9673, 0.9634),
    "mlp-transformer-2gib": (0.9804, 0.9707, 0.9804, 0.9755),
    "cnn-mlp-8gib": (0.8825, 0.8816, 0.8825, 0.8803),
    "cnn-transformer-8gib": (0.8449, 0.8443, 0.8431, 0.8431),
    "transformer-mlp-8gib": (0.8552, 0.8524, 0.8552, 0.8494),
    "transformer-transformer-8gib": (0.8650, 0.8650, 0.8650, 0.8596),
}
TEST, TEST_ADAM, REAL = "test", "test, Adam and fp32", "real networks"


@dataclasses.dataclass(frozen=True)
class Metrics:
    """All are fractions; the errors are of the answered edge: |answer / measured - 1|."""

    accuracy: float
    precision: float  # this and the next two: of each class, weighted by its rows
    recall: float
    f1: float
    commonest_class: float  # accuracy of always answering the most frequent class
    error_median: float
    error_p95: float
    error_most: float
    under: float  # of the answers, below the measured memory
    over_mean: float  # mean surplus
    p50_error_median: float
    covered_p50: float  # of the rows, with at most the quantile's memory
    covered_p90: float
    covered_p99: float


@dataclasses.dataclass(frozen=True)
class Group:
    """The metrics of a network over some rows."""

    network: str
    group: str
    family: str  # None: all families
    rows: int
    metrics: Metrics


def is_in(group, row):
    if group == REAL:
        return row.real
    thesis = row.optimizer in ("adam", "adamw") and row.precision == "fp32"
    return not row.real and row.part == "test" and (group == TEST or thesis)


def classes_of(plan, answer):
    """(measured, answered)"""
    return (
        plan.class_of(answer.row.bytes, answer.classes),
        plan.class_of(answer.edge_bytes - 1, answer.classes),
    )


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(int(q * len(ordered)), len(ordered) - 1)]


def class_metrics(pairs):
    """accuracy, precision, recall, F1, share of the commonest class; of (measured, answered)."""
    measured = collections.Counter(a for a, _ in pairs)
    answered = collections.Counter(b for _, b in pairs)
    both = collections.Counter(a for a, b in pairs if a == b)
    sums = [0.0] * 4
    for k, n in measured.items():
        precision = both[k] / answered[k] if answered[k] else 0
        recall = both[k] / n
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0
        parts = (both[k], precision * n, recall * n, f1 * n)
        sums = [total + part / len(pairs) for total, part in zip(sums, parts)]
    return (*sums, max(measured.values()) / len(pairs))


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def measure(plan, answers):
    errors = [abs(a.edge_bytes / a.row.bytes - 1) for a in answers]
    return Metrics(
        *class_metrics([classes_of(plan, a) for a in answers]),
        error_median=quantile(errors, 0.5),
        error_p95=quantile(errors, 0.95),
        error_most=max(errors),
        under=mean(a.edge_bytes < a.row.bytes for a in answers),
        over_mean=mean(max(a.edge_bytes / a.row.bytes - 1, 0) for a in answers),
        p50_error_median=quantile([abs(a.p50_bytes / a.row.bytes - 1) for a in answers], 0.5),
        covered_p50=mean(a.row.bytes <= a.p50_bytes for a in answers),
        covered_p90=mean(a.row.bytes <= a.p90_bytes for a in answers),
        covered_p99=mean(a.row.bytes <= a.p99_bytes for a in answers),
    )


def groups_of(plan, answers):
    """Yields a Group for each kind of rows, then one for each family in its first appearance."""
    wanted = [(group, None) for group in (TEST, TEST_ADAM, REAL)]
    families = dict.fromkeys((a.row.real, a.row.family) for a in answers)
    wanted += [(REAL if real else TEST, family) for real, family in families]
    for group, family in wanted:
        chosen = [
            a for a in answers if is_in(group, a.row) and (family is None or a.row.family == family)
        ]
        if chosen:
            yield Group(plan.name, group, family, len(chosen), measure(plan, chosen))


def evaluate(feed):
    return [
        group
        for plan in feed.plans
        if plan.name in feed.answers
        for group in groups_of(plan, feed.answers[plan.name])
    ]


# ---- output ----


def as_json(groups):
    """The object that `colloc memnet eval --json` prints."""
    rows = []
    for group in groups:
        row = {
            "network": group.network,
            "group": group.group,
            "family": group.family,
            "rows": group.rows,
            **dataclasses.asdict(group.metrics),
        }
        if group.group == TEST and group.family is None:
            names = ("accuracy", "precision", "recall", "f1")
            row["published"] = dict(zip(names, PUBLISHED[group.network]))
        rows.append(row)
    return {"memnet": rows}


def head(group):
    name = group.family or group.group
    return [
        group.network,
        f"real: {name}" if group.family and group.group == REAL else name,
        str(group.rows),
    ]


def class_row(group):
    m = group.metrics
    values = [m.accuracy, m.precision, m.recall, m.f1]
    cells = [f"{value:.4f}" for value in values]
    if group.group == TEST:
        cells = [f"{a} ({b:.4f})" for a, b in zip(cells, PUBLISHED[group.network])]
    return head(group) + cells + [f"{m.commonest_class:.4f}"]


def byte_row(group):
    m = group.metrics
    values = [m.error_median, m.error_p95, m.error_most, m.under, m.over_mean, m.p50_error_median]
    values += [m.covered_p50, m.covered_p90, m.covered_p99, m.accuracy]
    return head(group) + [f"{100 * value:.1f} %" for value in values]


CLASS_COLUMNS = "NETWORK|ROWS OF|N|ACCURACY|PRECISION|RECALL|F1|COMMONEST CLASS".split("|")
BYTE_COLUMNS = "NETWORK|ROWS OF|N|MEDIAN|P95|MOST|UNDER|OVER|P50|<=P50|<=P90|<=P99|IN BIN".split(
    "|"
)


def table(columns, rows):
    """Text columns left, numbers right, a blank between; "No rows." without any."""
    if not rows:
        return "No rows."
    widths = [max(map(len, cells)) for cells in zip(columns, *rows)]
    return "\n".join(
        " ".join(
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths))
        ).rstrip()
        for cells in [columns, *rows]
    )


def as_text(groups):
    whole = [group for group in groups if group.family is None]
    families = [group for group in groups if group.family is not None]
    return "\n".join(
        [
            "Classes; in parentheses the thesis's results on its own data (tables 5.3, 5.5, 5.7):",
            "",
            table(CLASS_COLUMNS, list(map(class_row, whole))),
            "",
            "Memory: error of the bin's upper edge (median, 95th percentile, maximum), answers",
            "that were too low, mean surplus of the reserved memory, median error of p50,",
            "how many runs used at most each quantile, and answers in the right bin:",
            "",
            table(BYTE_COLUMNS, list(map(byte_row, whole))),
            "",
            "The same by family:",
            "",
            table(BYTE_COLUMNS, list(map(byte_row, families))),
        ]
    )
