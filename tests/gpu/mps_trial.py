#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Failures of MPS on a real GPU, with PyTorch tasks under colloc. Prints the results as JSON.

    tests/gpu/mps_trial.py PROGRAMS [OUTPUT [PART ...]]

Needs what tests/gpu/trial.py needs; the fault needs CuPy too. Each failure has its own MPS control
daemon; all run at the same time.
"""
import json
import os
import signal
import subprocess
import sys
import threading
import time

from trial import TRAIN, TrialDaemon, brief

LIMIT_S = 60


def until(condition, what):
    end = time.monotonic() + LIMIT_S
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.1)
    return value


def told(task):
    keys = (
        "requeue_count",
        "sharing",
        "sharing_text",
        "thread_percentage",
        "mem_limit_mib",
        "reason_text",
    )
    return {
        **brief(task),
        **{key: task[key] for key in keys},
        "story": [(e["event"], e["text"]) for e in task["events"]],
    }


def has_begun(daemon, task):
    return any(line["event"] == "first-step" for line in daemon.lines(task))


def trainings(daemon, count, seconds, *options):
    tasks = [
        daemon.submit(
            TRAIN, "resnet18", "--batch", "64", "--seconds", str(seconds), options=options
        )[0]
        for _ in range(count)
    ]
    for task in tasks:
        until(lambda task=task: has_begun(daemon, task), f"first step of task {task}")
    return tasks


def new_daemon(programs):
    return TrialDaemon(
        programs,
        sharing="mps",
        settle="1s",
        settle_max="2s",
        smact_max="1",
        min_free="2GiB",
        policy="rr",
    )


def mps_folder(daemon):
    return f"{daemon.folder}/state/mps/{os.geteuid()}"


def server_log(daemon):
    with open(mps_folder(daemon) + "/log/server.log", errors="replace") as file:
        return [
            line
            for line in file.read().splitlines()
            if "fatal" in line or "torn down" in line or "terminat" in line
        ]


def fault(daemon):
    """An illegal address among innocents."""
    innocent = [
        daemon.submit(TRAIN, "resnet18", "--batch", "64", "--seconds", "16")[0] for _ in range(2)
    ]
    guilty, _ = daemon.submit(TRAIN, "wild", "--seconds", "4")
    ended = daemon.wait(guilty, *innocent)
    return {
        "guilty": told(ended[0]),
        "innocent": [told(task) for task in ended[1:]],
        "server_log": server_log(daemon),
    }


def server_killed(daemon):
    tasks = trainings(daemon, 4, 12)
    environment = dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=mps_folder(daemon) + "/pipe")
    listed = subprocess.run(
        ["nvidia-cuda-mps-control"],
        input="get_server_list\n",
        text=True,
        env=environment,
        capture_output=True,
        timeout=10,
    )
    os.kill(int(listed.stdout.split()[0]), signal.SIGKILL)
    return {"tasks": [told(task) for task in daemon.wait(*tasks)]}


def cancelled(daemon):
    """A client that is cancelled with work in flight, beside one that goes on."""
    neighbour, victim = trainings(daemon, 2, 12)
    before = time.monotonic()
    daemon.colloc("cancel", str(victim))
    (ended,) = daemon.wait(victim)
    took = time.monotonic() - before
    (rest,) = daemon.wait(neighbour)
    return {
        "victim": told(ended),
        "took_s": took,
        "stderr": daemon.colloc("logs", str(victim), "--stderr")[-700:],
        "neighbour": told(rest),
        "neighbour_words": daemon.lines(neighbour),
        "server_log": server_log(daemon),
    }


# The training itself ignores SIGTERM: the wrapper decides when it has saved.
WRAPPER = """
(trap '' TERM; exec {python} {train} resnet18 --batch 64 --seconds 60) &
training=$!
trap 'sleep 2; kill -0 $training && echo checkpoint saved; kill -9 $training; wait; exit 0' TERM
wait $training
"""


def wrapper_saves(daemon):
    """A script that traps SIGTERM so that its training saves a checkpoint, as is usual with Slurm.

    Runs in each way of sharing.
    """
    seen = {}
    for sharing in ("streams", "mps"):
        script = WRAPPER.format(python=sys.executable, train=TRAIN)
        out = daemon.colloc("submit", "--json", f"--sharing={sharing}", "--", "bash", "-c", script)
        task = json.loads(out)["id"]
        until(lambda task=task: has_begun(daemon, task), f"first step of task {task}")
        daemon.colloc("cancel", str(task))
        (ended,) = daemon.wait(task)
        seen[sharing] = {
            "task": told(ended),
            "saved": "checkpoint saved" in daemon.colloc("logs", str(task)),
        }
    return seen


def memory_limit(daemon):
    """3 GiB declared, 8 GiB used: with a margin of 2 GiB the task fails at 5 GiB.

    It runs again when the GPU is idle.
    """
    neighbour, _ = daemon.submit(TRAIN, "resnet18", "--batch", "64", "--seconds", "16")
    wrong, _ = daemon.submit(
        TRAIN, "allocate", "--gib", "8", "--seconds", "1", options=("--memory", "3G")
    )
    ended = daemon.wait(wrong, neighbour)
    return {
        "wrong": told(ended[0]),
        "neighbour": told(ended[1]),
        "neighbour_words": daemon.lines(neighbour),
    }


def run(name, part, programs, seen):
    began = time.monotonic()
    daemon = new_daemon(programs)
    try:
        seen[name] = part(daemon)
    except Exception as error:  # one part that fails must not lose what the others saw
        seen[name] = {"error": repr(error)}
    with open(daemon.log.name) as log:
        seen[name]["log"] = log.read()[-1500:]
    daemon.close()
    seen[name]["took_s"] = time.monotonic() - began
    print(name, json.dumps(seen[name])[:600], flush=True)


def main():
    programs, output = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    seen = {}
    parts = {
        "fault": fault,
        "server_killed": server_killed,
        "cancelled": cancelled,
        "memory_limit": memory_limit,
        "wrapper_saves": wrapper_saves,
    }
    chosen = sys.argv[3:] or list(parts)
    threads = [
        threading.Thread(target=run, args=(name, parts[name], programs, seen)) for name in chosen
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if output:
        with open(output, "w") as file:
            json.dump(seen, file, indent=1)


if __name__ == "__main__":
    main()
