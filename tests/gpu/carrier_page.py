#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/measured/carrier.md from the results of carrier_trial.py.

    tests/gpu/carrier_page.py docs/measured/carrier.json >docs/measured/carrier.md
"""
import json
import statistics
import sys

HEAD = """# The carrier on an H200

After this page you know how fast the carrier ([carrier.md](../carrier.md)) takes trainings off
their GPU and puts them back, that their losses stay the same, and what a neighbour notices. One
NVIDIA H200, driver 580.159.04, PyTorch 2.11, 16 cores, 29 November 2026, two runs. Where no collocd
is named the orders come from the trial. [carrier.json](carrier.json) has the raw results; this page
is made of them.

    tests/gpu/carrier_trial.py libcolloc-preload.so docs/measured/carrier.json PART...
    tests/gpu/carrier_page.py docs/measured/carrier.json >docs/measured/carrier.md
"""
PHASES = "none here waiting copying releasing away returning lost".split()


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def span(values):
    low, high = min(values), max(values)
    return f"{low:.2f}" if low == high else f"{low:.2f} to {high:.2f}"


def speed(results):
    rows = []
    for name in ("resnet50", "resnet152"):
        driver = results.get(f"speed {name}, driver")
        if not driver:
            continue
        whole = driver["out_s"] + driver["in_s"]
        rows.append(
            [
                name,
                "",
                "driver's checkpoint",
                f"{driver['out_s']:.2f}",
                f"{driver['in_s']:.2f}",
                "1",
            ]
        )
        for label in ("", ", MPS"):
            one = results.get(f"speed {name}{label}")
            if not one:
                continue
            way = "carrier" + (", MPS client" if label else "")
            outs, ins = ([swap[k] for swap in one["swaps"]] for k in ("out_s", "in_s"))
            times = whole / statistics.median(a + b for a, b in zip(outs, ins))
            rows.append([name, one["gib"], way, span(outs), span(ins), f"{times:.1f}"])
    return table(["training", "GiB", "way", "out (s)", "back (s)", "times as fast"], rows)


def losses(results):
    rows = []
    for key, one in results.items():
        if key.startswith("losses "):
            equal = "equal" if one["equal"] else f"differ from step {one.get('first_difference')}"
            refused = ", ".join(one["refused"])
            rows.append([key[7:], one["steps"][1], one["out_and_in"], equal, refused])
    head = ["training", "steps", "times out and back", "losses, bit for bit", "refused"]
    return table(head, rows) + (
        "\n50 times for compile, compile-graphs and cupy, also as clients of MPS:\n"
        "[carrier-more.md](carrier-more.md#losses-of-other-frameworks).\n"
    )


def neighbours(results):
    rows = []
    for key, one in results.items():
        if key.startswith("neighbour"):
            calm, beside = one["p99_ms_calm_and_beside"]
            rows.append(
                ["MPS" if "MPS" in key else "time-sliced", calm, beside, f"{beside / calm:.2f}"]
            )
    return table(
        ["sharing", "p99 step beside it (ms)", "while it leaves and returns", "ratio"], rows
    )


def killed(results):
    rows = []
    for key, one in results.items():
        if key.startswith("killed"):
            phases = [PHASES[phase] for _, phase in one["delay_and_phase"]]
            counts = ", ".join(f"{phases.count(p)} {p}" for p in PHASES if p in phases)
            before, after = one["used_mib_before_and_after"]
            goes_on = "goes on" if one["neighbour_goes_on"] else "stands still"
            rows.append(["MPS" if "MPS" in key else "time-sliced", counts, before, after, goes_on])
    head = ["sharing", "killed by SIGKILL while", "MiB in use before", "after", "neighbour"]
    return table(head, rows)


def cost(results):
    rows = []
    for key, one in results.items():
        if key.startswith("cost "):
            off, on = zip(*one["ms_without_and_with"])
            rows.append(
                [
                    key[5:],
                    len(off),
                    statistics.median(off),
                    statistics.median(on),
                    one["median_ratio"],
                ]
            )
    note = (
        "Single runs of the same program differ by 5 %, so few pairs say little. 20 pairs of new\n"
        "processes: [carrier-more.md](carrier-more.md#a-step-without-suspension).\n"
    )
    head = ["training", "pairs", "step without (ms)", "with", "median of the ratios"]
    return table(head, rows) + "\n" + note


def daemon(results):
    rows = []
    for key, one in results.items():
        if key.startswith("daemon,"):
            equal = "equal" if one["equal"] else "differ"
            times = [span([row[k] for row in one["rows"]]) for k in ("suspend_s", "resume_s")]
            rows.append([f"`{key[8:]}`", *times, one["rows"][0]["used_away_mib"], equal])
    head = [
        "collocd with",
        "colloc suspend (s)",
        "colloc resume (s)",
        "MiB in use meanwhile",
        "losses",
    ]
    return table(head, rows)


SECTIONS = (
    ("Out and back", speed, "speed"),
    ("By the daemon, ResNet-50", daemon, "daemon"),
    ("Losses", losses, "losses"),
    ("A step without suspension", cost, "cost"),
    ("A neighbour", neighbours, "neighbour"),
    ("Killed on the way", killed, "killed"),
)


def main():
    with open(sys.argv[1]) as source:
        results = json.load(source)
    print(HEAD)
    for title, make, prefix in SECTIONS:
        if any(key.startswith(prefix) for key in results):
            print(f"## {title}\n\n{make(results)}")
    asked = results["attributes"]
    print(
        f"## Answers about pointers\n\nOf {asked['asked']} answers {len(asked['differ'])} differ:\n"
    )
    print(table(["answer", "without", "with"], [[k, *v] for k, v in asked["differ"].items()]))


if __name__ == "__main__":
    main()
