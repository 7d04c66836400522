#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills in each phase of the carrier (docs/carrier.md), on one GPU. Writes JSON lines, each when
its result is known.

    tests/gpu/carrier_kills_trial.py PROGRAMS OUT.jsonl --seconds=S [--sharing=streams|mps]
                                     [--gpu=0] [--times=10] [--workers=5] [--emulated]
                                     [--phases=copying,away,returning]

PROGRAMS: a folder made by scripts/bundle; with --emulated a build folder (carrier_tasks.py).

The task, its helper (colloc-checkpoint) or collocd is killed by SIGKILL while the task's calls in
flight are waited for, its memory is copied, released (some 10 ms), away, or on its way back: three
kinds for each of --phases, each --times times. `phase_seen` is the phase at that instant, which may
be the next one. Several workers do that at the same time on the GPU, each with another collocd; a
round of a worker is one kill of each kind, and each worker begins it with another one, so that a
short time has kills of all kinds. Trainings are forks of a process that has imported PyTorch.
A second training of the worker waits meanwhile, so that one is ready when the first has been
killed.

After a kill of the task it must have ended, with none of its processes left; after another one it
must compute on in the same attempt. Each training's losses must be those of a run that nothing has
disturbed, also those of its neighbours: of one without colloc (`equal`), and of one that collocd
runs and nothing stops (`control`). When all have ended the GPU must have the memory that it had
before (`kills, memory`).
"""
import multiprocessing
import os
import signal
import subprocess
import time

import carrier_tasks as ct
from groups_trial import ENDED, is_running, until, write

pd = ct.pd
# A phase, and those after it in which the way to it has passed it.
LATER = {
    "waiting": ("copying", "releasing", "away"),
    "copying": ("releasing", "away"),
    "releasing": ("away",),
    "away": (),
    "returning": ("gate", "here"),
}
VICTIMS = ("task", "helper", "collocd")
LIBRARIES = ("torch", "torchvision", "torch._dynamo")
BATCH = 32
PACE_S = 0.1  # chosen: ten trainings leave the GPU to each other
STEPS_MAX = 3000
ROUND_S = 6  # chosen: no kill begins later before the end
REST_S = 20  # of the time: until all have ended and been compared
FREED_S = 4  # chosen: a context is gone after its process
WANT = ("--memory=5GiB", "--smact=0.05")


def kill_one(task, victim, phase):
    """Returns what is seen then. The task runs before."""
    daemon = task.daemon
    pid = until(task.find_pid, 30, "its page")
    page = pd.ProcessPage(pid, daemon.process.pid)
    if phase == "returning":
        daemon.ask("suspend", str(task.id))
        if task.wait("SUSPENDED", "RUNNING", "PAUSED") != "SUSPENDED":
            return {"not_tried": task.show()["suspension_error"], "state": task.state()}
    verb = "resume" if phase == "returning" else "suspend"
    asking = subprocess.Popen(
        daemon.words(verb, str(task.id)),
        env=daemon.machine.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    pids = {"task": pid, "helper": daemon.helper(), "collocd": daemon.process.pid}
    result = {"phase_seen": page.wait_phase(phase, *LATER[phase])}
    page.close()
    pids["helper"] = pids["helper"] or daemon.helper()
    if pids[victim] is None:
        result["not_tried"] = "collocd runs no helper now"
    elif victim == "collocd":
        daemon.kill()
    else:
        os.kill(pids[victim], signal.SIGKILL)
    begin = time.monotonic()
    if victim == "collocd":
        daemon.start()
    asking.wait(60)
    if victim == "task":
        result["state"] = task.wait(*ENDED)
        result["is_left"] = is_running(pid)
    else:
        result["state"] = task.wait("RUNNING", "SUSPENDED", *ENDED)
        if result["state"] == "SUSPENDED":
            daemon.ask("resume", str(task.id))
            task.wait("RUNNING", *ENDED)
        task.wait_steps(3)
        result["attempts"] = task.show()["attempt_count"]
    result["settled_after_s"] = round(time.monotonic() - begin, 2)
    return result


def kinds_of(worker, phases):
    """All kinds, in the order of this worker: each begins with another one."""
    kinds = [(victim, phase) for phase in phases for victim in VICTIMS]
    first = worker % len(kinds)
    return kinds[first:] + kinds[:first]


class Worker:
    """A collocd, the training that is disturbed, and the one that waits."""

    def __init__(self, machine, options, number, end):
        self.machine, self.options, self.number, self.end = machine, options, number, end
        settings = {"sharing": options.sharing}
        if options.sharing == "mps":
            settings["mps_memory_limit"] = "no"
        self.daemon = ct.Daemon(machine, options.gpu, **settings)
        self.control = self.new_task(is_paused=False) if number == 0 else None
        self.task, self.spare, self.ended = None, self.new_task(), []

    def new_task(self, is_paused=True):
        given = {"is_paused": is_paused, "batch": BATCH, "pace": PACE_S}
        return ct.Task(self.daemon, "resnet50", STEPS_MAX, *WANT, **given)

    def ready_task(self):
        if not self.task:
            self.task, self.spare = self.spare, None
            self.task.pause(False)
            self.task.wait_steps(3, 90)
            self.spare = self.new_task()
        if self.task.state() == "PAUSED":  # it could not be suspended
            self.daemon.ask("resume", str(self.task.id))
        # After a kill of collocd its process connects to the next one first.
        until(lambda: self.task.show()["carried"], 20, "its carrier", 0.05)
        return self.task

    def run(self, rounds):
        for number in rounds:
            for victim, phase in kinds_of(self.number, self.options.phases.split(",")):
                if time.monotonic() > self.end - ROUND_S:
                    self.note({"result": "time is over", "round": number})
                    return
                row = {"result": f"kill {victim} {phase}", "round": number}
                try:
                    task = self.ready_task()
                    row.update(task=task.id, steps_before=len(task.losses()))
                    row.update(kill_one(task, victim, phase))
                except Exception as error:  # noqa: BLE001 - a part of the result
                    row["error"] = repr(error)[-300:]
                self.note(row)
                if self.task and (row.get("error") or row.get("state") in ENDED):
                    self.daemon.ask("cancel", str(self.task.id))
                    self.ended.append(self.task)
                    self.task = None

    def note(self, row):
        write(self.options.out, {**row, "sharing": self.options.sharing, "worker": self.number})

    def finish(self, reference, controls):
        """Compares the losses of all its trainings, once they have ended."""
        tasks = [*self.ended, self.task, self.spare, self.control]
        losses = {task: task.losses() for task in tasks if task}
        warnings = self.daemon.warnings()
        self.daemon.close()
        self.note({"result": "log", "lines": warnings[-20:], "n_lines": len(warnings)})
        if self.control:
            controls.put(losses[self.control])
        control = controls.get(timeout=max(1, self.end - time.monotonic()))
        controls.put(control)
        for task, own in losses.items():
            row = reference.compare(own, max(0, self.end - time.monotonic()))
            name = "control" if task is self.control else "losses of a training"
            row["control"] = ct.compare(own, control)
            self.note({"result": name, "task": task.id, **row})


def work(machine, options, number, end, reference, controls):
    worker = None
    try:
        worker = Worker(machine, options, number, end - REST_S)
        worker.run(range(number, options.times, options.workers))
    except Exception as error:  # noqa: BLE001 - a part of the result
        row = {"result": "error of a worker", "worker": number, "error": repr(error)[-500:]}
        write(options.out, row)
    if worker:
        worker.end = end - 5
        worker.finish(reference, controls)


def wait_freed(machine, gpu, before):
    """Returns the MiB in use, at the latest after FREED_S."""
    end = time.monotonic() + FREED_S
    while (used := machine.used_mib(gpu)) and used > before and time.monotonic() < end:
        time.sleep(0.2)
    return used


def trial(machine, options):
    end = time.monotonic() + options.seconds
    gpu = options.gpu.split(",")[0]
    before = machine.used_mib(gpu)
    machine.import_once(*LIBRARIES)
    # Without rests: it is far ahead of those that it is compared with.
    reference = ct.Reference(machine, "resnet50", STEPS_MAX, gpu, batch=BATCH)
    fork = multiprocessing.get_context("fork")
    controls = fork.Queue()
    workers = [
        fork.Process(target=work, args=(machine, options, number, end, reference, controls))
        for number in range(min(options.workers, options.times))
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(max(0, end - time.monotonic()))
    for worker in workers:
        worker.kill()
    reference.end()
    row = {"result": "kills, memory", "before_mib": before}
    row["after_mib"] = wait_freed(machine, gpu, before)
    write(options.out, {**row, "sharing": options.sharing})


if __name__ == "__main__":
    more = {"sharing": "streams", "phases": "copying,away,returning"}
    ct.run(__doc__, trial, gpu="0", times=10, workers=5, **more)
