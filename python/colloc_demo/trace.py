# SPDX-License-Identifier: Apache-2.0
"""The trace that a demo replays: when each training task arrives, and its properties."""

import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TRACES = os.path.join(ROOT, "data", "traces")


class Trouble(Exception):
    """An error with a message for the user."""


def read_table(path):
    """Lines of columns, the first one names them; # starts a comment."""
    with open(path, encoding="utf-8") as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


def read_trace(path, limit):
    """[(arrival in seconds, the task)]"""
    catalogue = {row["task"]: row for row in read_table(os.path.join(TRACES, "tasks.txt"))}
    try:
        trace = [(float(row["arrival_s"]), catalogue[row["task"]]) for row in read_table(path)][
            :limit
        ]
    except (LookupError, ValueError) as error:
        raise Trouble(
            f"{path} is no trace of tasks that data/traces/tasks.txt knows: {error}"
        ) from error
    if not trace:
        raise Trouble(f"{path}: no tasks")
    return trace


def memory_mib(task):
    return task["rerun_mib"] if task["memory_mib"] == "-" else task["memory_mib"]


def train_command(task):
    names = ("gpus", "epochs", "smact", "smocc", "dram", "power_w")
    options = " ".join(f"--{name.replace('_', '-')}={task[name]}" for name in names)
    return (
        f"colloc-pretend-train --memory-mib={memory_mib(task)} --seconds={task['solo_s']} {options}"
    )


def task_script(task, declares_memory):
    """For `colloc submit`."""
    words = [f"--job-name={task['task']}", f"--gpus={task['gpus']}"]
    if declares_memory:
        words.append(f"--memory={memory_mib(task)}MiB")
    return "\n".join(["#!/bin/sh", f"#COLLOC {' '.join(words)}", f"exec {train_command(task)}", ""])
