# SPDX-License-Identifier: Apache-2.0
"""Started by colloc, not by users:

    python3 -m colloc.tracking record PLACES            lines of `colloc record` on standard input
    python3 -m colloc.tracking task ID PID PLACES       until the process PID of the task has ended

PLACES: comma-separated mlflow, wandb, tensorboard:FOLDER. The environment names the run. Exits with
2 and a line on standard error if a place cannot be used.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Iterator, List

from colloc.client import Client, DaemonError
from colloc.tracking.bridge import open_bridges
from colloc.tracking.record_lines import read_points
from colloc.tracking.sender import Sender, report
from colloc.tracking.task_series import TaskSeries

PERIOD_S = 10.0  # chosen: as MLflow's own system metrics
CLOSE_LIMIT_S = 10.0  # for the rest at the end; chosen
LOOK_S = 0.5  # whether the process is still there; chosen


def period_s() -> float:
    """COLLOC_TRACK_PERIOD in seconds, if it is set to a number above 0."""
    try:
        wanted = float(os.environ.get("COLLOC_TRACK_PERIOD", ""))
    except ValueError:
        return PERIOD_S
    return wanted if wanted > 0 else PERIOD_S


def close_all(senders: List[Sender]) -> None:
    """Together within the limit."""
    end = time.monotonic() + CLOSE_LIMIT_S
    for sender in senders:
        sender.close(max(0.0, end - time.monotonic()))


def input_lines() -> Iterator[str]:
    """Lines of standard input, which may be a socket that keeps messages apart."""
    rest = ""
    while True:
        data = os.read(0, 65536)
        if not data:
            return
        *lines, rest = (rest + data.decode(errors="replace")).split("\n")
        yield from lines


def track_record(senders: List[Sender]) -> None:
    """Until the end of standard input."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(signum, signal.SIG_IGN)  # colloc record ends after the command has
    for points in read_points(input_lines(), period_s(), time.time()):
        for sender in senders:
            sender.add(points)


def started_ticks(pid: int) -> str:
    """When the process was started, as /proc has it; "": it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def track_task(senders: List[Sender], task: int, pid: int) -> None:
    """Until the process has ended, or SIGTERM ends the task."""
    ending = threading.Event()
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, lambda *_: ending.set())
    series = TaskSeries(Client(timeout_s=CLOSE_LIMIT_S), task, time.time(), period_s())
    began, due = started_ticks(pid), time.monotonic() + period_s()
    while began and started_ticks(pid) == began and not ending.wait(LOOK_S):
        if time.monotonic() >= due:
            take_series(series, senders, is_last=False)
            due = time.monotonic() + period_s()
    take_series(series, senders, is_last=True)


def take_series(series: TaskSeries, senders: List[Sender], is_last: bool) -> None:
    """Sends the new points."""
    try:
        points = series.take(time.time(), is_last)
    except (OSError, DaemonError, ValueError) as error:
        if is_last:
            report(f"tracking: the last metrics are not known: {error}")
        return  # the daemon may be restarting: its metrics come later
    for sender in senders:
        sender.add(points)


def main(words: List[str]) -> int:
    if not (
        words[:1] == ["record"] and len(words) == 2 or words[:1] == ["task"] and len(words) == 4
    ):
        report("tracking: started by `colloc record --mlflow` and `colloc submit --track`")
        return 2
    try:
        senders = [Sender(bridge) for bridge in open_bridges(words[-1], os.environ)]
    except ValueError as error:
        report(f"tracking {words[-1]}: {error}")
        return 2
    if words[0] == "record":
        track_record(senders)
    else:
        track_task(senders, int(words[1]), int(words[2]))
    close_all(senders)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
