# SPDX-License-Identifier: Apache-2.0
"""How good a schedule an order of the tasks can give at all, with hindsight.

    scripts/study-orders [--page=docs/measured/predictive.md] [--steps=N] [--seed=N]
                         [--resample=SEED,...] BUILD

Searches orders of the tasks by simulated annealing over real simulations (tools/orders.c, a few
milliseconds each). An order says for each task when it is next, on which GPU it starts, and how
much it and its co-residents may be slowed down; all tasks of the trace are known before. Tasks are
clients of MPS, are never stopped, and wait for the task that is next. A result is a schedule that
exists, not a bound: another search may find a better one.

Each trace is searched for each of the aims below, from the orders in which tasks start under first
come, first served, and under predictive without and with preemption. The search is deterministic by
--seed. Prints rows in Markdown, or writes them into the page.

Example: two tasks of 100 s each, half as fast beside the other. The limit 1.5 makes the second wait
(total 200 s, completion 100 and 200 s); the limit 3 lets them share (200 s, both complete then).
"""
import argparse
import collections
import csv
import io
import math
import os
import random
import subprocess

from colloc_fit.judge_predictive import ROOT, TRACES, numbers, simulate
from colloc_fit.tables import markdown, write_block

GPUS = 4  # of tools/orders.c
ANY_GPU = -1
STRETCH_MAX = 1.5  # of the goals: completion relative to that of FIFO
GAIN_WANTED = 0.15  # of the goals: mean completion, relative to predictive without preemption
STRICT = 10  # chosen: how much more it counts than the total when a goal is not met
LIMIT = 3.0  # slowdown-max of colloc
LIMITS = (1.05, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, LIMIT, 4.0, 6.0)
WARM, COLD = 0.004, 0.0001  # the first and the last temperature, relative to the cost; chosen
STARTS = {
    "FIFO": None,
    "predictive": ["--policy=predictive", "--known=all"],
    "with preemption": ["--policy=predictive", "--known=all", "--preempt"],
}

Choice = collections.namedtuple("Choice", "gpu limit")  # of a task
Outcome = collections.namedtuple("Outcome", "total_s mean_s stretch")


