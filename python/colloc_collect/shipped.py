# SPDX-License-Identifier: Apache-2.0
"""Reads what `clean` wrote: the runs, layers and descriptions that are shipped."""
import csv
import json
import lzma
import os

TEXT = {
    "id",
    "kind",
    "family",
    "split",
    "model",
    "shape",
    "activation",
    "optimizer",
    "precision",
    "status",
    "driver_from",
    "gpu",
}


def _value(column, text):
    if column in TEXT:
        return text
    return float(text) if text else None


def read_runs(folder):
    """One dict per configuration; numbers as numbers, None where there is none."""
    with lzma.open(os.path.join(folder, "runs.csv.xz"), "rt", newline="", encoding="utf-8") as file:
        return [
            {column: _value(column, text) for column, text in row.items()}
            for row in csv.DictReader(file)
        ]


def read_lines(folder, name):
    """The values of a file of JSON lines."""
    with lzma.open(os.path.join(folder, name), "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
