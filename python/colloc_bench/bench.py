# SPDX-License-Identifier: Apache-2.0
"""Runs the groups of a bench: for each repeat and each group chooses devices, starts MPS if the
group shares by it, samples the GPUs while the trainings run, and adds the results to the journal.
"""

import contextlib
import os
import sys
import time
from dataclasses import dataclass
from typing import Any, List, Optional

from colloc_bench import meminfo
from colloc_bench.environment import record_environment
from colloc_bench.experiment import Experiment
from colloc_bench.group import Group, Sharing, is_shared_by
from colloc_bench.journal import GroupResult, Journal, TaskResult
from colloc_bench.machine import Machine, NotHere, choose_devices, mps_devices
from colloc_bench.mlflow import Runs
from colloc_bench.recorder import Recorder, energy_of, forget_host, name_of
from colloc_bench.signals import Signals
from colloc_bench.status import StatusTable
from colloc_bench.tasks import Daemon, run_tasks
from colloc_bench.text import Fault, escape, format_elapsed, print_error, strerror
from colloc_bench.trainers import GroupRun, Interrupted, TimeOver, run_processes
from colloc_pipeline.sharing import SharingError, mps_daemon

DROP_CACHES = "/proc/sys/vm/drop_caches"


@dataclass
class Settings:
    """daemon: run the trainings as its tasks; None: as processes."""

    experiment: Experiment
    machine: Machine
    repeats: int
    period_s: float
    limit_s: float
    python: str  # the trainings' interpreter, whose packages are recorded
    daemon: Optional[Daemon]
    has_runs: bool  # of MLflow
    drops_caches: bool


def check_caches() -> None:
    """Raises Fault if this process cannot drop the kernel's caches of files."""
    if os.geteuid() != 0 or not os.access(DROP_CACHES, os.W_OK):
        raise Fault(
            f"--drop-caches: {DROP_CACHES} cannot be written: run the bench as root of the host"
        )


def drop_caches() -> None:
    """Drops clean pages and the names of files: what the kernel has to write it writes first."""
    os.sync()
    try:
        with open(DROP_CACHES, "wb", buffering=0) as file:
            file.write(b"3")
    except OSError as error:
        raise Fault(f"{DROP_CACHES}: {strerror(error)}") from None


def say(text: str) -> None:
    """Prints progress."""
    sys.stderr.write(escape(text))
    sys.stderr.flush()


class GroupBench:
    """The run of one group and repeat."""

    def __init__(self, bench: "Bench", number: int, repeat: int):
        self.bench, self.number, self.repeat = bench, number, repeat
        self.group = bench.settings.experiment.groups[number - 1]
        self.results = [TaskResult() for _ in self.group.tasks]
        self.runs = Runs(bench.journal.folder, self.group, number, repeat)
        self.total_s = 0.0

    def _path(self, kind: str) -> str:
        return self.bench.journal.path(kind, self.number, self.repeat)

    @property
    def failures(self) -> List[str]:
        """Why each training failed; "": it did not."""
        return [result.failure for result in self.results]

    @property
    def has_result(self) -> bool:
        """Out of GPU memory is a result of the experiment; any other failure is not."""
        return all(each.out_of_gpu_memory for each in self.results if each.failure)

    @property
    def shown_failure(self) -> str:
        """That of the first training that failed, one without a result preferred."""
        failed = [result for result in self.results if result.failure]
        others = [result for result in failed if not result.out_of_gpu_memory]
        return (others or failed)[0].failure

    def prepare(self, stack: contextlib.ExitStack) -> GroupRun:
        """Chooses the devices and starts MPS; a daemon does both itself. Each group has its own
        control daemon, so that groups do not affect each other. Raises NotHere."""
        settings, group = self.bench.settings, self.group
        run = GroupRun(
            group=group,
            signals=self.bench.signals,
            limit_s=settings.limit_s,
            period_s=settings.period_s,
            log_path=self._path("logs"),
            profile_path=self._path("profiles"),
            profilers=settings.machine.profilers,
            run_ids=self.runs.ids,
        )
        if settings.daemon:
            return run
        run.devices = choose_devices(settings.machine, group)
        if is_shared_by(group, Sharing.MPS):
            try:
                client = stack.enter_context(mps_daemon(mps_devices(settings.machine, group)))
            except SharingError as error:
                raise NotHere(str(error)) from None
            run.mps_pipe = client["CUDA_MPS_PIPE_DIRECTORY"]
        return run

    def _sampler(self, stack: contextlib.ExitStack) -> Any:
        """What samples the host's memory into looks/N-R.free.csv, if a task's row names radT's
        listener free; else None."""
        if not any(task.lists_host_memory for task in self.group.tasks):
            return None
        path = f"{self._path('looks')}.free.csv"
        try:
            file = stack.enter_context(open(path, "w", encoding="ascii"))
        except OSError as error:
            raise Fault(f"{path}: {strerror(error)}") from None
        file.write(meminfo.HEADER)
        return lambda: file.write(meminfo.sample_line(time.time()))

    def measure(self, run: GroupRun) -> None:
        """Runs the trainings, and adds the group to the journal if it has a result. Raises Fault,
        Interrupted or TimeOver."""
        settings, looks = self.bench.settings, f"{self._path('looks')}.csv"
        with contextlib.ExitStack() as stack:
            recorder = Recorder(self.group.gpu, settings.period_s, looks)
            try:
                run.sample = self._sampler(stack)
                self._run(run)
            finally:
                if run.sample:
                    run.sample()
                gpus = recorder.close()
        if settings.daemon:
            forget_host(looks)
        began_s = self.results[0].started_s
        self.total_s = max(result.ended_s for result in self.results) - began_s
        if not self.has_result:
            return
        result = GroupResult(
            began_s=began_s,
            total_s=self.total_s,
            energy_j=energy_of(gpus),
            gpu_name=name_of(gpus) or "",
            way="daemon" if settings.daemon else "processes",
            tasks=self.results,
        )
        self.bench.journal.add(self.group, self.number, self.repeat, result)

    def _run(self, run: GroupRun) -> None:
        if run.sample:
            run.sample()
        if self.bench.settings.daemon:
            run_tasks(run, self.bench.settings.daemon, self.results)
        else:
            run_processes(run, self.results)


