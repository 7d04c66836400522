# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/measured/trace.md, from the measurements beside it.

    scripts/tabulate-traces --simulate PROGRAMS     docs/measured/trace/simulated.json: what
                                                    `colloc simulate` predicts of each run
    scripts/tabulate-traces                         the tables of the page, from that file and the
                                                    measurements

A test compares the page with its files. PROGRAMS is a folder with colloc.
"""

import json
import os
import sys

from colloc_fit.judge_predictive import ROOT
from colloc_fit.study_trace import FORMER_NAMES, SIMULATED, read_with_exclusive, simulate
from colloc_fit.tables import markdown, write_blocks

PAGE = os.path.join(ROOT, "docs", "measured", "trace.md")
FOLDER = os.path.join(ROOT, "docs", "measured", "trace")
ESTIMATES, DECLARED = "magm-mps-estimated", "magm-mps-declared"

# Table of the page -> its columns: label, file, way; exclusive runs of other files by EXCLUSIVE.
TABLES = {
    "h200x4": {
        "exclusive": ("h200x4", "exclusive"),
        "MAGM, MPS": ("h200x4", "magm-mps"),
        "MAGM, estimates, MPS": ("h200x4", ESTIMATES),
        "predictive, MPS": ("h200x4", "predictive-mps"),
    },
    "h100x4-loading": {
        "exclusive": ("h100x4-loading-1", "exclusive"),
        "MAGM, estimates, MPS: run 1": ("h100x4-loading-1", ESTIMATES),
        "MAGM, estimates, MPS: run 2": ("h100x4-loading-2", ESTIMATES),
        "predictive, MPS: run 1": ("h100x4-loading-1", "predictive-mps"),
        "predictive, MPS: run 2": ("h100x4-loading-2", "predictive-mps"),
    },
    "h200x4-90": {
        "exclusive": ("h200x4-90-1", "exclusive"),
        "MAGM, estimates, MPS": ("h200x4-90-2", ESTIMATES),
    },
    "h100x4": {
        "exclusive": ("h100x4", "exclusive"),
        "MAGM, MPS, memory declared": ("h100x4", DECLARED),
        "predictive, MPS": ("h100x4", "predictive-mps"),
    },
    "h100x4-again": {
        "exclusive: run 1": ("h100x4-1", "exclusive"),
        "MAGM, estimates, MPS: run 1": ("h100x4-1", ESTIMATES),
        "MAGM, estimates, MPS: run 2": ("h100x4-2", ESTIMATES),
        "predictive, MPS: run 1": ("h100x4-1", "predictive-mps"),
    },
}
EXCLUSIVE = {
    "h100x4-loading-2": "h100x4-loading-1",
    "h200x4-90-2": "h200x4-90-1",
    "h100x4-2": "h100x4-1",
}


class Run:
    """A column: what was measured, the exclusive run beside it, and what was simulated."""

    def __init__(self, seen, way, predicted):
        self.measured, self.way, self.predicted = seen["ways"][way], way, predicted
        self.exclusive, self.tasks = seen["ways"]["exclusive"], seen["tasks"]
        self.n_tasks = len(self.tasks)

    def is_whole(self):
        return self.measured["completed"] == self.n_tasks

    def gain(self):
        if self.way == "exclusive":
            return ""
        percent = 100 * (self.measured["total_s"] / self.exclusive["total_s"] - 1)
        return f"{percent:.1f} %" if self.is_whole() else f"({percent:.0f} %)"

    def reserved(self, has_unused):
        """What was reserved against what was taken, least and most of all trainings.

        has_unused: with the unused memory that each training holds, which is known exactly
        """
        if self.way != ESTIMATES:
            return ""
        errors = []
        for task, ended in zip(self.tasks, self.measured["tasks"]):
            unused_mib = 0 if has_unused else 1024 * task["ballast_gib"]
            took_mib = ended["mem_peak_mib"] / task["gpus"] - unused_mib
            errors.append(100 * ((task["estimate_mib"] - unused_mib) / took_mib - 1))
        return f"{min(errors):+.1f} to {max(errors):+.1f} %"

    def error(self, name):
        if not self.is_whole():
            return ""
        return f"{100 * (self.predicted[name] / self.measured[name] - 1):+.1f} %"


def measured(name, form, scale=1):
    return lambda run: form.format(run.measured[name] / scale)


ROWS = {
    "total time, s": measured("total_s", "{:.1f}"),
    "against exclusive": Run.gain,
    "mean wait, s": measured("mean_wait_s", "{:.1f}"),
    "mean execution, s": measured("mean_exec_s", "{:.1f}"),
    "mean completion, s": measured("mean_jct_s", "{:.1f}"),
    "mean SM activity of the GPUs": measured("mean_smact", "{:.2f}"),
    "energy of the GPUs, kJ": measured("energy_j", "{:.0f}", 1000),
    "out-of-memory crashes": measured("oom", "{:.0f}"),
    "reserved against taken": lambda run: run.reserved(True),
    "... without unused memory": lambda run: run.reserved(False),
    "completed": lambda run: f"{run.measured['completed']} of {run.n_tasks}",
    "simulated total time, s": lambda run: f"{run.predicted['total_s']:.1f}",
    "simulated against measured": lambda run: run.error("total_s"),
    "simulated mean completion": lambda run: run.error("mean_jct_s"),
    "simulated crashes": lambda run: f"{run.predicted['oom']:.0f}",
}


def read(name):
    paths = [
        os.path.join(FOLDER, f"{each}.json.xz") for each in (name, EXCLUSIVE.get(name)) if each
    ]
    return read_with_exclusive(*paths)


def simulate_all(programs):
    """File -> way -> what is predicted."""
    names = sorted({name for columns in TABLES.values() for name, _ in columns.values()})
    found = {}
    for name in names:
        seen = read(name)
        found[name] = {
            way: simulate(os.path.abspath(programs), seen, way)
            for way, result in seen["ways"].items()
            if "error" not in result and FORMER_NAMES.get(way, way) in SIMULATED
        }
    return found


def tables():
    """Name of a block -> its Markdown."""
    with open(os.path.join(FOLDER, "simulated.json"), encoding="utf-8") as file:
        predicted = json.load(file)
    blocks = {}
    for table, columns in TABLES.items():
        runs = [Run(read(name), way, predicted[name][way]) for name, way in columns.values()]
        rows = [[label, *(cell(run) for run in runs)] for label, cell in ROWS.items()]
        blocks[table] = markdown(["", *columns], [row for row in rows if any(row[1:])])
    return blocks


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--simulate":
        with open(os.path.join(FOLDER, "simulated.json"), "w", encoding="utf-8") as file:
            json.dump(simulate_all(sys.argv[2]), file, indent=1)
            file.write("\n")
        return
    if len(sys.argv) != 1:
        sys.exit(__doc__)
    write_blocks(PAGE, tables())


if __name__ == "__main__":
    main()
