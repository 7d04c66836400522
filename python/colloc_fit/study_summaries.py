# SPDX-License-Identifier: Apache-2.0
"""Estimates from summaries for all real runs of data/memory, by evidence and by network.

    scripts/study-summaries COLLOC FOLDER

COLLOC is the program. Each run is estimated from its network's summary (torchinfo's or
torchsummary's form), batch, optimizer and precision. FOLDER gets summary.csv (by evidence: errors
of the whole process as the driver saw it, and how P99 held) and networks.csv (each network's worst
run). Networks whose worst error is beyond 15 % are printed.
"""
import os
import sys
import tempfile

from colloc_fit.memory_runs import MemoryRuns
from colloc_fit.study_baselines import TOP, ask_colloc, write_rows
from colloc_fit.study_printed import run_row, summarize

REMARKABLE = 0.15  # chosen: a packing by such an estimate wastes or lacks a seventh of the memory


def worst_of(model, rows):
    """A row of networks.csv: the run of this network with the largest error, if one has an
    estimate."""
    known = [row for row in rows if row["model"] == model and row["mib"] is not None]
    worst = max(known, key=lambda row: abs(row["mib"] / row["measured_mib"] - 1), default=None)
    return {
        "model": model,
        "evidence": worst["evidence"] if worst else "none",
        "runs": len(known),
        "worst_error": worst["mib"] / worst["measured_mib"] - 1 if worst else None,
        "batch": worst["batch"] if worst else None,
        "precision": worst["precision"] if worst else None,
        "above_p99": sum(row["p99_mib"] < row["measured_mib"] for row in known),
    }


def size_of_error(row):
    """Of a row of networks.csv; without an estimate 0."""
    return abs(row["worst_error"] or 0)


def main(colloc, folder):
    with tempfile.TemporaryDirectory() as scratch:
        runs = MemoryRuns(os.path.join(TOP, "data", "memory"), scratch)
        rows = [
            run_row(run, ask_colloc(colloc, run, runs.summaries[run["model"]], "--estimator=graph"))
            for run in runs.runs
            if run["kind"] == "real"
        ]
    if all(row["mib"] is None for row in rows):
        sys.exit(f"study-summaries: {colloc} has no estimate for any run")
    os.makedirs(folder, exist_ok=True)
    summary = [summarize(name, rows) for name in sorted({row["evidence"] for row in rows})]
    networks = [worst_of(model, rows) for model in sorted({row["model"] for row in rows})]
    networks.sort(key=size_of_error, reverse=True)
    write_rows(os.path.join(folder, "summary.csv"), summary)
    write_rows(os.path.join(folder, "networks.csv"), networks)
    for line in summary + [row for row in networks if size_of_error(row) > REMARKABLE]:
        print(line)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
