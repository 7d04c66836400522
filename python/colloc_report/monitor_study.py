# SPDX-License-Identifier: Apache-2.0
"""The page of scripts/study-monitor for the measured GPU.

Figure 3.1, table 3.2 and figures 3.2 to 3.4 of the thesis.
"""

import json
import statistics

from colloc_report import Page, figure

METRICS = {"utilisation": "utilisation", "GRACT": "gract", "SMACT": "smact", "SMOCC": "smocc"}
FRACTIONS = {"SMACT": "smact", "SMOCC": "smocc", "DRAMA": "dram_active"}


def draw(raw_path, folder):
    with open(raw_path, encoding="utf-8") as file:
        raw = json.load(file)
    page = Page(f"What the monitor tells, and what it costs: {raw['gpu']}")
    for name, part in (("square", draw_square), ("sms", draw_sms), ("memory", draw_memory)):
        if isinstance(raw.get(name), list):
            part(page, raw[name])
    for name in ("light", "heavy", "light-profilers", "heavy-profilers"):
        if "turns" in raw.get(name, {}):
            draw_overhead(page, name, raw[name])
    for name in ("light", "heavy"):
        if "turns" in raw.get(f"{name}-counters", {}):
            draw_counters(page, name, raw[f"{name}-counters"]["turns"])
    page.write(folder)


def percent(value):
    return None if value is None else 100 * value


def draw_square(page, rows):
    page.heading("What the metrics say of a known load (figure 3.1)")
    page.text(
        "`workloads/square.cu`: every thread squares one number, launch after launch. Medians of "
        "the middle of each run, per cent."
    )
    groups = [f"{row['blocks']}x{row['threads']}" for row in rows]
    series = {label: [percent(row[key]) for row in rows] for label, key in METRICS.items()}
    page.figure(
        figure.bars("square", groups, series, "%", x="", title="blocks x threads", flat=True)
    )


def draw_sms(page, rows):
    page.heading("SMACT against the truth")
    counts = sorted({row["sms"] for row in rows})
    total = max(counts)
    errors = [100 * row["smact"] - 100 * row["sms"] / total for row in rows]
    page.text(
        f"A kernel keeps exactly k of the {total} SMs busy, one block to each. SMACT was "
        f"{min(errors):+.2f} to {max(errors):+.2f} points "
        f"from k/{total} in {len(rows)} runs."
    )
    truth = [100 * row["sms"] / total for row in rows]
    page.figure(
        figure.scatter(
            "sms",
            {
                "SMACT": (truth, [100 * row["smact"] for row in rows]),
                "utilisation": (truth, [percent(row["utilisation"]) for row in rows]),
            },
            "SMs kept busy, %",
            "told, %",
            diagonal=True,
        )
    )


def draw_memory(page, rows):
    page.heading("Memory of a process")
    page.text(
        "Memory of a training as colloc reports it, against what the GPU as a whole lost to it "
        "(allocator and context). Nothing else was on the GPU."
    )
    page.table(
        [
            "training",
            ("allocator, MiB", 0),
            ("context, MiB", 0),
            ("both, MiB", 0),
            ("colloc, MiB", 0),
            ("error, %", 2),
        ],
        [
            [
                row["model"],
                row["reserved_mib"],
                row["context_mib"],
                row["truth_mib"],
                row["colloc_mib"],
                100 * row["error"],
            ]
            for row in rows
        ],
    )


def by_monitor(turns):
    grouped = {}
    for turn in turns:
        grouped.setdefault(turn["monitor"], []).append(turn)
    return grouped


def slowdowns(grouped):
    """Slowdown by monitor, per cent of the turn without a monitor in the same round."""
    alone = [turn_s(turn) for turn in grouped["none"]]
    return {
        name: [100 * (turn_s(turn) / base - 1) for turn, base in zip(turns, alone)]
        for name, turns in grouped.items()
    }


def turn_s(turn):
    """The time of an epoch in this turn. A recording takes place in one or two of the epochs, so
    its cost is in their mean."""
    middle = statistics.mean if "until_trace_s" in turn else statistics.median
    return middle(epoch["epoch_s"] for epoch in turn["epochs"])


def draw_overhead(page, name, part):
    page.heading(f"What monitors cost: the {name} training")
    grouped = by_monitor(part["turns"])
    slower = slowdowns(grouped)
    rounds = len(grouped["none"])
    page.text(
        f"`{part['model']}`, epochs of {part['steps']} steps, the monitors in turns, "
        f"{rounds} rounds. "
        "Slower: the median over the rounds against the turn without a monitor in the same round, "
        "and its least and most."
    )
    rows = []
    for monitor, turns in grouped.items():
        epochs = [epoch for turn in turns for epoch in turn["epochs"]]
        rows.append(
            [
                monitor,
                statistics.median(epoch["epoch_s"] for epoch in epochs),
                statistics.median(slower[monitor]),
                f"{min(slower[monitor]):+.2f} to {max(slower[monitor]):+.2f}",
                100
                * statistics.median(epoch["processor_s"] / epoch["epoch_s"] for epoch in epochs),
                *(
                    median_of(turns, key, scale)
                    for key, scale in (
                        ("cores", 100),
                        ("resident_mib", 1),
                        ("bytes_per_s", 3600 / 1024),
                    )
                ),
            ]
        )
    page.table(
        [
            "monitor",
            ("epoch, s", 3),
            ("slower, %", 2),
            "spread",
            ("its CPU, %", 1),
            ("monitor CPU, %", 2),
            ("monitor MiB", 1),
            ("KiB an hour", 0),
        ],
        rows,
    )
    names = [row[0] for row in rows]
    page.figure(
        figure.bars(
            f"{name}-time",
            names,
            {"slower": [row[2] for row in rows]},
            "slower than without, %",
            flat=True,
            spread={"slower": [(min(slower[each]), max(slower[each])) for each in names]},
        )
    )
    page.figure(
        figure.bars(
            f"{name}-processor",
            names,
            {"monitor": [row[5] for row in rows]},
            "processor, % of a core",
            flat=True,
        )
    )


def draw_counters(page, name, turns):
    page.heading(f"Effect of the tools on the counters: the {name} training (figure 3.4)")
    page.text("`colloc record` reads the counters beside every tool, ten times a second: means.")
    page.table(
        ["tool", ("SMACT, %", 2), ("SMOCC, %", 2), ("DRAM active, %", 2), ("power, W", 1)],
        [
            [turn["monitor"], *(percent(turn["counters"][key]) for key in FRACTIONS.values())]
            + [turn["counters"]["power_w"]]
            for turn in turns
        ],
    )
    series = {
        label: [percent(turn["counters"][key]) for turn in turns]
        for label, key in FRACTIONS.items()
    }
    names = [turn["monitor"] for turn in turns]
    page.figure(figure.bars(f"{name}-counters", names, series, "%", flat=True))


def median_of(turns, key, scale):
    values = [turn[key] for turn in turns if key in turn]
    return scale * statistics.median(values) if values else None
