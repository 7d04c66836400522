#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Four trainings that together need 1.5 times the memory of a GPU take turns on it by slots of 5 s,
against the same ones one after the other (docs/suspend.md). Writes JSON lines.

    tests/gpu/carrier_turns_trial.py PROGRAMS OUT.jsonl --seconds=S [--sharing=streams|mps]
                                     [--gpu=0] [--alone=2] [--emulated]

PROGRAMS: a folder made by scripts/bundle; with --emulated a build folder (carrier_tasks.py).

Two of them (--alone) run one after the other first: how long one takes, its memory and its losses
are known then. Another process holds what is too much on the GPU. Then all four are submitted at
once. Each training is a fork of a process that has imported PyTorch, so that neither way is longer
by imports. Its steps are those that fit the time.
"""
import subprocess
import sys
import time

import carrier_tasks as ct
from groups_trial import ENDED, until, write

KIND, BATCH, STEPS_PER_S = "resnet50", 128, 13  # of one alone on an H200, docs/measured
LIBRARIES = ("torch", "torchvision", "torch._dynamo")
OVERCOMMIT = 1.5
TOGETHER = 4
IMPORTS_S, START_S = 15, 5  # chosen: of the fork server, and of a fork until its first step
SLOWER = 1.15  # chosen: what taking turns may cost, in the plan of the time
REST_S = 10  # of the time: until the result is written and all have ended
SEEN_S = 2  # until the driver and collocd have seen the end of a process, or its context
EMULATED = {"steps_per_s": 3, "mib": 256}  # chosen: of a busy machine
SETTINGS = {"policy": "magm", "slots": "yes", "slot_length": "5s", "suspend_memory_max": "60GiB"}

# Allocates as many MiB of the GPU as its input names, and frees them at the end of the input.
HOLD = r"""
import ctypes as c, sys
cuda = c.CDLL("libcuda.so.1")
context, at = c.c_void_p(), c.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0) == 0
cuda.cuCtxSetCurrent(context)
print("has its context", flush=True)
left = int(sys.stdin.readline())
while left > 0:
    part = min(left, 4096)
    assert cuda.cuMemAlloc_v2(c.byref(at), c.c_size_t(part << 20)) == 0
    left -= part
print("holds", flush=True)
sys.stdin.read()
"""


def steps_for(machine, seconds, alone):
    """Of each training, so that all of them end in the time."""
    emulated = machine.is_emulated
    starts_s = 0 if emulated else IMPORTS_S + (alone + TOGETHER) * START_S
    left_s = seconds - REST_S - SEEN_S - starts_s
    rate = EMULATED["steps_per_s"] if emulated else STEPS_PER_S
    return max(20, int(rate * left_s / (alone + TOGETHER * SLOWER)))


class Turns:
    def __init__(self, machine, options):
        self.machine, self.out, self.sharing = machine, options.out, options.sharing
        self.end = time.monotonic() + options.seconds
        settings = {"sharing": self.sharing, **SETTINGS}
        if self.sharing == "mps":
            settings["mps_memory_limit"] = "no"
        if machine.is_emulated:
            settings.update(slot_length="1s", min_free="64MiB", margin="16MiB")
        self.daemon = ct.Daemon(machine, options.gpu, **settings)
        self.alone = options.alone
        self.steps = steps_for(machine, options.seconds, self.alone)

    def submit(self, *options):
        mib = EMULATED["mib"]
        return ct.Task(self.daemon, KIND, self.steps, *options, batch=BATCH, mib=mib)

    def one_after_the_other(self):
        """Returns the memory that one takes, in MiB, the seconds, and its losses."""
        begin = time.monotonic()
        for _ in range(self.alone):
            task = self.submit("--exclusive", "--slot=no")
            task.wait(*ENDED, limit_s=self.end - time.monotonic())
            if task.state() != "COMPLETED":
                raise RuntimeError(f"one alone: {task.output()[-5:]}")
        each_s = (time.monotonic() - begin) / self.alone
        peak = task.show()["mem_peak_mib"]
        row = {"each_s": round(each_s, 2), "mem_peak_mib": peak, "steps": self.steps}
        self.note("turns, one after the other", **row)
        return peak, each_s, task.losses()

    def free_mib(self):
        return self.daemon.gpus()[0]["mem_free_mib"]

    def hold(self, peak):
        """Returns the process that leaves the trainings too little, and the MiB that it holds."""
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self.machine.env,
            text=True,
        )
        holder.stdout.readline()
        time.sleep(SEEN_S)
        free = self.free_mib()
        mib = int(free - TOGETHER * peak / OVERCOMMIT)
        holder.stdin.write(f"{mib}\n")
        holder.stdin.flush()
        if not holder.stdout.readline():
            raise RuntimeError(f"cannot hold {mib} MiB")
        until(lambda: self.free_mib() <= free - mib + 1, 10, "its memory", 0.1)
        return holder, mib

    def story_of(self, tasks, begin):
        """Until all have ended, or time is over: after how many seconds which states were seen."""
        story, states = [], []
        while not (states and all(s in ENDED for s in states)):
            if time.monotonic() > self.end - REST_S:
                break
            seen = [task.state() for task in tasks]
            if seen != states:
                story.append([round(time.monotonic() - begin, 1), *seen])
            states = seen
            time.sleep(0.1)
        return story

    def together(self, peak, each_s, reference):
        holder, held_mib = self.hold(peak)
        begin = time.monotonic()
        want = (f"--memory={int(peak) + 1}MiB", "--smact=0.45")
        tasks = [self.submit(*want) for _ in range(TOGETHER)]
        story = self.story_of(tasks, begin)
        total_s, shown = time.monotonic() - begin, [task.show() for task in tasks]
        losses = [task.losses() for task in tasks]
        compared = [ct.compare(own, reference) for own in losses]
        have_ended = all(task["state"] == "COMPLETED" for task in shown)
        throughput = round(TOGETHER * each_s / total_s, 3) if have_ended else None
        self.note(
            "turns",
            states=[task["state"] for task in shown],
            attempts=[task["attempt_count"] for task in shown],
            reasons=[task["reason_text"] for task in shown],
            suspensions=[task["suspensions"] for task in shown],
            suspended_s=[task["suspended_s"] for task in shown],
            total_s=round(total_s, 2),
            throughput_of_one_after_the_other=throughput,
            held_by_another_mib=held_mib,
            free_mib=round(TOGETHER * peak / OVERCOMMIT),
            equal=[row["equal"] for row in compared],
            steps=[len(own) for own in losses],
            story=story,
            warnings=self.daemon.warnings()[-12:],
        )
        holder.communicate(timeout=20)

    def note(self, result, **row):
        write(self.out, {"result": result, "sharing": self.sharing, **row})


def trial(machine, options):
    machine.import_once(*LIBRARIES)
    own = Turns(machine, options)
    try:
        own.together(*own.one_after_the_other())
    except Exception as error:  # noqa: BLE001 - a part of the result
        ct.note_error(own, "turns", error)
    own.daemon.close()


if __name__ == "__main__":
    ct.run(__doc__, trial, sharing="streams", gpu=0, alone=2)