class Bench:
    """All groups. status: the table whose Status is written; None: none."""

    def __init__(
        self, settings: Settings, journal: Journal, signals: Signals, status: Optional[StatusTable]
    ):
        self.settings, self.journal, self.signals = settings, journal, signals
        self.status = status
        self.is_incomplete = self.has_failed = False
        self._began_s = time.monotonic()
        self._measured = 0  # groups that this call has run
        groups, repeats = settings.experiment.groups, range(1, settings.repeats + 1)
        self._done = sum(self._is_done(group, each) for each in repeats for group in groups)
        self._all = len(groups) * settings.repeats

    def _is_done(self, group: Group, repeat: int) -> bool:
        """Is it in the journal, or has its table's Status said FINISHED before this journal
        began?"""
        return self.journal.has(group, repeat) or (
            group.is_finished and not self.journal.has(group, 1)
        )

    def run_all(self) -> None:
        """Repeats of a group are spread over time, so that drift shows in their variance. Raises
        Fault or Interrupted."""
        settings = self.settings
        if self._done < self._all:
            record_environment(self.journal.folder, settings.python, settings.machine)
        for repeat in range(1, settings.repeats + 1):
            for i, group in enumerate(settings.experiment.groups):
                if not self._is_done(group, repeat):
                    self._run_group(GroupBench(self, i + 1, repeat))

    def _run_group(self, run: GroupBench) -> None:
        """The group is counted as done whether it could be measured or not."""
        self._say_begin(run)
        skip: Optional[str] = None
        with contextlib.ExitStack() as stack:
            try:
                trainings = run.prepare(stack)
            except NotHere as error:
                skip = str(error)
            else:
                skip = self._measure(run, trainings)
        self._done += 1
        self._say_end(run, skip)

    def _measure(self, run: GroupBench, trainings: GroupRun) -> Optional[str]:
        """Why the group is skipped after all, or None."""
        if self.settings.has_runs:
            run.runs.create(
                [
                    self.settings.machine.profilers[task.profiler][0] if task.profiler else ""
                    for task in run.group.tasks
                ]
            )
        results: Optional[List[TaskResult]] = None
        try:
            if self.settings.drops_caches:
                drop_caches()
            run.measure(trainings)
            results = run.results
        except TimeOver:
            return "it ran longer than --limit and was killed"
        finally:
            self._measured += 1
            if self.settings.has_runs:
                run.runs.end(results)
        return None

    def _say_begin(self, run: GroupBench) -> None:
        text = f"[{self._done + 1}/{self._all}] {run.group.name}"
        if self.settings.repeats > 1:
            text += f", {run.repeat} of {self.settings.repeats}"
        say(f"{text} ... ")

    def _say_end(self, run: GroupBench, skip: Optional[str]) -> None:
        """How long it took, how many of its trainings failed, and the time that is expected for the
        groups still to come."""
        if skip is not None:
            self.is_incomplete = True
            say(f"skipped: {skip}")
            sys.stderr.write("\n")
            return
        failed = sum(failure != "" for failure in run.failures)
        text = f"{run.total_s:.1f} s"
        if failed:
            not_done = "" if run.has_result else ": not done"
            text += f", {failed} of {len(run.results)} failed ({run.shown_failure}){not_done}"
        took_s = time.monotonic() - self._began_s
        left_s = took_s / self._measured * (self._all - self._done)
        if left_s >= 1:
            text += f"; {format_elapsed(left_s)} left"
        say(text)
        sys.stderr.write("\n")
        self.has_failed |= not run.has_result
        self._write_status(run)

    def _write_status(self, run: GroupBench) -> None:
        """A table that cannot be written is left alone from then on; the results are in the
        folder."""
        if not self.status:
            return
        names = [
            run_id or f"{run.number}-{run.repeat}.{i}" for i, run_id in enumerate(run.runs.ids)
        ]
        try:
            self.status.write(run.group, names, run.failures)
        except Fault as fault:
            print_error(f"the table's Status is not written any more: {fault}")
            self.status = None


__all__ = ["Bench", "Interrupted", "Settings", "check_caches"]
