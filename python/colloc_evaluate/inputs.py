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
# How the dissertation's machine differs from the simulator's defaults.
MACHINE = os.path.join(ROOT, "data", "published", "rad-rm.txt")
# Variants of it: what is added to that file.
MACHINES = {
    "": "",
    # A task alone under MPS is as fast as without.
    "free launches": "constant launch_cost 0\n",
    # Of the 100 s, RAD-RM's decision takes 35 s: 5 s for the test for crashes and 30 s.
    "decisions delayed": "constant startup_s 65\n",
}


class Inputs:
    """The input files of the runs.

    folder: where files for the runs are written
    traces: path by number of tasks
    tasks: path of the catalogue, or None for the one built into colloc
    """

    def __init__(self, folder, traces, tasks, estimators, story):
        self.traces, self.tasks, self.estimators, self.story = traces, tasks, estimators, story
        self.kinds = {name: _machine(folder, name) for name in MACHINES}

    def options(self, trace):
        return [f"--trace={self.traces[trace]}", *([f"--tasks={self.tasks}"] if self.tasks else [])]


def _machine(folder, name):
    """Writes the kinds of GPUs and constants of a variant of the machine. Returns the path."""
    path = os.path.join(folder, f"machine-{name.replace(' ', '-')}.txt")
    with open(MACHINE, encoding="utf-8") as machine, open(path, "w", encoding="utf-8") as file:
        file.write(machine.read() + MACHINES[name])
    return path


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
