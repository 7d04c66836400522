#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What measured speeds of some mixes say about others (docs/promise.md), on a real GPU.

    tests/gpu/learning_trial.py PROGRAMS OUT.jsonl SECONDS [--small|--dry]
    tests/gpu/learning_trial.py --page LIBRARY OUT.jsonl[.xz] ...

PROGRAMS: a folder made by scripts/bundle. The first GPU of CUDA_VISIBLE_DEVICES is used, or GPU 0.

One collocd has all trainings on the GPU from the start, as clients of MPS, and pauses them all.
Then it lets one after the other continue alone, then pair after pair, each alone again, and
triples, for a window of its measurement each: so a mix takes eight seconds and not half a minute.
The slowdowns are what collocd measures by its own count of steps, beside the trainings' own. OUT
gets a line for each mix.

--page prints the tables of docs/measured/learning.md. LIBRARY: the interference model, which is
build/src/sharing/libcolloc-sharing.so. Each mix is predicted without learning, and with the factor
of delay that the other mixes have shown (those without it, so that it was never seen).
"""
import contextlib
import ctypes
import itertools
import json
import math
import os
import signal
import statistics
import sys
import time

from promise_trial import (
    FLUSH_S,
    START_MAX_S,
    Daemon,
    Trial,
    in_ms,
    rate,
    read,
    read_steps,
    until,
)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# SM activity alone as a plain process (data/sharing/h200.csv), and memory.
TRAININGS = {
    "small": (0.52, "3G"),
    "decoder": (0.9, "12G"),
    "medium": (0.38, "3G"),
    "encoder": (0.89, "8G"),
    "large": (0.51, "9G"),
}
WINDOW_S = 5  # of collocd
MIX_S = WINDOW_S + 2.3  # it begins with the next poll of the GPU, and ends with one
RAMP_S = 1  # after a change of the mix

# As src/sharing/delay_factor.c has them.
DELAY_LEAST = 0.05
FACTOR_MIN, FACTOR_MAX = 0.5, 2


class LearningTrial(Trial):
    def run(self):
        self.daemon = Daemon(self, "magm", "--suspend=no", "--window=5s")
        names = list(TRAININGS)[:2] if self.is_small else list(TRAININGS)
        self.start(names)
        for mix in itertools.chain(*(itertools.combinations(names, n) for n in (1, 2, 1, 3))):
            if self.left() < MIX_S + 2:
                break
            self.mix(mix)
        info = json.loads(self.daemon.run("info", "--json").stdout)
        self.write(part="learned", learned=info["learned_delays"])

    def start(self, names):
        self.tasks, self.paths = {}, {}
        for name in names:
            smact, memory = TRAININGS[name]
            self.paths[name] = os.path.join(self.daemon.folder, name)
            self.tasks[name] = self.daemon.submit(  # a promise of 100: its slowdown is shown
                name,
                self.paths[name],
                "--max-slowdown=100",
                f"--smact={smact}",
                f"--memory={memory}",
            )
        for name in names:
            until(lambda: read_steps(self.paths[name]), START_MAX_S, f"first step of {name}")
        for task in self.tasks.values():
            self.change("suspend", task, "PAUSED")

    def change(self, command, task, state):
        self.daemon.run(command, str(task))
        until(lambda: self.daemon.show(task)["state"] == state, 20, state)

    def mix(self, mix):
        begin = time.time()
        for name in mix:
            self.change("resume", self.tasks[name], "RUNNING")
        since = time.time()
        seen = []
        while time.time() < since + MIX_S:
            shown = [self.daemon.show(self.tasks[name]) for name in mix]
            seen.append([round(time.time() - since, 1), *(one["slowdown"] for one in shown)])
            time.sleep(0.5)
        shown = [self.daemon.show(self.tasks[name]) for name in mix]
        gpu = json.loads(self.daemon.run("gpus", "--json").stdout)
        to = time.time()
        for name in mix:
            self.change("suspend", self.tasks[name], "PAUSED")
        time.sleep(2 * FLUSH_S)
        ends = [read_steps(self.paths[name]) for name in mix]
        self.write(
            part="mix",
            mix=mix,
            smact=[TRAININGS[name][0] for name in mix],
            sharing=shown[0]["sharing"],
            changed_s=round(since - begin, 2),
            slowdown=[one["slowdown"] for one in shown],
            per_s=[round(rate(e, since + RAMP_S, to), 3) for e in ends],
            gpu_smact=[one.get("smact") for one in (gpu if isinstance(gpu, list) else [gpu])],
            seen=seen,
            ends=[in_ms(e, since) for e in ends],
        )


# ---- the page


class DelaySum(ctypes.Structure):
    _fields_ = [("measured_s", ctypes.c_double), ("predicted_s", ctypes.c_double)]


class Model:
    """The interference model and the rule of learning, in C."""

    def __init__(self, path):
        sys.path.insert(0, os.path.join(ROOT, "python"))
        from colloc_fit import fit_sharing

        constants = os.path.join(ROOT, "data", "sharing", "interference.txt")
        self.sharing, self.model = fit_sharing, fit_sharing.InterferenceModel(path)
        self.model.set(fit_sharing.read_constants(constants)[1])
        self.library = self.model.library
        self.library.delay_sum_factor.restype = ctypes.c_double

    def demand(self, smact):
        demand = self.sharing.Demand(math.nan, smact, math.nan, math.nan, 0)
        self.library.demand_complete(ctypes.byref(demand), ctypes.c_double(0))
        return demand

    def speeds(self, smacts):
        demands = [self.demand(smact) for smact in smacts]
        mix = self.sharing.Mix("", "mps", (), demands, [0] * len(demands), (), None, None)
        return self.model.predict(mix)[0]

    def slowdowns(self, smacts):
        """How many times as long as alone, as a client of MPS too, each takes."""
        alone = [self.speeds([smact])[0] for smact in smacts]
        return [one / speed for one, speed in zip(alone, self.speeds(smacts))]

    def factor(self, seen, hours):
        """What (measured, predicted) slowdowns teach if each lasts as long, so long in all."""
        total = DelaySum(0, 0)
        for measured, predicted in seen:
            seconds = hours * 3600 / len(seen)
            self.library.delay_sum_add(
                ctypes.byref(total), *map(ctypes.c_double, (seconds, measured, predicted))
            )
        return self.library.delay_sum_factor(ctypes.byref(total))


def mixes_of(rows, model):
    """Lists (mix, measured slowdowns, those by collocd, predicted ones) of the shared mixes."""
    found = [row for row in rows if row["part"] == "mix"]
    alone = {}
    for row in found:
        if len(row["mix"]) == 1:
            alone.setdefault(row["mix"][0], []).append(row["per_s"][0])
    mean = {name: statistics.fmean(values) for name, values in alone.items()}
    for row in found:
        if len(row["mix"]) > 1:
            measured = [mean[name] / per_s for name, per_s in zip(row["mix"], row["per_s"])]
            yield row["mix"], measured, row["slowdown"], model.slowdowns(row["smact"])


def errors_with(model, mixes, hours):
    """Errors of the predicted slowdowns of each mix, after `hours` of the other mixes."""
    errors, factors = [], []
    for mix, measured, _, predicted in mixes:
        others = [pair for m, a, _, b in mixes if m != mix for pair in zip(a, b)]
        factor = model.factor(others, hours) if hours else 1
        factors.append(factor)
        errors += [
            abs((1 + factor * (p - 1)) / slower - 1) for slower, p in zip(measured, predicted)
        ]
    return errors, factors


# What is held out when the slowdown of a training in a mix is predicted.
HELD_OUT = {
    "the mix": lambda mix, own, other: other == mix,
    "all mixes of the training": lambda mix, own, other: own in other,
    "all mixes of its neighbours": lambda mix, own, other: bool((set(mix) - {own}) & set(other)),
}


def factor_of(model, name, seen, prior_s):
    """The factor of a training after an hour of all that was seen, drawn to the host's by
    `prior_s` seconds of predicted delay; None: the host's."""
    host = model.factor([pair[1:] for pair in seen], 1)
    own = [pair[1:] for pair in seen if pair[0] == name and pair[2] >= 1 + DELAY_LEAST]
    if prior_s is None:
        return host
    each_s = 3600 / len(seen)
    measured = sum(each_s * (m - 1) for m, _ in own)
    predicted = sum(each_s * (p - 1) for _, p in own)
    factor = (max(0, measured) + prior_s * host) / (predicted + prior_s)
    return min(FACTOR_MAX, max(FACTOR_MIN, factor))


