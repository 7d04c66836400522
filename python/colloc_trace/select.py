# SPDX-License-Identifier: Apache-2.0
"""Selects the jobs of a log that make the trace.

Jobs are filtered in one pass in order of time, in this order: the window, the number of GPUs, the
sample, the number of jobs. The times of the kept ones then count from the first of them and are
scaled.
"""

from typing import List, NamedTuple, Optional

from colloc_trace.jobs import Counts, Jobs, LeftOut
from colloc_trace.parse import llround
from colloc_trace.random import SeededRandom


class Selection(NamedTuple):
    """Which jobs are kept."""

    from_us: int = 0  # jobs submitted before are left out
    from_is_date: bool = False  # from_us is a date; else it counts from the first submission
    window_us: int = 0  # jobs submitted later than this after from_us are left out; 0: none
    gpus_max: int = 0  # jobs with more GPUs are left out; 0: none
    sample: float = 1.0  # the probability of each of these to be kept
    jobs_max: int = 0  # of these, only the first are kept; 0: all
    arrival_scale: float = 1.0  # factor on the times between submissions
    seed: int = 0  # of the sample


def select_jobs(jobs: Jobs, selection: Selection, counts: Counts) -> None:
    """Removes the jobs that are not selected and sorts the others. Adds those that are left out to
    the counts."""
    random = SeededRandom(selection.seed)
    jobs.sort()
    if not len(jobs):
        return
    begin_us = selection.from_us + (0 if selection.from_is_date else jobs.submit_us[0])

    def reason_to_leave(i: int, kept: int) -> Optional[LeftOut]:
        since_us = jobs.submit_us[i] - begin_us
        if since_us < 0 or (selection.window_us and since_us >= selection.window_us):
            return LeftOut.OUTSIDE_WINDOW
        if selection.gpus_max and jobs.gpus[i] > selection.gpus_max:
            return LeftOut.TOO_LARGE
        if selection.sample < 1 and random.fraction() >= selection.sample:
            return LeftOut.NOT_SAMPLED
        if selection.jobs_max and kept >= selection.jobs_max:
            return LeftOut.BEYOND_LIMIT
        return None

    kept: List[int] = []
    for i in range(len(jobs)):
        reason = reason_to_leave(i, len(kept))
        if reason is None:
            kept.append(i)
        else:
            counts.left_out[reason] += 1
    jobs.keep(kept)
    first_us = jobs.submit_us[0] if kept else 0
    for i, submit_us in enumerate(jobs.submit_us):
        jobs.submit_us[i] = llround((submit_us - first_us) * selection.arrival_scale)
