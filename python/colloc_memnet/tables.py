# SPDX-License-Identifier: Apache-2.0
"""The files from which colloc_report.memnet draws figures: features.csv and answers.csv."""

import csv
import os

from colloc_memnet.evaluate import classes_of

MIB = 2**20
COMMON = ["real", "family", "network", "batch", "optimizer", "precision", "measured_mib"]
VALUES = (
    "depth linears convs norms dropouts log_batch log_parameters log_activations"
    " log_batch_activations function_sin function_cos states half"
).split()
FEATURES = ["id", "set", *COMMON, *VALUES]
ANSWERS = (
    "net id part family network batch optimizer precision measured_mib class answered edge_mib"
    " p50_mib p90_mib p99_mib"
).split()


def _write(folder, name, columns, rows):
    with open(os.path.join(folder, name), "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(columns)
        out.writerows(rows)


def _training(row):
    return [row.family, row.network, row.batch, row.optimizer, row.precision]


def _mib(size_bytes):
    return f"{size_bytes / MIB:.1f}"


def write(feed, folder):
    """Writes both files; makes the folder."""
    os.makedirs(folder, exist_ok=True)
    features = (
        [row.id, row.set, int(row.real), *_training(row), _mib(row.bytes)]
        + [f"{value:.7g}" for value in row.values]
        for row in feed.rows
    )
    _write(folder, "features.csv", FEATURES, features)
    answers = (
        [plan.name, a.row.id, "real" if a.row.real else a.row.part, *_training(a.row)]
        + [_mib(a.row.bytes), *classes_of(plan, a)]
        + [_mib(a.edge_bytes), _mib(a.p50_bytes), _mib(a.p90_bytes), _mib(a.p99_bytes)]
        for plan in feed.plans
        for a in feed.answers.get(plan.name, ())
    )
    _write(folder, "answers.csv", ANSWERS, answers)
