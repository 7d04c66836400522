#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/measured/carrier-slots.md from the results of carrier_slots_trial.py.

    tests/gpu/carrier_slots_page.py FILE.jsonl >docs/measured/carrier-slots.md

A way that did not come to its end has no total, and is named.
"""
import json
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
BEFORE = """**Before.** In an earlier run
([carrier-ends.md](carrier-ends.md#eight-trainings-in-slots-of-5-s)) the driver took the contexts.
A time-sliced stop and its return took 0.8 to 1 s, and slots were 27 to 28 s long. There FIFO did
not end in the time that it had. Turns of 20 s by the driver alone made the total 11 % longer
([slots.md](slots.md))."""
GOALS = (("total", 1.03), ("shorter half", 0.6))  # at most, of FIFO's


def ends_table(ways):
    head = ["GiB", "steps"] + [f"ends, {way} (s)" for way in ways]
    head += [f"times suspended, {way}" for way in ways if way != "fifo"]
    lines = []
    for i, steps in enumerate(next(iter(ways.values()))["steps"]):
        peak = max(row["mem_peak_mib"][i] or 0 for row in ways.values())
        ends = [row["ends_s"][i] for row in ways.values()]
        line = [f"{peak / 1024:.1f}", steps]
        line += ["-" if end is None else f"{end:.1f}" for end in ends]
        lines.append(line + [row["suspensions"][i] for way, row in ways.items() if way != "fifo"])
    return table(head, lines)


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
        of_fifo = ratios(row, ways["fifo"]) if way != "fifo" else [None, None]
        lengths = slot_lengths(row)
        slot = f"{min(lengths):.1f} to {max(lengths):.1f}" if lengths else ""
        line = [way, figure(total, ".1f") or "not ended", figure(half, ".1f")]
        line += [figure(of_fifo[0], ".3f"), figure(of_fifo[1], ".2f")]
        lines.append(line + [sum(row["suspensions"]), f"{sum(row['suspension_cost_s']):.1f}", slot])
    return table(head, lines)


def judge(way, row, fifo):
    """Which of the goals it has met."""
    said = []
    for (what, most), value in zip(GOALS, ratios(row, fifo)):
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
    most = max(took["fifo"] / s - 1 for s in took.values())
    costs = ", ".join(
        f"{sum(row['suspension_cost_s']) / row['total_s']:.1%} in `{way}`"
        for way, row in ways.items()
        if way != "fifo" and row["total_s"]
    )
    return NOISE.format(n=len(kept), said=said, most=100 * most, costs=costs)


def page(rows):
    ways = {row["way"]: row for row in rows if row["result"] == "eight trainings"}
    fifo = ways["fifo"]
    judged = [wrap_item(judge(way, row, fifo)) for way, row in ways.items() if way != "fifo"]
    said = f"- fifo: predicted: {fifo['predicted']}. {end_of('fifo', fifo)}"
    parts = [HEAD, wrap(SET_UP), ends_table(ways), ways_table(ways)]
    parts += ["\n".join([wrap_item(said)] + judged), wrap(without_stops(ways)), wrap(BEFORE)]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def wrap_item(text):
    return wrap(text, 98).replace("\n", "\n  ")


def main():
    with open(sys.argv[1]) as source:
        print(page([json.loads(line) for line in source]), end="")


if __name__ == "__main__":
    main()
