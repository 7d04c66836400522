# SPDX-License-Identifier: Apache-2.0
"""Runs a group of trainings as child processes: starts them together ("serial": one after the
other), reads their output and waits for their ends.

Outputs are read while the trainings run, since a full pipe would stop a training and so falsify its
times; the text is parsed and stored. A group that is ended gets SIGTERM, and SIGKILL KILL_DELAY_S
later.

Trainings that share a GPU begin their epochs together: the first epoch of one would otherwise run
while another still loads its libraries, and be faster than beside it. The barrier is a pipe, whose
end for reading each training inherits, as the file descriptor that COLLOC_BENCH_START_FD names. It
reads from it once it is ready. Nothing is ever written: the read ends when the bench closes the
other end, or dies. A training that does not know of it does not wait.

    training 1   load ---- ready  read ......... | epochs
    training 2   load ----------------- ready    | epochs
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional, Tuple

from colloc_bench.group import THREADS_ALL, Group, Sharing, Task
from colloc_bench.journal import TaskResult
from colloc_bench.recorder import colloc_program
from colloc_bench.signals import Signals
from colloc_bench.text import Fault, run_program, strerror
from colloc_bench.training_log import LineFeed

KILL_DELAY_S = 5.0  # from SIGTERM to SIGKILL; chosen
READ_SIZE = 4096
READS_LEFT_MAX = 1024  # more than a pipe's 64 KiB


class Interrupted(Exception):
    """A signal ended the group."""


class TimeOver(Exception):
    """The group ran longer than its limit."""


@dataclass
class GroupRun:
    """What the trainings of a group run with.

    devices: CUDA_VISIBLE_DEVICES of each task; None: that of colloc.
    run_ids: MLFLOW_RUN_ID of each task; "": it has none.
    mps_pipe: of their MPS control daemon; None: no MPS.
    log_path: stderr of task N goes to this path with ".N" appended, stdout to that with ".out".
    sample: called every `period_s`.
    """

    group: Group
    signals: Signals
    limit_s: float
    period_s: float
    log_path: str
    profile_path: str
    profilers: Dict[str, List[str]]
    devices: Optional[List[str]] = None
    run_ids: List[str] = field(default_factory=list)
    mps_pipe: Optional[str] = None
    sample: Optional[Callable[[], None]] = None


def needs_barrier(group: Group) -> bool:
    """Do its trainings run at the same time, and does each report when it is ready? Users' scripts
    may not report it."""
    is_own = not any(task.is_script for task in group.tasks)
    return is_own and len(group.tasks) > 1 and not group.is_serial


def environment_of(run: GroupRun, i: int) -> Dict[str, str]:
    """The environment of a task."""
    task, env = run.group.tasks[i], dict(os.environ)
    if task.is_script:
        env["PYTHONUNBUFFERED"] = "1"  # so that its last lines are stored, too
    if run.run_ids and run.run_ids[i]:
        env["MLFLOW_RUN_ID"] = run.run_ids[i]
    if run.devices:
        env["CUDA_VISIBLE_DEVICES"] = run.devices[i]
    if run.mps_pipe and task.sharing is Sharing.MPS:
        env["CUDA_MPS_PIPE_DIRECTORY"] = run.mps_pipe
        if task.threads != THREADS_ALL:
            env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(task.threads)
    return env


def command_of(run: GroupRun, task: Task, i: int) -> List[str]:
    """The command of a task, under its profiler if it has one."""
    before = run.profilers[task.profiler] if task.profiler else []
    return [word.replace("%s", f"{run.profile_path}.{i}") for word in before] + task.argv


def prepare_process(folder: Optional[str]) -> None:
    """Runs in the child: a new process group, so that it can be killed with its children."""
    os.setpgrp()
    if folder is None:
        return
    try:
        os.chdir(folder)
    except OSError as error:
        os.write(2, os.fsencode(f"{folder}: {os.strerror(error.errno)}\n"))
        os._exit(1)


def explain_failure(status: int, log: str) -> Tuple[bool, str]:
    """Whether a training ran out of GPU memory, which is a result of the experiment, and why it
    failed: how it ended, and the last line of its standard error, or else of its output. The logs
    are classified as collocd does.

    status: -N for signal N. log: the path of its stderr.
    """
    how = f"ended by signal {-status}" if status < 0 else f"exit status {status}"
    try:
        done = run_program([colloc_program(), "--failure", str(status), f"{log}.out", log])
        found = json.loads(done.text)
    except (Fault, ValueError):
        return False, how
    is_oom, cause = found["class"] == "gpu-oom", found["cause"]
    return is_oom, ("out of GPU memory" if is_oom else how) + (f": {cause}" if cause else "")


class Trainer:
    """One training that runs: its process, and its output, which is stored and parsed."""

    def __init__(self, run: GroupRun, i: int, barrier: Optional[int], result: TaskResult):
        """Raises OSError when its program cannot be started, and Fault when its output cannot be
        stored."""
        task = run.group.tasks[i]
        self.result, self.log = result, f"{run.log_path}.{i}"
        self.copy_error: Optional[OSError] = None
        self._feed = LineFeed(result.report)
        env = environment_of(run, i)
        if barrier is not None:
            env["COLLOC_BENCH_START_FD"] = str(barrier)
        result.started_s = time.time()
        try:
            self._copy = open(f"{self.log}.out", "wb", buffering=0)
        except OSError as error:
            raise Fault(f"{self.log}.out: {strerror(error)}") from None
        try:
            with open(self.log, "wb") as errors:
                self._process = subprocess.Popen(
                    command_of(run, task, i),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=env,
                    pass_fds=() if barrier is None else (barrier,),
                    preexec_fn=lambda: prepare_process(task.folder),
                )
        except OSError:
            self._copy.close()
            raise
        assert self._process.stdout
        self.output: Optional[int] = self._process.stdout.fileno()

    def kill(self, number: int) -> None:
        """Sends a signal to the training and its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def read(self) -> None:
        """Reads what there is."""
        assert self.output is not None
        data = os.read(self.output, READ_SIZE)
        if not data:
            self._close_output()
            return
        self._feed.feed(data)
        try:
            while data:
                data = data[self._copy.write(data) :]
        except OSError as error:
            self.copy_error = error

    def _close_output(self) -> None:
        if self.output is not None and self._process.stdout:
            self._process.stdout.close()
        self.output = None

    def has_ended(self) -> bool:
        """Has the process ended? It is not reaped: its id stays its own."""
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, flags) is not None

    def reap(self) -> None:
        """Takes over how it ended, and kills the children that it left. Does not wait for a
        grandchild that keeps the pipe open."""
        self.result.ended_s = time.time()
        self.kill(signal.SIGKILL)
        for _ in range(READS_LEFT_MAX):
            if self.output is None or not select.select([self.output], [], [], 0)[0]:
                break
            self.read()
        self._close_output()
        code = self._process.wait()
        self._copy.close()
        self.result.exit_code = 128 - code if code < 0 else code
        if code != 0:
            self.result.out_of_gpu_memory, self.result.failure = explain_failure(code, self.log)


