# SPDX-License-Identifier: Apache-2.0
"""The report of `colloc bench`: the collocation paper's figures from a folder of results.

    python3 -m colloc_report.bench FOLDER      writes FOLDER/report/index.html with its figures

Throughput, activity and energy come from FOLDER/summary.csv, which `colloc bench` writes
(python/colloc_bench/measured.py describes it). The first epoch of a training warms up; the second
one is measured.
"""

import collections
import csv
import os
import statistics
import sys

from colloc_report import Page, figure

TIMED = 2
ORDER = ("serial", "streams", "mps")


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def number(text):
    return float(text) if text else None


class Group:
    """One repeat of a group."""

    def __init__(self, row, tasks, looks, summary):
        self.name, self.mix, self.sharing, self.repeat = (
            row["group"],
            row["mix"],
            row["sharing"],
            int(row["repeat"]),
        )
        self.n_tasks, self.failed, self.total_s = (
            int(row["tasks"]),
            int(row["failed"]),
            float(row["total_s"]),
        )
        self.tasks, self.looks, self.summary = tasks, looks, summary
        self.timed = [epoch for epoch in tasks if epoch["epoch"] == str(TIMED)]
        self.label = f"{self.mix}{row['group'][len(f'{self.mix} {self.sharing}'):]}"

    def uniform(self):
        """(name, count) when all trainings are the same, otherwise None."""
        names = {task["name"] for task in self.tasks}
        return (names.pop(), self.n_tasks) if len(names) == 1 else None

    def epoch_s(self):
        return number(self.summary["epoch_s"])

    def samples_per_s(self):
        return number(self.summary["samples_per_s"])

    def activity(self, key):
        return number(self.summary[key])

    def joule_per_sample(self):
        return number(self.summary["joule_per_sample"])

    def training_s(self):
        """Seconds of training, without the start of each process; the sum when they ran in turn.

        None unless every process reported when it was ready.
        """
        spans = {
            task["task"]: (float(task["ready_unix_s"]), float(task["ended_unix_s"]))
            for task in self.tasks
            if task["ready_unix_s"]
        }
        if len(spans) < self.n_tasks:
            return None
        if self.sharing == "serial":
            return sum(end - start for start, end in spans.values())
        return max(end for _, end in spans.values()) - min(start for start, _ in spans.values())


def load(folder):
    """Every measured group. A training that was recorded twice, after a crash, counts once."""
    tasks = collections.defaultdict(dict)
    for row in read(os.path.join(folder, "tasks.csv")):
        tasks[row["group"], row["repeat"]][row["task"], row["epoch"]] = row
    summaries = {
        (row["group"], row["repeat"]): row for row in read(os.path.join(folder, "summary.csv"))
    }
    groups = []
    for row in read(os.path.join(folder, "groups.csv")):
        looks = os.path.join(folder, "looks", f"{row['number']}-{row['repeat']}.csv")
        run = row["group"], row["repeat"]
        groups.append(
            Group(
                row,
                list(tasks[run].values()),
                read(looks) if os.path.exists(looks) else [],
                summaries[run],
            )
        )
    return groups


def sharing_order(groups):
    found = list(dict.fromkeys(group.sharing for group in groups))
    return sorted(
        found,
        key=lambda sharing: (ORDER.index(sharing) if sharing in ORDER else len(ORDER), sharing),
    )


def over_repeats(groups, value):
    """(mean, (least, most)) over the repeats; (None, None) when none has a value."""
    values = [found for group in groups if (found := value(group)) is not None]
    return (statistics.fmean(values), (min(values), max(values))) if values else (None, None)


# ---- groups of equal trainings ----


def by_degree(groups):
    """{name: {sharing: {degree: [groups]}}}"""
    found = collections.defaultdict(
        lambda: collections.defaultdict(lambda: collections.defaultdict(list))
    )
    for group in groups:
        if group.uniform() and group.sharing != "serial":
            name, degree = group.uniform()
            found[name][group.sharing][degree].append(group)
    return found


def draw_bars_by_degree(page, name, of_sharing, title, y, value):
    """None if all values are unknown."""
    degrees = sorted({degree for of_degree in of_sharing.values() for degree in of_degree})
    series, spread = {}, {}
    for sharing in sharing_order(
        [
            group
            for of_degree in of_sharing.values()
            for some in of_degree.values()
            for group in some
        ]
    ):
        found = [over_repeats(of_sharing[sharing].get(degree, []), value) for degree in degrees]
        series[sharing], spread[sharing] = [value for value, _ in found], [
            ends for _, ends in found
        ]
    if any(known is not None for values in series.values() for known in values):
        page.figure(
            figure.bars(
                name,
                [str(degree) for degree in degrees],
                series,
                y,
                x="at once",
                title=title,
                spread=spread,
            )
        )


def slug(text):
    return "".join(letter if letter.isalnum() else "-" for letter in text)


def draw_uniform(page, groups):
    for name, of_sharing in by_degree(groups).items():
        alone = [
            group
            for of_degree in of_sharing.values()
            for group in of_degree.get(1, [])
            if group.sharing == "streams"
        ]
        rate_alone, _ = over_repeats(alone, Group.samples_per_s)
        page.heading(f"{name}: the same, many times")
        draw_bars_by_degree(
            page, f"epoch-{slug(name)}", of_sharing, "Time of the second epoch", "s", Group.epoch_s
        )
        if rate_alone:
            draw_bars_by_degree(
                page,
                f"throughput-{slug(name)}",
                of_sharing,
                "Throughput of all together, against one alone",
                "times",
                lambda group, base=rate_alone: (rate := group.samples_per_s()) and rate / base,
            )
        draw_bars_by_degree(
            page,
            f"smact-{slug(name)}",
            of_sharing,
            "SMACT of the timed span",
            "%",
            lambda group: percent(group.activity("smact")),
        )
        draw_bars_by_degree(
            page,
            f"energy-{slug(name)}",
            of_sharing,
            "Energy for a sample",
            "J",
            Group.joule_per_sample,
        )
        draw_bars_by_degree(
            page,
            f"pcie-{slug(name)}",
            of_sharing,
            "Traffic to the GPU in the timed span",
            "MiB/s",
            lambda group: group.activity("pcie_rx_mib_per_s"),
        )


