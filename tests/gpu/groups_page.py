#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/measured/groups.md from the results of groups_trial.py.

    tests/gpu/groups_page.py docs/measured/groups.jsonl SECONDS [--small] >docs/measured/groups.md

What is not among the results is not on the page, and parts that did not come to an end are named.
The file may have several runs: of a result that two have the later one counts, but all kills do.
"""
import json
import sys

from carrier_page import span, table

HEAD = """# Ranks that give way together, and moves, on two H200s

After this page you know how fast colloc takes trainings of two ranks off their GPUs and puts them
back, whether their losses stay the same, how two of them take turns, what a `kill -9` leaves
behind, and how long moves take ([carrier.md](../carrier.md#ranks-of-one-training)). {machine},
PyTorch 2.11, three runs: one of 29 November 2026, one of 30 November with tensor parallelism and
the kills, at the same time on both GPUs, and one of the same day with the turns.
[groups.jsonl](groups.jsonl) has the raw results; this page is made of them.

    tests/gpu/groups_trial.py BUNDLE docs/measured/groups.jsonl {options}
    tests/gpu/groups_trial.py BUNDLE docs/measured/groups.jsonl 116 tp+kill
    tests/gpu/groups_trial.py BUNDLE docs/measured/groups.jsonl 120 slots
    tests/gpu/groups_page.py docs/measured/groups.jsonl {options} >docs/measured/groups.md

All trainings run under collocd with `carrier: yes`, but for the moves by the driver, and are
time-sliced where nothing else is said. They are suspended and resumed by `colloc suspend` and
`colloc resume`. A reference runs beside them without colloc; losses are compared bit for bit, of
all ranks, as far as both came.
"""
SMALL = """
This run was the short one, in miniature: all its parts ran at the same time, so that up to a dozen
trainings shared each GPU. So its times say nothing about speed, memory in use is also that of other
parts, and most parts had no time left.
"""
TOGETHER = """The trainings of this part, also one that was never suspended, and their references
ran at the same time on both GPUs. Each was suspended at random instants."""
BIG = "DDP of ResNet-152, a rank on each GPU."
BY_DRIVER = """{n} of the {all} suspensions came before the task had memory that the carrier takes.
The driver alone made them, so that they say nothing about the carrier: [ranks](ranks.md#turns)
that take longer slots leave by it. Predicted was that both get turns, in attempt 1, with equal
losses."""
SCATTER = """That is said of ranks whose use of NCCL the library does not count, so that they cannot
be held. The raw data do not name the call; in PyTorch `parallelize_module` divides the weights by
a scatter, which is `ncclSend` and `ncclRecv`, and these are not counted. """
KINDS = {
    "losses ddp": "DDP, ResNet-50",
    "losses fsdp": "`fully_shard`, a transformer of 12 blocks",
    "losses tp": "tensor parallelism, the same",
    "mps ddp": "DDP, ResNet-50, clients of MPS",
}


def section(title, *parts):
    parts = [part for part in parts if part]
    return f"\n## {title}\n\n" + "\n\n".join(parts) + "\n" if parts else ""


def equal(row):
    if not row["steps_compared"]:
        return "none to compare"
    return f"{'equal' if row['equal'] else 'differ'}, {row['steps_compared']} steps"


def losses(rows):
    lines = []
    for key, name in KINDS.items():
        row = rows.get(key)
        if not row or not row["out_and_in"]:
            continue
        times = [[f"{x:.2f}" for x in row.get(way, [])[1:]] for way in ("out_s", "in_s")]
        lines.append(
            [
                name,
                row["out_and_in"],
                f"{row['mem_peak_mib'] / 2048:.1f}",
                *[" / ".join(t) for t in times],
                equal(row),
                row["state"],
            ]
        )
    head = ["training", "times out and in", "GiB a rank", "out (s): median / most"]
    said = f"{TOGETHER}\n\n"
    return said + table(head + ["back (s)", "losses", "end"], lines) if lines else ""


def phase_times(row):
    """Seconds from the first rank's entry into a phase to the last one's into the next."""
    first = {}
    for seen in row["phases"]:
        for phase, at in seen:
            first.setdefault(phase, []).append(at)

    def gap(a, b):
        return max(first[b]) - min(first[a]) if a in first and b in first else None

    return {
        "until the copy begins": min(first["copying"]) if "copying" in first else None,
        "copy to the host": gap("copying", "releasing"),
        "unmap": gap("releasing", "away"),
        "back": max(row["carry_in_s"]),
    }


def big(rows):
    swaps = [row for row in rows.get("big", []) if not row["why"] and "in_s" in row]
    if not swaps:
        return ""
    lines = []
    for row in swaps:
        times = phase_times(row)
        lines.append(
            [
                " + ".join(f"{g:.1f}" for g in row["gib"]),
                f"{row['out_s']:.2f}",
                f"{row['in_s']:.2f}",
            ]
            + [f"{t:.2f}" if t is not None else "" for t in times.values()]
            + [f"{row['out_s'] + row['in_s']:.2f}"]
        )
    head = ["GiB", "`colloc suspend` (s)", "`colloc resume` (s)", "until the copy begins"]
    head += ["copy to the host", "unmap", "mapped and copied back", "both commands"]
    end = rows.get("big, losses")
    said = f"Losses: {equal(end)}; {end['state']}." if end else ""
    return BIG + "\n\n" + table(head, lines) + ("\n" + said if said else "")


def slots(rows):
    ones = [rows[f"slots {i}"] for i in (1, 2) if f"slots {i}" in rows]
    if not ones:
        return ""
    lines = [
        [
            i + 1,
            r["state"],
            r["suspensions"],
            f"{r['suspended_s']:.1f}",
            r["attempt_count"],
            equal(r),
        ]
        for i, r in enumerate(ones)
    ]
    head = ["task", "end", "suspensions", "suspended (s)", "attempts", "losses"]
    story = [
        f"{at} s: " + ", ".join(f"{state} (step {step})" for state, step in states)
        for at, *states in rows.get("slots", {}).get("story", [])
    ]
    said = []
    running = [str(i + 1) for i, r in enumerate(ones) if r["state"] not in ("COMPLETED", "FAILED")]
    if running and "slots" in rows:
        after = f"{rows['slots']['total_s']:.0f} s, when the part's time was over"
        said.append(f"Not ended after {after}: task {', '.join(running)}.")
    by_driver = {
        (line.split()[1][:8], line.split("task ")[1].split(":")[0])
        for line in rows.get("slots, log", {"lines": []})["lines"]
        if "the driver copies its memory" in line and "no memory that can be carried yet" in line
    }
    if by_driver:
        total = sum(r["suspensions"] for r in ones)
        said.append(BY_DRIVER.format(n=len(by_driver), all=total))
    text = table(head, lines) + "".join(f"\n{words}\n" for words in said)
    return text + ("\n" + "\n".join(f"- {line}" for line in story) if story else "")


def kills(rows, everything):
    lines = []
    for row in everything:
        words = row["result"].split()
        if words[0] != "kill" or len(words) != 3:
            continue
        if "phase_seen" not in row:
            continue
        if words[1] == "rank":
            left = len(row["left_processes"]) + len(row["left_on_gpu"])
            after = f"{row['state']} after {row['ended_after_s']} s"
            lines.append(["a rank", row["phase_seen"], after, "nothing" if not left else left])
        else:
            after = f"{row['state']} after {row['settled_after_s']} s, goes on"
            lines.append(["collocd", row["phase_seen"], after, ""])
    memory = rows.get("kill, memory")
    text = ""
    if memory:
        text = (
            f"MiB in use on the two GPUs before: {memory['before_mib']}, after all had ended: "
            f"{memory['after_mib']}."
        )
    head = ["killed", "while a rank was", "the task", "left of its processes"]
    return (table(head, lines) + ("\n" + text if text else "")) if lines else ""


def moves(rows):
    lines, seen = [], []
    for name in ("resnet50", "resnet152"):
        for how in ("carrier", "driver"):
            row, end = rows.get(f"moves {name}, {how}"), rows.get(f"moves {name}, {how}, losses")
            done = [m for m in row["moves"] if not m["why"]] if row else []
            if not done:
                continue
            lines.append(
                [
                    name,
                    f"{row['mem_peak_mib'] / 1024:.1f}",
                    how,
                    span([m["seconds"] for m in done]),
                    len(done),
                    equal(end) if end else "",
                ]
            )
            seen += [m["places"] for m in done if "places" in m]
    head = ["training", "GiB", "by", "`colloc move` (s)", "moves", "losses"]
    return (table(head, lines) + "\n" + describe_places(seen)) if lines else ""


def describe_places(seen):
    """Do all say what the driver says?"""
    right = 0
    for places in seen:
        gpu = str(places["driver"][0][0]) if places["driver"] else None
        tasks = {key.split()[1]: bool(v) for key, v in places.items() if key.startswith("gpus ")}
        newest = min(places["series"], key=lambda s: s["seconds_ago"], default={"gpu": None})
        right += (
            places["show"] == [gpu]
            and tasks.get(gpu)
            and sum(tasks.values()) == 1
            and newest["gpu"] == gpu
            and all(f'gpu="{gpu}"' in line for line in places["metrics"])
        )
    moved = [p["process"] for p in seen if len(p.get("process", [])) == 3]
    wrong = sum(own != by_bus for own, _, by_bus in moved)
    metrics = "`/v1/metrics` " if any(places["metrics"] for places in seen) else ""
    return (
        f"A second after a move `colloc show`, `colloc gpus`, {metrics}and the newest series "
        f"named the GPU on which the driver listed the process in {right} of {len(seen)} moves. "
        "The process itself asked CUDA for the UUID and the bus id of its GPU: the UUID was that "
        f"of the new GPU, and NVML's GPU with that bus id another one in {wrong} of {len(moved)}, "
        "since the bus id stays that of the first GPU."
    )


def refusal(row, rows):
    """A training that was never suspended, though it was asked."""
    lines = rows.get("losses, log", {"lines": []})["lines"]
    said = [line.split("warning: ", 1)[1] for line in lines if "warning: " in line]
    task = row["failed"][-1][0].partition("colloc: ")[2].partition(" is ")[0]
    why = [line.partition(": ")[2] for line in said if line.startswith(task + ":")]
    text = f"never suspended: {row['n_failed']} requests failed. "
    if why:
        text += f"The daemon's log: {'; '.join(why)}. "
        text += SCATTER.replace("\n", " ") if "NCCL" in why[0] else ""
    if row["state"] == "PAUSED":
        text += "`colloc suspend` pauses what cannot be suspended, and the trial did not resume "
        text += "it: the last requests failed since it was paused. "
    return text + f"Losses until then: {equal(row)}"


def rest(rows, everything):
    lines = []
    for row in everything:
        key = row["result"]
        if key.startswith("error of"):
            lines.append(f"- {key[9:]}: {row['error']}")
        elif key.startswith("part ") and row["rc"] != 0:
            lines.append(f"- {key[5:]}: ended after {row['seconds']} s ({row['rc']})")
        elif key.startswith("not run"):
            lines.append(f"- {', '.join(row['parts'])}: not run, no time was left")
        elif "not_run" in row:
            lines.append(f"- {key}: not run, no time was left")
        elif row.get("out_and_in") == 0 and row["state"] == "PAUSED":
            lines.append(f"- {key}: {refusal(row, rows)}")
        elif key.startswith("moves ") and row.get("moves") == []:
            lines.append(f"- {key}: not moved, no time was left")
        elif row.get("out_and_in") == 0:
            lines.append(f"- {key}: no suspension in the time that it had; losses: {equal(row)}")
        elif row.get("failed"):
            why = "; ".join(sorted({" ".join(filter(None, f))[:150] for f in row["failed"]}))
            lines.append(f"- {key}: {row['n_failed']} suspensions were refused: {why}")
    return "\n".join(lines)


def machine_of(row):
    gpus = row["gpus"]
    return f"{len(gpus)} {gpus[0][0]}s, driver {gpus[0][1]}, {row['cpus']} cores"


def main():
    with open(sys.argv[1]) as source:
        everything = [json.loads(line) for line in source]
    rows = {row["result"]: row for row in everything}
    latest = list(rows.values())
    rows["big"] = [row for row in everything if row["result"] == "big"]
    options = " ".join(sys.argv[2:])
    text = HEAD.format(machine=machine_of(rows["machine"]), options=options)
    text += SMALL if "--small" in options else ""
    text += section("Out and in", losses(rows))
    text += section("Both ranks at once, by phase", big(rows))
    text += section("Turns", slots(rows))
    text += section("Killed on the way", kills(rows, everything))
    text += section("Moves", moves(rows))
    text += section("What did not work, or was not run", rest(rows, latest))
    print(text, end="")


if __name__ == "__main__":
    main()
