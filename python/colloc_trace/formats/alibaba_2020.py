# SPDX-License-Identifier: Apache-2.0
"""Alibaba's cluster-trace-gpu-v2020 (https://github.com/alibaba/clusterdata).

Its tables have no line of names, which are in separate .header files; both forms are read.
pai_task_table.csv has the tasks of each job, as "worker" and "ps"; pai_job_table.csv has the time
of submission and the user of each job:

    job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type
    j7,ps,1.0,Terminated,5000.0,6000.0,600.0,29.0,,MISC
    j7,worker,2.0,Terminated,5010.0,6000.0,400.0,29.0,50.0,V100

`plan_gpu` is what each of inst_num instances requested, in per cent of a GPU: job j7 requested two
halves, so one GPU. A job is that of its tasks with GPUs: from the first start to the last end, on
as many GPUs as its requests add up to, rounded up; the part is what it requested of each.

The tasks of a job may be anywhere in the table, so the jobs are collected first, by the hash of
their names. Names that share a hash of 64 bits would be taken for one job: among a million of jobs
that happens once in 37 million traces.
"""

import math
from array import array
from typing import BinaryIO, Dict, Optional

from colloc_bench.columns import Columns
from colloc_bench.text import Fault
from colloc_trace.jobs import GPUS_MAX, Job, LeftOut
from colloc_trace.log import BreaksOff, Log, find_columns, open_log, read_rows
from colloc_trace.parse import SECOND_US, llround

TIME_MAX_S = 7e9  # as in a log with dates: 222 years
TASK_NAMES = (
    "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type"
)
JOB_NAMES = "job_name,inst_id,user,status,start_time,end_time"
UNFINISHED, INVALID = 1, 2  # a task had not ended; a row cannot be understood
GPUS_TOLERANCE, PART_TOLERANCE = 1e-9, 1e-6  # of sums of decimal fractions


def whole_gpus(requested: float) -> "tuple[int, float]":
    """The GPUs of a request, and the part of each; 0: all of it."""
    gpus = math.ceil(requested - GPUS_TOLERANCE)
    part = requested / gpus if gpus > 0 else 0.0
    return min(gpus, GPUS_MAX + 1), part if part < 1 - PART_TOLERANCE else 0.0


class PaiJobs:
    """The jobs, as far as their rows have been read."""

    def __init__(self) -> None:
        self.number_of: Dict[int, int] = {}  # by the hash of the name
        self.line = array("q")  # of its first row
        self.submit_s, self.start_s, self.end_s = array("d"), array("d"), array("d")
        self.gpus = array("d")  # requested, parts included
        self.user, self.flags = array("i"), array("B")

    def of(self, name: str, line: int) -> int:
        """The number of the job of this name, a new one if there is none."""
        key = hash(name)
        number = self.number_of.get(key)
        if number is None:
            number = self.number_of[key] = len(self.line)
            self.line.append(line)
            for times in (self.submit_s, self.start_s, self.end_s):
                times.append(math.nan)
            self.gpus.append(0.0)
            self.user.append(0)
            self.flags.append(0)
        return number

    def add_to(self, log: Log) -> None:
        """Adds the jobs to the log."""
        for i, start_s in enumerate(self.start_s):
            if not self.flags[i] & INVALID:
                self._add_one(i, start_s, log)

    def _add_one(self, i: int, start_s: float, log: Log) -> None:
        gpus, part = whole_gpus(self.gpus[i])
        if self.flags[i] & UNFINISHED and gpus > 0:
            log.leave_out(LeftOut.UNFINISHED)
        elif gpus == 0:
            log.leave_out(LeftOut.NO_GPU)
        else:
            submit_us = length_us = 0
            if self.end_s[i] > start_s:
                submit_s = start_s if math.isnan(self.submit_s[i]) else self.submit_s[i]
                submit_us = llround(submit_s * SECOND_US)
                length_us = llround((self.end_s[i] - start_s) * SECOND_US)
            log.add(Job(submit_us, length_us, gpus, self.user[i], part), self.line[i])


