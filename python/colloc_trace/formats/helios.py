# SPDX-License-Identifier: Apache-2.0
"""Two logs of Slurm-like clusters with the same columns, a line of names and one of each job.

SenseTime's Helios (README.md of the repository HeliosData by S-Lab-System-Group): `duration` is in
seconds; where it is missing, it is the time from start_time to end_time. A job that was cancelled
before it started has "None" or nothing as its start_time.

    job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
    1,u1,vc1,8,64,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:30,2020-06-09 18:45:39,249,3

Acme (README.md of InternLM/AcmeTrace): its two clusters of Shanghai AI Lab, with the `type` of work
on large language models. The duration of Seren is that from start to end; that of Kalos counts from
the submission, against what its README says (its first example ran for 8 s, waited for 10 s, and
has 18). So the length is end_time - start_time, and `duration` is used where a time is missing.

    job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue
    7,u9,1,8,128,Pretrain,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,...,117,32
"""

from typing import BinaryIO

from colloc_bench.columns import Columns
from colloc_trace.jobs import GPUS_MAX, LENGTH_MAX_US, Job, LeftOut
from colloc_trace.log import Log, Skip, date_of, find_columns, read_rows
from colloc_trace.parse import SECOND_US, llround

NAMES = ["submit_time", "start_time", "end_time", "duration", "gpu_num", "state", "user"]
UNFINISHED = ("RUNNING", "PENDING", "SUSPENDED")


class Reader:
    """Reads rows."""

    def __init__(self, table: Columns, log: Log, of: str, prefers_times: bool):
        self.table, self.log, self.prefers_times = table, log, prefers_times
        columns = find_columns(table, NAMES)
        self.submit, self.start, self.end, self.duration, self.gpus, self.state, self.user = columns
        has_length = self.duration is not None or None not in (self.start, self.end)
        if self.submit is None or self.gpus is None or not has_length:
            raise table.wrong(
                "the first line must name submit_time, gpu_num, and duration or start_time and "
                f"end_time, as that of {of} does"
            )

    def _length_of_times(self) -> int:
        """0 if the job never started. Raises Fault, and Skip without an end."""
        start_us, end_us = date_of(self.table, self.start), date_of(self.table, self.end)
        if end_us is None:
            raise Skip(LeftOut.UNFINISHED)
        return 0 if start_us is None else end_us - start_us

    def _length(self) -> int:
        """Raises Fault, and Skip if the job had not ended."""
        if self.prefers_times:
            start_us, end_us = date_of(self.table, self.start), date_of(self.table, self.end)
            if start_us is not None and end_us is not None:
                return end_us - start_us
        seconds = self.table.number_at(self.duration, 0, LENGTH_MAX_US / SECOND_US)
        return self._length_of_times() if seconds is None else llround(seconds * SECOND_US)

    def row(self) -> None:
        """Raises Fault and Skip."""
        table = self.table
        submit_us = date_of(table, self.submit)
        if submit_us is None:
            raise table.wrong("the job has no submit_time")
        gpus = table.number_at(self.gpus, 0, GPUS_MAX) or 0.0
        if gpus != int(gpus):
            raise table.wrong(f"gpu_num is {gpus:g}: whole GPUs are needed")
        if table.get(self.state) in UNFINISHED:
            raise Skip(LeftOut.UNFINISHED)
        length_us = self._length()
        user = self.log.user(table.get(self.user))
        self.log.add(Job(submit_us, length_us, int(gpus), user), table.number)


def read(file: BinaryIO, name: str, log: Log) -> None:
    """Adds the jobs of a cluster_log.csv of Helios."""
    table = Columns(file, name)
    read_rows(table, log, Reader(table, log, "Helios' cluster_log.csv", False).row)


def read_acme(file: BinaryIO, name: str, log: Log) -> None:
    """Adds the jobs of a trace_seren.csv or trace_kalos.csv of Acme."""
    table = Columns(file, name)
    read_rows(table, log, Reader(table, log, "Acme's trace_seren.csv", True).row)
