# SPDX-License-Identifier: Apache-2.0
"""Alibaba's cluster-trace-gpu-v2026, asi_opensource_pod_hourly, as CSV (docs/trace.md converts its
Parquet files): what each pod requested, and what it measured in each hour.

    day,hour,pod_id,gpu_request,state_public,used_gpu_hours,avg_gpu_sm_util,avg_gpu_mem_gib
    109,07,p1,2,Running,1.0,90.0,60.0
    109,08,p1,2,Running,2.0,130.0,64.0

A pod is a job. Rows may be in any order. Units that the schema does not say, and the scripts beside
it show: avg_gpu_sm_util is in per cent of one GPU and summed over the pod's GPUs (they divide it by
100 x gpu_request), so is avg_gpu_mem_gib, which has values of a whole server.

- GPUs: gpu_request, rounded up.
- Length: used_gpu_hours / gpu_request, summed; an hour without a figure counts whole. So p1 ran for
  half an hour and then for one.
- Submission: p1 ran half of its first hour and went on, so it began at half past seven. Where in
  the hour a pod of one hour began is not known: the seed decides. --job-table has how long a pod
  waited before that (schedule_delay_sec).
- SM activity of each GPU: the mean over the time, 80 % of an hour and a half on two GPUs is
  (45 x 0.5 + 65 x 1) / 1.5 %. Memory: the hour with the most. A lower bound of the pod's peak,
  since both are means over an hour.

Hours in which a pod waits (Pending) or stands by (Standby) do not count. A pod is cut where the
table begins and ends.

Memory is needed for each pod, about 250 bytes, however many hours it has.
"""

import math
from array import array
from typing import BinaryIO, Dict

from colloc_bench.columns import Columns
from colloc_trace.formats.alibaba_2020 import whole_gpus
from colloc_trace.jobs import GPUS_MAX, MEMORY_MAX_MIB, Job, LeftOut
from colloc_trace.log import (
    BreaksOff,
    Log,
    find_columns,
    number_of,
    open_log,
    read_rows,
    require_columns,
    text_of,
)
from colloc_trace.parse import SECOND_US, llround
from colloc_trace.random import SeededRandom

HOUR_S = 3600.0
DAYS_MAX, HOURS_OF_DAY = 100_000, 24
DELAY_MAX_S, LENGTH_MAX_HOURS = 1e9, 1e9 / HOUR_S
WAITING = ("Pending", "Standby")
NEEDED = ["day", "hour", "pod_id", "gpu_request", "avg_gpu_sm_util", "avg_gpu_mem_gib"]


class Pods:
    """What is known of the pods so far."""

    def __init__(self) -> None:
        self.number_of: Dict[int, int] = {}  # by the hash of the id
        self.line = array("q")  # of its first row
        self.first_hour, self.last_hour = array("i"), array("i")
        self.first_part = array("f")  # of its first hour that it ran
        self.gpus = array("f")  # the most that it requested
        self.hours = array("d")  # that it ran
        self.sm_hours, self.sm_sum = array("d"), array("d")  # with a figure; per cent x hours
        self.memory_gib = array("f")  # the most; NAN: not known
        self.delay_s, self.length_hours = array("f"), array("f")  # of the summary; NAN

    def of(self, name: str, hour: int, line: int) -> int:
        """The number of the pod of this id, a new one if there is none."""
        key = hash(name)
        number = self.number_of.get(key)
        if number is None:
            number = self.number_of[key] = len(self.line)
            self.line.append(line)
            self.first_hour.append(hour)
            self.last_hour.append(hour)
            for zeros in (self.first_part, self.gpus, self.hours, self.sm_hours, self.sm_sum):
                zeros.append(0.0)
            for unknown in (self.memory_gib, self.delay_s, self.length_hours):
                unknown.append(math.nan)
        return number

    def add_hour(self, pod: int, hour: int, part: float) -> None:
        """An hour of which the pod ran a part."""
        if hour < self.first_hour[pod] or self.hours[pod] == 0:
            self.first_hour[pod], self.first_part[pod] = hour, part
        self.last_hour[pod] = max(self.last_hour[pod], hour)
        self.hours[pod] += part

    def _begin_s(self, pod: int, random: SeededRandom) -> float:
        idle_s = HOUR_S * (1 - self.first_part[pod])
        goes_on = self.last_hour[pod] > self.first_hour[pod]
        return self.first_hour[pod] * HOUR_S + idle_s * (1 if goes_on else random.fraction())

    def add_to(self, log: Log) -> None:
        """Adds the pods to the log."""
        random = SeededRandom(log.options.seed)
        for pod, line in enumerate(self.line):
            gpus, part = whole_gpus(self.gpus[pod])
            if gpus == 0:
                log.leave_out(LeftOut.NO_GPU)
                continue
            begin_s, hours = self._begin_s(pod, random), self.length_hours[pod]
            delay_s = self.delay_s[pod]
            submit_s = max(0.0, begin_s - (0.0 if math.isnan(delay_s) else delay_s))
            smact, memory_gib = math.nan, self.memory_gib[pod]
            if self.sm_hours[pod] > 0:
                of_gpu = self.sm_sum[pod] / self.sm_hours[pod] / 100 / gpus
                smact = min(1.0, of_gpu)
            memory_mib = 0
            if not math.isnan(memory_gib):
                memory_mib = min(MEMORY_MAX_MIB, llround(memory_gib * 1024 / gpus))
            length_h = self.hours[pod] if math.isnan(hours) else hours
            log.add(
                Job(
                    llround(submit_s * SECOND_US),
                    llround(length_h * HOUR_S * SECOND_US),
                    gpus,
                    0,
                    part,
                    0,
                    smact,
                    memory_mib,
                ),
                line,
            )


