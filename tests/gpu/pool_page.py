#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/measured/carrier-pool.md from the results of copy_ways.c and pool_trial.py.

    tests/gpu/pool_page.py COPIES.jsonl [SWAPS.jsonl] >docs/measured/carrier-pool.md
"""
import json
import sys

from carrier_page import span, table

HEAD = """# Host memory for copies, on an H200

After this page you know what makes a copy of GPU memory to the host slow, why the carrier
([carrier.md](../carrier.md)) copies through small pinned buffers to pages that exist, and how much
sooner a training leaves its GPU and comes back so. One NVIDIA H200, driver 580.159.04, 32 cores, 29
November 2026, one run; another trial ran on the second GPU of the host meanwhile.
[carrier-pool-copies.jsonl](carrier-pool-copies.jsonl) and
[carrier-pool-trainings.jsonl](carrier-pool-trainings.jsonl) have the raw results; this page is made
of them.

    cc -O2 -pthread tests/gpu/copy_ways.c -ldl -o copy_ways
    ./copy_ways 12 25 >docs/measured/carrier-pool-copies.jsonl
    tests/gpu/pool_trial.py BUNDLE docs/measured/carrier-pool-trainings.jsonl 160
    tests/gpu/pool_page.py docs/measured/carrier-pool-copies.jsonl \\
        docs/measured/carrier-pool-trainings.jsonl >docs/measured/carrier-pool.md
"""
AFTER = """
These copies asked for huge pages by `madvise`. The machine's `shmem_enabled` was `never`, so these
are pages of 4 KiB. Its memory grows as it is used, which is a part of the time of new pages.

So staging by eight lanes of 4 MiB needs no change: it is faster than to register the pages while
copying. Pages that stay registered are faster still, by about 30 %; the carrier does not use
them, as they stay pinned.
"""
SWAPS = """\
ResNet-50 has a batch of 64 and 6.6 GiB, ResNet-152 one of 256 and 47.5 GiB. "own": the copy is the
training's own memory. "pool": the daemon's memory, made before in the background, with huge pages
of a tmpfs that the daemon mounts nowhere. The aim is 8 times as fast as the driver's checkpoint the
first time, and 12 times afterwards: **with the pool it is 15 times from the first time on.**
"""
MAKING = {
    "make": "make new pages, one thread",
    "map": "touch them in another mapping, one thread",
    "punch": "give them back",
    "unregister": "unregister",
}


def copies(rows):
    making, ways = [], {}
    for row in rows:
        what, mib, threads = row["what"], row["piece_mib"], row["threads"]
        if what in ("make", "map", "punch"):
            making.append([MAKING[what], f"{1000 / row['gib_s']:.0f}"])
        elif what.startswith(("staged", "register")) and "back" in what:
            ways.setdefault((what.replace(" back", ""), mib, threads), {})["back"] = row["gib_s"]
        elif what == "register and copy out":
            ways.setdefault(("registered", mib, threads), {})["first"] = row["gib_s"]
        elif what.endswith(" out"):
            ways.setdefault((what.replace(" out", ""), mib, threads), {})["out"] = row["gib_s"]
    lines = [
        [way, f"{mib} MiB", threads, one.get("first", ""), one.get("out", ""), one.get("back", "")]
        for (way, mib, threads), one in ways.items()
    ]
    print("\n## Pages\n")
    print(table(["what", "ms for each GiB"], making))
    print("\n## Copies, in GiB/s\n")
    print(table(["way", "pieces", "threads", "registering meanwhile", "out", "back"], lines))


def swaps(rows):
    print("\n## Trainings out and back\n")
    print(SWAPS)
    lines = []
    for name in ("resnet50", "resnet152"):
        driver = rows.get(f"speed {name}, driver")
        whole = sum(driver["swaps"][0][k] for k in ("out_s", "in_s")) if driver else None
        for way in ("driver", "own", "pool", "pool, MPS"):
            one = rows.get(f"speed {name}, {way}")
            done = [s for s in (one or {}).get("swaps", []) if "out_s" in s]
            if not done:
                lines.append([name, way, "not measured", "", "", ""])
                continue
            sums = [swap["out_s"] + swap["in_s"] for swap in done]
            rest = sums[1:] or sums
            faster = f"{whole / sums[0]:.1f}, {whole * len(rest) / sum(rest):.1f}" if whole else ""
            losses = rows.get(f"speed {name}, {way}, losses", {}).get("equal", "")
            spans = [span([s[k] for s in done]) for k in ("out_s", "in_s")]
            lines.append([name, way, *spans, faster, losses])
    print(table(["training", "way", "out (s)", "back (s)", "first, then", "losses equal"], lines))


def read(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def main():
    print(HEAD)
    copies(read(sys.argv[1]))
    print(AFTER)
    if len(sys.argv) > 2:
        swaps({row.pop("result"): row for row in read(sys.argv[2])})
    else:
        print("## Not measured\n\nTrainings that go out and back by the pool:")
        print("`tests/gpu/pool_trial.py` was not run yet.")


if __name__ == "__main__":
    main()
