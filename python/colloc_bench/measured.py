# SPDX-License-Identifier: Apache-2.0
"""What a bench measured of a group: its times, and what they say of its speed. Pure.

The first epoch of a training is warm-up, the second is timed, and later ones only keep the GPU busy
for the other tasks. Throughput and activity of a group are means over the time in which all its
tasks train:

    task 0   | 1: warms up |  2: timed   |  3  |
    task 1       | 1: warms up    |  2: timed     |
                                  |-- together -|
"""

import math
from typing import List, NamedTuple, Optional

TIMED = 2  # the first epoch that is timed: in the one before, libraries choose their kernels


class TaskEpoch(NamedTuple):
    """An epoch of one of the group's tasks; seconds of the wall clock."""

    task: int
    number: int
    took_s: float
    from_s: float
    to_s: float
    samples: float


class Span(NamedTuple):
    """A period; empty if it ends before it begins."""

    from_s: float
    to_s: float

    def has(self, at_s: float) -> bool:
        """Is the moment in it?"""
        return self.from_s <= at_s <= self.to_s


class MeasuredGroup(NamedTuple):
    """A group of the journal, with the epochs of its tasks."""

    name: str
    mix: str
    sharing: str
    number: int
    repeat: int
    n_tasks: int
    failed: int
    began_s: float
    total_s: float
    energy_j: float
    epochs: List[TaskEpoch]

    def _timed(self) -> List[TaskEpoch]:
        return [epoch for epoch in self.epochs if epoch.number == TIMED]

    def _all_busy(self, first: int) -> Optional[Span]:
        """The time in which every task was in its epochs from `first` on; None: there is none."""
        begin, end = -math.inf, math.inf
        for task in range(self.n_tasks):
            own = [each for each in self.epochs if each.task == task and each.number >= first]
            begin = max(begin, min((each.from_s for each in own), default=math.inf))
            end = min(end, max((each.to_s for each in own), default=-math.inf))
        return Span(begin, end) if self.sharing != "serial" and begin < end else None

    def _timed_span(self) -> Span:
        """The time from the first start to the last end of the timed epochs."""
        timed = self._timed()
        return Span(
            min((each.from_s for each in timed), default=math.inf),
            max((each.to_s for each in timed), default=-math.inf),
        )

    def whole(self) -> Span:
        """The time from the first start of a task to the last end."""
        return Span(self.began_s, self.began_s + self.total_s)

    def span(self) -> Span:
        """The time that the means of the GPU are of: in which all tasks train; if there is none,
        that of the timed epochs; if no task reports epochs (a user's own script), the whole time.
        Empty if it is not known when the tasks trained: they report no epochs, and none ended
        well."""
        together = self._all_busy(TIMED)
        if together:
            return together
        if not self.epochs and self.failed < self.n_tasks:
            return self.whole()
        return self._timed_span()

    def epoch_s(self) -> Optional[float]:
        """The mean length of the timed epochs."""
        timed = self._timed()
        return sum(each.took_s for each in timed) / len(timed) if timed else None

    def _saw_all_others(self) -> bool:
        """Were all others busy during the whole timed epoch of each task?"""
        busy, timed = self._all_busy(1), self._timed_span()
        return (
            busy is not None
            and len(self._timed()) == self.n_tasks
            and busy.from_s <= timed.from_s
            and timed.to_s <= busy.to_s
        )

    def samples_per_s(self) -> Optional[float]:
        """The throughput of all tasks together: that of the timed epochs, if these saw all the
        others; else the mean over the time in which all train."""
        if self._saw_all_others():
            return sum(each.samples / each.took_s for each in self._timed())
        together = self._all_busy(TIMED)
        if together is None:
            return None
        samples = sum(samples_within(e, together) for e in self.epochs if e.number >= TIMED)
        return samples / (together.to_s - together.from_s)


def samples_within(epoch: TaskEpoch, span: Span) -> float:
    """The samples of an epoch that fall into the period."""
    overlap_s = min(epoch.to_s, span.to_s) - max(epoch.from_s, span.from_s)
    whole_s = epoch.to_s - epoch.from_s
    return epoch.samples * max(0.0, overlap_s) / whole_s if whole_s > 0 else 0.0
