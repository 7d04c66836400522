# SPDX-License-Identifier: Apache-2.0
"""The dissertation's baselines on the real networks of data/memory: figures 5.1 to 5.3.

    scripts/study-baselines COLLOC FOLDER

COLLOC is the program, which answers for Horus and `graph`. FakeTensor, the peak of live tensors
over one forward and backward pass, is counted from the exports, which have each tensor of a
training with its life; it needs no PyTorch. FOLDER gets the pictures (SVG), their data (CSV), a
row for each run (runs.csv), and summary.csv: errors of the whole process as the driver saw it.
"""
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile

from colloc_fit.memory_runs import GPU, MemoryRuns

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MIB = 2**20
ESTIMATORS = ("horus", "faketensor", "graph")
LEFT_OUT = ("temp", "state")  # scratch of CUDA's kernels, the optimizer's state
STEP_GIB = 2  # of the histogram; chosen: as wide as the dissertation's bars look
MOST_GIB = 20  # its last bars are open


def fake_peak_bytes(export, batch):
    """The most that tensors hold together from the first parameter to the end of the first
    backward pass."""
    end = export["phases"][0]["optimizer"]
    ignored = {export["classes"].index(name) for name in LEFT_OUT if name in export["classes"]}
    changes = []
    for fixed, per_sample, first, last, kind in export["tensors"]:
        if first >= end or kind in ignored:
            continue
        size = fixed + per_sample * batch
        changes.append((first, size))
        if 0 <= last < end:
            changes.append((last, -size))
    live = peak = 0
    for _, change in sorted(changes):
        live += change
        peak = max(peak, live)
    return peak


def ask_colloc(colloc, run, summary, *options):
    """The estimates of a run, as `colloc estimate --json` lists them; none if it refuses."""
    command = [
        colloc,
        "estimate",
        f"--summary={summary}",
        f"--batch={run['batch']}",
        f"--optimizer={run['optimizer']}",
        f"--precision={run['precision']}",
        f"--gpu={GPU}",
        "--json",
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["estimates"] if done.returncode == 0 else []


def estimate_run(colloc, runs, run):
    """A row of runs.csv."""
    found = ask_colloc(colloc, run, runs.summaries[run["model"]], "--estimator=all")
    answers = {estimate["estimator"]: estimate["mib"] for estimate in found}
    row = {name: run[name] for name in ("id", "model", "family", "batch", "optimizer", "precision")}
    row["measured_mib"] = run["driver_mib"]
    path = runs.export_of(run)
    if path:
        with open(path, encoding="utf-8") as file:
            answers["faketensor"] = fake_peak_bytes(json.load(file), run["batch"]) / MIB
    for name in ESTIMATORS:
        row[f"{name}_mib"] = answers.get(name)
    return row


# ---- the report ----


def percentile(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def summarize(name, rows):
    """Errors of an estimator over the runs for which it has an answer."""
    known = [row for row in rows if row[f"{name}_mib"] is not None]
    errors = [row[f"{name}_mib"] / row["measured_mib"] - 1 for row in known]
    sizes = [abs(error) for error in errors]
    return {
        "estimator": name,
        "runs": len(known),
        "median_error": statistics.median(sizes),
        "p95_error": percentile(sizes, 0.95),
        "under": sum(error < 0 for error in errors) / len(errors),
        "most_under_gib": min((row[f"{name}_mib"] - row["measured_mib"]) / 1024 for row in known),
        "most_over_gib": max((row[f"{name}_mib"] - row["measured_mib"]) / 1024 for row in known),
    }


def histogram(name, rows):
    """Counts of the differences in GiB, estimate less measured, by steps; ends are open."""
    counts = {}
    for row in rows:
        if row[f"{name}_mib"] is None:
            continue
        gib = (row[f"{name}_mib"] - row["measured_mib"]) / 1024
        step = int(min(max(gib, -MOST_GIB), MOST_GIB) // STEP_GIB) * STEP_GIB
        counts[step] = counts.get(step, 0) + 1
    return counts


def draw(rows, folder):
    """Figures 5.1 and 5.2 (estimate against measurement) and 5.3 (histogram of the differences)."""
    from colloc_report.figure import bars, scatter

    series = {
        name: (
            [row["measured_mib"] / 1024 for row in rows if row[f"{name}_mib"] is not None],
            [row[f"{name}_mib"] / 1024 for row in rows if row[f"{name}_mib"] is not None],
        )
        for name in ESTIMATORS
    }
    scatter("estimates", series, "measured, GiB", "estimated, GiB", diagonal=True, log="xy").save(
        folder
    )
    counts = {name: histogram(name, rows) for name in ESTIMATORS}
    steps = range(-MOST_GIB, MOST_GIB + STEP_GIB, STEP_GIB)
    bars(
        "differences",
        [str(step) for step in steps],
        {name: [counts[name].get(step, 0) for step in steps] for name in ESTIMATORS},
        "runs",
        f"estimate less measured, GiB (from, {STEP_GIB} wide; the ends are open)",
    ).save(folder)


def write_rows(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        for row in rows:
            table.writerow(
                {key: f"{v:.5g}" if isinstance(v, float) else v for key, v in row.items()}
            )


def main(colloc, folder):
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        runs = MemoryRuns(os.path.join(TOP, "data", "memory"), scratch)
        rows = [estimate_run(colloc, runs, run) for run in runs.runs if run["kind"] == "real"]
    summary = [summarize(name, rows) for name in ESTIMATORS]
    write_rows(os.path.join(folder, "runs.csv"), rows)
    write_rows(os.path.join(folder, "summary.csv"), summary)
    for line in summary:
        print(line)
    draw(rows, folder)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
