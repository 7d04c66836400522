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
OWN_TASKS = os.path.join(ROOT, "data", "traces", "tasks.txt")
# How the dissertation's machine differs from the simulator's defaults.
MACHINE = os.path.join(ROOT, "data", "published", "rad-rm.txt")
# A task alone under MPS is as fast as without.
FREE_LAUNCHES = "constant launch_cost 0\n"
# Neither that nor clients of MPS side by side cost anything: SM time is all that they share.
NO_INTERFERENCE = FREE_LAUNCHES + "constant cache_cost 0\n"
# Of the 100 s, RAD-RM's decision takes 35 s: 5 s for the test for crashes and 30 s.
DELAYED = "constant startup_s 65\n"
# Variants of it: what is added to that file.
MACHINES = {
    "": "",
    "free launches": FREE_LAUNCHES,
    "no interference": NO_INTERFERENCE,
    "decisions delayed": DELAYED,
    "delayed, no interference": DELAYED + NO_INTERFERENCE,
}


class Inputs:
    """The input files of the runs.

    folder: where files for the runs are written
    traces: path by number of tasks
    tasks: path of the catalogue by the source of its memory: "", table 6.2 of the dissertation
        (None: the catalogue built into colloc), or "rerun", the authors' of 2025
    """

    def __init__(self, folder, traces, tasks, estimators, story):
        self.traces, self.tasks, self.estimators, self.story = traces, tasks, estimators, story
        self.kinds = {name: _machine(folder, name) for name in MACHINES}

    def options(self, trace, memory):
        tasks = self.tasks[memory]
        return [f"--trace={self.traces[trace]}", *([f"--tasks={tasks}"] if tasks else [])]


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
            {"": None, "rerun": _own_with_rerun(os.path.join(folder, "tasks-rerun.txt"))},
            (),
            "Tasks are those of `data/traces/tasks.txt`. The rows of Horus, FakeTensor and "
            "GPUMemNet are empty: they need `COLLOC_EVAL_DATA`, whose tasks have the answers of "
            "these estimators.",
        )
    traces = {n: os.path.join(data, "traces", f"philly-{n}.csv") for n in (60, 90)}
    source = os.path.join(data, "carma", "tasks.csv")
    tasks = {
        "": _with_answers(source, os.path.join(folder, "tasks.csv"), "thesis"),
        "rerun": _with_answers(source, os.path.join(folder, "tasks-rerun.csv"), "2025"),
    }
    return Inputs(
        folder,
        traces,
        tasks,
        ESTIMATORS,
        "Memory and times of the tasks are the dissertation's (table 6.2), the "
        "estimators' answers those of CARMA's task files, where a task without an answer has "
        "40000 MB and does not share a GPU.",
    )


def _with_answers(source, target, memory):
    """Writes the tasks with the memory of one source, or of the other where it has none. Returns
    the path."""
    with open(source, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["memory_mb_2025"] = row[f"memory_mb_{memory}"] or row["memory_mb_2025"]
        for name in ESTIMATORS:
            row[f"{name}_mb_reported"] = row[f"{name}_mb_reported"] or NO_ANSWER_MB
    with open(target, "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    return target


def _own_with_rerun(target):
    """Writes data/traces/tasks.txt with the memory of the rerun. Returns the path."""
    with open(OWN_TASKS, encoding="utf-8") as file:
        head, *rows = [line.split() for line in file if line.strip() and line[0] != "#"]
    memory, rerun = head.index("memory_mib"), head.index("rerun_mib")
    with open(target, "w", encoding="utf-8") as file:
        for row in (head, *rows):
            if row is not head and row[rerun] != "-":
                row[memory] = row[rerun]
            file.write(" ".join(row) + "\n")
    return target
