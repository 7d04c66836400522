#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/measured/carrier-ipc.md from the results of ipc_trial.py.

    tests/gpu/ipc_page.py docs/measured/carrier-ipc.jsonl >docs/measured/carrier-ipc.md
"""
import json
import sys

from carrier_page import span, table

HEAD = """# Shared GPU memory beside the carrier, on an H200

After this page you know that programs share GPU memory by CUDA IPC with the carrier
([carrier.md](../carrier.md#sharing-by-cuda-ipc)) as without it, where the driver's answers differ,
and what the carrier costs a program that is never suspended. One NVIDIA H200, driver 580.159.04,
PyTorch 2.11, CuPy 14.2, one run of 29 November 2026, and torch.multiprocessing as clients of MPS on
another one, 30 November. [carrier-ipc.jsonl](carrier-ipc.jsonl) has the raw results; this page is
made of them.

    tests/gpu/ipc_trial.py BUNDLE docs/measured/carrier-ipc.jsonl SECONDS
    tests/gpu/ipc_trial.py BUNDLE docs/measured/carrier-ipc.jsonl SECONDS torch-mps
    tests/gpu/carrier_mps_trial.py BUNDLE docs/measured/carrier-ipc.jsonl SECONDS losses
    tests/gpu/ipc_page.py docs/measured/carrier-ipc.jsonl >docs/measured/carrier-ipc.md
"""
MORE = "[carrier-more.md](carrier-more.md#losses-of-other-frameworks)"
REFUSED = "cudaErrorInitializationError"  # to CUDA in the fork of a process that has used it
WAYS = {"plain": "without colloc", "library": "library, no carrier", "carrier": "carrier"}


def of(rows, beginning):
    """Rows by what follows in their names."""
    return {k[len(beginning) :]: v for k, v in rows.items() if k.startswith(beginning)}


def failure_of(row):
    """What came of one that has not said what it received."""
    if REFUSED in row.get("says", ""):
        return "failed"
    return "ran past the limit" if row.get("ran_past") else f"failed: {row.get('rc')}"


def torch(rows):
    lines = []
    for name, row in of(rows, "torch, ").items():
        method, mode, *mps = name.split(", ")
        if "loop" not in row:
            lines.append([method, WAYS[mode], "MPS client" if mps else "time-sliced"])
            lines[-1] += ["not known", failure_of(row), "", "", ""]
            continue
        lines.append(
            [
                method,
                WAYS[mode],
                "MPS client" if mps else "time-sliced",
                f"{row['sent_equal']} of {row['sent']}",
                f"{row['got_equal']} of {row['got']}" if "got" in row else "failed",
                f"{row['loop_equal']} of {row['loop']}",
                row["loop_s"],
                {True: "right", False: "wrong"}.get(row.get("loaded_right"), "-"),
            ]
        )
    head = ["start", "with", "sharing", "sent", "received", "loop", "loop (s)", "DataLoader"]
    text = table(head, lines)
    failed = [line for line in lines if "fork" in line and "failed" in line]
    if failed:
        text += (
            "\nWith `fork` the process that sends to the parent was forked after the parent had"
            "\nused CUDA, which PyTorch refuses, with and without colloc.\n"
        )
    if any("not known" in line for line in failed):
        text += (
            "\nWhere the rest is not known, the parent waited for that process until the trial's"
            "\ntime was over, before it said what it had sent itself.\n"
        )
    if not any("MPS" in line[2] for line in lines):
        text += "\nAs clients of MPS it was not run: no time was left.\n"
    return text


def cupy(rows):
    lines = [
        [WAYS[name.split(", ")[0]], "MPS client" if "MPS" in name else "time-sliced", row["says"]]
        for name, row in of(rows, "cupy, ").items()
    ]
    return table(["with", "sharing", "the child saw it, the parent saw the change"], lines)


def differing(row):
    """A question that the other one was not asked is no difference."""
    return {k: v for k, v in row.get("differ", {}).items() if None not in v}


def answers(rows):
    found = of(rows, "answers, ")
    names = ("library", "carrier", "carrier, MPS")
    lines = [
        [name, question, *both]
        for name in names
        for question, both in differing(found.get(name, {})).items()
    ]
    counts = [f"{len(differing(found[name]))} ({name})" for name in names if name in found]
    asked = found["plain"]["asked"]
    text = f"Of {asked} answers differ: {', '.join(counts)}. Negative: an error.\n\n"
    text += table(["with", "answer", "without colloc", "with"], lines)
    if any("flags 0" in line[1] for line in lines):
        text += (
            "\nSince this run a block is opened with the driver's flag only, and one whose process"
            "\nhas ended gives 400. The third close follows from the open with flags 0.\n"
        )
    return text


def checkpoint(rows):
    lines = []
    for name, row in of(rows, "checkpoint, ").items():
        calls, after = row["calls"], row["after"]
        results = ", ".join(map(str, calls["results"]))
        content = "equal" if after is True else after
        lines.append([name, results, calls.get("out_s"), calls.get("in_s"), content])
    head = [
        "64 MiB of memory",
        "lock, checkpoint, restore, unlock",
        "out (s)",
        "back (s)",
        "content",
    ]
    return table(head, lines)


def allocations(rows):
    lines = []
    if not of(rows, "allocations"):
        return "Not measured.\n"
    for name, row in of(rows, "allocations").items():
        for kind in ("private", "exportable"):
            lines.append(
                [
                    "MPS client" if "MPS" in name else "time-sliced",
                    "can be exported" if kind == "exportable" else "cannot",
                    span([1000 * r[0] / row["blocks"] for r in row[kind]]),
                    span([1000 * r[1] / row["blocks"] for r in row[kind]]),
                ]
            )
    head = ["sharing", "blocks of 20 MiB", "each made in (ms)", "unmade in (ms)"]
    return "The fastest and the slowest of five times 400 blocks.\n\n" + table(head, lines)


def steps(rows):
    row = rows.get("steps, ResNet-50, batch 32")
    if not row:
        return "Not measured.\n"
    without, with_it = row["ms_without_and_with"]
    lines = [[row["pairs"], without, with_it, f"{100 * (row['median_of_ratios'] - 1):+.2f} %"]]
    head = ["pairs", "without (ms)", "with the carrier (ms)", "median of the ratios"]
    text = (
        "Two processes, which pause in turns. Processes of one program differ by some per cent,\n"
        "so this says only that the one with the carrier was not slower. Processes started anew\n"
        "for each pair: [carrier-more.md](carrier-more.md#a-step-without-suspension).\n\n"
    )
    return text + table(head, lines)


def losses(rows):
    lines = [
        [name, row["steps"][1], row["out_and_in"], "equal" if row["equal"] else "differ"]
        for name, row in of(rows, "losses ").items()
    ]
    if not lines:
        return "Not measured.\n"
    text = table(["training", "steps", "times out and back", "losses, bit for bit"], lines)
    if rows["part losses"]["rc"] != 0:
        text += "\nThe part ran past its time limit: the others, and clients of MPS, say nothing.\n"
    return text + f"\n50 times out and back, also as clients of MPS: {MORE}.\n"


def main():
    with open(sys.argv[1]) as lines:
        rows = {}
        for row in map(json.loads, lines):
            rows[row.pop("result")] = row
    parts = {
        "torch.multiprocessing": torch,
        "CuPy": cupy,
        "The driver's answers": answers,
        "The driver's checkpoint": checkpoint,
        "Blocks that can be exported": allocations,
        "A step without suspension, ResNet-50, batch 32": steps,
        "Losses": losses,
    }
    print(HEAD)
    if not of(rows, "allocations"):
        print("This is a run with `--small` of 54 s, which ended before its last parts.\n")
    for title, part in parts.items():
        print(f"## {title}\n\n{part(rows)}")


if __name__ == "__main__":
    main()
