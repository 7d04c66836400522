# SPDX-License-Identifier: Apache-2.0
"""How a call that runs as a task can end without a result.

    TaskError              any of these
    ├─ TaskOutOfMemory     it ran out of GPU memory (or main memory), also alone on its GPU
    ├─ TaskTimeout         it reached its time limit
    ├─ TaskCancelled       a command cancelled the task, not the future
    ├─ TaskStopped         a rule for early stop ended it
    └─ TaskCrashed         its process ended without a result: a signal, os._exit, no interpreter

An exception of the function itself is raised unchanged, with the text of its traceback as the
cause.
"""

from __future__ import annotations

from typing import Any, Dict

Object = Dict[str, Any]


class TaskError(Exception):
    """`task` is the daemon's object of the ended task (docs/protocol.md), `output` the end of what
    it wrote to stderr."""

    def __init__(self, task: Object, output: str = ""):
        self.task, self.output = task, output
        super().__init__(task, output)

    def __str__(self) -> str:
        why = self.task.get("reason_text") or self.task.get("reason") or ""
        text = f"task {self.task.get('id')}: {self.task.get('state')}"
        text += f" ({why})" if why else ""
        return f"{text}\n{self.output}" if self.output else text


class TaskOutOfMemory(TaskError, MemoryError):
    """The task ran out of memory, and colloc's further attempts did, too."""


class TaskTimeout(TaskError, TimeoutError):
    """The task reached its time limit."""

    __str__ = TaskError.__str__


class TaskCancelled(TaskError):
    """The task was cancelled by a command, or its dependency can never hold."""


class TaskStopped(TaskError):
    """A rule for early stop ended the task: `task["stop_rank"]` has its rung and rank."""


class TaskCrashed(TaskError):
    """The process ended without a result: `task["exit_code"]` and `task["signal"]` say how."""


class RemoteTraceback(Exception):
    """The cause of an exception of the function: its traceback in the task's process, as text."""

    def __init__(self, text: str):
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


BY_STATE = {
    "OUT_OF_MEMORY": TaskOutOfMemory,
    "TIMEOUT": TaskTimeout,
    "CANCELLED": TaskCancelled,
    "STOPPED": TaskStopped,
}


def error_of_task(task: Object, output: str = "") -> TaskError:
    """The exception of a task that ended without a result."""
    return BY_STATE.get(task["state"], TaskCrashed)(task, output)
