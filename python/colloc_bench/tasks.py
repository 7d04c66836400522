# SPDX-License-Identifier: Apache-2.0
"""Runs a group of trainings as tasks of a daemon, by the commands of colloc: submits them, polls
their states, and reads their logs when they have ended. A group that is ended early has its tasks
cancelled."""

import json
import subprocess
import time
from typing import Any, Dict, List, Optional

from colloc_bench.group import Group, Sharing
from colloc_bench.journal import TaskResult
from colloc_bench.recorder import colloc_program
from colloc_bench.text import Fault
from colloc_bench.trainers import GroupRun, Interrupted, TimeOver
from colloc_bench.training_log import LineFeed

POLL_PERIOD_S = 0.25  # between two queries of the tasks' states; chosen
ENDS = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY")


class Daemon:
    """The daemon that these options of the command line name."""

    def __init__(self, options: List[str]):
        self.options = options

    def call(self, command: str, *words: str, folder: Optional[str] = None) -> bytes:
        """What a command of colloc prints. Raises Fault with its message."""
        # In another session: a signal of the terminal is for this program.
        done = subprocess.run(
            [colloc_program(), command, *self.options, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=folder,
            start_new_session=True,
            check=False,
        )
        if done.returncode != 0:
            lines = done.stderr.decode("utf-8", "replace").strip().split("\n")
            why = lines[-1] or f"colloc {command}: exit status {done.returncode}"
            fault = Fault(why[len("colloc: ") :] if why.startswith("colloc: ") else why)
            fault.code = done.returncode  # type: ignore[attr-defined]
            raise fault
        return done.stdout

    def submit(self, group: Group, i: int) -> int:
        """Submits a task of the group; its id. With MIG no way of sharing is requested: the
        instances in the table separate the tasks."""
        task = group.tasks[i]
        words = ["--json", f"--name={task.name}"]
        if task.sharing is not Sharing.MIG:
            words.append(f"--sharing={'mps' if task.sharing is Sharing.MPS else 'streams'}")
        if "," in task.gpus:
            words.append(f"--gpus={task.gpus.count(',') + 1}")
        reply = json.loads(self.call("submit", *words, "--", *task.argv, folder=task.folder))
        return int(reply["id"])

    def task(self, number: int) -> Dict[str, Any]:
        """A task."""
        reply = json.loads(self.call("show", "--json", str(number)))
        return reply.get("task", reply)


class Tasks:
    """The tasks of a group."""

    def __init__(self, run: GroupRun, daemon: Daemon, results: List[TaskResult]):
        self.run, self.daemon, self.results = run, daemon, results
        self.ids: List[int] = []
        self.alive: List[int] = []

    def run_all(self) -> None:
        """Returns when all have ended. Raises Interrupted, TimeOver or Fault; then all have been
        cancelled."""
        try:
            self._run_all()
        except (Interrupted, TimeOver, Fault):
            for i in self.alive:
                try:
                    self.daemon.call("cancel", str(self.ids[i]))
                except Fault:
                    continue
            raise

    def _run_all(self) -> None:
        deadline_s = time.monotonic() + self.run.limit_s
        next_s = time.monotonic() + POLL_PERIOD_S
        self._start_due()
        while self.alive:
            self.run.signals.wait([], min(next_s, deadline_s) - time.monotonic())
            if self.run.signals.has_ended:
                raise Interrupted
            if time.monotonic() >= deadline_s:
                raise TimeOver
            if self.run.sample:
                self.run.sample()
            if time.monotonic() >= next_s:
                next_s = time.monotonic() + POLL_PERIOD_S
                for i in list(self.alive):
                    self._poll(i)
                self._start_due()

    def _start_due(self) -> None:
        group = self.run.group
        while len(self.ids) < len(group.tasks) and not (group.is_serial and self.alive):
            i = len(self.ids)
            self.results[i].started_s = time.time()
            self.ids.append(self.daemon.submit(group, i))
            self.results[i].failure = ""
            self.alive.append(i)

    def _poll(self, i: int) -> None:
        """Takes over the result of a task that has ended."""
        task, result = self.daemon.task(self.ids[i]), self.results[i]
        if task.get("state") not in ENDS:
            return
        result.ended_s = time.time()
        code = task.get("exit_code")
        result.exit_code = code if isinstance(code, int) else -1
        if task["state"] != "COMPLETED":
            result.failure = f"{task['state']}: {task.get('reason') or ''}"
        result.out_of_gpu_memory = task.get("failure") == "gpu-oom"
        self.alive.remove(i)
        output = self.daemon.call("logs", "--stdout", str(self.ids[i]))
        LineFeed(result.report).feed(output)


def run_tasks(run: GroupRun, daemon: Daemon, results: List[TaskResult]) -> None:
    """Runs the group; as Tasks.run_all."""
    Tasks(run, daemon, results).run_all()
