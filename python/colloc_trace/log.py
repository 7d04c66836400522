# SPDX-License-Identifier: Apache-2.0
"""What the readers of all formats share: the jobs that are kept, counts of the others, and the loop
over the rows of a table.

A wrong row is counted and the next one read, so that one mistake in a log of months does not hide
the rest. If the file ends in the wrong row, it was probably cut off there.
"""


import sys
from contextlib import contextmanager
from typing import BinaryIO, Callable, Iterator, List, NamedTuple, Optional, Tuple

from colloc_bench.columns import Columns, ReadError
from colloc_bench.text import Fault, strerror
from colloc_trace.jobs import GPUS_MAX, LENGTH_MAX_US, Counts, Job, Jobs, LeftOut
from colloc_trace.parse import is_missing, parse_date


class BreaksOff(Fault):
    """The file ends within a job; those before it were read."""


class Skip(Exception):
    """A job that is left out."""

    def __init__(self, reason: LeftOut):
        super().__init__(reason)
        self.reason = reason


class Options(NamedTuple):
    """What the command line says of the log."""

    processors_per_gpu: int = 1  # for formats that count processors
    second_table: Optional[str] = None  # a file, for formats that have one
    where: Tuple[str, str] = ("", "")  # column and value of the rows that are read; "": all
    seed: int = 0


class Log:
    """The jobs of a log."""

    def __init__(self, name: str, options: Options):
        self.name, self.options = name, options
        self.jobs, self.counts = Jobs(), Counts()
        self.first_mistake: Optional[Fault] = None

    def leave_out(self, reason: LeftOut) -> None:
        """Counts a job that is left out."""
        self.counts.read += 1
        self.counts.left_out[reason] += 1

    def not_understood(self, mistake: Fault) -> None:
        """Counts a job that is not understood; keeps the first such fault."""
        if self.first_mistake is None:
            self.first_mistake = mistake
        self.leave_out(LeftOut.NOT_UNDERSTOOD)

    def user(self, name: Optional[str]) -> int:
        """The number of the user, as the log has the name; None: not known."""
        return self.jobs.user_number(name or "")

    def add(self, job: Job, line: int) -> None:
        """Adds a job, or leaves it out: if it never ran, has no GPU, or has impossible figures."""
        if job.length_us == 0:
            self.leave_out(LeftOut.NEVER_RAN)
        elif job.gpus == 0:
            self.leave_out(LeftOut.NO_GPU)
        elif not 0 < job.length_us <= LENGTH_MAX_US or not 0 < job.gpus <= GPUS_MAX:
            seconds = int(job.length_us / 1_000_000)
            self.not_understood(
                Fault(f"{self.name}:{line}: a job of {job.gpus} GPUs and {seconds} s cannot be")
            )
        else:
            self.counts.read += 1
            self.jobs.add(job)


@contextmanager
def open_log(path: str) -> Iterator[Tuple[BinaryIO, str]]:
    """The file and its name in messages; "-": standard input. Raises Fault."""
    if path == "-":
        yield sys.stdin.buffer, "standard input"
        return
    try:
        with open(path, "rb", buffering=1 << 18) as file:
            yield file, path
    except OSError as error:
        raise Fault(f"{path}: {strerror(error)}") from None


def find_columns(table: Columns, names: List[str]) -> List[Optional[int]]:
    """The columns of these names; None: it has no such column."""
    return [table.find(name) for name in names]


def require_columns(table: Columns, names: List[str], of: str) -> None:
    """Raises Fault, with the names that the first line lacks."""
    missing = [name for name in names if table.find(name) is None]
    if missing:
        raise table.wrong(
            f"the first line names no {', '.join(missing)}: {of} has the columns {', '.join(names)}"
        )


def text_of(table: Columns, column: Optional[int]) -> Optional[str]:
    """The row's value; None: no value, which programs also write as NaN, None or null."""
    text = table.get(column)
    return None if is_missing(text) else text


def number_of(table: Columns, column: Optional[int], least: float, most: float) -> Optional[float]:
    """The value as a number; None: no value, or NaN. Raises Fault."""
    return None if text_of(table, column) is None else table.number_at(column, least, most)


def date_of(table: Columns, column: Optional[int]) -> Optional[int]:
    """The value as a time; None: it is not known. Raises Fault."""
    text = table.get(column)
    if text is None or text == "None" or column is None:
        return None
    us = parse_date(text)
    if us is None:
        raise table.wrong(f'{table.names[column]} is "{text[:40]}": YYYY-MM-DD HH:MM:SS is needed')
    return us


def read_rows(table: Columns, log: Log, read_row: Callable[[], None], of_jobs: bool = True) -> None:
    """Calls the function for each row. It raises Fault for a row that is not understood, and Skip
    for a job that is left out.

    of_jobs: rows are jobs, so that wrong ones are counted, and --where selects among them.
    Raises BreaksOff if the file ends within a row, and ReadError.
    """
    where, value = log.options.where if of_jobs else ("", "")
    column = table.find(where) if where else None
    if where and column is None:
        raise ReadError(
            f"{table.name}:{table.number}: --where={where}: the first line names no such column"
        )
    while True:
        try:
            row = table.next_row()
        except ReadError:
            raise
        except Fault as mistake:
            if table.at_end:
                raise BreaksOff(f"the log breaks off: {mistake}") from None
            if of_jobs:
                log.not_understood(mistake)
            continue
        if row is None:
            return
        if column is not None and (table.get(column) or "") != value:
            log.leave_out(LeftOut.OTHER_VALUE)
            continue
        try:
            read_row()
        except Skip as skip:
            log.leave_out(skip.reason)
        except ReadError:
            raise
        except Fault as mistake:
            if of_jobs:
                log.not_understood(mistake)
