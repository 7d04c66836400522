# SPDX-License-Identifier: Apache-2.0
"""Reads a journal back. The epochs of tasks.csv are read first, all of them: each group of
groups.csv gets its own."""

import os
from typing import Dict, Iterator, List, Tuple

from colloc_bench.columns import Columns, open_columns
from colloc_bench.experiment import TASKS_MAX
from colloc_bench.measured import MeasuredGroup, TaskEpoch

MEASURED_MAX = 1e15  # chosen: no figure of a training is larger

Runs = Dict[Tuple[str, int], Dict[Tuple[int, int], TaskEpoch]]


def number_of(columns: Columns, name: str) -> float:
    """A column as a number. Raises Fault."""
    value = columns.number_at(columns.find(name), -MEASURED_MAX, MEASURED_MAX)
    if value is None:
        raise columns.wrong(f"no {name}")
    return value


def text_of(columns: Columns, name: str) -> str:
    """A column as text."""
    return columns.get(columns.find(name)) or ""


def rows_of(path: str) -> Iterator[Columns]:
    """A file that may not be there, a row at a time."""
    if not os.path.exists(path):
        return
    columns = open_columns(path)
    for _ in columns.rows():
        yield columns


def read_epochs(folder: str) -> Runs:
    """The epochs of each run. A line that was written twice, after a crash, has one entry."""
    runs: Runs = {}
    for columns in rows_of(f"{folder}/tasks.csv"):
        epoch = columns.number_at(columns.find("epoch"), -MEASURED_MAX, MEASURED_MAX)
        if epoch is None:
            continue
        names = ("repeat", "task", "epoch_s", "epoch_from_unix_s", "epoch_to_unix_s", "samples")
        repeat, task, *times = (number_of(columns, name) for name in names)
        run = runs.setdefault((text_of(columns, "group"), int(repeat)), {})
        run[int(task), int(epoch)] = TaskEpoch(int(task), int(epoch), *times)
    return runs


def read_journal(folder: str) -> List[MeasuredGroup]:
    """The groups of the journal. Raises Fault."""
    runs = read_epochs(folder)
    groups = []
    for columns in rows_of(f"{folder}/groups.csv"):
        names = ("number", "repeat", "tasks", "failed", "began_unix_s", "total_s", "energy_j")
        number, repeat, tasks, failed, began_s, total_s, energy_j = (
            number_of(columns, name) for name in names
        )
        if tasks < 1 or tasks > TASKS_MAX:
            raise columns.wrong(f"tasks is {tasks:g}: 1 to {TASKS_MAX}")
        name, mix, sharing = (text_of(columns, each) for each in ("group", "mix", "sharing"))
        epochs = list(runs.get((name, int(repeat)), {}).values())
        counts = (int(number), int(repeat), int(tasks), int(failed))
        groups.append(
            MeasuredGroup(name, mix, sharing, *counts, began_s, total_s, energy_j, epochs)
        )
    return groups
