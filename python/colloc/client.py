# SPDX-License-Identifier: Apache-2.0
"""The client half of docs/protocol.md.

Each request uses its own connection, so threads may share a client. `request` returns every reply
unchanged; the other methods return their result, or raise `DaemonError` with the daemon's
message. A daemon that cannot be reached is an OSError.
"""

from __future__ import annotations

import http.client
import itertools
import json
import math
import os
import re
import shlex
import time
import urllib.parse
import warnings
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from colloc.connection import Connection, find_socket
from colloc.module_estimate import estimate

LIVE_STATES = ("PENDING", "RUNNING", "SUSPENDED", "PAUSED", "COMPLETING")
# The daemon answers within 150 s, and where GPU memory is copied within an hour
# (docs/protocol.md); 20 s more for a busy machine.
TIMEOUT_S = 170.0
MOVE_S = 3620.0
WAIT_PIECE_S = 30.0  # of one wait request; the daemon accepts at most 60

Object = Dict[str, Any]
TaskId = Union[int, str]  # 12, or "12_7": the task with index 7 of array 12


class DaemonError(Exception):
    """An answer with an error status: `status` is HTTP's, `code` and `message` are the daemon's."""

    def __init__(self, status: int, code: str, message: str):
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class Reply:
    """An HTTP reply: `status`, `headers` (case-insensitive) and `data` (the body's bytes)."""

    def __init__(self, status: int, headers: http.client.HTTPMessage, data: bytes):
        self.status, self.headers, self.data = status, headers, data

    @property
    def json(self) -> Any:
        """The body as JSON. Raises ValueError if it is not JSON."""
        return json.loads(self.data)

    @property
    def message(self) -> str:
        """The daemon's message in the body of an error."""
        return self.json["error"]["message"]

    def check(self) -> "Reply":
        """Returns the reply itself. Raises DaemonError if its status is an error."""
        if self.status < 400:
            return self
        try:
            error = self.json["error"]
            raise DaemonError(self.status, error["code"], error["message"])
        except (ValueError, LookupError, TypeError):
            text = self.data.decode(errors="replace")
            raise DaemonError(self.status, "unknown", f"HTTP {self.status}: {text}") from None