class Simulator:
    """tools/orders.c, with a trace; 0 as seed: the trace itself."""

    def __init__(self, build, trace, resample):
        program = os.path.join(build, "tools", "colloc-orders")
        path = os.path.join(ROOT, "data", "traces", f"{trace}.txt")
        self.process = subprocess.Popen(
            [program, path, str(resample)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.fifo_s = self.read()[1]
        self.n = len(self.fifo_s)

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("colloc-orders has ended")
        total_s, *completion_s = map(float, line.split())
        return total_s, completion_s

    def outcome(self, order, choices):
        """`order`: the tasks, the first one first; `choices`: of each task."""
        rank = {task: i for i, task in enumerate(order)}
        words = (f"{rank[i]}:{choice.gpu}:{choice.limit}" for i, choice in enumerate(choices))
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        total_s, completion_s = self.read()
        stretch = max(own / fifo for own, fifo in zip(completion_s, self.fifo_s))
        return Outcome(total_s, sum(completion_s) / self.n, stretch)

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def excess(value, limit):
    return max(0, value / limit - 1)


def aims(bound_s, predictive_s):
    """What is minimized. `predictive_s`: the mean completion time without preemption."""
    completion_s = (1 - GAIN_WANTED) * predictive_s
    return {
        "the least total": lambda o: o.total_s / bound_s,
        f"the least total with stretch {STRETCH_MAX}": lambda o: o.total_s / bound_s
        + excess(o.stretch, STRETCH_MAX),
        "the same, and completion 15 % shorter": lambda o: o.total_s / bound_s
        + excess(o.stretch, STRETCH_MAX)
        + excess(o.mean_s, completion_s),
        "the same, these two above all": lambda o: o.total_s / bound_s
        + STRICT * (excess(o.stretch, STRETCH_MAX) + excess(o.mean_s, completion_s)),
        "the least stretch": lambda o: o.stretch,
    }


def start_order(build, trace, resample, run):
    """The tasks in the order in which they start in a simulation."""
    program = os.path.join(build, "src", "cli", "colloc")
    path = os.path.join(ROOT, "data", "traces", f"{trace}.txt")
    words = [f"--trace={path}", f"--resample={resample}", "--per-task=-", "--json", *run]
    done = subprocess.run([program, "simulate", *words], stdout=subprocess.PIPE, check=True)
    text = done.stdout.decode()
    rows = csv.DictReader(io.StringIO(text[: text.index("{")]))
    return [int(row["id"]) - 1 for row in sorted(rows, key=lambda row: float(row["start_s"]))]


def changed(order, choices, chance):
    """A neighbour: one task elsewhere in the order, two that change places, or another choice."""
    order, choices = list(order), list(choices)
    n, what = len(order), chance.random()
    if what < 0.5:
        at = chance.randrange(n)
        task = order.pop(at)
        far = 1 + int(chance.expovariate(1 / 8))
        order.insert(min(n - 1, max(0, at + chance.choice((-far, far)))), task)
    elif what < 0.7:
        one, other = chance.randrange(n), chance.randrange(n)
        order[one], order[other] = order[other], order[one]
    elif what < 0.85:
        task = chance.randrange(n)
        gpu = chance.choice((ANY_GPU, *range(GPUS)))
        choices[task] = choices[task]._replace(gpu=gpu)
    else:
        task = chance.randrange(n)
        choices[task] = choices[task]._replace(limit=chance.choice(LIMITS))
    return order, choices


def anneal(simulator, starts, cost_of, steps, chance):
    """The best outcome that is found."""
    free = [Choice(ANY_GPU, LIMIT)] * simulator.n
    outcome, order = min(
        ((simulator.outcome(order, free), order) for order in starts),
        key=lambda pair: cost_of(pair[0]),
    )
    now = best = cost_of(outcome), outcome, order, free
    for step in range(steps):
        temperature = WARM * (COLD / WARM) ** (step / steps)
        order, choices = changed(now[2], now[3], chance)
        outcome = simulator.outcome(order, choices)
        cost = cost_of(outcome)
        if cost <= now[0] or chance.random() < math.exp((now[0] - cost) / (temperature * now[0])):
            now = cost, outcome, order, choices
            best = min(best, now, key=lambda found: found[0])
    return best[1]


def row(name, outcome, bound_s, predictive_s):
    return [
        name,
        f"{outcome.total_s:,.0f}",
        f"{outcome.total_s / bound_s:.3f}",
        f"{outcome.stretch:.2f}",
        f"{outcome.mean_s:,.0f}",
        f"{100 * (outcome.mean_s / predictive_s - 1):+.0f} %",
    ]


def study(arguments, trace, resample):
    """The rows of a trace."""
    colloc = os.path.join(arguments.build, "src", "cli", "colloc")
    folder = os.path.join(ROOT, "data", "traces")
    run = STARTS["predictive"]
    predictive = simulate(colloc, folder, trace, run, [f"--resample={resample}"])
    preempting = simulate(colloc, folder, trace, run, [f"--resample={resample}", "--preempt"])
    bound_s, predictive_s = predictive["lower_bound_s"], predictive["avg_jct_s"]
    name = trace if resample == 0 else f"{trace}, resampled by {resample}"
    preempted = Outcome(preempting["total_s"], preempting["avg_jct_s"], preempting["max_stretch"])
    yield row(f"{name}: predictive with preemption", preempted, bound_s, predictive_s)
    simulator = Simulator(arguments.build, trace, resample)
    starts = [
        start_order(arguments.build, trace, resample, run) if run else list(range(simulator.n))
        for run in STARTS.values()
    ]
    for aim, cost_of in aims(bound_s, predictive_s).items():
        chance = random.Random(f"{arguments.seed} {trace} {resample} {aim}")
        outcome = anneal(simulator, starts, cost_of, arguments.steps, chance)
        yield row(f"{name}: {aim}", outcome, bound_s, predictive_s)
    simulator.close()


HEAD = ["", "total, s", "of the bound", "longest completion, of FIFO's", "mean completion, s",
        "of predictive's without preemption"]  # fmt: skip


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", metavar="BUILD", help="the build folder")
    parser.add_argument("--steps", type=int, default=12000, help="of each search; default: 12000")
    parser.add_argument("--seed", type=int, default=1, help="of the search; default: 1")
    parser.add_argument(
        "--resample", type=numbers, default="0", help="seeds of traces; default: 0, the traces"
    )
    parser.add_argument("--page", help="file whose block study-orders is replaced; default: prints")
    arguments = parser.parse_args()
    rows = [
        cells
        for trace in TRACES
        for resample in arguments.resample
        for cells in study(arguments, trace, resample)
    ]
    write_block(arguments.page, "study-orders", markdown(HEAD, rows))


if __name__ == "__main__":
    main()
