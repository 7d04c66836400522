# SPDX-License-Identifier: Apache-2.0
"""The report of a bench of pipelines, from its tables.

    python3 -m colloc_pipeline.report FOLDER      writes FOLDER/report/index.html
"""

import csv
import os
import sys
from typing import Dict, List, Optional

from colloc_report import Page, figure


def read_table(folder: str, name: str) -> List[Dict[str, str]]:
    """The rows of a table; none if it does not exist."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    except FileNotFoundError:
        return []


def number(text: str) -> Optional[float]:
    """None: not known."""
    return float(text) if text else None


def names_of(rows: List[Dict[str, str]], key: str) -> List[str]:
    """The values of a column, each once, in order."""
    return list(dict.fromkeys(row[key] for row in rows))


def find_value(rows: List[Dict[str, str]], value: str, **keys: str) -> Optional[float]:
    """The value of the first row with these keys; None: no such row, or unknown."""
    for row in rows:
        if all(row[key] == wanted for key, wanted in keys.items()):
            return number(row[value])
    return None


def add_pipelines(page: Page, rows: List[Dict[str, str]]) -> None:
    """Throughput, latency, energy; and where time is lost."""
    modes, pipelines = names_of(rows, "mode"), names_of(rows, "pipeline")
    page.heading("Pipelines")
    page.table(
        ["sharing", "repeat", "pipeline", ("requests/s", 1), ("p50, ms", 1), ("p95, ms", 1),
         ("p99, ms", 1), "most time is", ("of all, %", 0), ("J/request", 2)],
        [
            [row["mode"], int(row["repeat"]), row["pipeline"], number(row["requests_per_s"]),
             number(row["p50_ms"]), number(row["p95_ms"]), number(row["p99_ms"]),
             f"{row['lost_by']} at {row['lost_at']}" if row["lost_at"] else "",
             100 * float(row["lost_fraction"]) if row["lost_fraction"] else None,
             number(row["energy_per_request_j"])]
            for row in rows
        ],
        "Energy is that of the GPU, over all requests that were done in that time.",
    )  # fmt: skip
    for name, key, title in (
        ("latency", "p99_ms", "p99 from arrival to end, ms"),
        ("throughput", "requests_per_s", "Requests per second"),
    ):
        series = {
            mode: [find_value(rows, key, mode=mode, pipeline=p) for p in pipelines]
            for mode in modes
        }
        page.figure(figure.bars(name, pipelines, series, title, title=title))


def add_stages(page: Page, rows: List[Dict[str, str]]) -> None:
    """What requests meet at each stage."""
    page.heading("Stages")
    for pipeline in names_of(rows, "pipeline"):
        of_pipeline = [row for row in rows if row["pipeline"] == pipeline]
        page.table(
            ["sharing", "stage", ("blocked p50, ms", 1), ("waiting p50, ms", 1),
             ("service p50, ms", 1), ("latency p99, ms", 1), ("batch", 1), ("busy, %", 0),
             ("CPU, s", 1), ("GPU memory, MiB", 0)],
            [
                [row["mode"], row["stage"], *(number(row[key]) for key in (
                    "blocked_p50_ms", "waiting_p50_ms", "service_p50_ms", "latency_p99_ms",
                    "mean_batch")),
                 100 * float(row["busy"]) if row["busy"] else None, number(row["cpu_s"]),
                 number(row["gpu_memory_mib"])]
                for row in of_pipeline
            ],
            pipeline,
        )  # fmt: skip
        modes, stages = names_of(of_pipeline, "mode"), names_of(of_pipeline, "stage")
        series = {
            mode: [find_value(of_pipeline, "latency_p99_ms", mode=mode, stage=s) for s in stages]
            for mode in modes
        }
        title = f"p99 of the stages of {pipeline}, ms"
        page.figure(figure.bars(f"stages-{pipeline}", stages, series, title, title=title))


def add_matrix(page: Page, cells: List[Dict[str, str]]) -> None:
    """How many times as long a stage takes beside another."""
    page.heading("Contention of stages")
    for mode in names_of(cells, "mode"):
        of_mode = [cell for cell in cells if cell["mode"] == mode]
        stages = names_of(of_mode, "stage")
        page.table(
            ["stage", *((f"beside {stage}", 2) for stage in stages)],
            [
                [s, *(find_value(of_mode, "slowdown", stage=s, beside=other) for other in stages)]
                for s in stages
            ],
            f"{mode}: items per second alone by those beside the other",
        )


def write_report(folder: str) -> str:
    """Returns the path of the page."""
    page = Page("Pipelines that share a GPU")
    pipelines, cells = read_table(folder, "pipelines.csv"), read_table(folder, "matrix.csv")
    add_pipelines(page, pipelines)
    add_stages(page, read_table(folder, "stages.csv"))
    if cells:
        add_matrix(page, cells)
    return page.write(os.path.join(folder, "report"))


if __name__ == "__main__":
    print(write_report(sys.argv[1]))
