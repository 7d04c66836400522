# SPDX-License-Identifier: Apache-2.0
"""A lower bound of the total time that counts what sharing costs, and how far predictive is off.

    scripts/study-bound [--page=docs/measured/predictive.md] BUILD

BUILD is the build folder: its colloc simulates, its interference model (libcolloc-sharing.so)
computes the speeds. Prints rows in Markdown, or writes them into the page.

At any moment each GPU runs one *mix*: a set of tasks that fit into its memory together. The model
gives each task of a mix its speed. A schedule is therefore at least an answer to the question for
how long which mix runs. The least GPU time in which mixes do all work is a linear program:

    minimize    sum over mixes m of x_m                               GPU time of the mix
    such that   sum over mixes m of speed_mt * x_m >= work_t          for each type of task t

A task on two GPUs has its work on each. Left out is what else a schedule must obey: the same two
GPUs at once, whole tasks that stay where they are, an order. So no schedule is shorter, as long as
each task is a client of MPS or alone on its GPU, and is never given less memory than it takes in
the end.

The dual program gives each type a price: the GPU time that a second of its work is worth. No mix
does work of a price above 1 in a second:

    maximize    sum over types t of price_t * work_t
    such that   sum over types t of speed_mt * price_t <= 1           for each mix m

Any such prices give a bound, optimal or not. Late arrivals count by the work left: at time s, a
task that arrived at a < s has run for s - a at most, and at full speed at most. So no schedule
ends before s + (price of all work left at s) / GPUs, whatever s is.

Example: two tasks of 100 s, each half as fast beside the other. The mixes are A (speed 1), B (1)
and A+B (0.5, 0.5): at least 200 s of GPU time, prices 1 and 1. If they do not disturb each other,
A+B (1, 1) does both in 100 s; prices are 0.5 and 0.5.

All mixes of 1 task are tried, of 2, ..., until there are many. Larger ones are then grown, a task
at a time, from those of the greatest value, until the memory is full; where one is worth more than
1, it is added and the program solved again. The bound then holds as far as that search goes.
"""
import argparse
import collections
import ctypes
import math
import os
import sys

import numpy
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, vstack

from colloc_fit.fit_sharing import CONSTANT, Demand, InterferenceModel, Mix
from colloc_fit.judge_predictive import ROOT, TRACES, simulate
from colloc_fit.tables import markdown, write_block

GPUS, KIND = 4, "A100-40GB"  # what `colloc simulate` has without --gpus
ENOUGH = 50000  # mixes, from which on larger ones are grown; chosen: a few seconds
GROWN = 1000  # mixes kept of each size when growing; chosen: 500 gives the same bounds
ADDED = 1500  # mixes that a round adds to the linear program; chosen: solved within a second
VALUE_MAX = 1.0005  # of a mix, at which rounds end; chosen: lowers the bound by 0.05 % at most
RISE_MIN = 1e-6  # of the bound, relative, at which the choice of the moment ends; chosen
MOMENTS = 200  # at which the work left is priced, besides the arrivals; chosen
ROWS = {
    "predictive, times known": ["--policy=predictive", "--known=all"],
    "the same with preemption": ["--policy=predictive", "--known=all", "--preempt"],
}

Type = collections.namedtuple("Type", "name gpus solo_s memory_mib demand count")


# ---- the mixes ----


