# SPDX-License-Identifier: Apache-2.0
"""The measurements of a bench so far, in a folder:

    groups.csv      a line per group and repeat
    tasks.csv       a line per training and epoch
    looks/N-R.csv   samples of the GPU for group N, repeat R, as `colloc record` prints them
    logs/N-R.I      stderr of task I; logs/N-R.I.out: its stdout
    profiles/N-R.I  what its profiler wrote, with the profiler's ending

A run is added in two steps: first its trainings to tasks.csv, then its line to groups.csv, which
says that the run's other lines and files are complete. So a bench that was interrupted continues
with the first group that has none. Each file is appended whole and synced, or cut back to what it
was. A crash between the two leaves lines in tasks.csv of a run that groups.csv does not name: the
next bench repeats that run, and its lines then replace the earlier ones (journal_read.py).
"""

import contextlib
import os
import re
from dataclasses import dataclass, field
from typing import List, NamedTuple, Optional, Set, Tuple

from colloc_bench.columns import Columns, cell, open_columns
from colloc_bench.group import Group
from colloc_bench.text import Fault, encode, strerror, write_atomic
from colloc_bench.training_log import Epoch, Report

GROUPS_HEADER = (
    "group,number,repeat,mix,sharing,gpu,gpu_name,way,tasks,failed,began_unix_s,total_s,energy_j\n"
)
TASKS_HEADER = (
    "group,repeat,task,name,threads,exit_code,failure,started_unix_s,ended_unix_s,ready_unix_s,"
    "reserved_mib,epoch,epoch_s,epoch_from_unix_s,epoch_to_unix_s,samples\n"
)


@dataclass
class TaskResult:
    """How a training ran.

    exit_code: 128 + N for signal N; -1: it never started. failure: "": it succeeded; else how it
    ended, and its last message.
    """

    started_s: float = 0.0
    ended_s: float = 0.0
    exit_code: int = -1
    failure: str = "never started"
    out_of_gpu_memory: bool = False  # the failure is a result of the experiment
    report: Report = field(default_factory=Report)


class GroupResult(NamedTuple):
    """How a group ran; energy_j: of its GPUs meanwhile."""

    began_s: float
    total_s: float
    energy_j: float
    gpu_name: str
    way: str  # "processes" or "daemon"
    tasks: List[TaskResult]


def leading_integer(text: str) -> int:
    """The number at the front of a text; 0: there is none."""
    match = re.match(r"\s*[+-]?[0-9]+", text)
    return int(match[0]) if match else 0


def shown(value: Optional[float]) -> str:
    """A number with a comma before it; only that if it is not known."""
    return "," if value is None else f",{value:.6f}"


def task_line(group: Group, repeat: int, i: int, task: TaskResult, epoch: Optional[Epoch]) -> str:
    """A line of tasks.csv."""
    own = group.tasks[i]
    text = (
        f"{cell(group.name)},{repeat},{i},{cell(own.name)},{own.threads},{task.exit_code},"
        f"{cell(task.failure)},{task.started_s:.6f},{task.ended_s:.6f}"
        f"{shown(task.report.ready_s)}{shown(task.report.reserved_mib)}"
    )
    if epoch is None:
        return f"{text},,,,,\n"
    return (
        f"{text},{epoch.number},{epoch.took_s:.6f},{epoch.from_s:.6f},{epoch.to_s:.6f},"
        f"{epoch.samples:.0f}\n"
    )


def group_line(group: Group, number: int, repeat: int, result: GroupResult) -> str:
    """A line of groups.csv."""
    failed = sum(task.failure != "" for task in result.tasks)
    return (
        f"{cell(group.name)},{number},{repeat},{cell(group.mix)},{group.sharing},"
        f"{cell(group.gpu)},{cell(result.gpu_name)},{result.way},{len(group.tasks)},{failed},"
        f"{result.began_s:.6f},{result.total_s:.6f},{result.energy_j:.3f}\n"
    )


