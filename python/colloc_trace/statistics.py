# SPDX-License-Identifier: Apache-2.0
"""Figures that describe a list of jobs, as text or JSON.

A quantile is the shortest length that the given share of the jobs does not exceed. Quantiles are
given since the mean says little: most jobs are short, and a few take days.
"""

import math
import sys
from typing import Any, Dict, List, NamedTuple

from colloc_bench.text import format_elapsed
from colloc_trace.jobs import Jobs
from colloc_trace.parse import SECOND_US, format_date
from colloc_trace.report import print_json

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
TEN_MINUTES_US = 600 * SECOND_US


class SizeShare(NamedTuple):
    """The jobs with one number of GPUs."""

    gpus: int
    jobs: int
    gpu_s: float  # GPUs times length, summed


class Statistics:
    """Of jobs in order of time, one at least."""

    def __init__(self, jobs: Jobs):
        n = self.jobs = len(jobs)
        self.span_s = (jobs.submit_us[-1] - jobs.submit_us[0]) / SECOND_US
        order = sorted(range(n), key=jobs.length_us.__getitem__)
        lengths = [jobs.length_us[i] for i in order]
        self.mean_length_s = self.gpu_s = 0.0
        sizes: Dict[int, List[float]] = {}
        for i, length_us in zip(order, lengths):
            gpu_s = jobs.gpus_requested(i) * (length_us / SECOND_US)
            self.mean_length_s += length_us / SECOND_US / n
            self.gpu_s += gpu_s
            size = sizes.setdefault(jobs.gpus[i], [0, 0.0])
            size[0] += 1
            size[1] += gpu_s
        self.under_ten_minutes = sum(length < TEN_MINUTES_US for length in lengths) / n
        self.quantile_s = [
            lengths[max(1, math.ceil(share * n)) - 1] / SECOND_US for share in QUANTILES
        ]
        self.sizes = [
            SizeShare(gpus, int(size[0]), size[1]) for gpus, size in sorted(sizes.items())
        ]

    def mean_busy(self) -> float:
        """The average number of busy GPUs, if each job had its GPUs alone and the trace ended with
        the last submission."""
        return self.gpu_s / self.span_s if self.span_s > 0 else 0.0


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _print_sizes(statistics: Statistics) -> None:
    """Jobs by their number of GPUs: few large jobs often have most of the GPU time."""
    rows = [("GPUS", "JOBS", "JOBS", "GPU TIME")]
    for size in statistics.sizes:
        rows.append(
            (
                f"{size.gpus}",
                f"{size.jobs}",
                f"{100 * _share(size.jobs, statistics.jobs):.1f} %",
                f"{100 * _share(size.gpu_s, statistics.gpu_s):.1f} %",
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print(" ".join(cell.rjust(width) for cell, width in zip(row, widths)).rstrip())


def print_statistics(jobs: Jobs, statistics: Statistics, is_dated: bool) -> None:
    """As text. is_dated: times are dates, not those since the log begins."""
    print(f"Jobs      {statistics.jobs} in {format_elapsed(statistics.span_s)}")
    if is_dated:
        print(f"From      {format_date(jobs.submit_us[0])} to {format_date(jobs.submit_us[-1])}")
    print(
        f"Length    mean {format_elapsed(statistics.mean_length_s)}, "
        f"{100 * statistics.under_ten_minutes:.1f} % under ten minutes"
    )
    for share, quantile_s in zip(QUANTILES, statistics.quantile_s):
        print(f"{100 * share:9.0f} % up to {format_elapsed(quantile_s)}")
    print(
        f"GPUs      {statistics.gpu_s / 3600:.0f} hours in use; "
        f"{statistics.mean_busy():.1f} busy on average\n"
    )
    _print_sizes(statistics)
    sys.stdout.flush()


def print_statistics_json(statistics: Statistics) -> None:
    """As JSON."""
    lengths: Dict[str, float] = {"mean": statistics.mean_length_s}
    for share, quantile_s in zip(QUANTILES, statistics.quantile_s):
        lengths[f"p{100 * share:.0f}"] = quantile_s
    sizes: List[Dict[str, Any]] = [
        {
            "gpus": size.gpus,
            "jobs": size.jobs,
            "share": _share(size.jobs, statistics.jobs),
            "gpu_time_share": _share(size.gpu_s, statistics.gpu_s),
        }
        for size in statistics.sizes
    ]
    print_json(
        {
            "jobs": statistics.jobs,
            "span_s": statistics.span_s,
            "length_s": lengths,
            "under_ten_minutes": statistics.under_ten_minutes,
            "gpu_hours": statistics.gpu_s / 3600,
            "mean_gpus_busy": statistics.mean_busy(),
            "sizes": sizes,
        }
    )
