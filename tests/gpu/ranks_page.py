#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/measured/ranks.md from the results of ranks_trial.py.

    tests/gpu/ranks_page.py docs/measured/ranks.jsonl SECONDS >docs/measured/ranks.md

What is not among the results is named at the end of the page. The file may have several runs: of a
result that two have the later one counts, and what was refused in the earlier one is named.
"""
import json
import sys

from carrier_page import table
from groups_page import equal, machine_of, section

HEAD = """# What ranks do in a step, and how long they may be away, on two H200s

After this page you know whether trainings whose ranks exchange tokens, send and receive, or replay
CUDA graphs with collectives, leave their GPUs and come back with equal losses, and whether ranks
are back before PyTorch ends them ([carrier.md](../carrier.md#ranks-of-one-training)). {machine}, 30
November 2026, PyTorch 2.11, one run, and another one of the part under MPS.
[ranks.jsonl](ranks.jsonl) has the raw results; this page is made of them.

    tests/gpu/ranks_trial.py BUNDLE docs/measured/ranks.jsonl {options}
    tests/gpu/ranks_trial.py BUNDLE docs/measured/ranks.jsonl SECONDS mps
    tests/gpu/ranks_page.py docs/measured/ranks.jsonl {options} >docs/measured/ranks.md

All trainings have a rank on each GPU and run under collocd with `carrier: yes`, time-sliced where
nothing else is said. Several of them, and references without colloc, share both GPUs meanwhile, so
the times say little about speed. Losses are compared bit for bit with a reference that nothing
disturbed, of all ranks, as far as both came.
"""
KINDS = {
    "losses experts": "DDP and a layer of experts: `all_to_all`",
    "losses pipeline": "a pipeline: send, receive, gather, scatter",
    "graph": "DDP in a CUDA graph, `NCCL_GRAPH_REGISTER` as NCCL chooses",
    "graph register=0": "DDP in a CUDA graph, `NCCL_GRAPH_REGISTER=0`",
    "graph register=1": "DDP in a CUDA graph, `NCCL_GRAPH_REGISTER=1`",
    "mps experts": "experts, as clients of MPS",
}
RECALL = """With `suspend-ranks-max: 10s`, a user suspended experts whose ranks PyTorch would end
after a watchdog that stood still for 24 s (`TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC`). The last row is the
control: the setting's default of 4 minutes, and a heartbeat of 8 s."""
CONTROL = """The control's ranks printed PyTorch's message about the heartbeat
(`TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC`)."""
PREDICTED = """Predicted was: 8 to 12 times out and in each, with equal losses; slots of about 16
s; a graph as NCCL chooses is refused as shared in half of the cases. The losses are equal, and
slots last as long as `suspend-ranks-max` once ranks were away. No graph was refused, so that what
is refused as shared was not seen here."""
REFUSED_BEFORE = """A record of its processes could not be read where the driver lists one with 0
bytes of a GPU: colloc took it for damaged, and ran the task again. Such a record is read since.
The row above is of a second run with that, beside programs that trained on the processors and on
the first GPU."""
TURNS = """Two trainings of experts, one at a time on both GPUs, with `slots: yes`, slots of 20 s,
and `suspend-ranks-max: 16s`; heartbeat 24 s."""


def seconds(row, way):
    return " / ".join(f"{x:.2f}" for x in row.get(way, [])[1:])


def out_and_in(rows):
    head = ["training", "times out and in", "GiB a rank", "out (s): median / most"]
    lines = []
    for key, name in KINDS.items():
        row = rows.get(key)
        if row and row["out_and_in"]:
            gib = f"{row['mem_peak_mib'] / 2048:.1f}" if row["mem_peak_mib"] else "-"
            times = [seconds(row, "out_s"), seconds(row, "in_s")]
            cells = [name, row["out_and_in"], gib, *times]
            lines.append([*cells, equal(row), row["state"]])
    return table([*head, "back (s)", "losses", "end"], lines)


def reasons(rows):
    found = []
    for key, name in KINDS.items():
        row, shown = rows.get(key), rows.get(f"{key}, shown", {})
        if row and row["n_failed"]:
            why = shown.get("carrier_obstacle") or shown.get("suspension_error")
            said = "; ".join(dict.fromkeys(text for pair in row["failed"] for text in pair if text))
            found.append(f"- {name}: refused after {row['out_and_in']} out and in: {why or said}.")
    return "\n".join(found)


def refused_before(earlier):
    """What an earlier run could not suspend: that run's own words, and what came of it."""
    text = reasons(earlier)
    return f"In the first run:\n\n{text}\n\n{REFUSED_BEFORE}" if text else ""


def recall(rows):
    head = ["what", "away until (s)", "then", "steps after it", "attempts", "losses"]
    lines, row = [], rows.get("recall")
    for i, time in enumerate(row["rows"] if row else [], start=1):
        end = [row["attempt_count"], equal(row)]
        cells = [f"10 s, the {'first' if i == 1 else 'second'} time", time.get("away_s", "-")]
        lines.append([*cells, time.get("then", "-"), time.get("steps_after", "-"), *end])
    default = rows.get("recall, default")
    if default:
        ended = default.get("ended_after_s")
        lasted = f"over {default.get('not_ended_after_s')}" if ended is None else ended
        lines.append(["4 minutes", lasted, default.get("state", "-"), "-", "-", "-"])
    return table(head, lines)


def control(rows):
    says = " ".join(rows.get("recall, default", {}).get("says", []))
    return CONTROL if "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC" in says else ""


def turns(rows):
    head = ["task", "state", "suspensions", "suspended (s)", "attempts", "losses"]
    lines = []
    for i in (1, 2):
        row = rows.get(f"turns {i}")
        if row:
            away = f"{row['suspended_s']:.1f}"
            cells = [i, row["state"], row["suspensions"], away, row["attempt_count"]]
            lines.append([*cells, equal(row)])
    story = [
        f"- {at} s: " + ", ".join(f"{state} (step {step})" for state, step in works)
        for at, *works in rows.get("turns", {}).get("story", [])
    ]
    return table(head, lines), "\n".join(story)


def missing(rows):
    keys = [*KINDS, "recall", "recall, default", "turns 1", "turns 2"]
    found = [f"- {key}: no result" for key in keys if key not in rows]
    found += [
        f"- {name}: no suspension in the time that was left; losses: {equal(rows[key])}"
        for key, name in KINDS.items()
        if key in rows and not rows[key]["out_and_in"] and not rows[key]["n_failed"]
    ]
    if rows.get("turns 2", {}).get("steps") == 0:
        found.append("- turns: the second training had made no step when the part's time was over")
    for key, row in rows.items():
        if key.startswith("error of"):
            found.append(f"- {key}: {row['error'][:300]}")
    return "\n".join(found) or "Nothing."


def main():
    rows, earlier = {}, {}
    with open(sys.argv[1]) as source:
        for row in map(json.loads, source):
            if row["result"] in rows:
                earlier[row["result"]] = rows[row["result"]]
            rows[row["result"]] = row
    options = " ".join(sys.argv[2:])
    print(
        HEAD.format(machine=machine_of(rows["machine"]), options=options)
        + section("Out and in", out_and_in(rows), reasons(rows), refused_before(earlier), PREDICTED)
        + section("Back in time", RECALL, recall(rows), control(rows))
        + section("Turns", TURNS, *turns(rows))
        + section("What has no result", missing(rows)),
        end="",
    )


if __name__ == "__main__":
    main()
