#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/measured/carrier-more.md from the results of carrier_turns_trial.py,
carrier_cost_trial.py, gives_way_trial.py and the part `losses` of carrier_mps_trial.py, which one
file has together.

    tests/gpu/carrier_more_page.py FILE.jsonl >docs/measured/carrier-more.md

What is not among the results is named as not measured. Of a part that ran twice the later result
counts; of the pairs of processes all do.
"""
import json
import math
import statistics
import sys

from carrier_ends_page import section, wrap
from carrier_page import table

HEAD = """# Turns, other frameworks, and what the carrier costs, on an H200

After this page you know what it costs that four trainings take turns on a GPU that holds two and a
half of them, whether losses stay the same for `torch.compile`, CuPy and JAX, how much longer the
[carrier](../carrier.md) makes a step of a training that nothing suspends, and how soon a training
gives way. One NVIDIA H200 that nothing else used, driver 580.159.04, PyTorch 2.11, 30 November
2026, one run of each; JAX again on another H200 on 1 December.
[carrier-more.jsonl](carrier-more.jsonl) has the raw results; this page is made of them.

    M=docs/measured/carrier-more
    tests/gpu/carrier_turns_trial.py BUNDLE $M.jsonl --seconds=142
    tests/gpu/carrier_mps_trial.py BUNDLE $M.jsonl 186 losses
    tests/gpu/carrier_mps_trial.py BUNDLE $M.jsonl 60 jax
    tests/gpu/carrier_cost_trial.py BUNDLE $M.jsonl --seconds=176
    tests/gpu/gives_way_trial.py BUNDLE $M.jsonl --seconds=86
    tests/gpu/carrier_more_page.py $M.jsonl >$M.md
