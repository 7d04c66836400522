# SPDX-License-Identifier: Apache-2.0
"""Finds the task of the catalogue that is most like a job, of which a log gives GPUs and length.

Tasks are sorted by GPUs, then by length; those with as many GPUs as the job form a range, in which
the nearest lengths are found by bisection. Lengths are compared by ratio: a task of 5 minutes is as
near to a job of 10 as one of 20.

Example: a job of 100 s, and tasks of 80, 96, 103 and 130 s. The nearest is 103 s (ratio 1.03).
Tasks up to a ratio of 1.03 x 1.05 are as good: 96 s (1.04) and 103 s, of which chance picks one.
"""

import csv
import math
from bisect import bisect_left, bisect_right
from typing import Dict, List, NamedTuple, Tuple

from colloc_trace.parse import SECOND_US
from colloc_trace.random import SeededRandom

# Tasks whose ratio to the job's length is up to 5 % above that of the nearest task count as equal.
# Chosen: so that the jobs of one length do not all become the same task.
TIE = 1.05
SHORTEST_S = 1e-3  # of a task or job: ratios need a length above 0


class Task(NamedTuple):
    """A task of the catalogue."""

    name: str
    gpus: int
    solo_s: float
    memory_bytes: int
    demand: Tuple[float, float, float, float, float]  # smact, gract, smocc, dram, power_w; NAN


def read_catalogue(path: str) -> List[Task]:
    """What src/cli/trace_run.c writes: the catalogue, checked, one task a row, in base units."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        tasks = []
        for name, gpus, solo_s, memory_bytes, *demand in csv.reader(file):
            figures = [float(text) for text in demand]
            smact, gract, smocc, dram, power_w = figures
            of_task = (smact, gract, smocc, dram, power_w)
            tasks.append(Task(name, int(gpus), float(solo_s), int(memory_bytes), of_task))
        return tasks


class Mapping:
    """Picks tasks by their likeness to jobs."""

    def __init__(self, tasks: List[Task], seed: int):
        self.tasks = sorted(tasks, key=lambda task: (task.gpus, task.solo_s))
        self.random = SeededRandom(seed)
        self._gpus = [task.gpus for task in self.tasks]
        self._lengths = [task.solo_s for task in self.tasks]
        self._ranges: Dict[int, Tuple[int, int]] = {}

    def _range(self, gpus: int) -> Tuple[int, int]:
        """The tasks with this number of GPUs, or with the nearest number by ratio."""
        if gpus not in self._ranges:
            at = bisect_left(self._gpus, gpus)
            nearest = self._gpus[at] if at < len(self._gpus) else 0
            fewer = self._gpus[at - 1] if at > 0 else 0
            if nearest == 0 or (nearest != gpus and fewer and gpus / fewer <= nearest / gpus):
                nearest = fewer
            ends = bisect_left(self._gpus, nearest), bisect_right(self._gpus, nearest)
            self._ranges[gpus] = ends
        return self._ranges[gpus]

    def nearest(self, gpus: int, length_us: int) -> Task:
        """One of the tasks with the nearest length, among those with as many GPUs as the job, or
        with the nearest number of GPUs."""
        begin, end = self._range(gpus)
        lengths, length_s = self._lengths, max(SHORTEST_S, length_us / SECOND_US)
        near, at = math.inf, bisect_left(lengths, length_s, begin, end)
        for i in range(max(begin, at - 1), min(end, at + 1)):
            of_task = max(SHORTEST_S, lengths[i])
            near = min(near, max(of_task / length_s, length_s / of_task))
        near *= TIE
        first = bisect_left(lengths, length_s / near, begin, end)
        last = bisect_right(lengths, length_s * near, begin, end)
        if first == last:  # the length of the nearest task is 0
            return self.tasks[at - 1]
        return self.tasks[first + self.random.below(last - first)]

    def any(self, gpus: int) -> Task:
        """Any task with that number of GPUs, or with the nearest number of GPUs."""
        begin, end = self._range(gpus)
        return self.tasks[begin + self.random.below(end - begin)]
