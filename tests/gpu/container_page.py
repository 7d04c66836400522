#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/measured/containers.md from the results of container_trial.py.

    tests/gpu/container_page.py FILE.jsonl >docs/measured/containers.md

A row that is not as it was meant says so, and a part that did not run is named.
"""
import json
import sys

from carrier_page import table
from closed_page import verdict

HEAD = """# Containers of tasks, on a real GPU

After this page you know which GPUs a container sees that podman starts for a task
([containers.md](../containers.md)), with CDI alone and with the filters of `gpu-filter` and
`outside: limit` ([outside.md](../outside.md)). One NVIDIA H200, driver 580.159.04, podman 4.3.1,
crun 1.8.1, collocd as root, 30 November 2026. [containers.jsonl](containers.jsonl) has the raw
results; this page is made of them.

    tests/gpu/container_trial.py BUNDLE docs/measured/containers.jsonl --seconds=60
    tests/gpu/container_page.py docs/measured/containers.jsonl >docs/measured/containers.md

The image has a shell and a program that opens all device files of GPUs, calls `cuInit` and
`cuDeviceGetCount`, and then holds 2 GiB of GPU memory for some seconds. The CDI file names the
device files and the driver's libraries: a container without a GPU has no libcuda. The host has one
GPU, so that a container of one GPU could not have seen another; on two GPUs the filters were tried
without containers ([closed.md](closed.md)).
"""
SHARED = """
The last row is of a second run: containers without a cgroup of their own (`--cgroups=disabled`, as
in the first) cannot be distinguished from others, so that `colloc gpus` names their program and
user only.
"""
BY = {
    "plain": "podman alone",
    "task": "`colloc submit --container=IMAGE`",
    "filter": "the same, `gpu-filter: yes`",
    "limit": "the same, `outside: limit`",
}
WHAT = {
    "a GPU": "one GPU by CDI",
    "no GPU": "no GPU",
    "1 GPUs": "`--gpus=1`",
    "0 GPUs": "`--gpus=0`",
}


def container_row(result, row):
    by, _, what = result.partition(", ")
    if by not in BY or what not in WHAT:
        return None
    found = row.get("found", {})
    peak = row.get("mem_peak_mib")
    held = f"{peak:,.0f} MiB" if peak else "-"
    says = [str(len(found.get("opened", []))), str(found.get("says", "-")), held]
    return [BY[by], WHAT[what], *says, verdict(row)]


def cancelled_text(rows):
    seconds = [row["gone_after_s"] for key, row in rows.items() if key.endswith(", cancelled")]
    if not seconds:
        return "**No task was cancelled.**"
    return (
        f"The containers of {len(seconds)} cancelled tasks had ended after {max(seconds):.2f} s"
        " at most."
    )


def outside_text(row):
    if row is None or "notes" not in row:
        return "**A container beside the queue was not tried.**"
    return (
        "A container that root starts beside the queue, as `colloc gpus` shows it:\n\n"
        + "\n".join(f"    {line}" for line in row["notes"].strip().splitlines())
    )


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        given = [json.loads(line) for line in file]
    rows = {row["result"].partition("container, ")[2]: row for row in given}
    cells = [cell for cell in (container_row(*item) for item in rows.items()) if cell]
    meant = [row["as_meant"] for row in rows.values() if "as_meant" in row]
    print(HEAD)
    head = ["started by", "asked for", "device files opened", "cuInit says", "its peak", "as meant"]
    print(table(head, cells))
    print(f"**{sum(map(bool, meant))} of {len(meant)} are as meant.** {cancelled_text(rows)}\n")
    print(outside_text(rows.get("outside")))
    print(SHARED, end="")


if __name__ == "__main__":
    main()
