#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/measured/closed.md from the results of closed_trial.py.

    tests/gpu/closed_page.py FILE.jsonl >docs/measured/closed.md

A row that is not as it was meant says so, and a part that did not run is named.
"""
import json
import sys

from carrier_page import table

HEAD = """# GPUs that the kernel closes, on a real driver

After this page you know what CUDA and `nvidia-smi` find where a filter of cgroups refuses the
device files of GPUs ([placement.md](../placement.md), `gpu-filter`, and
[outside.md](../outside.md), `outside: limit`), and whether trainings compute beside it. One of two
NVIDIA H200 of a host, driver 580.159.04, collocd as root, 30 November 2026, one run.
[closed.jsonl](closed.jsonl) has the raw results; this page is made of them.

    tests/gpu/closed_trial.py BUNDLE docs/measured/closed.jsonl --seconds=75 --gpus=1
    tests/gpu/closed_page.py docs/measured/closed.jsonl >docs/measured/closed.md

collocd has one of the two GPUs. Each process unsets `CUDA_VISIBLE_DEVICES`, opens all device files,
calls `cuInit` and `cuDeviceGetCount`, and runs `nvidia-smi -L`. CUDA's 100 is "no device", its 3
"not initialised".
"""
PREDICTED = """Predicted was that tasks see their own GPUs only, with 100 of `cuInit` for a task of
none; a person outside none and root all; and that a training goes out and in beside it. A task
under `outside: limit` sees all GPUs, since only `gpu-filter` restricts tasks.
"""
NAMES = {
    "filter, 0 GPUs": "`gpu-filter: yes`, a task of no GPU",
    "filter, 1 GPUs": "`gpu-filter: yes`, a task of one GPU",
    "limit, person": "`outside: limit`, a person's process outside of tasks",
    "limit, root": "`outside: limit`, root's process outside of tasks",
    "limit, task": "`outside: limit`, a task of one GPU",
    "limit, after collocd": "the person's process after collocd was killed (`kill -9`)",
}
TRAININGS = {
    "filter, training": "`gpu-filter: yes`",
    "limit, training": "`outside: limit`, suspended and resumed",
}


def found_cells(found):
    files = found.get("files", {})
    opened = f"{sum(files.values())} of {len(files)}"
    says = found.get("cuda_says")
    says = " and ".join(map(str, says)) if isinstance(says, list) else says or "-"
    return [opened, says, str(found.get("cuda", "-")), str(len(found.get("smi", [])))]


def verdict(row):
    is_meant = row.get("as_meant", row.get("as_granted"))
    return {True: "yes", False: "**no**", None: "not known"}[is_meant]


def closed_rows(rows):
    return [
        [name, *found_cells(rows[key].get("found", {})), verdict(rows[key])]
        for key, name in NAMES.items()
        if key in rows
    ]


def training_rows(rows):
    return [
        [name, str(rows[key]["steps"]), str(rows[key]["attempts"])]
        for key, name in TRAININGS.items()
        if key in rows
    ]


def notes(rows):
    """What did not run, or ended by an error."""
    for key, row in rows.items():
        reason = row.get("left_out") or row.get("not_run") or row.get("error")
        if reason:
            yield f"- Not measured: {key} ({reason})."


def page(path):
    with open(path, encoding="utf-8") as file:
        results = [json.loads(line) for line in file if line.strip()]
    rows = {
        row["result"][len("closed, ") :]: row
        for row in results
        if row["result"].startswith("closed, ")
    }
    yield HEAD
    shown = closed_rows(rows)
    head = ["process", "device files opened", "CUDA says", "its GPUs", "of nvidia-smi", "as meant"]
    yield table(head, shown)
    meant = sum(row[-1] == "yes" for row in shown)
    yield f"**{meant} of {len(shown)} are as meant.** Beside them a ResNet-18 trained as a task:\n"
    yield table(["beside", "steps", "attempts"], training_rows(rows))
    doctor = rows.get("told", {}).get("doctor", [])
    if doctor:
        yield "`colloc doctor` before:\n"
        yield from (f"    {line}" for line in doctor)
        yield ""
    yield PREDICTED
    yield from notes(rows)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print("\n".join(page(sys.argv[1])))


if __name__ == "__main__":
    main()
