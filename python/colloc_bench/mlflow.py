# SPDX-License-Identifier: Apache-2.0
"""Runs of MLflow for the trainings of a bench: one for each, created before it starts and ended
with its metrics. What a group is and what was measured becomes FOLDER/mlflow/N-R.json, which
colloc.tracking.bench_runs turns into requests to the server.

    {"experiment": "12", "runs": [{"name": "(3 0_A_MPS) resnet26", "params": {"workload": "3",
     "collocation": "mps", ...}}]}                                before: prints an id a line
    {"looks": "out/looks/3-1.csv", "began_unix_s": 1.7e9, "runs": [{"id": "ab12", "status":
     "FINISHED", "ended_unix_s": 1.7e9, "metrics": [["bench/epoch_s", 12.5, 1.7e9, 2]]}]}   after
"""

import json
import os
import re
import subprocess
import sys
import time
from typing import Any, Dict, List, Optional

from colloc_bench.group import Group, Sharing
from colloc_bench.journal import TaskResult
from colloc_bench.status import letter_of
from colloc_bench.text import Fault, print_error, readable, strerror, write_atomic

LIMIT_S = 60  # for the requests of a group; chosen
NAME_MAX, RUN_ID_MAX = 200, 63  # characters; MLflow's ids have 32


def ask(*words: str) -> str:
    """What the program prints. Raises Fault with the last line of its messages."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    own = os.environ.get("PYTHONPATH")
    env = {**os.environ, "PYTHONPATH": f"{folder}:{own}" if own else folder}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "colloc.tracking.bench_runs", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=env,
            timeout=LIMIT_S,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Fault(f"the server did not answer within {LIMIT_S} s") from None
    if done.returncode != 0:
        last = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
        raise Fault(f"python3 exited with status {done.returncode}: {last}")
    return done.stdout.decode("utf-8", "replace")


def check_server() -> None:
    """Raises Fault if the environment names no server that answers."""
    ask("check")


def describe_training(group: Group, number: int, repeat: int, i: int, profiler: str) -> Dict:
    """radT's names for the workload and its tasks; others for colloc's form of the table."""
    task = group.tasks[i]
    workload = group.key[1] if group.key else str(number)
    letter = letter_of(group, i) if group.key else str(i)
    params = {
        "workload": workload,
        "letter": letter,
        "group": group.name,
        "collocation": task.sharing_name,
        "devices": group.gpus_of(task),
        "command": " ".join(task.argv),
        "repeat": str(repeat),
    }
    if task.sharing is Sharing.MPS:
        params["mps_threads"] = str(task.threads)
    if profiler:
        params["workload_listener"] = profiler
    if task.environment:
        params["conda_environment"] = task.environment
    return {
        "name": readable(f"({workload} {letter}) {task.name[:NAME_MAX]}"),
        "params": {key: readable(text) for key, text in params.items()},
    }


def describe_metrics(result: TaskResult) -> List[List[Any]]:
    """Name, value, time and step of each."""
    metrics: List[List[Any]] = []
    for epoch in result.report.epochs:
        metrics.append(["bench/epoch_s", epoch.took_s, epoch.to_s, epoch.number])
        rate = epoch.samples / epoch.took_s
        metrics.append(["bench/samples_per_s", rate, epoch.to_s, epoch.number])
    if result.report.reserved_mib is not None:
        metrics.append(["bench/reserved_mib", result.report.reserved_mib, result.ended_s, 0])
    metrics.append(["bench/exec_s", result.ended_s - result.started_s, result.ended_s, 0])
    return metrics


class Runs:
    """The runs of one group and repeat. ids: "" of a training without a run. If the server does not
    answer, that is printed, and the group goes on without runs."""

    def __init__(self, folder: str, group: Group, number: int, repeat: int):
        self.folder, self.group, self.number, self.repeat = folder, group, number, repeat
        self.ids = [""] * len(group.tasks)

    def _send(self, action: str, described: Dict[str, Any]) -> str:
        path = f"{self.folder}/mlflow/{self.number}-{self.repeat}.json"
        try:
            os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
            write_atomic(path, json.dumps(described, indent=1, ensure_ascii=False))
            return ask(action, path)
        except OSError as error:
            print_error(f"MLflow: {strerror(error)}")
        except Fault as fault:
            print_error(f"MLflow: {fault}")
        return ""

    def create(self, profilers: List[str]) -> None:
        """Before the group. profilers: the program of each training's, or ""."""
        described: Dict[str, Any] = {
            "runs": [
                describe_training(self.group, self.number, self.repeat, i, profilers[i])
                for i in range(len(self.group.tasks))
            ]
        }
        # radT's Experiment is the number of MLflow's; without it the environment names one.
        if self.group.key and re.fullmatch("[0-9]+", self.group.key[0]):
            described["experiment"] = self.group.key[0]
        for i, line in enumerate(self._send("create", described).split("\n")[: len(self.ids)]):
            self.ids[i] = line[:RUN_ID_MAX]

    def _describe_end(self, i: int, result: Optional[TaskResult]) -> Dict[str, Any]:
        run: Dict[str, Any] = {"id": self.ids[i]}
        if result is None or not result.ended_s:
            return {**run, "status": "KILLED", "ended_unix_s": time.time()}
        run["status"] = "FAILED" if result.failure else "FINISHED"
        run["ended_unix_s"] = result.ended_s
        run["metrics"] = describe_metrics(result)
        if result.failure:
            run["failure"] = readable(result.failure)
        return run

    def end(self, results: Optional[List[TaskResult]]) -> None:
        """After the group. results: None: it did not come to its end."""
        described: Dict[str, Any] = {
            "runs": [
                self._describe_end(i, results[i] if results else None)
                for i in range(len(self.ids))
                if self.ids[i]
            ]
        }
        if not described["runs"]:
            return
        if results:
            looks = f"{self.folder}/looks/{self.number}-{self.repeat}.csv"
            described["looks"] = readable(looks)
            described["began_unix_s"] = results[0].started_s
        self._send("end", described)