def errors_held_out(model, mixes, is_out, prior_s):
    """The errors of the predicted slowdowns, with what is not held out."""
    for mix, measured, _, predicted in mixes:
        for own, slower, expected in zip(mix, measured, predicted):
            seen = [
                pair for m, a, _, p in mixes if not is_out(mix, own, m) for pair in zip(m, a, p)
            ]
            factor = factor_of(model, own, seen, prior_s)
            yield abs((1 + factor * (expected - 1)) / slower - 1)


def print_factors(model, mixes):
    print("\n| factor, after an hour | " + " | ".join(HELD_OUT) + " |")
    print("| --- |" + " ---: |" * len(HELD_OUT))
    for prior_s in (None, 120, 600, 3600):
        name = f"of each training, {prior_s} s count for the host's" if prior_s else "of the host"
        cells = []
        for is_out in HELD_OUT.values():
            errors = list(errors_held_out(model, mixes, is_out, prior_s))
            tenths = statistics.quantiles(errors, n=10)
            cells.append(f"{100 * statistics.median(errors):.1f}, {100 * tenths[-1]:.1f} %")
        print(f"| {name} | {' | '.join(cells)} |")


def page(library, *paths):
    model = Model(library)
    mixes = [mix for path in paths for mix in mixes_of(read(path), model)]
    print("| mix | measured | by collocd | predicted |")
    print("| --- | ---: | ---: | ---: |")
    for mix, *columns in mixes:
        cells = [
            ", ".join("-" if value is None else f"{value:.2f}" for value in column)
            for column in columns
        ]
        print(f"| {' + '.join(mix)} | {' | '.join(cells)} |")
    print("\n| learned from the other mixes | factor | median error | 90th percentile |")
    print("| --- | ---: | ---: | ---: |")
    for hours in (0, 1 / 6, 1, 4):
        errors, factors = errors_with(model, mixes, hours)
        tenths = statistics.quantiles(errors, n=10)
        name = f"for {60 * hours:.0f} minutes" if hours else "nothing"
        print(
            f"| {name} | {min(factors):.2f} to {max(factors):.2f} | "
            f"{100 * statistics.median(errors):.1f} % | {100 * tenths[-1]:.1f} % |"
        )
    print_factors(model, mixes)
    return 0


def main(arguments):
    words = [word for word in arguments if not word.startswith("--")]
    options = [word for word in arguments if word.startswith("--")]
    if options == ["--page"] and len(words) > 1:
        return page(*words)
    if len(words) != 3:
        sys.exit(__doc__)
    trial = LearningTrial(*words, options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        trial.run()
    except Exception as problem:  # what came before is worth its time
        trial.write(part="error", error=repr(problem)[-400:])
    finally:
        with contextlib.suppress(Exception):
            trial.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
