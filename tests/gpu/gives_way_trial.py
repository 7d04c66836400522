#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training that gives way to another task by the carrier, once for each reason that has not been
seen on a real GPU (docs/suspend.md). Writes JSON lines.

    tests/gpu/gives_way_trial.py PROGRAMS OUT.jsonl --seconds=S [--parts=unused,preempt,make-room]
                                 [--gpus=0] [--emulated]

PROGRAMS: a folder made by scripts/bundle; with --emulated a build folder (carrier_tasks.py).

    unused     a training of 43 GiB rests, as a notebook does, so that it has not used its GPU for
               `unused-after`; then a task that finds no memory beside it is submitted, without
               any setting. When that one has ended the first computes on
    preempt    a task of a higher priority comes where one task runs at a time (`preempt: yes`)
    make-room  a task that needs most of a GPU comes where a small one runs on each of two
               (`make-room: yes`): one is moved beside the other. Two GPUs

Seconds are from the `colloc submit` of the task that waits: until the first has given way, until
the other one runs and has computed its first step, and from its end until the first runs again.
The losses of those that gave way must be those of a run without colloc.
"""
import time

import carrier_tasks as ct
from groups_trial import ENDED, is_running, until, write

LIBRARIES = ("torch", "torchvision", "torch._dynamo")
STEPS_MAX = 100000
PART_S = 15  # chosen: no part begins later before the end
WAIT_S, MOVE_S = 60, 120  # chosen: for anything to happen, and for a move to be worth it
BEFORE, AFTER, OF_OTHER, ALONE = 4, 4, 3, 100  # steps
# (batch, GiB that it needs at most, MiB of the emulated one)
LARGE, LARGER = (416, 46, 256), (1000, 110, 256)
MIDDLE, SMALL, MOST = (208, 23, 256), (64, 8, 64), (64, 126, 64)
REFERENCES = {
    "unused": (LARGE, BEFORE + 2 * AFTER),
    "preempt": (MIDDLE, ALONE),
    "make-room": (MIDDLE, ALONE),
}
PARTS = {
    "unused": {"unused_after": "5s", "suspend_memory_max": "64GiB"},
    "preempt": {"preempt": "yes", "tasks_per_gpu": "1"},
    "make-room": {"make_room": "yes", "policy": "rr"},  # the two begin on different GPUs
}
EMULATED_STEPS = 24
CHANGES = ("SUSPENDED", "RESUMED", "MOVED", "RELOCATED", "STARTED", "WAKE", "IDLE")


class GivesWay:
    def __init__(self, machine, options):
        self.machine, self.options = machine, options
        self.gpus = options.gpus.split(",")
        self.daemon, self.settings, self.part = None, {}, ""
        self.references = {part: self.alone(*REFERENCES[part]) for part in options.parts.split(",")}

    def note(self, result, **row):
        write(self.options.out, {"result": result, **row})

    def run(self, part):
        if part == "make-room" and len(self.gpus) < 2:
            self.note(part, not_run="it needs two GPUs")
            return
        gpus = self.options.gpus if part == "make-room" else self.gpus[0]
        self.part, self.settings = part, {"sharing": "streams", "policy": "magm", **PARTS[part]}
        if self.machine.is_emulated:
            self.settings.update(min_free="16MiB", margin="16MiB")
        self.daemon = ct.Daemon(self.machine, gpus, **self.settings)
        try:
            getattr(self, part.replace("-", "_"))()
        finally:
            self.daemon.close()

    def submit(self, size, *options, steps=STEPS_MAX):
        batch, gib, mib = size
        want = (f"--memory={gib}GiB", "--smact=0.3", *options)
        return ct.Task(self.daemon, "resnet50", steps, *want, batch=batch, mib=mib)

    def alone(self, size, steps):
        """The same training without colloc."""
        batch, _, mib = size
        steps = min(steps, EMULATED_STEPS) if self.machine.is_emulated else steps
        return ct.Reference(self.machine, "resnet50", steps, self.gpus[0], batch=batch, mib=mib)

    def wait_alone(self):
        """Before any part: their memory is free then."""
        for alone in self.references.values():
            has_ended = lambda: not is_running(alone.process.pid)  # noqa: B023,E731
            until(has_ended, WAIT_S, "a run without colloc", 0.05)

    def events(self, task):
        return [event for event in task.show()["events"] if event["event"] in CHANGES]

    def has(self, task, event):
        return event in [e["event"] for e in self.events(task)]

    def wait_event(self, task, event):
        until(lambda: self.has(task, event), WAIT_S, event, 0.02)

    def follow(self, begin, first, other, reference):
        """From the submission of `other` at `begin` until `first` computes again."""
        row = {"gib": round((first.show()["mem_peak_mib"] or 0) / 1024, 1)}
        self.wait_event(first, "SUSPENDED")  # its state is that from the decision on
        row["given_way_s"] = round(time.monotonic() - begin, 2)
        row["steps_then"] = len(first.losses())
        other.wait("RUNNING", *ENDED, limit_s=WAIT_S)
        row["other_runs_s"] = round(time.monotonic() - begin, 2)
        until(other.losses, WAIT_S, "its first step", 0.02)
        row["other_computes_s"] = round(time.monotonic() - begin, 2)
        row["other_state"] = other.wait(*ENDED, limit_s=WAIT_S)
        row.update(self.end_of(first, reference))
        return row

    def end_of(self, first, reference):
        """Of the one that gave way, which computes on."""
        begin = time.monotonic()
        first.pause(False)
        first.wait("RUNNING", *ENDED, limit_s=WAIT_S)
        row = {"runs_again_s": round(time.monotonic() - begin, 2)}
        first.wait_steps(AFTER)
        shown = first.show()
        row.update(state=shown["state"], attempts=shown["attempt_count"])
        row.update(reason=shown["reason_text"], suspensions=shown["suspensions"])
        row.update(ct.compare(first.losses(), reference))
        row["events"] = [[e["event"], e["text"]] for e in self.events(first)]
        return row

    def report(self, row):
        self.note(self.part, settings=self.settings, **row)

    def unused(self):
        reference = self.references["unused"].losses()
        first = self.submit(LARGE)
        first.wait_steps(BEFORE)
        first.pause(True)
        self.wait_event(first, "IDLE")
        begin = time.monotonic()
        other = self.submit(LARGER, steps=OF_OTHER)
        self.report(self.follow(begin, first, other, reference))

    def preempt(self):
        reference = self.references["preempt"].losses()
        first = self.submit(MIDDLE)
        first.wait_steps(BEFORE)
        begin = time.monotonic()
        other = self.submit(SMALL, "--priority=high", steps=OF_OTHER)
        self.report(self.follow(begin, first, other, reference))

    def make_room(self):
        """The two rest: a move may come after a minute."""
        reference = self.references["make-room"].losses()
        both = [self.submit(MIDDLE, "--expect=1h") for _ in self.gpus]
        for one in both:
            one.wait_steps(BEFORE)
            one.pause(True)
        begin = time.monotonic()
        other = self.submit(MOST, steps=OF_OTHER)
        other.wait("RUNNING", *ENDED, limit_s=MOVE_S)
        row = {"other_runs_s": round(time.monotonic() - begin, 2)}
        until(other.losses, WAIT_S, "its first step", 0.02)
        row["other_computes_s"] = round(time.monotonic() - begin, 2)
        moved = next((one for one in both if self.has(one, "MOVED")), both[0])
        row["steps_then"] = len(moved.losses())
        row.update(self.end_of(moved, reference))
        row["gpus"] = [one.show()["gpus"] for one in both]
        row["other_state"] = other.wait(*ENDED, limit_s=WAIT_S)
        self.report(row)


def trial(machine, options):
    own, end = GivesWay(machine, options), time.monotonic() + options.seconds
    machine.import_once(*LIBRARIES)
    own.wait_alone()
    for part in options.parts.split(","):
        if time.monotonic() > end - PART_S:
            own.note(part, not_run="no time is left")
            continue
        try:
            own.run(part)
        except Exception as error:  # noqa: BLE001 - a part of the result
            ct.note_error(own, part, error)


if __name__ == "__main__":
    ct.run(__doc__, trial, parts="unused,preempt", gpus="0")
