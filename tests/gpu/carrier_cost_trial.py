#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the carrier costs a training that is never suspended: the seconds of a step as a task of a
collocd with `carrier: yes`, and without colloc, in pairs of processes started anew. JSON lines.

    tests/gpu/carrier_cost_trial.py PROGRAMS OUT.jsonl --seconds=S [--pairs=20] [--at-once=8]
                                    [--batch=64] [--gpu=0] [--emulated]

PROGRAMS: a folder made by scripts/bundle; with --emulated a build folder (carrier_tasks.py).

Processes of one program differ by some per cent for as long as they live, so each pair has two new
ones. No fork servers: the forks of one have the same places in memory, and are no new processes in
that. To import PyTorch takes ten seconds, so the processes of --at-once pairs start together. Each
then rests after its first step, and while one computes all others rest, without a call of CUDA.
The first of a pair is without colloc in one pair, and with it in the next. A row for each pair has
the median of its steps.
"""
import statistics
import time

import carrier_tasks as ct
from groups_trial import until, write

KIND, STEPS_MAX = "resnet50", 1000000
WARM, COUNTED = 8, 40  # steps of each
START_S = 60  # chosen: the longest for the processes that start together
STEPS_S = 20  # chosen: the longest for the steps of one
BEGIN_S, PAIR_S = 20, 5  # of processes that start together; chosen: of a pair's steps then
WANT = ("--memory=8GiB", "--smact=0.05")
SETTINGS = {"sharing": "streams", "policy": "magm"}


class One:
    """A training that rests; its output is read from its file, so that nothing else runs."""

    def __init__(self, own, end):
        self.own, self.path, self.end = own, own.path, end

    def count(self):
        with open(self.path, errors="replace") as output:
            return sum(line.startswith("step") for line in output)

    def seconds(self):
        """As it printed them; the emulated one prints none."""
        with open(self.path, errors="replace") as output:
            words = [line.split() for line in output if line.startswith("step")]
        return [float(line[3]) for line in words if len(line) > 3]

    def rest(self, is_resting=True):
        ct.rest(self.own.pause_file, is_resting)

    def measure(self):
        """The median of COUNTED steps, in seconds."""
        before, begin = self.count(), time.monotonic()
        self.rest(False)
        try:
            aim = before + WARM + COUNTED
            until(lambda: self.count() >= aim, STEPS_S, f"steps of {self.path}", 0.02)
        finally:
            self.rest()
        took, printed = time.monotonic() - begin, self.seconds()
        time.sleep(0.1)  # until it rests
        if not printed:
            return took / (WARM + COUNTED)
        return statistics.median(printed[before + WARM : before + WARM + COUNTED])


class Cost:
    def __init__(self, machine, options):
        self.machine, self.options = machine, options
        self.size = {"batch": options.batch}
        self.daemon = ct.Daemon(machine, str(options.gpu), **SETTINGS)

    def note(self, result, **row):
        write(self.options.out, {"result": result, **row})

    def without(self):
        gpu, size = self.options.gpu, self.size
        own = ct.Reference(self.machine, KIND, STEPS_MAX, gpu, is_paused=True, **size)
        return One(own, own.end)

    def with_it(self):
        own = ct.Task(self.daemon, KIND, STEPS_MAX, *WANT, is_paused=True, **self.size)
        return One(own, lambda: self.daemon.ask("cancel", str(own.id)))

    def wave(self, first, n):
        """Pairs number first to first + n - 1."""
        pairs = [(self.without(), self.with_it()) for _ in range(n)]
        ones = [one for pair in pairs for one in pair]
        try:
            begun = lambda: all(one.count() for one in ones)  # noqa: E731
            until(begun, START_S, "the first step of all", 0.1)
            for number, pair in enumerate(pairs, start=first):
                order = (0, 1) if number % 2 == 0 else (1, 0)
                seconds = {k: pair[k].measure() for k in order}
                row = {"without_s": seconds[0], "with_s": seconds[1], "first": order[0]}
                row["carried"] = pair[1].own.show()["carried"]
                self.note("pair", number=number, batch=self.options.batch, **row)
        finally:
            for one in ones:
                one.end()


def trial(machine, options):
    end, own, done = time.monotonic() + options.seconds, Cost(machine, options), 0
    try:
        while done < options.pairs:
            fits = int((end - time.monotonic() - BEGIN_S) / PAIR_S)
            n = min(options.at_once, options.pairs - done, fits)
            if n < 1:
                break
            own.wave(done, n)
            done += n
    except Exception as error:  # noqa: BLE001 - the pairs before are a result
        ct.note_error(own, "pairs", error)
    own.note("pairs", made=done, wanted=options.pairs, warnings=own.daemon.warnings()[-5:])
    own.daemon.close()


if __name__ == "__main__":
    ct.run(__doc__, trial, pairs=20, at_once=8, batch=64, gpu=0)
