# SPDX-License-Identifier: Apache-2.0
"""Runs of `colloc simulate`: every setting once per seed, on all cores; equal runs only once."""

import csv
import json
import os
import statistics
import subprocess
import tempfile
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

KIND = "A100-40GB-DGX-Station"
GPUS = f"4x{KIND}"
# The 100 s of data/published/rad-rm.txt, the 60 s that are colloc's default, and 10 s to settle.
HOLD_OFF_S = 170
BY_TIME = ("predictive",)  # policies with an order of their own


class Setting(
    namedtuple(
        "Setting",
        "trace policy estimator sharing smact_max min_free_gib margin_gib gpus hold_off_s resample "
        "machine recovery delay_s "
        "known suspension backfill memory",
        # fmt: off
        defaults=[
            "none", "mps", 0.8, 5, 2, GPUS, HOLD_OFF_S, 0,
            "", "drain", 0, "activity", (), False, "",
        ],
        # fmt: on
    )
):
    """The arguments of a run, without the seed.

    machine:    one of inputs.MACHINES
    recovery:   what the queue does while a crashed task waits for GPUs
    delay_s:    of decisions, as RAD-RM has it
    suspension: options that let running tasks give way
    memory:     of the tasks: its source, as in inputs.Inputs
    backfill:   of the policies that go by the queue's order, which the dissertation's do strictly
    """

    def words(self, inputs, seed):
        return [
            "simulate",
            *inputs.options(self.trace, self.memory),
            f"--gpu-kinds={inputs.kinds[self.machine]}",
            f"--policy={self.policy}",
            f"--estimator={self.estimator}",
            f"--sharing={self.sharing}",
            f"--smact-max={self.smact_max:g}",
            f"--min-free-gib={self.min_free_gib:g}",
            f"--margin-gib={self.margin_gib:g}",
            f"--gpus={self.gpus}",
            f"--hold-off={self.hold_off_s}s",
            f"--recovery={self.recovery}",
            f"--decision-delay={self.delay_s}s",
            f"--known={self.known}",
            *([] if self.backfill or self.policy in BY_TIME else ["--backfill=no"]),
            f"--seed={seed}",
            *self.suspension,
            *([f"--resample={self.resample}"] if self.resample else []),
        ]


class Spread(namedtuple("Spread", "median least most")):
    """A figure's median over the seeds, with its least and most."""

    def ends(self):
        return self.least, self.most


class Failed(Exception):
    pass


class Runs:
    def __init__(self, colloc, inputs, seeds):
        self.colloc, self.inputs, self.seeds = colloc, inputs, seeds
        self.results = {}  # by (setting, seed)
        self.timelines = {}  # by setting, of the first seed

    def _words(self, setting, seed):
        return setting.words(self.inputs, seed)

    def _run(self, words):
        done = subprocess.run(
            [self.colloc, *words],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode:
            raise Failed(f"colloc {' '.join(words)}\n{done.stderr.strip()}")
        return done.stdout

    def knows(self, setting):
        """Whether the program has the setting's policy and options: older programs lack newer
        ones."""
        try:
            return bool(self._run(self._words(setting, 0)))
        except Failed:
            return False

    def can(self, setting):
        return setting.estimator in ("none", "declared", *self.inputs.estimators)

    def seeds_of(self, setting):
        """The seeds of a setting: a resampled trace needs one only, since the trace itself
        varies."""
        return self.seeds[:1] if setting.resample else self.seeds

    def prepare(self, settings, on_done=lambda done, of: None):
        """Runs the settings that have not been run yet."""
        todo = [
            (setting, seed)
            for setting in dict.fromkeys(settings)
            if self.can(setting)
            for seed in self.seeds_of(setting)
            if (setting, seed) not in self.results
        ]

        def run(job):
            return job, json.loads(self._run([*self._words(*job), "--json"]))

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for done, (job, result) in enumerate(pool.map(run, todo), 1):
                self.results[job] = result
                on_done(done, len(todo))

    def of(self, setting, figure):
        """The figure of a setting; None when the setting could not be run.

        figure: a function of a run's result, or the name of one of its numbers
        """
        if not self.can(setting):
            return None
        take = figure if callable(figure) else lambda run: run[figure]
        return self._spread([take(self.results[setting, seed]) for seed in self.seeds_of(setting)])

    def less_percent(self, settings, bases, name):
        """How much less than their bases the settings have, in per cent: setting by setting and
        seed by seed."""
        if not all(map(self.can, settings)):
            return None
        pairs = [
            (self.results[setting, seed][name], self.results[base, seed][name])
            for setting, base in zip(settings, bases)
            for seed in self.seeds_of(setting)
        ]
        return self._spread([100 * (1 - mine / other) for mine, other in pairs])

    @staticmethod
    def _spread(values):
        return Spread(float(statistics.median(values)), min(values), max(values))

    def timeline(self, setting, column):
        """The timeline of the first seed: GPU -> (seconds, values)."""
        if setting not in self.timelines:
            self.timelines[setting] = self._read_timeline(setting)
        return {
            int(gpu): (columns["time_s"], columns[column])
            for gpu, columns in self.timelines[setting].items()
        }

    def _read_timeline(self, setting):
        """GPU -> column -> values."""
        gpus = {}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "timeline.csv")
            self._run([*self._words(setting, self.seeds[0]), f"--timeline={path}"])
            with open(path, encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file):
                    columns = gpus.setdefault(row.pop("gpu"), {name: [] for name in row})
                    for name, value in row.items():
                        columns[name].append(float(value))
        return gpus
