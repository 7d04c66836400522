#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/measured/carrier-mps.md from the results of carrier_mps_trial.py.

    tests/gpu/carrier_mps_page.py docs/measured/carrier-mps.jsonl >docs/measured/carrier-mps.md
"""
import json
import statistics
import sys

from carrier_page import span, table

HEAD = """# MPS clients that give way, on an H200

After this page you know how fast the carrier ([carrier.md](../carrier.md)) takes clients of MPS off
their GPU beside the other ways, what it costs that four of them take turns on a GPU that holds two
and a half, and what a neighbour notices. One NVIDIA H200, driver 580.159.04, PyTorch 2.11, 16
cores, 29 November 2026, one run. [carrier-mps.jsonl](carrier-mps.jsonl) has the raw results; this
page is made of them.

    tests/gpu/carrier_mps_trial.py BUNDLE docs/measured/carrier-mps.jsonl 474
    tests/gpu/carrier_turns_trial.py BUNDLE docs/measured/carrier-mps.jsonl --seconds=146 \\
        --sharing=mps                    # then a part of the first
    tests/gpu/carrier_mps_page.py docs/measured/carrier-mps.jsonl >docs/measured/carrier-mps.md
"""
WAYS = {"driver": "driver's checkpoint", "": "carrier", "MPS": "carrier, MPS client"}


def speed(rows):
    lines = []
    for name in ("resnet50", "resnet152"):
        driver = rows.get(f"speed {name}, driver")
        for label, way in WAYS.items():
            key = f"speed {name}" + (f", {label}" if label else "")
            one = rows.get(key)
            if not one or "error" in one or not driver or "error" in driver:
                continue
            whole = sum(driver["swaps"][0][k] for k in ("out_s", "in_s"))
            sums = [swap["out_s"] + swap["in_s"] for swap in one["swaps"]]
            rest = sums[1:] or sums
            losses = rows.get(f"{key}, losses", {"equal": None, "steps": [0, 0]})
            lines.append(
                [
                    name,
                    one.get("gib", ""),
                    way,
                    span([s["out_s"] for s in one["swaps"]]),
                    span([s["in_s"] for s in one["swaps"]]),
                    f"{whole / sums[0]:.1f}, {whole / statistics.median(rest):.1f}",
                    ("equal" if losses["equal"] else "differ") + f", {min(losses['steps'])} steps",
                ]
            )
    head = ["training", "GiB", "way", "out (s)", "back (s)", "times as fast: first, then", "losses"]
    return table(head, lines)


def turns(rows):
    alone, together = rows["turns, one after the other"], rows["turns"]
    lines = [
        ["one after the other, each", f"{alone['each_s']:.1f} s"],
        ["four taking turns, all", f"{together['total_s']:.1f} s"],
        ["throughput, against one after the other", together["throughput_of_one_after_the_other"]],
        ["completed", f"{together['states'].count('COMPLETED')} of 4"],
        ["attempts", ", ".join(map(str, together["attempts"]))],
        ["suspended, each", ", ".join(f"{s:.0f} s" for s in together["suspended_s"])],
        ["losses, bit for bit those of a run alone", f"{together['equal'].count(True)} of 4"],
    ]
    return table(["", ""], lines)


def story(rows):
    head = ["after (s)", "1", "2", "3", "4"]
    return table(head, [[at, *map(str.lower, states)] for at, *states in rows["turns"]["story"]])


def neighbour(rows):
    one = rows["neighbour, MPS"]
    calm, during = one["p99_step_ms"]
    lines = [
        ["99th percentile of its step (ms)", calm, during, f"{during / calm:.2f} times"],
        ["NVML's answers, 99th percentile (ms)", *one["nvml_p99_ms"], ""],
        ["NVML's answers, worst (ms)", *one["nvml_worst_ms"], ""],
    ]
    return table(["", "beside it", "while it leaves and returns", ""], lines)


def lost(rows):
    names = [key[5:] for key, row in rows.items() if key.startswith("part ") and row["rc"] != 0]
    return ", ".join(f"`{name}`" for name in names)


def main():
    rows = {}
    with open(sys.argv[1]) as source:
        for row in map(json.loads, source):
            rows[row.pop("result")] = row
    peak = rows["turns, one after the other"]["mem_peak_mib"] / 1024
    held = rows["turns"]["held_by_another_mib"] / 1024
    print(HEAD)
    print(
        "## Out and back\n\nAll other trainings paused meanwhile. The aim is 8 times the first "
        "time, which ResNet-152\nmisses, and 12 times afterwards, which both miss.\n"
        "With host memory that is ready both are met: [carrier-pool.md](carrier-pool.md).\n\n"
        + speed(rows)
    )
    print(
        f"## Four take turns\n\nResNet-50, batch 128, 280 steps, {peak:.1f} GiB each, by collocd "
        f"with `carrier: yes`,\n`slots: yes`, `slot-length: 5s`. Another process held {held:.0f} "
        "GiB of the GPU, so that the four together\nneed 1.5 times what was left. A slot is 20 "
        "times as long as a suspension and resumption: 22 s.\n"
    )
    print(turns(rows))
    print(story(rows))
    print(
        "The throughput is above 1, since two of them run at a time, and one starts while "
        "another computes. Time-sliced:\n"
        "[carrier-more.md](carrier-more.md#four-take-turns-time-sliced).\n"
    )
    print(f"## A neighbour, MPS client\n\n{neighbour(rows)}")
    if lost(rows):
        print(
            "## Not measured\n\nThese parts ran past their time limit, and say nothing: "
            f"{lost(rows)}. `collocd` (ResNet-152 suspended by\ncollocd beside ResNet-50) was too "
            "long for its limit, `losses` (torch.compile and CuPy as MPS clients)\nhad 50 s left; "
            "it ran again since ([carrier-more.md](carrier-more.md#losses-of-other-frameworks))."
        )


if __name__ == "__main__":
    main()
