# SPDX-License-Identifier: Apache-2.0
"""A client of collocd: submit training tasks from Python and follow them.

    import colloc

    task = colloc.Client().submit(["python", "train.py"], gpus=1, memory="12GiB")
    print(task.wait()["state"], task.logs().decode(errors="replace"))

`colloc.Executor` runs Python functions as tasks, with the interface of concurrent.futures.
`colloc.estimate(model, inputs)` says how much GPU memory a training of a PyTorch model will need.

`colloc.step()`, in a training, reports one of its steps to colloc.

The objects that the client returns are those of the daemon's interface (docs/protocol.md): their
keys carry their units, and None means unknown. Standard library only; `estimate` needs PyTorch and
the program colloc.
"""

import os

from colloc.client import Array, Client, DaemonError, Reply, Task
from colloc.connection import Connection, find_socket
from colloc.executor import Executor, TaskFuture
from colloc.module_estimate import estimate
from colloc.steps import step
from colloc.task_errors import (
    TaskCancelled,
    TaskCrashed,
    TaskError,
    TaskOutOfMemory,
    TaskStopped,
    TaskTimeout,
)


def metric(name: str, step: int, value: float) -> None:
    """Reports a metric of this task for the early stop of its array, as Client.metric.

    Outside of a task it does nothing, so that a script may call it anywhere.
    """
    if "COLLOC_TASK_ID" in os.environ:
        Client().metric(name, step, value)


__all__ = [
    "Array",
    "Client",
    "Connection",
    "DaemonError",
    "Executor",
    "Reply",
    "Task",
    "TaskCancelled",
    "TaskCrashed",
    "TaskError",
    "TaskFuture",
    "TaskOutOfMemory",
    "TaskStopped",
    "TaskTimeout",
    "estimate",
    "find_socket",
    "metric",
    "step",
]
