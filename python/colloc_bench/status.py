# SPDX-License-Identifier: Apache-2.0
"""Writes the outcome of tasks into the Status and Run columns of their table, as radT does:

    FINISHED resnet26 cifar10 b128 (0_A_MPS)      Status: how it ended, its name, its letter
    3-1.0                                         Run: the name of its log in the results, or the id
                                                  of its run of MLflow

The letter is radT's: the task's devices; _A, _B, ... where several tasks of the workload have the
same; and the way of sharing, if any. A row that belongs to a task of the group is printed anew,
everything else is copied, comments and blank lines included. The file is replaced atomically, and
only if it still has the text that was read.
"""

import os
import stat
from typing import Dict, List, NamedTuple, Tuple

from colloc_bench.columns import LINES, Columns, cell
from colloc_bench.group import Group, Sharing
from colloc_bench.text import Fault, decode, encode, read_bytes, strerror, write_atomic

TABLE_MAX = 64 << 20  # bytes of a table. Chosen: 100,000 rows of some 600.
NAME_MAX = 120  # characters of a name in a Status; chosen


class Outcome(NamedTuple):
    """What is written into a row."""

    status: str
    run: str


def letter_of(group: Group, i: int) -> str:
    """The letter of task `i`: "0", "0_B", "2_A_3g.20gb"."""
    task = group.tasks[i]
    same = [n for n, other in enumerate(group.tasks) if other.gpus == task.gpus]
    letter = task.gpus.replace(",", "+")
    if len(same) > 1:
        before = same.index(i)
        letter += f"_{chr(ord('A') + before)}" if before < 26 else f"_{before + 1}"
    if task.sharing in (Sharing.MPS, Sharing.MIG):
        letter += "_MPS" if task.sharing is Sharing.MPS else f"_{task.profile}"
    return letter


def find_columns(columns: Columns) -> Tuple[int, int]:
    """Where Status and Run are. Raises Fault."""
    if columns.separator != ",":
        raise Fault("the table is not separated by commas")
    found = []
    for name in ("Status", "Run"):
        at = columns.find(name)
        if at is None:
            raise Fault(f"it has no column {name}")
        found.append(at)
    return found[0], found[1]


def replace_rows(text: str, name: str, outcomes: Dict[int, Outcome]) -> str:
    """The text with the rows that begin in these lines replaced. Raises Fault."""
    columns = Columns(encode(text), name)
    status, run = find_columns(columns)
    lines = LINES.findall(text)
    out: List[str] = []
    copied = 0  # lines
    for row in columns.rows():
        outcome = outcomes.get(columns.number)
        if outcome is None:
            continue
        out += lines[copied : columns.number - 1]
        copied = columns.lines
        values = [*row]
        values[status], values[run] = outcome
        end = "\r\n" if lines[copied - 1].endswith("\r\n") else "\n"
        out.append(",".join(map(cell, values)) + end)
    return "".join(out + lines[copied:])


class StatusTable:
    """A table as it was last read or written."""

    def __init__(self, path: str):
        """Raises Fault if it cannot be written back: it is standard input, not comma-separated,
        without these columns, or not the caller's to write."""
        if path == "-":
            raise Fault("it is standard input")
        try:
            self.path = os.path.realpath(path)
            status = os.stat(self.path)
        except OSError as error:
            raise Fault(strerror(error)) from None
        if not stat.S_ISREG(status.st_mode):
            raise Fault("it is not a regular file")
        if status.st_uid != os.geteuid():
            raise Fault("it belongs to another user")
        if not os.access(self.path, os.W_OK):
            raise Fault("Permission denied")
        self.mode = stat.S_IMODE(status.st_mode)
        self.data = read_bytes(self.path, TABLE_MAX)
        if b"\0" in self.data:
            raise Fault("it has binary characters")
        find_columns(Columns(self.data, path))

    def write(self, group: Group, runs: List[str], failures: List[str]) -> None:
        """Writes the outcome of a group's tasks. Raises Fault, also when another program has
        changed the table since: it stays as it is.

        runs: the value of Run of each task. failures: "" of a task that succeeded.
        """
        outcomes = {}
        for i, task in enumerate(group.tasks):
            state = "FAILED" if failures[i] else "FINISHED"
            letter = letter_of(group, i)[:NAME_MAX]
            outcomes[task.line] = Outcome(f"{state} {task.name[:NAME_MAX]} ({letter})", runs[i])
        if read_bytes(self.path, TABLE_MAX) != self.data:
            raise Fault(f"{self.path} has changed while the bench ran")
        text = replace_rows(decode(self.data), self.path, outcomes)
        try:
            write_atomic(self.path, text, self.mode)
        except OSError as error:
            raise Fault(f"{self.path}: {strerror(error)}") from None
        self.data = encode(text)
