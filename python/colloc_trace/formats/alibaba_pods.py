# SPDX-License-Identifier: Apache-2.0
"""Two tables of Kubernetes pods of Alibaba (https://github.com/alibaba/clusterdata). A pod is a job
from its scheduling to its deletion; times are in seconds.

cluster-trace-gpu-v2023, openb_pod_list_*.csv: what the pods requested of GPUs that they share, in
thousandths of one. A pod that waited and was never scheduled never ran.

    name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,...
    pod-7,6000,12288,1,460,,LS,Running,427061,...

cluster-trace-gpu-v2025, disaggregated_DLRM_trace.csv: instances that serve recommendation models,
on nodes with GPUs (role HN) and without (CN). An instance that was there before the trace has no
creation_time: it is submitted when the trace begins. One without a deletion_time had not ended.
The application is its user.

    instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,...,creation_time,scheduled_time,...
    instance_7,HN,app_0,12,12,1,1,25,25,120.0,120.0,640.0,800.0,8,1435629.0,1435629.0,1435760.0
"""

from typing import BinaryIO, Optional

from colloc_bench.columns import Columns
from colloc_trace.formats.alibaba_2020 import TIME_MAX_S, whole_gpus
from colloc_trace.jobs import GPUS_MAX, Job, LeftOut
from colloc_trace.log import Log, Skip, number_of, read_rows, require_columns, text_of
from colloc_trace.parse import SECOND_US, llround

TIMES = ["creation_time", "scheduled_time", "deletion_time"]
MILLI_MAX = 1000  # thousandths of a GPU: a whole one


class Times:
    """The times of the current row, in seconds; None: not known."""

    def __init__(self, table: Columns):
        self.table = table
        self.columns = [table.find(name) for name in TIMES]

    def length(
        self, created_s: Optional[float], started_s: float, ended_s: float
    ) -> "tuple[int, int]":
        """The submission and the length in microseconds. Raises Fault when clocks run backwards."""
        submit_s = started_s if created_s is None else created_s
        if started_s < submit_s:
            raise self.table.wrong("scheduled_time is before creation_time")
        if ended_s < started_s:
            raise self.table.wrong("deletion_time is before scheduled_time")
        return llround(submit_s * SECOND_US), llround((ended_s - started_s) * SECOND_US)

    def read(self) -> "list[Optional[float]]":
        """Created, scheduled and deleted. Raises Fault."""
        return [number_of(self.table, column, 0, TIME_MAX_S) for column in self.columns]


def read_2023(file: BinaryIO, name: str, log: Log) -> None:
    """Adds the pods of v2023."""
    table = Columns(file, name)
    require_columns(table, ["num_gpu", "gpu_milli", *TIMES], "openb_pod_list_default.csv")
    num_gpu, gpu_milli, times = table.find("num_gpu"), table.find("gpu_milli"), Times(table)

    def read_row() -> None:
        gpus = number_of(table, num_gpu, 0, GPUS_MAX) or 0.0
        milli = number_of(table, gpu_milli, 0, MILLI_MAX)
        created_s, started_s, ended_s = times.read()
        if gpus != int(gpus):
            raise table.wrong(f"num_gpu is {gpus:g}: whole GPUs are needed")
        if gpus and milli == 0:
            raise table.wrong("gpu_milli is 0, where num_gpu is not")
        if gpus and started_s is None:
            raise Skip(LeftOut.NEVER_RAN)
        if gpus and ended_s is None:
            raise Skip(LeftOut.UNFINISHED)
        if not gpus or started_s is None or ended_s is None:
            raise Skip(LeftOut.NO_GPU)
        submit_us, length_us = times.length(created_s, started_s, ended_s)
        part = 0.0 if milli is None or milli == MILLI_MAX else milli / MILLI_MAX
        log.add(Job(submit_us, length_us, int(gpus), 0, part), table.number)

    read_rows(table, log, read_row)


def read_2025(file: BinaryIO, name: str, log: Log) -> None:
    """Adds the instances of v2025."""
    table = Columns(file, name)
    require_columns(table, ["app_name", "gpu_request", *TIMES], "disaggregated_DLRM_trace.csv")
    app, gpu_request, times = table.find("app_name"), table.find("gpu_request"), Times(table)

    def read_row() -> None:
        gpus, part = whole_gpus(number_of(table, gpu_request, 0, GPUS_MAX) or 0.0)
        created_s, started_s, ended_s = times.read()
        if not gpus:
            raise Skip(LeftOut.NO_GPU)
        if ended_s is None:
            raise Skip(LeftOut.UNFINISHED)
        submit_us, length_us = times.length(created_s, started_s or created_s or 0.0, ended_s)
        user = log.user(text_of(table, app))
        log.add(Job(submit_us, length_us, gpus, user, part), table.number)

    read_rows(table, log, read_row)
