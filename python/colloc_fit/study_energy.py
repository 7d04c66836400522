# SPDX-License-Identifier: Apache-2.0
"""What a limit of power costs, by simulation: the 60-task trace on the dissertation's machine, with
run times that are varied by some per cent: medians of the seeds.

    scripts/study-energy [--page=docs/energy.md] COLLOC

Prints the table, or writes it into the page. COLLOC: the program.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

from colloc_fit.judge_predictive import ROOT
from colloc_fit.tables import markdown, write_block

TRACE = os.path.join(ROOT, "data", "traces", "philly-60.txt")
GPUS = "4xA100-40GB-DGX-Station"
SEEDS = range(1, 11)
UNITS = {"total": "{:.1f} min", "mean wait": "{:.1f} min", "energy": "{:.2f} MJ",
         "highest power": "{:.0f} W"}  # fmt: skip
ROWS = {
    "exclusive": ["--policy=exclusive"],
    "MAGM on MPS": ["--policy=magm"],
    "MUG on MPS": ["--policy=mug"],
    "MAGM, `--server-power-max=1000`": ["--policy=magm", "--server-power-max=1000"],
    "MAGM, `--server-power-max=900`": ["--policy=magm", "--server-power-max=900"],
    "MAGM, `--server-power-max=800`": ["--policy=magm", "--server-power-max=800"],
    "MUG, `--server-power-max=800`": ["--policy=mug", "--server-power-max=800"],
    "MAGM, `--power-max=0.8`": ["--policy=magm", "--power-max=0.8"],
    "MAGM, `--power-max=0.7`": ["--policy=magm", "--power-max=0.7"],
}


def highest_power_w(path):
    """The most that all GPUs of a timeline drew together."""
    changes, now, most = {}, {}, 0
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            changes.setdefault(float(row["time_s"]), {})[row["gpu"]] = float(row["power_w"])
    for time_s in sorted(changes):
        now.update(changes[time_s])
        most = max(most, sum(now.values()))
    return most


def simulate(colloc, words, seed):
    """Figures of one run, by the keys of UNITS."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "timeline.csv")
        command = [
            *(colloc, "simulate", f"--trace={TRACE}", "--known=activity", f"--gpus={GPUS}"),
            *("--json", f"--timeline={path}", f"--seed={seed}", *words),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        result, most_w = json.loads(done.stdout), highest_power_w(path)
    figures = result["total_s"] / 60, result["avg_wait_s"] / 60, result["energy_mj"], most_w
    return dict(zip(UNITS, figures))


def medians(colloc):
    """Row of ROWS -> its figures."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [(words, seed) for words in ROWS.values() for seed in SEEDS]
        runs = list(pool.map(lambda job: simulate(colloc, *job), jobs))
    of_rows = [runs[i : i + len(SEEDS)] for i in range(0, len(runs), len(SEEDS))]
    return {
        row: {key: statistics.median(run[key] for run in mine) for key in UNITS}
        for row, mine in zip(ROWS, of_rows)
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("colloc", metavar="COLLOC", help="the program")
    parser.add_argument("--page", help="a page whose table is written; default: printed")
    arguments = parser.parse_args()
    rows = [
        [row, *(unit.format(figures[key]) for key, unit in UNITS.items())]
        for row, figures in medians(arguments.colloc).items()
    ]
    head = ["policy, limit", *UNITS]
    write_block(arguments.page, "study-energy", markdown(head, rows))


if __name__ == "__main__":
    main()
