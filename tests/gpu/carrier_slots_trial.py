#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Eight trainings of 1 to 20 GiB in slots of 5 s (docs/suspend.md), against the same ones one after
the other. Writes JSON lines, one as each way ends.

    tests/gpu/carrier_slots_trial.py PROGRAMS OUT.jsonl --seconds=S [--ways=fifo,streams,mps]
                                     [--gpu=0] [--emulated]

PROGRAMS: a folder made by scripts/bundle; with --emulated a build folder (carrier_tasks.py).

The ways have the same GPU, one after the other, each with a collocd for itself. All trainings are
submitted at once, the longest first, each 0.7 times as long as the one before. Their sizes are in
the order of random.Random(0): 2, 1, 5, 20, 8, 3, 13 and 4 GiB. One runs at a time. A way may come
twice: `fifo` first and last shows what the machine does by itself meanwhile.

    fifo      one after the other
    streams   `slots: yes` with `slot-length: 5s`, of which the daemon makes 20 times the cost of a
              stop where that is longer; time-sliced tasks
    mps       the same with clients of MPS

Each training is a fork of a process that has imported PyTorch: imports, 7 to 12 s, take all ways
as long, and would be the larger part of a short training. How long a training takes alone follows
from its steps; these are the same in each way for the same --seconds. `loss_marks` has four digits
for each step's loss: they must be equal in all ways. The shorter half are the last four, and its
time the mean of their ends, as in docs/measured/slots.md. Each row has what was predicted of it: by
the simulator, for starts of 3 to 6 s.
"""
import time
import zlib

import carrier_tasks as ct
from groups_trial import ENDED, write

SHORTER = 0.7
# kind, batch, GiB about, steps a second alone on an H200 (chosen: from a short run there; the first
# from docs/measured/carrier-ends.md)
SIZES = [
    ("resnet50", 16, 2, 32),
    ("resnet18", 16, 1, 88),
    ("resnet50", 50, 5, 30),
    ("resnet50", 208, 20, 10),
    ("resnet50", 84, 8, 22),
    ("resnet50", 28, 3, 40),
    ("resnet50", 136, 13, 14),
    ("resnet50", 40, 4, 34),
]
LIBRARIES = ("torch", "torchvision", "torch._dynamo")  # the last one by an optimizer's first step
EMULATED_STEPS_PER_S = 80  # chosen: of a busy machine
START_S = 3  # chosen: of a fork, until its first step; 2 of those of carrier-slots.md
IMPORTS_S = 20  # chosen: of the whole time, before the first way
REST_S = 10  # of a way's time: until its result is written and all have ended
TURNS = 1.06  # chosen: what turns may cost
SLOTS = {"slots": "yes", "slot_length": "5s", "tasks_per_gpu": "1", "carrier_pool": "64GiB"}
PREDICTED = {  # of the lengths that 560 s give four ways
    "fifo": "total 98 to 118 s, the second one 1 to 6 % less than the first",
    "streams": "total 0.99 to 1.02 of FIFO's, the four shortest 0.48 to 0.58; 6 to 12 suspensions",
    "mps": "the same",
}
WAYS = {
    "fifo": {"sharing": "streams", "policy": "exclusive"},
    "streams": {"sharing": "streams", **SLOTS},
    "mps": {"sharing": "mps", "mps_memory_limit": "no", **SLOTS},
}


def mark(loss):
    """Four digits: two ways differ in it where their losses do, but for one in 65,536."""
    return f"{zlib.crc32(loss.encode()) & 0xFFFF:04x}"


class Way:
    """The eight trainings under one daemon, on one GPU."""

    def __init__(self, machine, name, gpu, longest_s):
        self.name, settings = name, dict(WAYS[name])
        if machine.is_emulated and "carrier_pool" in settings:
            settings.update(carrier_pool="2GiB", slot_length="1s")
        self.daemon = ct.Daemon(machine, gpu, **settings)
        self.tasks, self.ends, self.begin = [], {}, time.monotonic()
        for place, (kind, batch, gib, rate) in enumerate(SIZES):
            rate = EMULATED_STEPS_PER_S if machine.is_emulated else rate
            steps = max(5, int(longest_s * SHORTER**place * rate))
            want = (f"--memory={gib + 1}GiB", "--smact=0.1")
            mib = 4 * gib  # of the emulated one
            task = ct.Task(self.daemon, kind, steps, *want, batch=batch, mib=mib)
            self.tasks.append(task)

    def note_ends(self):
        """Returns whether all have ended."""
        for task in self.tasks:
            if task.id not in self.ends and task.state() in ENDED:
                self.ends[task.id] = round(time.monotonic() - self.begin, 2)
        return len(self.ends) == len(self.tasks)

    def report(self, out, **more):
        shown = [task.show() for task in self.tasks]
        ends = [self.ends.get(task.id) for task in self.tasks]
        shorter = ends[len(ends) // 2 :]
        row = {"result": "eight trainings", "way": self.name, **more, "ends_s": ends}
        row["total_s"] = None if None in ends else max(ends)
        row["shorter_half_mean_s"] = None if None in shorter else sum(shorter) / len(shorter)
        row["steps"] = [task.steps for task in self.tasks]
        for key in (
            "state exec_s wait_s mem_peak_mib suspensions suspended_s suspension_cost_s "
            "attempt_count started_at ended_at"
        ).split():
            row[key] = [s.get(key) for s in shown]
        row["stops"] = [
            [e["at"], s["id"], e["event"]]
            for s in shown
            for e in s["events"]
            if e["event"].startswith(("SUSPEND", "RESUM", "START", "END"))
        ]
        warnings = self.daemon.warnings()
        row.update(warnings=warnings[-12:], n_warnings=len(warnings))
        losses = [task.losses() for task in self.tasks]
        row["n_losses"] = [len(one) for one in losses]
        row["loss_marks"] = ["".join(mark(loss) for loss in one) for one in losses]
        write(out, row)


def longest_of(machine, seconds, n_ways):
    """Seconds of the longest training alone, without its start, so that each way has time."""
    all_of_one = sum(SHORTER**i for i in range(len(SIZES)))
    start_s = 1 if machine.is_emulated else START_S
    way_s = (seconds - IMPORTS_S) / n_ways - REST_S
    return max(2, (way_s / TURNS - len(SIZES) * start_s) / all_of_one)


def run_way(machine, name, gpu, longest_s, end):
    """Until all have ended, or the time of the way is over."""
    way = Way(machine, name, str(gpu), longest_s)
    while time.monotonic() < end and not way.note_ends():
        time.sleep(0.1)
    return way


def trial(machine, options):
    end, ways = time.monotonic() + options.seconds, options.ways.split(",")
    longest_s = longest_of(machine, options.seconds, len(ways))
    machine.import_once(*LIBRARIES)
    for place, name in enumerate(ways):
        now = time.monotonic()
        way_end = now + (end - now) / (len(ways) - place) - REST_S
        way = run_way(machine, name, options.gpu, longest_s, way_end)
        way.report(options.out, longest_s=round(longest_s, 1), predicted=PREDICTED[name])
        way.daemon.close()


if __name__ == "__main__":
    ct.run(__doc__, trial, ways="fifo,streams,mps", gpu=0)