def is_utf8(text: str) -> bool:
    """Whether the text came from valid UTF-8 (Python escapes other bytes of the environment)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


SIZE = re.compile(r"(\d+(?:\.\d+)?) *([KMGT]?)(i?B?)")


def mib_of(size: Union[str, float]) -> float:
    """A size in MiB: "12GiB" and "12G" (units of 2^30 bytes), "12GB" (of 10^9), 900 (MiB)."""
    if not isinstance(size, str):
        return size
    match = SIZE.fullmatch(size.strip())
    if not match or not (match[2] or match[3]):
        raise ValueError(f"{size!r}: not a size: give a number with a unit, such as 12GiB")
    base = 1000 if match[3] == "B" else 1024
    return float(match[1]) * base ** " KMGT".index(match[2] or " ") / 2**20


def name_of(words: Sequence[str]) -> str:
    """What `colloc submit -- COMMAND` would call the task: the script, or else the program."""
    names = [os.path.basename(word) for word in words]
    is_script = len(names) > 1 and names[0].startswith(("python", "bash", "sh"))
    return names[1] if is_script and not names[1].startswith("-") else names[0]


def indices_of(text: str) -> List[int]:
    """The indices of an array: [0, 1, 2, 6] of "0-2,6", and [0, 2, 4] of "0-4:2"."""
    found: List[int] = []
    for part in text.split(","):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        found.extend(range(int(first), int(last or first) + 1, int(step or 1)))
    return found


def has_started(task: Object) -> bool:
    """Whether the task runs, or is suspended or paused."""
    return task["ended_at"] is None and task["state"] != "PENDING"


class Task(int):
    """A submitted task: its id, and what can be done with it."""

    client: "Client"

    def __new__(cls, task: int, client: "Client") -> "Task":
        self = super().__new__(cls, task)
        self.client = client
        return self

    def info(self) -> Object:
        """As Client.task."""
        return self.client.task(self)

    def wait(self, timeout_s: Optional[float] = None) -> Object:
        """As Client.wait."""
        return self.client.wait(self, timeout_s)

    def logs(self, stream: str = "stdout", attempt: Optional[int] = None) -> bytes:
        """As Client.logs."""
        return self.client.logs(self, stream, attempt)

    def cancel(self) -> Object:
        """As Client.cancel."""
        return self.client.cancel(self)

    def requeue(self) -> Object:
        """As Client.requeue."""
        return self.client.requeue(self)


class Array(Task):
    """A submitted array: its id, and what can be done with all its tasks."""

    def tasks(self) -> Dict[int, Task]:
        """Its tasks by their indices."""
        array = self.client.array(self)
        indices = indices_of(array["indices"])
        return {index: Task(array["first"] + i, self.client) for i, index in enumerate(indices)}

    def info(self) -> Object:
        """As Client.array: its indices, and the number of its tasks in each state."""
        return self.client.array(self)

    def wait(self, timeout_s: Optional[float] = None) -> Any:
        """Waits until all its tasks have ended. Returns them in the order of their indices."""
        return self.client.wait(self, timeout_s)

    def logs(self, stream: str = "stdout", attempt: Optional[int] = None) -> Any:
        """The output of each of its tasks, by index."""
        return {index: task.logs(stream, attempt) for index, task in self.tasks().items()}


class Client:
    """One daemon.

    socket: path of its Unix socket. None: COLLOC_SOCKET, otherwise where a daemon is found.
    timeout_s: how long a request may take before it fails with TimeoutError.
    """

    def __init__(self, socket: Optional[str] = None, timeout_s: float = TIMEOUT_S):
        self.socket = find_socket(socket)
        self.timeout_s = timeout_s

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Optional[Mapping[str, str]] = None,
        timeout_s: Optional[float] = None,
    ) -> Reply:
        """Sends one request and returns the reply, whatever its status.

        path: begins with /v1/.
        body: a dict or list is sent as JSON; str and bytes are sent unchanged; None: no body.
        """
        data = json.dumps(body) if isinstance(body, (dict, list)) else body
        connection = Connection(self.socket, self.timeout_s if timeout_s is None else timeout_s)
        try:
            connection.request(method, path, data, dict(headers or {}))
            reply = connection.getresponse()
            return Reply(reply.status, reply.headers, reply.read())
        finally:
            connection.close()

    def get(self, path: str, **query: Any) -> Any:
        """GET: the JSON of the answer. Members of `query` that are None are left out."""
        given = {name: value for name, value in query.items() if value is not None}
        text = f"?{urllib.parse.urlencode(given)}" if given else ""
        return self.request("GET", path + text).check().json

    def submit(
        self,
        script: Union[str, Sequence[str]],
        arguments: Sequence[str] = (),
        cwd: Optional[str] = None,
        environment: Optional[Mapping[str, str]] = None,
        memory: Union[str, float, None] = None,
        **options: Any,
    ) -> Task:
        """Queues a task.

        script: text of the script, which bash runs unless its first line is `#! INTERPRETER`; or a
            command as a list of words, such as ["python", "train.py"].
        cwd, environment: of the task; None: those of this process. Variables that are not UTF-8
            are left out.
        memory: GPU memory requirement on each GPU: "12GiB", or a number of MiB.
        options: further keys of `POST /v1/tasks`, such as name, gpus, memory_mib, sharing.

        Returns the task, which is its id, too, or with `array` an Array, once it is stored on disk.
        The daemon's warnings are issued as Python warnings.
        """
        if not isinstance(script, str):
            words = [*script, *arguments]
            if not words:
                raise ValueError("the command has no words")
            shown = shlex.join(words).encode()[:1024].decode(errors="ignore")
            options = {"name": name_of(words), "command": shown, **options}
            script, arguments = '#!/bin/sh\nexec "$@"\n', words
        if memory is not None:
            options["memory_mib"] = mib_of(memory)
        whole = os.environ if environment is None else environment
        body = {
            "script": script,
            "arguments": list(arguments),
            "cwd": cwd or os.getcwd(),
            "environment": {k: v for k, v in whole.items() if is_utf8(k) and is_utf8(v)},
            **options,
        }
        reply = self.request("POST", "/v1/tasks", body).check().json
        for text in reply.get("warnings", ()):
            warnings.warn(text, stacklevel=2)
        return Array(reply["id"], self) if "tasks" in reply else Task(reply["id"], self)

    def estimate(self, module: Any, inputs: Any, target: Any = None, **options: Any) -> Object:
        """The GPU memory of training a torch.nn.Module, as colloc.estimate; sends no request."""
        return estimate(module, inputs, target, **options)

    def task(self, task: TaskId) -> Object:
        """One task; its script and events too for its owner and for root."""
        return self.get(f"/v1/tasks/{task}")["task"]

    def tasks(
        self,
        state: Optional[str] = None,
        user: Optional[str] = None,
        since: Optional[float] = None,
        until: Optional[float] = None,
        limit: Optional[int] = None,
    ) -> List[Object]:
        """The tasks in one state, those that have not ended first.

        state: a state, "all", "ended", or "live" (not ended), which is the default.
        user: only this user's.
        since, until: only tasks that ended in this period (seconds since 1970).
        limit: at most this many ended tasks, newest first (None: the daemon's default, 1000).

        The daemon answers in pages, which are all read. A task that changes its state meanwhile is
        listed once, as it was first seen or, if no page had it, as one that runs.
        """
        query: Object = {
            "state": state,
            "user": user,
            "since": since,
            "until": until,
            "limit": limit,
        }
        pages = list(self._pages(query))
        found: Dict[int, Object] = {}
        for task in itertools.chain(*pages):
            found.setdefault(task["id"], task)
        if all(task["ended_at"] is not None for task in itertools.chain(*pages[1:])):
            return list(found.values())
        started = [task for task in self._running(query) if task["id"] not in found]
        return [*started, *found.values()]

    def _pages(self, query: Object) -> Iterator[List[Object]]:
        """The tasks of one page of the list after the other."""
        page: Object = {"next": None}
        while "next" in page:
            page = self.get("/v1/tasks", **query, after=page["next"])
            yield page["tasks"]

    def _running(self, query: Object) -> Iterator[Object]:
        """The tasks that have started and have not ended, which begin the list."""
        for page in self._pages(query):
            started = [task for task in page if has_started(task)]
            yield from started
            if started[-1:] != page[-1:]:
                return

    def wait(self, task: TaskId, timeout_s: Optional[float] = None) -> Any:
        """Waits until the task has ended and returns it; of an array a list of its tasks.

        timeout_s: raises TimeoutError after this many seconds. None: waits without limit.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left = WAIT_PIECE_S if end is None else max(0.0, end - time.monotonic())
            piece_s = min(WAIT_PIECE_S, left)
            path = f"/v1/tasks/{task}/wait?timeout_s={piece_s:.3f}"
            reply = self.request("GET", path, timeout_s=self.timeout_s + piece_s).check()
            array = reply.json.get("array")
            if array:
                tasks = range(array["first"], array["last"] + 1)
                return [
                    self.wait(one, None if end is None else max(0.0, end - time.monotonic()))
                    for one in tasks
                ]
            found = reply.json["task"]
            if found["state"] not in LIVE_STATES:
                return found
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"task {task} is still {found['state']} after {timeout_s:g} s")

    def logs(self, task: TaskId, stream: str = "stdout", attempt: Optional[int] = None) -> bytes:
        """The output of the task up to now.

        stream: "stdout" or "stderr".
        attempt: 1 is the first. None: the last one.
        """
        data = b""
        while True:
            query = {"stream": stream, "offset": len(data)}
            if attempt is not None:
                query["attempt"] = attempt
            path = f"/v1/tasks/{task}/log?{urllib.parse.urlencode(query)}"
            reply = self.request("GET", path).check()
            data += reply.data
            if not reply.data or reply.headers.get("Colloc-Ended") == "true":
                return data
            if attempt is None:  # all pieces are of one attempt
                attempt = int(reply.headers["Colloc-Attempt"])

    def array(self, array: int) -> Object:
        """An array: its indices, and the number of its tasks in each state."""
        return self.get(f"/v1/tasks/{array}")["array"]

    def cancel(self, task: TaskId) -> Object:
        """Ends the task (SIGTERM, after its grace period SIGKILL) and returns it at once.

        task: also an array, of which all tasks are ended.
        """
        return self._change(task, "cancel")

    def requeue(self, task: TaskId) -> Object:
        """Ends the running task as cancel does, and has it wait again under its id."""
        return self._change(task, "requeue")

    def hold(self, task: TaskId) -> Object:
        """Keeps the waiting task, or those of the array, from starting, and returns it."""
        return self._change(task, "hold")

    def release(self, task: TaskId) -> Object:
        """Lets the held task, or those of the array, start, and returns it."""
        return self._change(task, "release")

    def suspend(self, task: TaskId) -> Object:
        """Takes the task off its GPUs, or pauses it, and returns it when that is done."""
        return self._change(task, "suspend", timeout_s=MOVE_S)

    def resume(self, task: TaskId) -> Object:
        """Lets a suspended task continue as soon as a GPU has enough free memory for it."""
        return self._change(task, "resume", timeout_s=MOVE_S)

    def move(self, task: TaskId, gpus: Sequence[str]) -> Object:
        """Moves the task to other GPUs, as many as it has, and returns it when that is done.

        gpus: indices as `gpus()` shows them, or UUIDs.
        """
        return self._change(task, "move", {"gpus": list(gpus)}, MOVE_S)

    def report_latency(self, task: TaskId, p99_ms: float) -> None:
        """Reports how long requests of the service take: 99 % of them no longer than this.

        For a service without a port, which colloc does not probe; every few seconds.
        """
        path = f"/v1/tasks/{task}/latency"
        self.request("POST", path, {"p99_ms": p99_ms}).check()

    def metric(self, name: str, step: int, value: float, task: Optional[TaskId] = None) -> Object:
        """Reports a metric of a task for the early stop of its array (docs/sweeps.md).

        value: NaN and infinities count as the worst.
        task: None: the task in which this program runs (COLLOC_TASK_ID).

        Returns {"task", "stop_rank"}: the rank of its last report at a rung, or None.
        """
        task = os.environ["COLLOC_TASK_ID"] if task is None else task
        number = float(value)
        body = {"name": name, "step": int(step), "value": number if math.isfinite(number) else None}
        return self.request("POST", f"/v1/tasks/{task}/metric", body).check().json

    def _change(
        self,
        task: TaskId,
        verb: str,
        body: Optional[Object] = None,
        timeout_s: Optional[float] = None,
    ) -> Object:
        """Posts a change of a task or an array, and returns what that is now."""
        path = f"/v1/tasks/{task}/{verb}"
        reply = self.request("POST", path, body, timeout_s=timeout_s).check().json
        return reply["task"] if "task" in reply else reply["array"]

    def events(self, after: Optional[int] = None) -> Iterator[Object]:
        """What happens, as it happens: {"event", "id", "data"} (docs/protocol.md, GET /v1/events).

        after: the id of the last event that was seen; the events since then come first.

        Ends when the daemon ends the stream.
        """
        connection = Connection(self.socket, self.timeout_s)
        try:
            query = "" if after is None else f"?after={after}"
            connection.request("GET", f"/v1/events{query}")
            reply = connection.getresponse()
            if reply.status >= 400:
                Reply(reply.status, reply.headers, reply.read()).check()
            fields: Object = {}
            for line in iter(reply.readline, b""):
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    fields[name] = value
                elif fields:
                    seq = fields.get("id")
                    yield {
                        "event": fields.get("event"),
                        "id": None if seq is None else int(seq),
                        "data": json.loads(fields.get("data", "null")),
                    }
                    fields = {}
        finally:
            connection.close()

    def gpus(self) -> List[Object]:
        """The GPUs with their last samples and their tasks."""
        return self.get("/v1/gpus")["gpus"]
