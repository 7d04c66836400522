# SPDX-License-Identifier: Apache-2.0
"""Lists of jobs, with the figures that every log of a cluster has, and the reasons for which jobs
are left out of a trace. A list takes about 40 bytes for each job, so that logs of millions fit.
"""

import math
from array import array
from enum import IntEnum
from typing import Dict, List, NamedTuple

# Figures beyond these are mistakes of a log (chosen: far above any cluster and any job).
GPUS_MAX = 100_000
LENGTH_MAX_US = 1_000_000_000 * 1_000_000
MEMORY_MAX_MIB = 1 << 24  # of a GPU: 16 TiB

MIG, SHARDS = 1, 2  # the part of a GPU is of instances of MIG; of shards, given by memory


class LeftOut(IntEnum):
    """Why jobs of a log are not in the trace."""

    NOT_UNDERSTOOD = 0
    UNFINISHED = 1
    NEVER_RAN = 2
    NO_GPU = 3
    OTHER_VALUE = 4
    OUTSIDE_WINDOW = 5
    TOO_LARGE = 6
    NOT_SAMPLED = 7
    BEYOND_LIMIT = 8


# Each follows a number of jobs.
LEFT_OUT_TEXTS = (
    "not understood",
    "had not ended",
    "never ran",
    "without GPUs",
    "with other values than --where",
    "outside the window",
    "need more GPUs than there are",
    "not sampled",
    "beyond --jobs",
)


class Counts:
    """The number of jobs in a log, and of those left out for each reason."""

    def __init__(self) -> None:
        self.read = 0
        self.left_out = [0] * len(LeftOut)


class Job(NamedTuple):
    """A job. Times are microseconds; submit_us is since 1970, or since the log begins."""

    submit_us: int
    length_us: int
    gpus: int
    user: int = 0  # in the list's users; 0: not known
    part: float = 0.0  # of each GPU that it requested, below 1; 0: whole GPUs
    flags: int = 0  # MIG, SHARDS
    smact: float = math.nan  # measured SM activity of each GPU; NAN: not known
    memory_mib: int = 0  # measured memory on each GPU; 0: not known


class Jobs:
    """A list of jobs by columns; users are numbers of names, in the order of their first jobs."""

    COLUMNS = ("submit_us", "length_us", "gpus", "user", "part", "flags", "smact", "memory_mib")

    def __init__(self) -> None:
        self.submit_us, self.length_us = array("q"), array("q")
        self.gpus, self.user = array("i"), array("i")
        self.part, self.smact = array("f"), array("f")
        self.flags = array("B")
        self.memory_mib = array("i")
        self.user_names: List[str] = [""]
        self._users: Dict[str, int] = {"": 0}
        self._find_columns()

    def _find_columns(self) -> None:
        self._append = [getattr(self, name).append for name in self.COLUMNS]

    def __len__(self) -> int:
        return len(self.submit_us)

    def user_number(self, name: str) -> int:
        """The number of a user's name; "": not known, 0."""
        number = self._users.get(name)
        if number is None:
            number = self._users[name] = len(self.user_names)
            self.user_names.append(name)
        return number

    def has_users(self) -> bool:
        """Does the log name any user?"""
        return len(self.user_names) > 1

    def add(self, job: Job) -> None:
        """Adds a job at the end."""
        for append, value in zip(self._append, job):
            append(value)

    def get(self, i: int) -> Job:
        """A job of the list."""
        return Job(*(getattr(self, name)[i] for name in self.COLUMNS))

    def keep(self, numbers: List[int]) -> None:
        """Only these jobs stay, in this order."""
        for name in self.COLUMNS:
            column = getattr(self, name)
            setattr(self, name, array(column.typecode, map(column.__getitem__, numbers)))
        self._find_columns()

    def sort(self) -> None:
        """Sorts by time of submission; jobs of the same time stay in order."""
        times = self.submit_us
        if any(times[i - 1] > times[i] for i in range(1, len(times))):
            self.keep(sorted(range(len(times)), key=times.__getitem__))

    def gpus_requested(self, i: int) -> float:
        """The GPUs that the job keeps busy, as it requested them: 0.5 for half of one."""
        part = self.part[i]
        return self.gpus[i] * (part if part > 0 else 1.0)