def _read_summary(path: str, log: Log, pods: Pods) -> None:
    """Adds lengths and delays of asi_opensource_job_execution_summary to pods that are known."""
    with open_log(path) as (file, name):
        table = Columns(file, name)
        require_columns(table, ["pod_id", "duration_hours"], "asi_opensource_job_execution_summary")
        pod_id, hours, delay = find_columns(
            table, ["pod_id", "duration_hours", "schedule_delay_sec"]
        )

        def read_row() -> None:
            key = table.get(pod_id)
            pod = pods.number_of.get(hash(key)) if key is not None else None
            if pod is None:
                return
            length = number_of(table, hours, 0, LENGTH_MAX_HOURS)
            waited_s = number_of(table, delay, 0, DELAY_MAX_S)
            pods.length_hours[pod] = math.nan if length is None else length
            pods.delay_s[pod] = math.nan if waited_s is None else waited_s

        read_rows(table, log, read_row, of_jobs=False)


def read(file: BinaryIO, name: str, log: Log) -> None:
    """Adds the pods of the file."""
    table, pods = Columns(file, name), Pods()
    require_columns(table, NEEDED, "asi_opensource_pod_hourly")
    day_at, hour_at, pod_at, gpu_at, sm_at, memory_at = (table.find(of) for of in NEEDED)
    state_at, used_at = find_columns(table, ["state_public", "used_gpu_hours"])

    def read_row() -> None:
        day = number_of(table, day_at, 0, DAYS_MAX)
        hour_of_day = number_of(table, hour_at, 0, HOURS_OF_DAY - 1)
        pod_id = text_of(table, pod_at)
        if day is None or hour_of_day is None or pod_id is None:
            raise table.wrong("an hour of a pod has a day, an hour and a pod_id")
        gpus = number_of(table, gpu_at, 0, GPUS_MAX) or 0.0
        used = number_of(table, used_at, 0, 2.0 * GPUS_MAX)
        sm_util = number_of(table, sm_at, 0, 200.0 * GPUS_MAX)
        memory_gib = number_of(table, memory_at, 0, MEMORY_MAX_MIB)
        hour = int(day) * HOURS_OF_DAY + int(hour_of_day)
        pod = pods.of(pod_id, hour, table.number)
        pods.gpus[pod] = max(pods.gpus[pod], gpus)
        if gpus == 0 or table.get(state_at) in WAITING:
            return
        part = 1.0 if used is None else min(1.0, used / gpus)
        if part == 0:
            return
        pods.add_hour(pod, hour, part)
        if sm_util is not None:
            pods.sm_hours[pod] += part
            pods.sm_sum[pod] += part * sm_util
        if memory_gib is not None:
            most = pods.memory_gib[pod]
            pods.memory_gib[pod] = memory_gib if math.isnan(most) else max(most, memory_gib)

    try:
        read_rows(table, log, read_row)
        if log.options.second_table:
            _read_summary(log.options.second_table, log, pods)
    except BreaksOff:
        pods.add_to(log)
        raise
    pods.add_to(log)
