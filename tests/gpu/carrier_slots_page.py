#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/measured/carrier-slots.md from the results of carrier_slots_trial.py.

    tests/gpu/carrier_slots_page.py FILE.jsonl >docs/measured/carrier-slots.md

A way that did not come to its end has no total, and is named. Where FIFO ran several times, ratios
are to the mean of its runs.
"""
import json
import statistics
import sys

from carrier_ends_page import describe_end, marks_equal, slot_lengths, wrap
from carrier_page import table

HEAD = """# Slots of 5 s on one H200, time-sliced and under MPS

After this page you know what slots of 5 s ([suspend.md](../suspend.md)) cost and bring trainings of
1 to 20 GiB on one GPU, by the [carrier](../carrier.md). One NVIDIA H200, driver 580.159.04, PyTorch
2.11, one run of 30 November 2026. [carrier-slots.jsonl](carrier-slots.jsonl) has the raw results;
this page is made of them.

    F=docs/measured/carrier-slots
    tests/gpu/carrier_slots_trial.py BUNDLE $F.jsonl --seconds=S
    tests/gpu/carrier_slots_page.py $F.jsonl >$F.md
"""
SET_UP = """Eight trainings, one at a time, all submitted at once, the longest first, each 0.7
times as long as the one before. The three ways have the same GPU, one after the other. `fifo` is
one after the other; the other two are `slots: yes` with `slot-length: 5s`, of which collocd makes
20 times the cost of a stop where that is longer. Each training is a fork of a process that has
imported PyTorch, so that imports, which take all ways as long, do not count. The server has one
GPU: contexts stay on it. The shorter half are the last four."""
NOISE = """**What the totals say.** Both are below FIFO's, though turns only cost time: FIFO came
first, on a machine that had not run a training yet, and other programs trained on other
processors of it. The {n} trainings that no way stopped took {said}: up to {most:.0f} % more in
FIFO. So the ratios to FIFO's total are no measure of what turns cost. Without its own stops the
total would be shorter by {costs}."""
BETWEEN = """**What the totals say.** FIFO ran {n} times, first and last: ratios are to the mean of
these runs, whose totals differ by {differ:.1%} of it. What is within that is no cost of turns. The
{kept} trainings that no way stopped took {said}. Without its own stops the total would be shorter
by {costs}."""
BEFORE = """**Before.** In an earlier run
([carrier-ends.md](carrier-ends.md#eight-trainings-in-slots-of-5-s)) the driver took the contexts.
A time-sliced stop and its return took 0.8 to 1 s, and slots were 27 to 28 s long. There FIFO did
not end in the time that it had. Turns of 20 s by the driver alone made the total 11 % longer
([slots.md](slots.md))."""
GOALS = (("total", 1.03), ("shorter half", 0.6))  # at most, of FIFO's


def ends_table(ways):
    head = ["GiB", "steps"] + [f"ends, {way} (s)" for way in ways]
    head += [f"times suspended, {way}" for way in ways if not is_fifo(way)]
    lines = []
    for i, steps in enumerate(next(iter(ways.values()))["steps"]):
        peak = max(row["mem_peak_mib"][i] or 0 for row in ways.values())
        ends = [row["ends_s"][i] for row in ways.values()]
        line = [f"{peak / 1024:.1f}", steps]
        line += ["-" if end is None else f"{end:.1f}" for end in ends]
        lines.append(
            line + [row["suspensions"][i] for way, row in ways.items() if not is_fifo(way)]
        )
    return table(head, lines)


def is_fifo(way):
    return way.split(",")[0] == "fifo"


def named(rows):
    """The ways by name: a later run of one is "WAY, again"."""
    ways = {}
    for row in rows:
        if row["result"] == "eight trainings":
            name = row["way"]
            while name in ways:
                name += ", again"
            ways[name] = row
    return ways


def mean_of_fifo(ways):
    """The times of its runs; None: one of them has not ended."""
    runs = [row for way, row in ways.items() if is_fifo(way)]
    times = {key: [run[key] for run in runs] for key in ("total_s", "shorter_half_mean_s")}
    return {k: None if None in each else statistics.mean(each) for k, each in times.items()}


def ratios(row, fifo):
    """Of the total and of the shorter half; None: one of the two has not ended."""
    keys = ("total_s", "shorter_half_mean_s")
    return [row[key] / fifo[key] if row[key] and fifo[key] else None for key in keys]


def figure(value, form):
    return format(value, form) if value is not None else ""


def ways_table(ways):
    head = ["way", "total (s)", "mean end of the shorter half (s)", "total / FIFO"]
    head += ["shorter half / FIFO", "suspensions", "their cost (s)", "a slot (s)"]
    lines = []
    for way, row in ways.items():
        total, half = row["total_s"], row["shorter_half_mean_s"]
        of_fifo = [None, None] if is_fifo(way) else ratios(row, mean_of_fifo(ways))
        lengths = slot_lengths(row)
        slot = f"{min(lengths):.1f} to {max(lengths):.1f}" if lengths else ""
        line = [way, figure(total, ".1f") or "not ended", figure(half, ".1f")]
        line += [figure(of_fifo[0], ".3f"), figure(of_fifo[1], ".2f")]
        lines.append(line + [sum(row["suspensions"]), f"{sum(row['suspension_cost_s']):.1f}", slot])
    return table(head, lines)


def judge(way, ways):
    """Which of the goals it has met."""
    said, row, fifo = [], ways[way], ways["fifo"]
    for (what, most), value in zip(GOALS, ratios(row, mean_of_fifo(ways))):
        word = "is not known" if value is None else "is met" if value <= most else "is not met"
        said.append(f"{what} at most {most} of FIFO's: {word}")
    text = f"- {way}: {'; '.join(said)}. Predicted: {row['predicted']}."
    equal, steps = marks_equal(row, fifo)
    text += f" Losses as in `fifo`, bit for bit: {sum(equal)} of {len(equal)} trainings"
    return text + f" ({sum(steps)} steps). {end_of(way, row)}"


def end_of(way, row):
    return describe_end(way, row)[len(f"- {way}: ") :].capitalize()


def without_stops(ways):
    """Trainings that no way stopped: what they took in each, and what that is of FIFO's."""
    kept = [i for i, _ in enumerate(ways["fifo"]["steps"])
            if not any(row["suspensions"][i] for row in ways.values())]  # fmt: skip
    took = {way: sum(row["exec_s"][i] for i in kept) for way, row in ways.items()}
    said = ", ".join(f"{s:.1f} s in `{way}`" for way, s in took.items())
    costs = ", ".join(
        f"{sum(row['suspension_cost_s']) / row['total_s']:.1%} in `{way}`"
        for way, row in ways.items()
        if not is_fifo(way) and row["total_s"]
    )
    totals = [row["total_s"] for way, row in ways.items() if is_fifo(way)]
    if len(totals) > 1 and None not in totals:
        differ = (max(totals) - min(totals)) / statistics.mean(totals)
        more = {"n": len(totals), "differ": differ, "kept": len(kept)}
        return BETWEEN.format(said=said, costs=costs, **more)
    most = max(took["fifo"] / s - 1 for s in took.values())
    return NOISE.format(n=len(kept), said=said, most=100 * most, costs=costs)


def page(rows):
    ways = named(rows)
    judged = [wrap_item(judge(way, ways)) for way in ways if not is_fifo(way)]
    fifos = [way for way in ways if is_fifo(way)]
    predicted = ways["fifo"]["predicted"]
    said = [f"- {way}: predicted: {predicted}. {end_of(way, ways[way])}" for way in fifos]
    parts = [HEAD, wrap(SET_UP), ends_table(ways), ways_table(ways)]
    parts += ["\n".join([*map(wrap_item, said), *judged])]
    parts += [wrap(without_stops(ways)), wrap(BEFORE)]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def wrap_item(text):
    return wrap(text, 98).replace("\n", "\n  ")


def main():
    with open(sys.argv[1]) as source:
        print(page([json.loads(line) for line in source]), end="")


if __name__ == "__main__":
    main()
