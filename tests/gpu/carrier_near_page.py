#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/measured/carrier-near.md from the results of carrier_near_trial.py.

    tests/gpu/carrier_near_page.py docs/measured/carrier-near.jsonl >docs/measured/carrier-near.md
"""
import json
import statistics
import sys

from carrier_page import table

HEAD = """# Copies on a neighbour GPU, on two H200s

After this page you know how fast the carrier ([carrier.md](../carrier.md)) takes a training's
memory to another GPU over NVLink, beside host memory and the driver's checkpoint, whose that memory
is, and what the other GPU notices of large copies and of pinned host memory. Two NVIDIA H200 of one
host, driver 580, PyTorch 2.11, 32 cores, 29 November 2026, one run.
[carrier-near.jsonl](carrier-near.jsonl) has the raw results; this page is made of them.

{size}

    tests/gpu/carrier_near_trial.py BUNDLE docs/measured/carrier-near.jsonl {arguments}
    tests/gpu/carrier_near_page.py docs/measured/carrier-near.jsonl >docs/measured/carrier-near.md
"""
WHOLE = (
    "ResNet-50 has batches of 64, ResNet-152 of 256. The parts ran in two leases, as the trainings "
    "of the\nfirst did not all fit on the GPU; ResNet-152 as an MPS client was cut off by its time "
    "limit.",
    "250",
)
SMALL = (
    "It is the trial in miniature, with batches of 8 and 0.5 to 1.2 GiB: fixed times are a large "
    "part of\nwhat it shows. The whole one, up to 47 GiB, was not run. Copies to host memory "
    "were refused\nfor a mistake of this trial, which is corrected.",
    "60 --small",
)


def span(seconds):
    least, most = f"{min(seconds):.3f}", f"{max(seconds):.3f}"
    return least if least == most else f"{least} to {most}"


def sums(swaps):
    return [swap["out_s"] + swap["in_s"] for swap in swaps if "in_s" in swap]


def names(rows):
    return [key[len("speed ") : -len(", driver")] for key in rows if key.endswith(", driver")]


def of_both(rows):
    """Each training that was carried: its name, kind, result and the driver's time for it."""
    for name in names(rows):
        driver = sum(sums(rows[f"speed {name}, driver"].get("swaps", [])))
        for label in ("", ", MPS"):
            one = rows.get(f"speed {name}{label}")
            if one and "near" in one and driver:
                yield name, label, one, driver


def speed(rows):
    lines = []
    for name in names(rows):
        for swap in rows[f"speed {name}, driver"].get("swaps", []):
            lines.append([name, "", "driver's checkpoint", swap["out_s"], swap["in_s"], "", ""])
    for name, label, one, driver in of_both(rows):
        losses = rows.get(f"speed {name}{label}, losses", {"equal": None, "steps": [0, 0]})
        equal = ("equal" if losses["equal"] else "differ") + f", {min(losses['steps'])} steps"
        for way, said in (("near", "neighbour GPU"), ("host", "host memory")):
            swaps = [swap for swap in one[way] if "in_s" in swap]
            if not swaps:
                continue
            lines.append(
                [
                    name + label,
                    one["gib"],
                    said,
                    span([swap["out_s"] for swap in swaps]),
                    span([swap["in_s"] for swap in swaps]),
                    f"{driver / statistics.median(sums(swaps)):.0f}",
                    equal,
                ]
            )
    head = [
        "training",
        "GiB",
        "copy",
        "out (s)",
        "back (s)",
        "times as fast as the driver",
        "losses",
    ]
    return lines and table(head, lines)


def wanted(rows):
    lines = []
    for name, label, one, _ in of_both(rows):
        killed = one.get("killed", {})
        for row in one.get("wanted", []):
            lines.append(
                [
                    name + label,
                    row["out_s"],
                    row.get("to_host_s", row.get("to_host")),
                    row.get("in_s"),
                    row.get("left_mib"),
                    f"{killed.get('neighbour_mib')}, {killed.get('left_mib')}",
                ]
            )
    head = ["training", "to the neighbour (s)", "from there to the host (s)", "back (s)"]
    head += ["MiB left on the neighbour", "MiB there before and after a kill"]
    return lines and table(head, lines)


def owner(rows):
    lines = []
    for key in ("owner", "owner, MPS"):
        for row in rows.get(key, {}).get("rows", []):
            said = row.get("said", {})
            failed = [
                f"{name} {r}" for name, r in said.items() if r and name not in ("sees", "right")
            ]
            listed = ", ".join(row["listed_on_gpu1"]) or "none"
            what = "MPS client" if "MPS" in key else "plain process"
            lines.append(
                [what, row["when"], row["used_mib_gpu1"], listed, ", ".join(failed) or "-"]
            )
    return lines and table(
        ["borrower", "when", "MiB used there", "processes listed", "failed calls"], lines
    )


def beside(rows):
    lines = []
    for key, row in rows.items():
        if key.startswith("beside, "):
            nvml = [
                f"{row[f'nvml_gpu{i}']['p99_ms']}, {row[f'nvml_gpu{i}']['worst_ms']}"
                for i in (0, 1)
            ]
            steps = [row["p50_step_ms"], row["p99_step_ms"], row["worst_step_ms"], row["steps"]]
            lines.append([row["what"], row["took_s"], *steps, *nvml])
    head = ["on the first GPU", "seconds", "median step (ms)", "p99", "worst", "steps"]
    head += ["NVML, first GPU: p99, worst (ms)", "NVML, other GPU: p99, worst (ms)"]
    return lines and table(head, lines)


def main():
    with open(sys.argv[1]) as source:
        rows = {row.pop("result"): row for row in map(json.loads, source)}
    sections = [
        ("Out and back", "Each side waits until the other has answered; the others pause.", speed),
        (
            "The neighbour wants its memory back",
            "The copy goes to the host while the training stays away. Then one is killed while its "
            "copy lies on the neighbour.",
            wanted,
        ),
        (
            "Whose the memory is",
            "A process without a context creates the memory, another one that sees only its own "
            "GPU maps it. NVML lists it for neither.",
            owner,
        ),
        (
            "What the other GPU notices",
            "A ResNet-50 trains on the other GPU, and NVML is asked all 5 ms, while the first does "
            "this with 48 GiB, or with ResNet-152's memory (staged). To pin memory stops NVML's "
            "answers for both GPUs; the carrier pins none at a suspension.",
            beside,
        ),
    ]
    size, arguments = WHOLE if "speed resnet152" in rows else SMALL
    print(HEAD.format(size=size, arguments=arguments))
    for title, text, part in sections:
        body = part(rows)
        print(f"## {title}\n\n{text}\n\n{body}\n" if body else f"## {title}\n\nNot run.\n")


if __name__ == "__main__":
    main()
