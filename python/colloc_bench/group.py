# SPDX-License-Identifier: Apache-2.0
"""A group of trainings that run together, and how they share their GPUs."""

import enum
import re
from dataclasses import dataclass, field
from typing import List, Optional, Tuple

THREADS_ALL = 100  # per cent of the SMs
PROFILE_SIZE = 32  # bytes of a MIG profile's name
PROFILE = re.compile(r"[0-9][0-9.cgbme+]*")


class Sharing(enum.Enum):
    """How a task shares its GPU. With MIG the task also names a profile."""

    SERIAL = "serial"
    STREAMS = "streams"
    MPS = "mps"
    MIG = "mig"


@dataclass
class Task:
    """A training.

    gpus: indices, comma-separated; "": the group's. line: of its row in a table of radT, or 0.
    """

    name: str = ""
    argv: List[str] = field(default_factory=list)
    folder: Optional[str] = None  # its working folder; None: the caller's
    is_script: bool = False  # of the user, not colloc's train.py
    sharing: Sharing = Sharing.STREAMS
    profile: str = ""  # of Sharing.MIG
    threads: int = THREADS_ALL  # percentage of the SMs under MPS
    gpus: str = ""
    profiler: Optional[str] = None  # a radT listener: nsys, nsysraw, ncu or ncuraw
    lists_host_memory: bool = False  # radT's listener free
    environment: Optional[str] = None  # of conda
    line: int = 0

    @property
    def sharing_name(self) -> str:
        """ "serial", "streams", "mps" or the MIG profile."""
        return self.profile if self.sharing is Sharing.MIG else self.sharing.value


@dataclass
class Group:
    """Tasks that run together.

    key: radT's experiment and workload; None in colloc's form.
    is_finished: by its Status in radT's table.
    gpu: the indices of all its GPUs, comma-separated.
    """

    name: str = ""  # "resnet26*4 mps": unique in its experiment
    mix: str = ""  # "resnet26*4"
    key: Optional[Tuple[str, str]] = None
    is_finished: bool = False
    gpu: str = ""
    tasks: List[Task] = field(default_factory=list)
    line: int = 0  # of the table, for messages

    @property
    def sharing(self) -> str:
        """ "mps", or one for each task: "2g.10gb/1g.5gb"."""
        names = [task.sharing_name for task in self.tasks]
        return names[0] if len(set(names)) == 1 else "/".join(names)

    @property
    def is_serial(self) -> bool:
        """Do its tasks run one after the other?"""
        return is_shared_by(self, Sharing.SERIAL)

    def gpus_of(self, task: Task) -> str:
        """The GPUs of one of its tasks."""
        return task.gpus or self.gpu


def is_shared_by(group: Group, sharing: Sharing) -> bool:
    """Has the group a task that shares in this way?"""
    return any(task.sharing is sharing for task in group.tasks)


def is_profile(text: str) -> bool:
    """ "3g.20gb", "1c.3g.20gb", "1g.10gb+me"."""
    _, dot, rest = text.partition(".")
    return bool(
        PROFILE.fullmatch(text)
        and dot
        and "g." in text
        and "gb" in rest
        and len(text) < PROFILE_SIZE
    )


def parse_sharing(text: str) -> Optional[Tuple[Sharing, str]]:
    """The way of sharing and the MIG profile, or "", of a text; None: it is neither."""
    for sharing in (Sharing.SERIAL, Sharing.STREAMS, Sharing.MPS):
        if text.lower() == sharing.value:
            return sharing, ""
    return (Sharing.MIG, text) if is_profile(text) else None