class Journal:
    """The journal in a folder, which is created. Raises Fault."""

    def __init__(self, folder: str):
        for kind in ("looks", "logs", "profiles"):
            path = f"{folder}/{kind}"
            try:
                os.makedirs(path, 0o755, exist_ok=True)
            except OSError as error:
                raise Fault(f"{path}: {strerror(error)}") from None
        # Trainings run in folders of their own, and their profilers write into this one.
        self.folder = os.path.realpath(folder)
        self.done: Set[Tuple[str, int]] = set()
        path = f"{folder}/groups.csv"
        if os.path.exists(path):
            self._read(open_columns(path))

    def _read(self, columns: Columns) -> None:
        group, repeat, energy = (columns.find(each) for each in ("group", "repeat", "energy_j"))
        if group is None or repeat is None or energy is None:
            raise Fault(f"{columns.name} is not the journal of a bench")
        for _ in columns.rows():
            name, number = columns.get(group), columns.get(repeat)
            if name is not None and number is not None:
                self.done.add((name, leading_integer(number)))

    def has(self, group: Group, repeat: int) -> bool:
        """Is the repeat of the group in the journal?"""
        return (group.name, repeat) in self.done

    def path(self, kind: str, number: int, repeat: int) -> str:
        """The path of a group's file without its ending: "FOLDER/looks/3-1"."""
        return f"{self.folder}/{kind}/{number}-{repeat}"

    def _append(self, name: str, header: str, text: str) -> None:
        """Appends whole lines durably, or leaves the file as it was: half a line could not be read
        again."""
        path = f"{self.folder}/{name}"
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise Fault(f"{path}: {strerror(error)}") from None
        try:
            before = os.lseek(fd, 0, os.SEEK_END)
            data = encode(text if before else header + text)
            try:
                while data:
                    data = data[os.write(fd, data) :]
                os.fsync(fd)
            except OSError as error:
                with contextlib.suppress(OSError):
                    os.ftruncate(fd, before)
                raise Fault(f"{path}: {strerror(error)}") from None
        finally:
            os.close(fd)

    def add(self, group: Group, number: int, repeat: int, result: GroupResult) -> None:
        """Adds a group: its lines are durable afterwards. Raises Fault."""
        lines = []
        for i, task in enumerate(result.tasks):
            for epoch in task.report.epochs or [None]:  # type: ignore[list-item]
                lines.append(task_line(group, repeat, i, task, epoch))
        self._append("tasks.csv", TASKS_HEADER, "".join(lines))
        self._append("groups.csv", GROUPS_HEADER, group_line(group, number, repeat, result))
        self.done.add((group.name, repeat))


# ---- repeating what failed ----


def run_of(columns: Columns) -> Tuple[Optional[str], Optional[str]]:
    """The group and the repeat of the current row."""
    return columns.get(columns.find("group")), columns.get(columns.find("repeat"))


def open_part(path: str) -> Columns:
    """A table of a journal. Raises Fault."""
    columns = open_columns(path)
    if columns.find("group") is None or columns.find("repeat") is None:
        raise Fault(f"{path} does not belong to the journal of a bench")
    return columns


def write_others(path: str, failed: Set[Tuple[Optional[str], Optional[str]]]) -> None:
    """Removes the lines of these runs."""
    columns = open_part(path)
    rows = [columns.names]
    rows += [[*row] for row in columns.rows() if run_of(columns) not in failed]
    try:
        write_atomic(path, "".join(",".join(map(cell, row)) + "\n" for row in rows))
    except OSError as error:
        raise Fault(f"{path}: {strerror(error)}") from None


def drop_failed(folder: str) -> None:
    """Removes groups with failed trainings from the journal in the folder, so that they run again;
    before the journal is opened. An interrupted removal is completed by the next one, since
    groups.csv, which is written last, still names the groups. Raises Fault."""
    groups = f"{folder}/groups.csv"
    if not os.path.exists(groups):
        return
    columns = open_part(groups)
    at = columns.find("failed")
    if at is None:
        raise Fault(f"{groups} is not the journal of a bench")
    failed = {run_of(columns) for _ in columns.rows() if (columns.get(at) or "") != "0"}
    write_others(f"{folder}/tasks.csv", failed)
    write_others(groups, failed)
