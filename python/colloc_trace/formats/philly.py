# SPDX-License-Identifier: Apache-2.0
"""The cluster_job_log of Microsoft's Philly traces (https://github.com/msr-fiddle/philly-traces).

A list of jobs, each with its submitted_time and its attempts, which have start_time, end_time
("None" or null if unknown) and, for every machine, the GPUs. A job's length is that of its attempts
together; its GPUs are those of the first attempt that names any.

The list is read an object at a time, so that a file of any size needs memory for a piece of it. An
object that does not end within what was read is parsed again with twice as much.
"""

import io
import json
import re
from typing import Any, BinaryIO, Iterator, NoReturn, Optional, Tuple

from colloc_bench.columns import ReadError
from colloc_bench.text import Fault
from colloc_trace.jobs import GPUS_MAX, LENGTH_MAX_US, Job, LeftOut
from colloc_trace.log import BreaksOff, Log, Skip
from colloc_trace.parse import parse_date

OBJECT_MAX = 1 << 24  # characters of one object; chosen: far above any job
PIECE = 1 << 20  # characters that are read at first
NEAR_END = 16  # an error this near to the end may be of a word or number that was cut
BLANKS = " \t\r\n"
CUT = re.compile(r"[a-z0-9+.\\-]*\s*")  # of a word, a number or an escape


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


class ObjectStream:
    """The objects of a JSON list."""

    def __init__(self, file: BinaryIO, name: str):
        self._text = io.TextIOWrapper(file, "utf-8", "surrogateescape", newline="")
        self.name, self.line, self.begins, self.count = name, 1, 1, 0
        self._buffer, self._at, self._ended = "", 0, False
        self._decoder = json.JSONDecoder(parse_constant=_refuse_constant)

    def detach(self) -> None:
        """Leaves the file to its owner."""
        self._text.detach()

    def broken(self, what: str) -> BreaksOff:
        """A fault with the current line."""
        return BreaksOff(f"{self.name}:{self.line}: {what}")

    def _fill(self, size: int) -> None:
        """Reads until the buffer has this many characters behind the current one."""
        rest = self._buffer[self._at :]
        try:
            more = self._text.read(max(0, size - len(rest)))
        except OSError:
            raise ReadError(f"{self.name}:{self.line}: the file cannot be read further") from None
        self._ended = self._ended or len(more) < size - len(rest)
        self._buffer, self._at = rest + more, 0

    def _solid(self) -> str:
        """The next character that is no blank, which is not taken; "": the file's end."""
        while True:
            text, at = self._buffer, self._at
            while at < len(text) and text[at] in BLANKS:
                self.line += text[at] == "\n"
                at += 1
            self._at = at
            if at < len(text):
                return text[at]
            if self._ended:
                return ""
            self._fill(PIECE)

    def _take(self, size: int) -> None:
        self.line += self._buffer.count("\n", self._at, self._at + size)
        self._at += size

    def _is_cut(self, at: int) -> bool:
        """May what could not be parsed be the beginning of something?"""
        if not self._ended:
            return at >= len(self._buffer) - NEAR_END
        return CUT.fullmatch(self._buffer, at) is not None

    def _object(self) -> Any:
        self.begins = self.line
        size = PIECE
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                is_cut = error.msg.startswith("Unterminated") or self._is_cut(error.pos)
                what, at = f"no JSON: {error.msg}", error.pos
            except (ValueError, RecursionError) as error:
                is_cut, what, at = False, f"no JSON: {error}", self._at
            else:
                self._take(end - self._at)
                self.count += 1
                return value
            if is_cut and not self._ended and size <= OBJECT_MAX:
                size *= 2
                self._fill(size)
                continue
            if is_cut and not self._ended:
                what = f"one job of more than {OBJECT_MAX >> 20} MiB, from line {self.begins} on"
            elif is_cut:
                at = len(self._buffer)
                what = (
                    f"the log breaks off within job {self.count + 1}, which begins in line "
                    f"{self.begins}"
                )
            self._take(at - self._at)
            raise self.broken(what)

    def objects(self) -> Iterator[Any]:
        """Each object. Raises BreaksOff with the line, and ReadError."""
        if self._solid() == "\ufeff":  # a byte order mark
            self._take(1)
        if self._solid() != "[":
            raise self.broken('the list of jobs must begin with "["')
        self._take(1)
        while True:
            mark = self._solid()
            if self.count and mark == ",":
                self._take(1)
                mark = self._solid()
            elif self.count and mark not in ("]", ""):
                raise self.broken('a comma or the list\'s "]" is missing behind a job')
            if mark == "{":
                yield self._object()
                continue
            if mark == "]":
                self._take(1)
                if self._solid():
                    raise self.broken("there is something behind the list of jobs")
                return
            raise self.broken(
                'a job must begin with "{"' if mark else "the log breaks off: the list has no end"
            )


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _list(value: Any) -> list:
    return value if isinstance(value, list) else []


def _time(job: Any, key: str) -> Optional[int]:
    """None: it is not known. Raises ValueError."""
    text = _get(job, key)
    if text is None or text in ("None", ""):
        return None
    us = parse_date(text) if isinstance(text, str) else None
    if us is None:
        raise ValueError(key)
    return us


def _attempt(attempt: Any) -> Tuple[int, bool]:
    """Its length, and whether it ended. Raises ValueError."""
    start_us, end_us = _time(attempt, "start_time"), _time(attempt, "end_time")
    if start_us is None or end_us is None:
        return 0, end_us is not None
    if end_us < start_us:
        raise ValueError("end_time")
    return end_us - start_us, True


def _job(value: Any) -> Job:
    """Raises ValueError, and Skip if the job had not ended."""
    submit_us, attempts = _time(value, "submitted_time"), _get(value, "attempts")
    if submit_us is None or not isinstance(attempts, list):
        raise ValueError("submitted_time")
    length_us, gpus, ended = 0, 0, True
    for attempt in attempts:
        of_attempt, ended = _attempt(attempt)
        length_us += of_attempt
        if length_us > LENGTH_MAX_US:
            raise ValueError("length")
        if not gpus:
            machines = _list(_get(attempt, "detail"))
            gpus = min(GPUS_MAX, sum(len(_list(_get(machine, "gpus"))) for machine in machines))
    if not ended:
        raise Skip(LeftOut.UNFINISHED)
    return Job(submit_us, length_us, gpus)


def read(file: BinaryIO, name: str, log: Log) -> None:
    """Adds the jobs of the file."""
    stream = ObjectStream(file, name)
    try:
        _add_jobs(stream, name, log)
    finally:
        stream.detach()


def _add_jobs(stream: ObjectStream, name: str, log: Log) -> None:
    for value in stream.objects():
        try:
            job = _job(value)
        except Skip as skip:
            log.leave_out(skip.reason)
            continue
        except ValueError:
            log.not_understood(
                Fault(
                    f"{name}:{stream.begins}: the job must have a submitted_time "
                    '"YYYY-MM-DD HH:MM:SS" and attempts, each with an end_time not before its '
                    "start_time, all of them together no longer than can be"
                )
            )
            continue
        user = _get(value, "user")
        number = log.user(user if isinstance(user, str) else None)
        log.add(job._replace(user=number), stream.begins)
