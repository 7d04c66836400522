"""Traces and tasks: the project's own, or those of the evaluation data (COLLOC_EVAL_DATA), which also know what three
estimators were reported to say."""

import csv
import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ESTIMATORS = ("horus", "faketensor", "gpumemnet")
# What RAD-RM's task files say of a task that an estimator has no answer for: such a task shares with nobody.
NO_ANSWER_MB = "40000"


class Inputs:
    """`traces`: number of tasks -> path. `tasks`: path of the catalogue, or None for the one built into colloc."""

    def __init__(self, traces, tasks, estimators, story):
        self.traces, self.tasks, self.estimators, self.story = traces, tasks, estimators, story

    def options(self, trace):
        return [f"--trace={self.traces[trace]}", *([f"--tasks={self.tasks}"] if self.tasks else [])]


def find(folder):
    """Writes what it prepares into `folder`."""
    data = os.environ.get("COLLOC_EVAL_DATA")
    if not data:
        traces = {n: os.path.join(ROOT, "data", "traces", f"philly-{n}.txt") for n in (60, 90)}
        return Inputs(traces, None, (), "Tasks are those of `data/traces/tasks.txt`. The rows of Horus, FakeTensor and GPUMemNet "
                      "are empty: they need `COLLOC_EVAL_DATA`, whose tasks have the answers of these estimators.")
    traces = {n: os.path.join(data, "traces", f"philly-{n}.csv") for n in (60, 90)}
    tasks = os.path.join(folder, "tasks.csv")
    _as_in_the_thesis(os.path.join(data, "carma", "tasks.csv"), tasks)
    return Inputs(traces, tasks, ESTIMATORS, "Memory and times of the tasks are the dissertation's (table 6.2), the estimators' "
                  "answers those of CARMA's task files, where a task without an answer has 40000 MB and shares with nobody.")


def _as_in_the_thesis(source, target):
    """Memory and times as the dissertation has them, and only where it has none those of the rerun."""
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
