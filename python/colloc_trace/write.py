# SPDX-License-Identifier: Apache-2.0
"""The files of `colloc simulate`, as CSV. Times have at most three decimals; figures that are not
known are left empty.
"""

import math
import sys
from contextlib import contextmanager
from typing import Iterator, List, Optional, TextIO

from colloc_bench.columns import cell
from colloc_bench.text import Fault, strerror
from colloc_trace.jobs import SHARDS, Job, Jobs
from colloc_trace.mapping import Task
from colloc_trace.parse import format_seconds, llround

MIB = 1 << 20


@contextmanager
def open_output(path: str) -> Iterator[TextIO]:
    """A file that is written; "-": standard output. Raises Fault."""
    try:
        file = (
            open(
                sys.stdout.fileno(), "w", closefd=False, encoding="utf-8", errors="surrogateescape"
            )
            if path == "-"
            else open(path, "w", encoding="utf-8", errors="surrogateescape")
        )
    except OSError as error:
        raise Fault(f"{path}: {strerror(error)}") from None
    try:
        with file:
            yield file
    except OSError as error:
        raise Fault(f"{path}: could not all be written: {strerror(error)}") from None


def write_trace(path: str, jobs: Jobs, tasks: Optional[List[Task]]) -> None:
    """The arrival of each job, its task, and its user if users are known. tasks: None: each job is
    a separate task, "j1", "j2" and so on, which `write_tasks` describes. Raises Fault."""
    with open_output(path) as file:
        has_users = jobs.has_users()
        file.write("submit_s,task,user\n" if has_users else "submit_s,task\n")
        for i, submit_us in enumerate(jobs.submit_us):
            name = f"j{i + 1}" if tasks is None else cell(tasks[i].name)
            user = f",{cell(jobs.user_names[jobs.user[i]])}" if has_users else ""
            file.write(f"{format_seconds(submit_us)},{name}{user}\n")


def _figure(value: float) -> str:
    return "" if math.isnan(value) else f"{value:g}"


def _memory_mib(job: Job, task: Task, gpu_bytes: int) -> int:
    """Measured; else of shards their part of a GPU; else that of the task."""
    if job.memory_mib:
        return job.memory_mib
    if job.flags & SHARDS:
        return llround(gpu_bytes * (job.part or 1.0) / MIB)
    return task.memory_bytes // MIB


def _demand(job: Job, task: Task) -> List[float]:
    """Measured SM activity; else the part that the job requested, which is an upper bound: the rest
    of the activity is then unknown; else that of the task."""
    if not math.isnan(job.smact):
        return [job.smact] + [math.nan] * 4
    if job.part > 0 and not job.flags & SHARDS:
        return [job.part] + [math.nan] * 4
    return list(task.demand)


def write_tasks(path: str, jobs: Jobs, tasks: List[Task], gpu_bytes: int) -> None:
    """A catalogue in which each job is a task: with its own GPUs and length; memory and activity as
    measured or requested, else those of tasks[i]. gpu_bytes: memory of a GPU, of which shards are
    parts. Raises Fault."""
    with open_output(path) as file:
        file.write("task,gpus,solo_s,memory_mib,smact,gract,smocc,dram,power_w\n")
        for i, task in enumerate(tasks):
            job = jobs.get(i)
            figures = ",".join(map(_figure, _demand(job, task)))
            file.write(
                f"j{i + 1},{job.gpus},{format_seconds(job.length_us)},"
                f"{_memory_mib(job, task, gpu_bytes)},{figures}\n"
            )
