# SPDX-License-Identifier: Apache-2.0
"""Traces and tasks: the project's, or those of the evaluation data.

The evaluation data (COLLOC_EVAL_DATA) also have the answers of three estimators.
"""

import csv
import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ESTIMATORS = ("horus", "faketensor", "gpumemnet")
# An estimator without an answer in RAD-RM's task files; such a task does not share a GPU.
NO_ANSWER_MB = "40000"


OWN_TRACES = {n: os.path.join(ROOT, "data", "traces", f"philly-{n}.txt") for n in (60, 90)}
ACTIVITIES = (90, 110)


class Inputs:
    """The input files of the runs.

    folder: where files for the runs are written
    traces: path by number of tasks
    tasks: path of the catalogue, or None for the one built into colloc
    """

    def __init__(self, folder, traces, tasks, estimators, story):
        self.traces, self.tasks, self.estimators, self.story = traces, tasks, estimators, story
        self.free_launches = os.path.join(
            folder, "free-launches.txt"
        )  # a task alone under MPS is as fast as without
        with open(self.free_launches, "w", encoding="utf-8") as file:
            file.write("constant launch_cost 0\n")
        self.scaled = {percent: _scaled(folder, percent) for percent in ACTIVITIES}

    def options(self, trace, activity_percent=100):
        if activity_percent != 100:
            return [f"--trace={OWN_TRACES[trace]}", f"--tasks={self.scaled[activity_percent]}"]
        return [f"--trace={self.traces[trace]}", *([f"--tasks={self.tasks}"] if self.tasks else [])]


def find(folder):
    """Returns the inputs; files that it makes are written into `folder`."""
    data = os.environ.get("COLLOC_EVAL_DATA")
    if not data:
        return Inputs(
            folder,
            OWN_TRACES,
            None,
            (),
            "Tasks are those of `data/traces/tasks.txt`. The rows of Horus, FakeTensor and "
            "GPUMemNet are empty: they need `COLLOC_EVAL_DATA`, whose tasks have the answers of "
            "these estimators.",
        )
    traces = {n: os.path.join(data, "traces", f"philly-{n}.csv") for n in (60, 90)}
    tasks = os.path.join(folder, "tasks.csv")
    _as_in_the_thesis(os.path.join(data, "carma", "tasks.csv"), tasks)
    return Inputs(
        folder,
        traces,
        tasks,
        ESTIMATORS,
        "Memory and times of the tasks are the dissertation's (table 6.2), the "
        "estimators' answers those of CARMA's task files, where a task without an answer has "
        "40000 MB and does not share a GPU.",
    )


def _scaled(folder, percent):
    """Writes the project's tasks with `percent` of the activity that data/traces/tasks.txt assumes.

    Returns the path.
    """
    path = os.path.join(folder, f"tasks-{percent}.txt")
    with open(os.path.join(ROOT, "data", "traces", "tasks.txt"), encoding="utf-8") as file:
        head, *rows = [line.split() for line in file if not line.startswith("#") and line.strip()]
    for row in rows:
        for name in ("smact", "smocc", "dram"):
            row[head.index(name)] = f"{min(1, float(row[head.index(name)]) * percent / 100):.4f}"
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(" ".join(row) + "\n" for row in (head, *rows))
    return path


def _as_in_the_thesis(source, target):
    """Memory and times of the dissertation; those of the rerun where it has none."""
    with open(source, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["memory_mb_2025"] = row["memory_mb_thesis"] or row["memory_mb_2025"]
        for name in ESTIMATORS:
            row[f"{name}_mb_reported"] = row[f"{name}_mb_reported"] or NO_ANSWER_MB
    with open(target, "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