class Trainers:
    """The trainings of a group."""

    def __init__(self, run: GroupRun, results: List[TaskResult]):
        self.run, self.results = run, results
        self.alive: Dict[int, Trainer] = {}
        self.started = 0
        self.fault: Optional[Fault] = None
        self.end: Optional[Exception] = None  # why it is ended early
        self._barrier: Optional[Tuple[int, int]] = None
        self._next_sample_s = time.monotonic()
        self._deadline_s = self._next_sample_s + run.limit_s

    def run_all(self) -> None:
        """Returns when all have ended, whether they failed or not. Raises Interrupted, TimeOver or
        Fault; then none runs any more."""
        if needs_barrier(self.run.group):
            self._barrier = os.pipe()
        self._start_due()
        while self.alive:
            self._wait_once()
            if self._are_all_ready():
                self._open_barrier()
            self._check_times()
            if self.fault is None:
                self._start_due()
        self._open_barrier()
        if self.fault:
            raise self.fault
        if self.end:
            raise self.end

    def _start_due(self) -> None:
        """Starts all tasks at once; "serial": the next one when none runs."""
        tasks, is_serial = self.run.group.tasks, self.run.group.is_serial
        while not self.end and self.started < len(tasks) and not (is_serial and self.alive):
            try:
                self._start(self.started)
            except Fault as fault:
                self.fault = fault
                self._end_early(Interrupted())
                return
            self.started += 1

    def _start(self, i: int) -> None:
        """If the program cannot be started, its task has failed, as with a missing script: the
        other tasks and groups run."""
        result = self.results[i]
        try:
            barrier = self._barrier[0] if self._barrier else None
            self.alive[i] = Trainer(self.run, i, barrier, result)
            result.failure = ""
        except OSError as error:
            program = command_of(self.run, self.run.group.tasks[i], i)[0]
            result.failure = f"{program} cannot be started: {strerror(error)}"
            result.ended_s = time.time()

    def _end_early(self, why: Exception) -> None:
        for trainer in self.alive.values():
            trainer.kill(signal.SIGKILL if self.end else signal.SIGTERM)
        self.end = why
        self._deadline_s = time.monotonic() + KILL_DELAY_S

    def _wait_once(self) -> None:
        outputs = {t.output: t for t in self.alive.values() if t.output is not None}
        until_s = self._deadline_s
        if self.run.sample:
            until_s = min(until_s, self._next_sample_s)
        for fd in self.run.signals.wait(list(outputs), until_s - time.monotonic()):
            outputs[fd].read()
        for i, trainer in list(self.alive.items()):
            if trainer.has_ended():
                trainer.reap()
                del self.alive[i]
                if trainer.copy_error and not self.fault:
                    why = strerror(trainer.copy_error)
                    self.fault = Fault(f"the output of a training cannot be stored: {why}")
        if self.run.signals.has_ended and not self.end:
            self._end_early(Interrupted())

    def _are_all_ready(self) -> bool:
        """Those that have ended will not be ready any more."""
        running = [self.results[i].report.ready_s for i in self.alive]
        return None not in running and self.started == len(self.run.group.tasks)

    def _open_barrier(self) -> None:
        for fd in self._barrier or ():
            os.close(fd)
        self._barrier = None

    def _check_times(self) -> None:
        now_s = time.monotonic()
        if self.run.sample and now_s >= self._next_sample_s:
            self.run.sample()
            self._next_sample_s = max(self._next_sample_s, now_s) + self.run.period_s
        if now_s >= self._deadline_s:
            self._end_early(self.end or TimeOver())


def run_processes(run: GroupRun, results: List[TaskResult]) -> None:
    """Runs the group; as Trainers.run_all."""
    Trainers(run, results).run_all()
