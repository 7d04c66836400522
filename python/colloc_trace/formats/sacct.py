# SPDX-License-Identifier: Apache-2.0
"""Output of Slurm's `sacct --parsable2`, with its first line.

GPUs are "gres/gpu", or the sum of "gres/gpu:KIND", of the resources that the job was allocated,
else requested. A job may have parts of GPUs: instances of MIG, and shards. Steps are skipped. The
components of a heterogeneous job (107+0, 107+1) are one job: their GPUs are used together.

    JobID|User|Submit|Elapsed|State|AllocTRES|ReqTRES
    101|ada|2024-03-01T10:00:00|01:00:00|COMPLETED|billing=4,gres/gpu:a100=1,gres/gpu=1|
"""

import re
from typing import BinaryIO, Dict, NamedTuple, Optional

from colloc_bench.columns import Columns, ReadError
from colloc_trace.jobs import GPUS_MAX, LENGTH_MAX_US, MIG, SHARDS, Job, LeftOut
from colloc_trace.log import Log, Skip, read_rows
from colloc_trace.parse import SECOND_US, parse_clock, parse_date

MIG_SLICES = 7  # of an A100, H100 or H200 (NVIDIA's MIG user guide)
SHARDS_PER_GPU = 80  # what `colloc slurm setup` makes; sacct does not say how many there are
WORD_MAX = 63  # characters of a resource
LISTS_KEPT = 10_000  # lists of resources whose GPUs are remembered; chosen: most jobs share few
ENDS = frozenset(
    (
        "COMPLETED",
        "FAILED",
        "CANCELLED",
        "TIMEOUT",
        "OUT_OF_MEMORY",
        "NODE_FAIL",
        "PREEMPTED",
        "BOOT_FAIL",
        "DEADLINE",
        "REVOKED",
    )
)
# "gpu:1g.10gb=1", or "gpu:nvidia_a100_1g.10gb=1" as slurmd's AutoDetect=nvml writes it.
INSTANCE = re.compile(r"[_.:]([0-9])g\.[0-9]{1,3}gb")


class Gpus(NamedTuple):
    """The GPUs of a list of resources."""

    gpus: int
    part: float  # of each; 0: all
    flags: int


def _number(word: str) -> int:
    """The number after the last "=" or ":"; 1 if there is none."""
    mark = word.rfind("=") if "=" in word else word.rfind(":")
    text = word[mark + 1 :] if mark >= 0 else ""
    if not re.fullmatch(r"[0-9]{1,18}", text):
        return 1
    value = int(text)
    return value if value <= GPUS_MAX else 1


def _slices(word: str) -> int:
    """The compute slices of an instance of MIG; 0: it is none."""
    colon = word.find(":")
    match = INSTANCE.search(word, colon) if colon >= 0 else None
    slices = int(match[1]) if match else 0
    return slices if slices <= MIG_SLICES else 0