"""
SHARINGS = {"streams": "time-sliced", "mps": "clients of MPS"}
TURNS = """ResNet-50, batch 128, {steps} steps, {gib:.1f} GiB each, by collocd with `slots: yes` and
`slot-length: 5s`. Another process held {held:.0f} GiB of the GPU, so that the four together need
1.5 times what was left. Each is a fork of a process that has imported PyTorch, in both ways."""
TURNS_GOAL = 0.85  # of the throughput of one after the other, at least
TURNS_SAID = """Suspended: {suspended} of {n}, {times} in all. What makes the figure is that two run
at a time, and that one starts while another computes."""
FEW_TURNS = """Each ran for {least:.0f} to {most:.0f} s, and a slot is 20 times as long as a
suspension and resumption{slot}: most ended by themselves when it was over. So this says little
about what turns cost: predicted were one or two suspensions of each, and 0.90 to 1.05."""
LOSSES = """Out and back at random instants, beside all others of this table on one GPU. Losses are
compared bit for bit with those of a run without colloc. A training that had not reached its end is
ended by the trial some steps after its last return, so that only its first steps are compared.
Predicted were 50 times and equal losses for all but JAX, which is refused, and equal ones for it
too."""
AGAIN = "again"
NEVER_OUT = """The memory of {names} has not left the GPU: it is refused (`other-memory`: most of it
is in no block of the carrier), so that no copy of the carrier is in its losses. {differ}"""
NEVER_OUT_DIFFER = """That they differ from those of the other process was not to be expected; they
were equal in a run with fewer programs on the GPU ([carrier.md](carrier.md#losses)). When JAX
compiles, it chooses kernels by how long each takes, which other programs change. The trial has
that choice off since."""
NEVER_OUT_EQUAL = """Again without that choice, as predicted: equal losses in both ways. So the
choice is the probable cause; that the GPU had fewer programs was not tried apart."""
COST = """ResNet-50, batch {batch}. A pair is two processes started anew, one of them a task of
collocd, whose steps are measured one after the other while all other processes rest; which one is
first alternates. "without" and "with" are medians of 40 steps{printed}."""
COARSE = """, whose times are printed in tenths of a millisecond, {part:.1f} % of a step"""
COST_PREDICTED = "Predicted: a median of 0.99 to 1.01, whose interval is wider than 0.5 %."
COST_GOAL = 1.005
COVERED = 0.95
FIGURES = ("given_way_s", "other_runs_s", "other_computes_s", "runs_again_s")
PARTS = {
    "unused": "another task needs its memory, which it has not used",
    "preempt": "a higher priority",
    "make-room": "a large task: it is moved",
}
UNUSED = """`unused`: the setting `suspend-unused-after` was not given, as by default: it gave way
because another task waited for its memory. That is done once a task has not used its GPU for
`unused-after`, 10 minutes by default, which the trial made {after} so as not to wait. {steps}"""
WAYS_PREDICTED = """Predicted: 43 GiB that are unused are off after 4 to 7 s, and the other computes
8 to 12 s later; 21 GiB of a lower priority after 1.5 to 3 s, and the other 4 to 6 s later; back in
2 s and 1 s; losses equal."""
NONE = "Not measured.\n"


def median_interval(values):
    """(least, most, coverage) of the median of what they are drawn from, by the sign test: the
    narrowest pair of order statistics that covers it in COVERED of all cases. None: too few."""
    n, ordered = len(values), sorted(values)
    below = [sum(math.comb(n, i) for i in range(k)) / 2**n for k in range(n // 2 + 1)]
    ranks = [k for k in range(1, n // 2 + 1) if 2 * below[k] <= 1 - COVERED]
    if not ranks:
        return None
    k = max(ranks)
    return ordered[k - 1], ordered[n - k], 1 - 2 * below[k]


def latest(rows, result, **more):
    own = [r for r in rows if r["result"] == result and more.items() <= r.items()]
    return own[-1] if own else None


def errors_of(rows, *parts):
    own = [r for r in rows if r["result"] in [f"error of {part}" for part in parts]]
    return wrap(" ".join(f"An error of {r['result'][9:]}: {r['error']}." for r in own))


# ---- turns ----


def turns_table(alone, together):
    n = len(together["states"])
    rate = together["throughput_of_one_after_the_other"]
    word = "" if rate is None else " (is met)" if rate >= TURNS_GOAL else " (is not met)"
    lines = [
        ["one after the other, each", f"{alone['each_s']:.1f} s"],
        ["four taking turns, all", f"{together['total_s']:.1f} s" + (", cut off" * (rate is None))],
        [f"throughput, at least {TURNS_GOAL} of one after the other{word}", rate or "not known"],
        ["completed", f"{together['states'].count('COMPLETED')} of {n}"],
        ["attempts", ", ".join(map(str, together["attempts"]))],
        ["times suspended", ", ".join(map(str, together["suspensions"]))],
        ["suspended, each", ", ".join(f"{s:.0f} s" for s in together["suspended_s"])],
        ["losses, bit for bit those of one alone", f"{together['equal'].count(True)} of {n}"],
    ]
    return table(["", ""], lines)


def running_s(story):
    """How long each was seen running."""
    seconds = [0] * (len(story[0]) - 1)
    for (begin, *states), (end, *_) in zip(story, story[1:]):
        seconds = [s + (end - begin) * (is_in == "RUNNING") for s, is_in in zip(seconds, states)]
    return seconds


def stops_sentence(together):
    """How often trainings were stopped, which says what the throughput is worth."""
    times, n = together["suspensions"], len(together["suspensions"])
    said = TURNS_SAID.format(suspended=sum(1 for k in times if k), n=n, times=sum(times))
    first = next((at for at, *states in together["story"] if "SUSPENDED" in states), None)
    if sum(times) < n:
        slot = "" if first is None else f", here about {first:.0f} s"
        ran = running_s(together["story"])
        said += " " + FEW_TURNS.format(slot=slot, least=min(ran), most=max(ran))
    return wrap(said)


def turns(rows):
    text = ""
    for sharing, name in SHARINGS.items():
        alone = latest(rows, "turns, one after the other", sharing=sharing)
        together = latest(rows, "turns", sharing=sharing)
        if not (alone and together):
            continue
        peak, held = alone["mem_peak_mib"] / 1024, together["held_by_another_mib"] / 1024
        said = wrap(TURNS.format(steps=alone["steps"], gib=peak, held=held))
        head = ["after (s)", *map(str, range(1, len(together["states"]) + 1))]
        story = [[at, *map(str.lower, states)] for at, *states in together["story"]]
        parts = [said, turns_table(alone, together), stops_sentence(together), table(head, story)]
        text += section(f"Four take turns, {name}", *parts)
    return text or section("Four take turns", NONE, errors_of(rows, "turns"))


# ---- losses ----


def losses_line(name, row):
    own = name.split(", ")
    equal, compared = "equal" if row["equal"] else "differ", min(row["steps"])
    if row["equal"] and row.get("rc") == 0:
        equal += ", to its end"
    elif row["equal"] and row["out_and_in"] and compared <= row.get("steps_then", 0):
        equal += ", not to its last return"
    sharing = SHARINGS["mps" if "MPS" in own else "streams"]
    refused = ", ".join(f"`{why}`" for why in row["refused"])
    training = f"{own[0]}, again" if AGAIN in own else own[0]
    return [training, sharing, row["out_and_in"], equal, compared, refused]


def never_out_sentence(own):
    """Of the kinds of which no memory has left the GPU."""
    never = {name: row for name, row in own.items() if not row["out_and_in"]}
    if not never:
        return ""
    names = " and ".join(sorted({name.split(",")[0].upper() for name in never}))
    first = [row["equal"] for name, row in never.items() if AGAIN not in name]
    again = [row["equal"] for name, row in never.items() if AGAIN in name]
    said = [] if all(first) else [NEVER_OUT_DIFFER]
    said += [NEVER_OUT_EQUAL] if said and again and all(again) else []
    return wrap(NEVER_OUT.format(names=names, differ=" ".join(said)))


def losses_by_name(rows):
    """Those of a later run have AGAIN in their name."""
    own = {}
    for row in rows:
        if row["result"].startswith("losses ") and "out_and_in" in row:
            name = row["result"][len("losses ") :]
            own[f"{name}, {AGAIN}" if name in own else name] = row
    return own


def losses(rows):
    own = losses_by_name(rows)
    head = ["training", "sharing", "times out and back", "losses", "steps compared", "refused"]
    made = table(head, [losses_line(*pair) for pair in own.items()]) if own else NONE
    said = wrap(LOSSES) if own else ""
    return section("Losses of other frameworks", said, made, never_out_sentence(own))


# ---- the cost of a step ----


def cost_sentence(ratios):
    found = median_interval(ratios)
    if not found:
        return f"{len(ratios)} pairs are too few for an interval of the median."
    least, most, coverage = found
    word = "is met" if most <= COST_GOAL else "is not met" if least > COST_GOAL else "is open"
    return (
        f"Median of with / without in {len(ratios)} pairs: {statistics.median(ratios):.4f}, by the"
        f" sign test within {least:.4f} to {most:.4f} ({coverage:.1%}). The goal, at most"
        f" {COST_GOAL} of the step without colloc, {word}."
    )


def printed_in(pairs):
    """A median of what is printed in tenths of a millisecond is a multiple of half of one."""
    steps_ms = [1000 * row[key] for row in pairs for key in ("without_s", "with_s")]
    if any(abs(20 * ms - round(20 * ms)) > 1e-6 for ms in steps_ms):
        return ""
    return COARSE.format(part=10 / statistics.median(steps_ms))


def cost(rows):
    pairs = [row for row in rows if row["result"] == "pair"]
    if not pairs:
        return section("A step without suspension", NONE, errors_of(rows, "pairs"))
    ratios = [row["with_s"] / row["without_s"] for row in pairs]
    lines = [
        [
            number,
            f"{1000 * row['without_s']:.2f}",
            f"{1000 * row['with_s']:.2f}",
            f"{ratio:.4f}",
            "with" if row["first"] else "without",
            "yes" if row["carried"] else "no",
        ]
        for number, (row, ratio) in enumerate(zip(pairs, ratios), start=1)
    ]
    head = ["pair", "without (ms)", "with (ms)", "with / without", "first", "carried"]
    said = wrap(COST.format(batch=pairs[0]["batch"], printed=printed_in(pairs)))
    found = wrap(f"{cost_sentence(ratios)} {COST_PREDICTED}")
    parts = [said, found, table(head, lines), errors_of(rows, "pairs")]
    return section("A step without suspension", *parts)


# ---- giving way ----


def way_line(part, row):
    lost = "equal" if row["equal"] else "differ"
    if row["equal"] and row["compared"] <= row["steps_then"]:
        lost += ", not after its return"
    figures = [f"{row[key]:.1f}" if key in row else "" for key in FIGURES]
    return [PARTS[part], row.get("gib", ""), *figures, row["other_state"].lower(), lost]


def unused_sentence(row):
    """Which setting made it give way; "" where that was not left to the default."""
    if not row or "equal" not in row or "suspend_unused_after" in row["settings"]:
        return ""
    way = [text for event, text in row["events"] if event in ("SUSPENDED", "RESUMED")]
    steps = f"It was off its GPU after {way[0]}, and back in {way[1]}." if len(way) == 2 else ""
    after = row["settings"]["unused_after"].replace("s", " s")
    return wrap(UNUSED.format(after=after, steps=steps))


def gives_way(rows):
    own = {part: latest(rows, part) for part in PARTS}
    made = [way_line(part, row) for part, row in own.items() if row and "equal" in row]
    head = ["it gives way to", "GiB", "is off the GPU (s)", "the other runs (s)"]
    head += ["the other computes (s)", "runs again (s)", "the other", "losses"]
    said = [f"`{part}`: {row['not_run']}." for part, row in own.items() if row and "not_run" in row]
    text = "Seconds from `colloc submit` of the other, and from its end until the first one runs.\n"
    parts = [NONE]
    if made:
        parts = [text, table(head, made), unused_sentence(own["unused"]), wrap(WAYS_PREDICTED)]
    return section("Giving way", *parts, wrap(" ".join(said)), errors_of(rows, *PARTS))


def page(rows):
    return HEAD + turns(rows) + losses(rows) + cost(rows) + gives_way(rows)


def main():
    with open(sys.argv[1]) as source:
        print(page([json.loads(line) for line in source]), end="")


if __name__ == "__main__":
    main()