class Gpu:
    """What may run on a GPU together, and how fast.

    types: of tasks
    capacity_mib: the memory that tasks can use
    speeds: a function from a mix to the speeds of its tasks

    A mix is the ascending tuple of the indices of its tasks' types.
    """

    def __init__(self, types, capacity_mib, speeds):
        self.types, self.capacity_mib, self.speeds = types, capacity_mib, speeds

    def larger_mixes(self, mixes):
        """The mixes of one task more that fit into the memory. None has more tasks of a type than
        the trace has."""
        larger = set()
        for mix in mixes:
            free_mib = self.capacity_mib - sum(self.types[t].memory_mib for t in mix)
            larger.update(
                tuple(sorted((*mix, t)))
                for t, added in enumerate(self.types)
                if added.memory_mib <= free_mib and mix.count(t) < added.count
            )
        return sorted(larger)

    def all_mixes(self, enough):
        """All mixes of 1 task, of 2, ..., up to the size with which there are `enough`.

        Returns the mixes, and those of that size, or none where no mix is larger.
        """
        mixes, level = [], self.larger_mixes([()])
        while level:
            mixes += level
            if len(mixes) >= enough:
                break
            level = self.larger_mixes(level)
        return mixes, level

    def work_rates(self, mixes):
        """A row for each mix: the work of each type that it does in a second."""
        cells = [(i, t, v) for i, mix in enumerate(mixes) for t, v in zip(mix, self.speeds(mix))]
        rows, columns, speeds = zip(*cells)
        return csr_matrix((speeds, (rows, columns)), shape=(len(mixes), len(self.types)))

    def valuable_mixes(self, mixes, prices):
        """Grows the mixes by a task at a time, and goes on with those of the greatest value.

        Returns the mixes of a value above 1 a second, and the greatest value, at least 1.
        """
        valuable, value_max = [], 1.0
        while mixes := self.larger_mixes(mixes):
            values = self.work_rates(mixes) @ prices
            best = numpy.argsort(-values)[:GROWN]
            value_max = max(value_max, values[best[0]])
            valuable += [mixes[i] for i in best if values[i] > 1]
            mixes = [mixes[i] for i in best]
        return valuable, value_max


def mps_speeds(model, types):
    """A function from a mix to the speeds of its tasks as clients of MPS."""

    def speeds(mix):
        demands = [types[t].demand for t in mix]
        clients = Mix(None, "mps", None, demands, [0] * len(mix), None, None, None)
        return model.predict(clients)[0]

    return speeds


# ---- the bound ----


def best_prices(work, rates):
    """The prices of the types at which the work is worth most, and no mix more than 1 a second.

    rates: of the mixes (work_rates), which must do work of every type

    Only few mixes matter: the program starts with the best for each type and adds those that break
    its limits, until hardly any does.
    """
    chosen = set(numpy.asarray(rates.tocsc().argmax(axis=0)).ravel())
    while True:
        found = linprog(
            -work,
            A_ub=rates[sorted(chosen)],
            b_ub=numpy.ones(len(chosen)),
            bounds=[(0, None)] * len(work),
            method="highs",
        )
        values = rates @ found.x
        if values.max() <= VALUE_MAX:
            return found.x / max(1, values.max())
        chosen.update(numpy.argsort(-values)[:ADDED])


def work_left(arrivals, types, moment_s):
    """The least work of each type, in GPU-seconds alone, that any schedule has left at a moment.

    arrivals: (time in seconds, index of the type)
    """
    work = numpy.zeros(len(types))
    for at_s, t in arrivals:
        ran_s = max(0, moment_s - at_s)
        work[t] += types[t].gpus * max(0, types[t].solo_s - ran_s)
    return work


def bound_at(arrivals, types, prices, n_gpus):
    """The longest total time that the prices prove, and the moment whose work left proves it."""
    first_s, last_s = arrivals[0][0], arrivals[-1][0]
    moments = [at_s for at_s, _ in arrivals] + list(numpy.linspace(first_s, last_s, MOMENTS))
    return max((s - first_s + work_left(arrivals, types, s) @ prices / n_gpus, s) for s in moments)


def total_prices(arrivals, types, rates, n_gpus):
    """The prices that prove the longest total time: those for the work left at a moment, then for
    that of the moment at which they prove most, ..., as long as that rises."""
    best_s, best, moment_s = 0, None, arrivals[0][0]
    while True:
        prices = best_prices(work_left(arrivals, types, moment_s), rates)
        bound_s, moment_s = bound_at(arrivals, types, prices, n_gpus)
        if bound_s <= best_s * (1 + RISE_MIN):
            return best
        best_s, best = bound_s, prices


def total_bound(arrivals, gpu, n_gpus, enough=ENOUGH):
    """The total time, in seconds, that no schedule on `n_gpus` such GPUs can beat.

    Returns it, all mixes up to a size, and whether there are no larger ones.
    """
    mixes, largest = gpu.all_mixes(enough)
    alone = csr_matrix(numpy.identity(len(gpu.types)))  # without MPS: at full speed
    rates = vstack([alone, gpu.work_rates(mixes)], format="csr")
    while True:
        prices = total_prices(arrivals, gpu.types, rates, n_gpus)
        valuable, value_max = gpu.valuable_mixes(largest, prices)
        if value_max <= VALUE_MAX:
            bound_s, _ = bound_at(arrivals, gpu.types, prices / value_max, n_gpus)
            return bound_s, mixes, not largest
        rates = vstack([rates, gpu.work_rates(valuable)], format="csr")


