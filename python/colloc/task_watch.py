# SPDX-License-Identifier: Apache-2.0
"""Follows many tasks over one connection, until all have ended.

The daemon sends each change of a task (GET /v1/events). While it is away the watch tries again, and
then asks for each task, since what changed meanwhile may be lost. The thread runs only while tasks
are open.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, Dict, Optional

from colloc.client import LIVE_STATES, Client, DaemonError

Object = Dict[str, Any]
OnTask = Callable[[Object], None]

RETRY_S, RETRY_MAX_S = 0.2, 5.0  # chosen: a restart of the daemon takes a second


class TaskWatch:
    """Calls a function for each change of the tasks that it follows, the last time at their end.

    The function is called from the watch's thread, and never after it was called for the end.
    """

    def __init__(self, client: Client):
        self.client = client
        self.open: Dict[int, OnTask] = {}
        self.lock = threading.Lock()  # over `open` and `thread`
        self.thread: Optional[threading.Thread] = None

    def follow(self, tasks: Dict[int, OnTask]) -> None:
        """Follows further tasks, by their ids."""
        with self.lock:
            self.open.update(tasks)
            if self.thread is None and self.open:
                self.thread = threading.Thread(target=self._run, name="colloc-watch", daemon=True)
                self.thread.start()
                return
        for task in tasks:  # what happened before they were followed
            self._ask(task)

    def _take(self, task: Object) -> None:
        """A task as it is now."""
        with self.lock:
            is_ended = task["state"] not in LIVE_STATES
            id_ = task["id"]
            on_task = self.open.pop(id_, None) if is_ended else self.open.get(id_)
        if on_task is None:
            return
        if is_ended:
            task = self._whole(task)
        on_task(task)

    def _whole(self, task: Object) -> Object:
        """The task as its owner sees it: events have what all users see."""
        try:
            return self.client.task(task["id"])
        except (OSError, DaemonError):
            return task

    def _ask(self, task: int) -> None:
        """Asks for one task; a daemon that is away is asked again by the thread."""
        try:
            self._take(self.client.task(task))
        except OSError:
            pass
        except DaemonError as error:
            if error.status == 404:  # of another daemon, or deleted with its log
                self._take({"id": task, "state": "LOST", "reason_text": error.message})

    def _ask_all(self) -> None:
        with self.lock:
            tasks = list(self.open)
        for task in tasks:
            self._ask(task)

    def _is_done(self) -> bool:
        """Ends the thread if no task is open."""
        with self.lock:
            if self.open:
                return False
            self.thread = None
            return True

    def _read(self) -> bool:
        """Follows one connection. Returns whether all tasks have ended."""
        for event in self.client.events():
            if event["event"] == "reset":
                self._ask_all()
            elif event["event"] == "tasks":
                for task in event["data"]["tasks"]:
                    self._take(task)
            if self._is_done():
                return True
        return False

    def _run(self) -> None:
        pause_s = RETRY_S
        while True:
            began = time.monotonic()
            try:
                if self._read():
                    return
            except (OSError, DaemonError, ValueError):
                pass
            pause_s = RETRY_S if time.monotonic() - began > RETRY_MAX_S else pause_s
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, RETRY_MAX_S)
            if self._is_done():
                return