def count_gpus(resources: Optional[str]) -> Gpus:
    """The GPUs of "billing=8,gres/gpu:a100=2,gres/gpu=2": the total if it is listed, else the sum
    over the kinds; and which part of each the job has."""
    gpus = kinds = instances = shards = shard_kinds = gpus_with_shards = 0
    whole = 0.0  # what the instances are of whole GPUs
    for resource in (resources or "").split(","):
        word = resource[:WORD_MAX]
        if word[:5] in ("gres/", "gres:"):
            word = word[5:]
        name = re.split("[:=]", word, maxsplit=1)[0]
        is_total, n = word[len(name) : len(name) + 1] == "=", _number(word)
        if name == "gpu" and is_total:
            gpus = n
        elif name == "gpu":
            slices = _slices(word)
            kinds += n
            instances += n if slices else 0
            whole += n * slices / MIG_SLICES
        elif name == "shard" and is_total:
            shards = n
        elif name == "shard":
            shard_kinds += n
            gpus_with_shards += 1
    shards, gpus = shards or shard_kinds, gpus or kinds
    has_shards = gpus == 0 and shards > 0
    requested = gpus - instances + whole
    if has_shards:
        gpus = max(gpus_with_shards, -(-shards // SHARDS_PER_GPU))
        requested = shards / SHARDS_PER_GPU
    is_part = gpus > 0 and 0 < requested < gpus
    return Gpus(
        min(gpus, GPUS_MAX + 1),
        requested / gpus if is_part else 0.0,
        (MIG if instances else 0) | (SHARDS if has_shards else 0),
    )


class Reader:
    """Reads rows."""

    def __init__(self, table: Columns, log: Log):
        self.table, self.log = table, log
        self.component_of = ""  # the heterogeneous job whose component the last kept job is
        self._gpus: Dict[Optional[str], Gpus] = {}

        def find(*names: str) -> Optional[int]:
            columns = (table.find(name) for name in names)
            return next((column for column in columns if column is not None), None)

        self.id = find("JobID", "JobIDRaw")
        self.submit, self.elapsed = find("Submit"), find("Elapsed")
        self.elapsed_raw, self.state = find("ElapsedRaw"), find("State")
        self.allocated = find("AllocTRES", "AllocGRES")
        self.requested = find("ReqTRES", "ReqGRES")
        self.user = find("User", "UID")
        has_length = self.elapsed is not None or self.elapsed_raw is not None
        has_gpus = self.allocated is not None or self.requested is not None
        if self.id is None or self.submit is None or not has_length or not has_gpus:
            raise table.wrong(
                "the first line must name JobID, Submit, Elapsed and AllocTRES or ReqTRES: sacct "
                "--allusers --parsable2 --format=JobID,User,Submit,Elapsed,State,AllocTRES,ReqTRES "
                "--starttime=..."
            )

    def _gpus_of(self, resources: Optional[str]) -> Gpus:
        gpus = self._gpus.get(resources)
        if gpus is None:
            if len(self._gpus) >= LISTS_KEPT:
                self._gpus.clear()
            gpus = self._gpus[resources] = count_gpus(resources)
        return gpus

    def _length(self) -> Optional[int]:
        raw, elapsed = self.table.get(self.elapsed_raw), self.table.get(self.elapsed)
        if raw is not None:
            is_valid = re.fullmatch("[0-9]{1,12}", raw) is not None
            length_us = int(raw) * SECOND_US if is_valid else LENGTH_MAX_US + 1
            return length_us if length_us <= LENGTH_MAX_US else None
        return parse_clock(elapsed) if elapsed and ":" in elapsed else None

    def _joins_last(self, job_id: str, job: Job) -> bool:
        """Adds the job to the last kept one if both are components of the same job."""
        jobs, heterogeneous = self.log.jobs, job_id.partition("+")
        of = heterogeneous[0] if heterogeneous[1] else ""
        same = of != "" and of == self.component_of
        self.component_of = of
        if not same or not len(jobs) or jobs.gpus[-1] + job.gpus > GPUS_MAX:
            return False
        requested = jobs.gpus_requested(-1) + job.gpus * (job.part or 1.0)
        jobs.gpus[-1] += job.gpus
        gpus = jobs.gpus[-1]
        jobs.part[-1] = requested / gpus if requested < gpus else 0.0
        shards = jobs.flags[-1] & job.flags & SHARDS
        jobs.flags[-1] = ((jobs.flags[-1] | job.flags) & MIG) | shards
        jobs.length_us[-1] = max(jobs.length_us[-1], job.length_us)
        return True

    def _add(self, job_id: str) -> None:
        table = self.table
        submit = table.get(self.submit)
        submit_us = parse_date(submit) if submit else None
        if submit_us is None:
            raise table.wrong(f'Submit is "{(submit or "")[:40]}": YYYY-MM-DDTHH:MM:SS is needed')
        length_us = self._length()
        if length_us is None:
            raise table.wrong(f"job {job_id[:40]} has no elapsed time [DAYS-]HH:MM:SS")
        gpus = self._gpus_of(table.get(self.allocated))
        if not gpus.gpus:
            gpus = self._gpus_of(table.get(self.requested))
        job = Job(submit_us, length_us, gpus.gpus, 0, gpus.part, gpus.flags)
        if length_us > 0 and self._joins_last(job_id, job):
            return
        user, before = self.log.user(table.get(self.user)), len(self.log.jobs)
        self.log.add(job._replace(user=user), table.number)
        if len(self.log.jobs) == before:
            self.component_of = ""

    def row(self) -> None:
        """Raises Fault and Skip."""
        job_id = self.table.get(self.id)
        if job_id is None:
            raise self.table.wrong("the job has no id")
        if job_id.startswith("---"):
            raise ReadError(
                str(
                    self.table.wrong(
                        "this is sacct's table for reading, which cuts its columns: run sacct "
                        "again with --parsable2"
                    )
                )
            )
        if "." in job_id:
            return  # a step: 123.batch, 123.extern, 123.0
        state = self.table.get(self.state)
        if state is not None and state.split(" ", 1)[0] not in ENDS:  # "CANCELLED by 1000"
            raise Skip(LeftOut.UNFINISHED)
        self._add(job_id)


def read(file: BinaryIO, name: str, log: Log) -> None:
    """Adds the jobs of the file."""
    table = Columns(file, name)
    read_rows(table, log, Reader(table, log).row)
