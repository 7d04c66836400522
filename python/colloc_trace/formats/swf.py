# SPDX-License-Identifier: Apache-2.0
"""The Standard Workload Format, version 2.2
(https://www.cs.huji.ac.il/labs/parallel/workload/swf.html).

18 numbers a line, -1 where a figure is unknown, ";" before comments, among them
"; UnixStartTime: N". Processors are taken to be GPUs, or --processors-per-gpu of them to be one.
"""

import math
import re
from typing import BinaryIO, List

from colloc_bench.columns import ReadError
from colloc_bench.text import Fault, decode
from colloc_trace.jobs import GPUS_MAX, Job
from colloc_trace.log import BreaksOff, Log
from colloc_trace.parse import SECOND_US, llround, parse_number

# Fields from 0 on.
SUBMIT, RUN_TIME, ALLOCATED, REQUESTED, STATUS, USER, FIELDS = 1, 3, 4, 7, 10, 11, 18
# A job that was interrupted has a line for each part, and one for the whole.
STATUS_PART, STATUS_LAST_PART_FAILED = 2, 4
LINE_MAX = 1 << 16  # bytes; chosen: 18 numbers take a few hundred
SECONDS_MAX = 7e9  # since 1970: the year 2191
RUN_TIME_MAX_S = 1e9
FIELD_MAX = 1e15
START = re.compile(r"UnixStartTime:\s*(\S{1,31})")


def _fields(line: str, where: str) -> List[float]:
    """Raises Fault."""
    fields: List[float] = []
    for word in line.strip(" \t\r\n").replace("\t", " ").split(" "):
        if not word:
            continue
        if len(fields) == FIELDS:
            raise Fault(f"{where}: more than 18 fields")
        value = parse_number(word)
        if value is None or not -FIELD_MAX <= value <= FIELD_MAX:
            raise Fault(f"{where}: a field is no number")
        fields.append(value)
    if len(fields) != FIELDS:
        raise Fault(f"{where}: a job must have 18 fields")
    return fields


def _add_job(fields: List[float], start_s: float, line: int, log: Log) -> None:
    processors = fields[ALLOCATED] if fields[ALLOCATED] > 0 else fields[REQUESTED]
    if STATUS_PART <= fields[STATUS] <= STATUS_LAST_PART_FAILED:
        return
    if (
        not 0 <= fields[SUBMIT] <= SECONDS_MAX
        or fields[RUN_TIME] > RUN_TIME_MAX_S
        or processors > GPUS_MAX
    ):
        log.not_understood(
            Fault(
                f"{log.name}:{line}: the submit time, the run time or the number of processors "
                "cannot be"
            )
        )
        return
    job = Job(
        llround((start_s + fields[SUBMIT]) * SECOND_US),
        llround(fields[RUN_TIME] * SECOND_US) if fields[RUN_TIME] > 0 else 0,
        math.ceil(processors / log.options.processors_per_gpu) if processors > 0 else 0,
        log.user(f"u{fields[USER]:.0f}" if fields[USER] >= 0 else None),
    )
    log.add(job, line)


def read(file: BinaryIO, name: str, log: Log) -> None:
    """Adds the jobs of the file."""
    start_s, number = 0.0, 0
    while True:
        try:
            data = file.readline(LINE_MAX)
        except OSError:
            raise ReadError(f"{name}: cannot be read after line {number}") from None
        if not data:
            return
        number += 1
        whole = data.endswith(b"\n")
        if (not whole and len(data) == LINE_MAX) or b"\0" in data:
            raise BreaksOff(f"{name}:{number}: the line is too long, or binary")
        line = decode(data).lstrip(" \t\r\n")
        if line.startswith(";"):
            match = START.search(line)
            value = parse_number(match[1]) if match else None
            if value is not None and 0 <= value <= SECONDS_MAX:
                start_s = value
        elif line:
            try:
                fields = _fields(line, f"{name}:{number}")
            except Fault as mistake:
                if not whole:
                    raise BreaksOff(f"the log breaks off: {mistake}") from None
                log.not_understood(mistake)
            else:
                _add_job(fields, start_s, number, log)