def percent(value):
    return None if value is None else 100 * value


# ---- mixes of different trainings ----


def draw_mixed(page, groups):
    mixed = [group for group in groups if group.uniform() is None]
    if not mixed:
        return
    page.heading("Unlike trainings together")
    mixes = list(dict.fromkeys(group.label for group in mixed))
    ways = sharing_order(mixed)
    known = all(group.training_s() is not None for group in mixed)
    found = {
        (mix, way): over_repeats(
            [group for group in mixed if (group.label, group.sharing) == (mix, way)],
            Group.training_s if known else lambda group: group.total_s,
        )
        for mix in mixes
        for way in ways
    }
    rows = []
    for mix in mixes:
        serial = found.get((mix, "serial"), (None, None))[0]
        rows.append(
            [
                mix,
                *(
                    cell
                    for way in ways
                    for cell in (
                        [found[mix, way][0]]
                        if way == "serial"
                        else [found[mix, way][0], change(found[mix, way][0], serial)]
                    )
                ),
            ]
        )
    columns = [
        "mix",
        *(
            column
            for way in ways
            for column in (
                [("serial, s", 1)]
                if way == "serial"
                else [(f"{way}, s", 1), (f"{way}, % of change", 1)]
            )
        ),
    ]
    span = (
        "From when the first is ready to train, with its libraries loaded, to the last end"
        if known
        else "From the first start to the last end"
    )
    page.table(columns, rows, f"{span}; the change is against one after the other.")
    page.figure(
        figure.bars(
            "mixed",
            mixes,
            {way: [found[mix, way][0] for mix in mixes] for way in ways},
            "s",
            flat=True,
            title="Time until all have ended",
            spread={way: [found[mix, way][1] for mix in mixes] for way in ways},
        )
    )
    draw_slowdowns(page, groups, mixed)


def change(value, base):
    return None if value is None or not base else 100 * (value / base - 1)


def draw_slowdowns(page, groups, mixed):
    alone = {}
    for group in groups:
        if group.uniform() and group.n_tasks == 1 and group.sharing == "streams" and group.timed:
            alone.setdefault(group.uniform()[0], []).append(
                float(group.timed[0]["samples"]) / float(group.timed[0]["epoch_s"])
            )
    rows = []
    for group in mixed:
        for epoch in group.timed if group.sharing != "serial" else ():
            base = alone.get(epoch["name"])
            rate = float(epoch["samples"]) / float(epoch["epoch_s"])
            rows.append(
                [
                    group.label,
                    group.sharing,
                    group.repeat,
                    epoch["name"],
                    int(epoch["threads"]),
                    float(epoch["epoch_s"]),
                    statistics.fmean(base) / rate if base else None,
                ]
            )
    page.table(
        [
            "mix",
            "sharing",
            "repeat",
            "training",
            ("threads, %", 0),
            ("second epoch, s", 2),
            ("slower than alone, times", 2),
        ],
        rows,
    )


def draw_over_time(page, groups):
    """The first repeat of every mix; of equal trainings only the group with the most."""
    most = {}
    for group in groups:
        if group.uniform():
            most[group.uniform()[0]] = max(most.get(group.uniform()[0], 0), group.n_tasks)
    chosen = collections.defaultdict(list)
    for group in groups:
        if (
            group.repeat == 1
            and group.looks
            and (group.uniform() is None or most[group.uniform()[0]] == group.n_tasks)
        ):
            chosen[group.label].append(group)
    if chosen:
        page.heading("The GPU over time")
    for mix, some in chosen.items():
        for key, name, y, scale in (
            ("smact", "SMACT", "%", 100),
            ("mem_used_mib", "Memory", "GiB", 1 / 1024),
            ("power_w", "Power", "W", 1),
        ):
            series = {
                group.sharing: over_time(group, key, scale)
                for group in sorted(
                    some, key=lambda group: sharing_order(some).index(group.sharing)
                )
            }
            if any(values for _, values in series.values()):
                page.figure(
                    figure.lines(f"{key}-{slug(mix)}", series, "s", y, title=f"{name}: {mix}")
                )


def over_time(group, key, scale):
    points = [
        (float(look["time_s"]), float(look[key]) * scale) for look in group.looks if look[key]
    ]
    return [at for at, _ in points], [value for _, value in points]


def draw(folder, report):
    groups = load(folder)
    gpus = sorted({row["gpu_name"] for row in read(os.path.join(folder, "groups.csv"))})
    page = Page(f"Collocation on {', '.join(gpus) or 'no GPU'}")
    page.text(
        f"{len(groups)} groups of trainings were run. The whiskers are the least and the most of "
        "the repeats."
    )
    failed = [group for group in groups if group.failed]
    if failed:
        page.text(
            "Not every training ended well: "
            + ", ".join(f"{group.name} ({group.failed} of {group.n_tasks})" for group in failed)
            + "."
        )
    draw_uniform(page, groups)
    draw_mixed(page, groups)
    draw_over_time(page, groups)
    return page.write(report)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(draw(sys.argv[1], os.path.join(sys.argv[1], "report")))
