# SPDX-License-Identifier: Apache-2.0
"""The tables of a bench of pipelines: CSV files, in which an unknown value is empty."""

import csv
import os
from typing import Any, Dict, List, Optional, Sequence

from colloc_pipeline.run import Run
from colloc_pipeline.statistics import mean, pipeline_row, stage_row


def known_sum(rows: List[Dict[str, Any]], key: str) -> Any:
    """The sum over processes; None unless each has the value."""
    values = [row.get(key) for row in rows]
    if not values or any(not isinstance(value, (int, float)) for value in values):
        return None
    return sum(value for value in values if value is not None)


def stage_rows(run: Run, mode: str, repeat: int) -> List[Dict[str, Any]]:
    """A row for each stage of a pipeline."""
    rows = []
    for stage in run.pipeline.stages:
        use = run.use[stage.name]
        figures = stage_row(run.visits[stage.name], run.batches[stage.name])
        if figures["busy"] is not None:
            figures["busy"] /= stage.processes
        rows.append(
            {
                "mode": mode,
                "repeat": repeat,
                "pipeline": run.pipeline.name,
                "stage": stage.name,
                "device": stage.device,
                "processes": stage.processes,
                **figures,
                "cpu_s": known_sum(use, "cpu_s"),
                "rss_peak_mib": known_sum(use, "rss_peak_mib"),
                "gpu_memory_mib": known_sum(use, "gpu_memory_mib"),
            }
        )
    return rows


def energy_per_request_j(
    power_w: Optional[float], requests: Sequence[int], seconds: Sequence[Optional[float]]
) -> Optional[float]:
    """The mean power over the time in which the requests of all pipelines were completed, divided
    by their number; None: not known.

    requests, seconds: of each pipeline that ran then, all from the same start

    Example: 100 W, 300 requests in 2 s and 100 in 4 s: 400 J for 400 requests, so 1 J each.
    """
    known = [value for value in seconds if value is not None]
    if power_w is None or not known or not sum(requests):
        return None
    return power_w * max(known) / sum(requests)


def result_of(run: Run, mode: str, repeat: int, gpu: Dict[str, Any]) -> Dict:
    """The row of a pipeline; `add_energy` adds its energy."""
    return {
        "mode": mode,
        "repeat": repeat,
        "pipeline": run.pipeline.name,
        "error": run.error or "",
        **pipeline_row(run.begun, run.ended, run.visits),
        "power_w": gpu.get("power_w"),
        "smact": gpu.get("smact"),
    }


def add_energy(rows: List[Dict[str, Any]]) -> None:
    """Adds the energy per request to the rows of pipelines that ran together: it is theirs
    together."""
    for row in rows:
        row["energy_per_request_j"] = energy_per_request_j(
            row["power_w"], [each["requests"] for each in rows], [each["seconds"] for each in rows]
        )


def write_table(folder: str, name: str, rows: List[Dict[str, Any]]) -> None:
    """Replaces a table, in one step."""
    if not rows:
        return
    path = os.path.join(folder, name)
    with open(path + ".new", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {
                    key: f"{value:.6g}" if isinstance(value, float) else value
                    for key, value in row.items()
                }
            )
    os.replace(path + ".new", path)


def format_ms(value: Any) -> str:
    """Milliseconds for people."""
    return "-" if value is None else f"{value:.1f} ms"


def print_run(rows: List[Dict[str, Any]], stages: List[Dict[str, Any]]) -> None:
    """The figures to print."""
    for row in rows:
        rate = row["requests_per_s"]
        per_s = "-" if rate is None else f"{rate:.1f}"
        print(
            f"{row['mode']:>8} {row['pipeline']}: {per_s} requests/s, "
            f"p50 {format_ms(row['p50_ms'])}, p99 {format_ms(row['p99_ms'])}"
            + (f"; most time is {row['lost_by']} at {row['lost_at']}" if row["lost_at"] else "")
            + (f"; FAILED: {row['error']}" if row["error"] else ""),
            flush=True,
        )
        for stage in stages:
            if stage["pipeline"] == row["pipeline"]:
                waiting = format_ms(stage["waiting_p50_ms"])
                service = format_ms(stage["service_p50_ms"])
                print(
                    f"{'':>8}   {stage['stage']}: waiting p50 {waiting}, service p50 {service}, "
                    f"batch {stage['mean_batch'] or 0:.1f}",
                    flush=True,
                )


def mean_of(rows: List[Dict[str, Any]], key: str) -> Any:
    """The mean of a column, over the rows that have it."""
    return mean([row[key] for row in rows if row.get(key) is not None])