def _require(table: Columns, columns: Dict[str, Optional[int]], header: str) -> None:
    for name, column in columns.items():
        if column is None:
            raise table.wrong(
                f"the first line names no {name}: the table must have the columns of {header}, or "
                "no such line"
            )


def _least(a: float, b: float) -> float:
    return b if math.isnan(a) else min(a, b)


def _most(a: float, b: float) -> float:
    return b if math.isnan(a) else max(a, b)


class TaskReader:
    """Adds rows of the table of tasks to their jobs."""

    def __init__(self, table: Columns, log: Log, jobs: PaiJobs):
        self.table, self.log, self.jobs = table, log, jobs
        names = ["job_name", "inst_num", "status", "start_time", "end_time", "plan_gpu"]
        columns = find_columns(table, names)
        self.job, self.instances, self.status, self.start, self.end, self.gpu = columns
        found = dict(zip(names, columns))
        del found["inst_num"], found["status"]
        _require(table, found, "pai_task_table.header")

    def _time(self, column: Optional[int]) -> Optional[float]:
        """None: it is not known, which the trace also writes as 0."""
        return self.table.number_at(column, 0, TIME_MAX_S) or None

    def _add(self, job: int) -> None:
        table, jobs = self.table, self.jobs
        gpus = table.number_at(self.gpu, 0, 100.0 * GPUS_MAX) or 0.0
        instances = table.number_at(self.instances, 0, GPUS_MAX)
        gpus *= (1.0 if instances is None else instances) / 100
        if gpus == 0:
            return
        jobs.gpus[job] += gpus
        start_s, end_s = self._time(self.start), self._time(self.end)
        if start_s is not None and end_s is not None and end_s < start_s:
            raise table.wrong("end_time is before start_time")
        has_ended = table.get(self.status) not in ("Running", "Waiting")
        if not has_ended or (start_s is not None and end_s is None):
            jobs.flags[job] |= UNFINISHED
        if start_s is not None and end_s is not None:  # else the task never started
            jobs.start_s[job] = _least(jobs.start_s[job], start_s)
            jobs.end_s[job] = _most(jobs.end_s[job], end_s)

    def row(self) -> None:
        """Raises Fault for a task without a name; a wrong row makes its job one."""
        name = self.table.get(self.job)
        if name is None:
            raise self.table.wrong("the task has no job_name")
        job = self.jobs.of(name, self.table.number)
        try:
            self._add(job)
        except Fault as mistake:
            if not self.jobs.flags[job] & INVALID:
                self.log.not_understood(mistake)
            self.jobs.flags[job] |= INVALID


def _read_job_table(path: str, log: Log, jobs: PaiJobs) -> None:
    """Adds times of submission and users of jobs that are known from their tasks."""
    with open_log(path) as (file, name):
        table = Columns(file, name, JOB_NAMES)
        names = ["job_name", "start_time", "user"]
        job, start, user = find_columns(table, names)
        _require(table, dict(zip(names, (job, start, user))), "pai_job_table.header")

        def read_row() -> None:
            key = table.get(job)
            number = jobs.number_of.get(hash(key)) if key is not None else None
            if number is None:
                return
            jobs.user[number] = log.user(table.get(user))
            submit_s = table.number_at(start, 0, TIME_MAX_S)
            if submit_s:
                jobs.submit_s[number] = submit_s

        read_rows(table, log, read_row, of_jobs=False)


def read(file: BinaryIO, name: str, log: Log) -> None:
    """Adds the jobs of a pai_task_table.csv."""
    table = Columns(file, name, TASK_NAMES)
    jobs = PaiJobs()
    try:
        read_rows(table, log, TaskReader(table, log, jobs).row)
        if log.options.second_table:
            _read_job_table(log.options.second_table, log, jobs)
    except BreaksOff:
        jobs.add_to(log)
        raise
    jobs.add_to(log)
