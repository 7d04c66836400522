# SPDX-License-Identifier: Apache-2.0
"""For scripts written for radT: the import is all that changes.

    from colloc.radt import RADTBenchmark     # was: from radt import RADTBenchmark

    with RADTBenchmark() as run:
        for epoch in range(1, 1000):
            ...
            run.log_metric("loss", loss, epoch)

A script that is run by itself behaves as if the lines were not there. When the environment names
an MLflow run (MLFLOW_RUN_ID, or RADT_RUN_ID, and MLFLOW_TRACKING_URI), values are sent to it, and
so are colloc's metrics of the task, as system/colloc_*. When RADT_MAX_EPOCH or RADT_MAX_TIME
(seconds) is reached, the script ends, with exit status 0.

Everything else of mlflow (`run.log_param`, `run.log_artifact`, ...) is that of the package mlflow,
where this Python has it, and does nothing otherwise.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from types import ModuleType
from typing import Any, List, Mapping, Optional

from colloc.client import Client, DaemonError
from colloc.tracking.bridge import Point, open_bridge
from colloc.tracking.sender import Sender, report
from colloc.tracking.task_series import TaskSeries

PERIOD_S = 10.0  # of the task's metrics; chosen: as MLflow's own system metrics
CLOSE_LIMIT_S = 10.0  # chosen


def limit(name: str) -> float:
    """A number in the environment; no limit where there is none."""
    try:
        return float(os.environ[name])
    except (KeyError, ValueError):
        return float("inf")


def find_mlflow() -> Optional[ModuleType]:
    """The package, if this Python has it."""
    try:
        return importlib.import_module("mlflow")
    except ImportError:
        return None


class TaskMetrics(threading.Thread):
    """Sends the daemon's metrics of this task until it is stopped."""

    def __init__(self, sender: Sender, task: int):
        super().__init__(name="colloc-metrics", daemon=True)
        self.sender, self.stopping = sender, threading.Event()
        self.series = TaskSeries(Client(timeout_s=CLOSE_LIMIT_S), task, time.time(), PERIOD_S)

    def take(self, is_last: bool) -> None:
        """Sends the new points."""
        try:
            self.sender.add(self.series.take(time.time(), is_last))
        except (OSError, DaemonError, ValueError):
            pass  # the daemon may be restarting: its metrics come later

    def run(self) -> None:
        while not self.stopping.wait(PERIOD_S):
            self.take(is_last=False)
        self.take(is_last=True)


class RADTBenchmark:
    """A run while its block is active. `run_id`: of MLflow; None: there is none."""

    def __init__(self) -> None:
        self.run_id = os.environ.get("MLFLOW_RUN_ID") or os.environ.get("RADT_RUN_ID")
        self.max_epoch, self.max_time = limit("RADT_MAX_EPOCH"), float("inf")
        self.mlflow: Optional[ModuleType] = find_mlflow() if self.run_id else None
        self.sender: Optional[Sender] = None
        self.metrics: Optional[TaskMetrics] = None

    def __enter__(self) -> "RADTBenchmark":
        self.max_time = time.time() + limit("RADT_MAX_TIME")
        if not self.run_id:
            return self
        if self.mlflow and self.mlflow.active_run() is None:
            self.mlflow.start_run(run_id=self.run_id)
        try:
            environment = {**os.environ, "MLFLOW_RUN_ID": self.run_id}
            self.sender = Sender(open_bridge("mlflow", environment))
        except ValueError as error:
            report(f"mlflow: {error}")
            return self
        self._follow_task()
        return self

    def _follow_task(self) -> None:
        """Unless the task is tracked already."""
        task = os.environ.get("COLLOC_TASK_ID", "")
        if not (self.sender and task.isdigit()) or "COLLOC_TRACKED" in os.environ:
            return
        try:
            self.metrics = TaskMetrics(self.sender, int(task))
        except OSError as error:
            report(f"the task's metrics are not known: {error}")
            return
        self.metrics.start()

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        if self.metrics:
            self.metrics.stopping.set()
            self.metrics.join(CLOSE_LIMIT_S)
        if self.sender:
            self.sender.close(CLOSE_LIMIT_S)
        if self.mlflow and self.mlflow.active_run() is not None:
            ended = kind is None or kind is SystemExit
            self.mlflow.end_run("FINISHED" if ended else "FAILED")

    def __getattr__(self, name: str) -> Any:
        """What mlflow has; without a run, or without mlflow, a function that does nothing."""
        if name.startswith("__"):
            raise AttributeError(name)
        if self.mlflow:
            return getattr(self.mlflow, name)
        return lambda *_arguments, **_named: None

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *(dir(self.mlflow) if self.mlflow else ())]

    def log_metric(self, name: str, value: float, epoch: int = 0) -> None:
        """As log_metrics, of one metric."""
        self.log_metrics({name: value}, epoch)

    def log_metrics(self, metrics: Mapping[str, float], epoch: int = 0) -> None:
        """Sends values by name, and ends the script when a limit is reached.

        epoch: the step of the values.
        """
        now = time.time()
        if self.sender:
            self.sender.add([Point(name, float(metrics[name]), now, epoch) for name in metrics])
        if epoch >= self.max_epoch or now > self.max_time:
            print("Maximum epoch reached" if epoch >= self.max_epoch else "Maximum time reached")
            sys.exit()