# ---- the tables of the traces ----


def read_table(path):
    """The rows of a table in columns of blanks or commas, as dictionaries."""
    with open(path, encoding="utf-8") as file:
        lines = [line.replace(",", " ").split() for line in file if not line.startswith("#")]
    head, *rows = [line for line in lines if line]
    return [dict(zip(head, row)) for row in rows]


def number_or_nan(cell):
    return math.nan if cell == "-" else float(cell)


def read_type(model, row, count):
    """A type of task from its row in data/traces/tasks.txt. count: how many the trace has."""
    demand = Demand(math.nan, *(number_or_nan(row[name]) for name in ("smact", "smocc", "dram")), 0)
    model.library.demand_complete(ctypes.byref(demand), ctypes.c_double(0))
    memory = row["memory_mib"] if row["memory_mib"] != "-" else row["rerun_mib"]
    return Type(row["task"], int(row["gpus"]), float(row["solo_s"]), float(memory), demand, count)


def read_trace(model, path):
    """Returns (time, index of the type) of each arrival, and the types."""
    known = {
        row["task"]: row for row in read_table(os.path.join(os.path.dirname(path), "tasks.txt"))
    }
    rows = read_table(path)
    counts = collections.Counter(row["task"] for row in rows)
    index = {name: i for i, name in enumerate(counts)}
    arrivals = [(float(row["arrival_s"]), index[row["task"]]) for row in rows]
    return arrivals, [read_type(model, known[name], count) for name, count in counts.items()]


def shipped_model(build):
    """The interference model with the constants of data/sharing/interference.txt."""
    model = InterferenceModel(os.path.join(build, "src", "sharing", "libcolloc-sharing.so"))
    with open(os.path.join(ROOT, "data", "sharing", "interference.txt"), encoding="utf-8") as file:
        model.set({name: float(value) for _, name, _, value in CONSTANT.findall(file.read())})
    return model


def capacity_of(kind):
    """The MiB that processes can use on a GPU of the kind (data/gpu-kinds.txt)."""
    with open(os.path.join(ROOT, "data", "gpu-kinds.txt"), encoding="utf-8") as file:
        rows = [line.split() for line in file]
    return next(float(row[2]) - float(row[3]) for row in rows if row[:2] == ["kind", kind])


# ---- the study ----


def study(build, trace):
    """Yields a row for each simulated policy on the trace."""
    folder = os.path.join(ROOT, "data", "traces")
    model = shipped_model(build)
    arrivals, types = read_trace(model, os.path.join(folder, f"{trace}.txt"))
    gpu = Gpu(types, capacity_of(KIND), mps_speeds(model, types))
    bound_s, mixes, complete = total_bound(arrivals, gpu, GPUS)
    sms_s, _ = bound_at(arrivals, types, [kind.demand.smact for kind in types], GPUS)
    which = "all" if complete else "the smallest"
    largest = f"the largest of {len(mixes[-1])} tasks"
    print(f"{trace}: {which} {len(mixes)} mixes were tried, {largest}", file=sys.stderr)
    for name, words in ROWS.items():
        run = simulate(os.path.join(build, "src", "cli", "colloc"), folder, trace, words, ())
        simple_s, total_s = run["lower_bound_s"], run["total_s"]
        yield [
            f"{trace}, {name}",
            f"{simple_s:,.0f}",
            f"{sms_s:,.0f}",
            f"{bound_s:,.0f}",
            f"{bound_s / simple_s:.3f}",
            f"{total_s:,.0f}",
            f"{total_s / simple_s:.3f}",
            f"{total_s / bound_s:.3f}",
        ]


HEAD = [
    "",
    "resource bound, s",
    "the same, with what is left of earlier tasks, s",
    "mix bound, s",
    "mix bound of resource bound",
    "total, s",
    "total of resource bound",
    "total of mix bound",
]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", metavar="BUILD", help="the build folder")
    parser.add_argument(
        "--page",
        help="file in Markdown whose block study-bound is replaced; default: standard output",
    )
    arguments = parser.parse_args()
    rows = [row for trace in TRACES for row in study(arguments.build, trace)]
    write_block(arguments.page, "study-bound", markdown(HEAD, rows))


if __name__ == "__main__":
    main()
