# SPDX-License-Identifier: Apache-2.0
"""The job_info_df.csv of Alibaba's trace of jobs on spot GPUs
(https://github.com/alibaba/clusterdata, cluster-trace-v2026-spot-gpu).

    job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type
    9,13,A10,20,1,1,0,2764799,HP
    10,57,A100-SXM4-80GB,15,1,16,9589663,41060,Spot

A job has gpu_request GPUs for each of its worker_num workers, which run together. Its user is its
organization. Times are in seconds after the first submission. Whether it is HP (high priority) or
Spot (preemptible) is a value for --where.
"""

from typing import BinaryIO

from colloc_bench.columns import Columns
from colloc_trace.formats.alibaba_2020 import TIME_MAX_S, whole_gpus
from colloc_trace.jobs import GPUS_MAX, LENGTH_MAX_US, Job
from colloc_trace.log import Log, number_of, read_rows, require_columns, text_of
from colloc_trace.parse import SECOND_US, llround

NEEDED = ["organization", "gpu_request", "worker_num", "submit_time", "duration"]


def read(file: BinaryIO, name: str, log: Log) -> None:
    """Adds the jobs of the file."""
    table = Columns(file, name)
    require_columns(table, NEEDED, "job_info_df.csv")
    organization, gpu_request, workers, submit, duration = (table.find(of) for of in NEEDED)

    def read_row() -> None:
        submit_s = number_of(table, submit, 0, TIME_MAX_S)
        length_s = number_of(table, duration, 0, LENGTH_MAX_US / SECOND_US)
        requested = number_of(table, gpu_request, 0, GPUS_MAX)
        count = number_of(table, workers, 0, GPUS_MAX)
        if submit_s is None or length_s is None or requested is None or count is None:
            raise table.wrong("the job lacks gpu_request, worker_num, submit_time or duration")
        gpus, part = whole_gpus(requested * count)
        user = log.user(text_of(table, organization))
        log.add(
            Job(llround(submit_s * SECOND_US), llround(length_s * SECOND_US), gpus, user, part),
            table.number,
        )

    read_rows(table, log, read_row)
