"""The report of `colloc bench`: the collocation paper's figures from a folder of results.

    python3 -m colloc_report.bench FOLDER      writes FOLDER/report/index.html with its figures, and FOLDER/summary.csv

The first epoch of a training warms up; its second one is what is timed; later ones keep its neighbours company. What is said of all together
(throughput, activity) is of the time in which all trained.
"""

import collections
import csv
import os
import statistics
import sys

from colloc_report import Page, figure

TIMED = 2
ORDER = ("serial", "streams", "mps")
ACTIVITY = ("smact", "smocc", "dram_active", "gract", "power_w", "mem_used_mib", "pcie_rx_mib_per_s", "pcie_tx_mib_per_s")
SUMMARY = ("group", "repeat", "mix", "sharing", "tasks", "failed", "total_s", "epoch_s", "samples_per_s", *ACTIVITY, "energy_j", "joule_per_sample")


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def number(text):
    return float(text) if text else None


def mean(values):
    values = [value for value in values if value is not None]
    return statistics.fmean(values) if values else None


class Group:
    """One group in one repeat."""

    def __init__(self, row, tasks, looks):
        self.name, self.mix, self.sharing, self.repeat = row["group"], row["mix"], row["sharing"], int(row["repeat"])
        self.n_tasks, self.failed = int(row["tasks"]), int(row["failed"])
        self.total_s, self.energy_j, self.began = float(row["total_s"]), float(row["energy_j"]), float(row["began_unix_s"])
        self.tasks, self.looks = tasks, looks
        self.timed = [epoch for epoch in tasks if epoch["epoch"] == str(TIMED)]
        self.epochs = [epoch for epoch in tasks if epoch["epoch"]]  # a training that failed before its first is a row without
        self.counted = [epoch for epoch in self.epochs if int(epoch["epoch"]) >= TIMED]
        self.label = f"{self.mix}{row['group'][len(f'{self.mix} {self.sharing}'):]}"

    def uniform(self):
        """(name, how many) when all trainings are the same, else None."""
        names = {task["name"] for task in self.tasks}
        return (names.pop(), self.n_tasks) if len(names) == 1 else None

    def epoch_s(self):
        return mean(float(epoch["epoch_s"]) for epoch in self.timed)

    def span(self, epoch):
        """Its beginning and end in seconds from the group's start."""
        return float(epoch["epoch_from_unix_s"]) - self.began, float(epoch["epoch_to_unix_s"]) - self.began

    def all_busy(self, epochs):
        """Seconds from the start in which each was in some of `epochs`; None where there were none."""
        spans = collections.defaultdict(list)
        for epoch in epochs:
            spans[epoch["task"]].append(self.span(epoch))
        if self.sharing == "serial" or len(spans) < self.n_tasks:
            return None
        start, end = max(min(one)[0] for one in spans.values()), min(max(one)[1] for one in spans.values())
        return (start, end) if start < end else None

    def together(self):
        return self.all_busy(self.counted)

    def timed_among_all(self):
        """Did each make its whole timed epoch while all the others were busy?"""
        busy = self.all_busy(self.epochs)
        return busy and len(self.timed) == self.n_tasks and all(busy[0] <= self.span(epoch)[0] and self.span(epoch)[1] <= busy[1] for epoch in self.timed)

    def samples_per_s(self):
        """Of all trainings together, while they were: of their timed epochs if these saw all the others, else of the time together."""
        if self.timed_among_all():
            return sum(float(epoch["samples"]) / float(epoch["epoch_s"]) for epoch in self.timed)
        span = self.together()
        if not span:
            return None
        done = 0
        for epoch in self.counted:
            start, end = self.span(epoch)
            done += float(epoch["samples"]) * max(0, min(end, span[1]) - max(start, span[0])) / (end - start)
        return done / (span[1] - span[0])

    def activity(self, key):
        """The mean over the time together; where there was none, over that in which any was in a timed epoch."""
        spans = [self.together()] if self.together() else [self.span(epoch) for epoch in self.timed]
        if not spans:
            return None
        start, end = min(span[0] for span in spans), max(span[1] for span in spans)
        return mean(number(look[key]) for look in self.looks if start <= float(look["time_s"]) <= end)

    def training_s(self):
        """What was trained, without what each needs before it can: one after the other, the sum. Not known unless each said when it was ready."""
        spans = {task["task"]: (float(task["ready_unix_s"]), float(task["ended_unix_s"])) for task in self.tasks if task["ready_unix_s"]}
        if len(spans) < self.n_tasks:
            return None
        if self.sharing == "serial":
            return sum(end - start for start, end in spans.values())
        return max(end for _, end in spans.values()) - min(start for start, _ in spans.values())

    def joule_per_sample(self):
        power, rate = self.activity("power_w"), self.samples_per_s()
        return power / rate if power and rate else None

    def summary(self):
        return [self.name, self.repeat, self.mix, self.sharing, self.n_tasks, self.failed, self.total_s, self.epoch_s(), self.samples_per_s(),
                *(self.activity(key) for key in ACTIVITY), self.energy_j, self.joule_per_sample()]


def load(folder):
    """Every group that was measured; a training that was written down twice, after a crash, counts once."""
    tasks = collections.defaultdict(dict)
    for row in read(os.path.join(folder, "tasks.csv")):
        tasks[row["group"], row["repeat"]][row["task"], row["epoch"]] = row
    groups = []
    for row in read(os.path.join(folder, "groups.csv")):
        looks = os.path.join(folder, "looks", f"{row['number']}-{row['repeat']}.csv")
        groups.append(Group(row, list(tasks[row["group"], row["repeat"]].values()), read(looks) if os.path.exists(looks) else []))
    return groups


def sharing_order(groups):
    found = list(dict.fromkeys(group.sharing for group in groups))
    return sorted(found, key=lambda sharing: (ORDER.index(sharing) if sharing in ORDER else len(ORDER), sharing))


def over_repeats(groups, value):
    """(mean, (least, most)) of what the repeats say; (None, None) when none says anything."""
    values = [found for group in groups if (found := value(group)) is not None]
    return (statistics.fmean(values), (min(values), max(values))) if values else (None, None)


# ---- all the same ----


def by_degree(groups):
    """{name: {sharing: {degree: [groups]}}}"""
    found = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(list)))
    for group in groups:
        if group.uniform() and group.sharing != "serial":
            name, degree = group.uniform()
            found[name][group.sharing][degree].append(group)
    return found


def draw_bars_by_degree(page, name, of_sharing, title, y, value):
    """Nothing where nothing is known."""
    degrees = sorted({degree for of_degree in of_sharing.values() for degree in of_degree})
    series, spread = {}, {}
    for sharing in sharing_order([group for of_degree in of_sharing.values() for some in of_degree.values() for group in some]):
        found = [over_repeats(of_sharing[sharing].get(degree, []), value) for degree in degrees]
        series[sharing], spread[sharing] = [value for value, _ in found], [ends for _, ends in found]
    if any(known is not None for values in series.values() for known in values):
        page.figure(figure.bars(name, [str(degree) for degree in degrees], series, y, x="at once", title=title, spread=spread))


def slug(text):
    return "".join(letter if letter.isalnum() else "-" for letter in text)


def draw_uniform(page, groups):
    for name, of_sharing in by_degree(groups).items():
        alone = [group for of_degree in of_sharing.values() for group in of_degree.get(1, []) if group.sharing == "streams"]
        rate_alone, _ = over_repeats(alone, Group.samples_per_s)
        page.heading(f"{name}: the same, many times")
        draw_bars_by_degree(page, f"epoch-{slug(name)}", of_sharing, "Time of the second epoch", "s", Group.epoch_s)
        if rate_alone:
            draw_bars_by_degree(page, f"throughput-{slug(name)}", of_sharing, "Throughput of all together, against one alone", "times",
                                lambda group, base=rate_alone: (rate := group.samples_per_s()) and rate / base)
        draw_bars_by_degree(page, f"smact-{slug(name)}", of_sharing, "SMACT during the second epoch", "%", lambda group: percent(group.activity("smact")))
        draw_bars_by_degree(page, f"energy-{slug(name)}", of_sharing, "Energy for a sample", "J", Group.joule_per_sample)
        draw_bars_by_degree(page, f"pcie-{slug(name)}", of_sharing, "Traffic to the GPU during the second epoch", "MiB/s",
                            lambda group: group.activity("pcie_rx_mib_per_s"))


def percent(value):
    return None if value is None else 100 * value


# ---- unlike ones ----


def draw_mixed(page, groups):
    mixed = [group for group in groups if group.uniform() is None]
    if not mixed:
        return
    page.heading("Unlike trainings together")
    mixes = list(dict.fromkeys(group.label for group in mixed))
    ways = sharing_order(mixed)
    known = all(group.training_s() is not None for group in mixed)
    found = {(mix, way): over_repeats([group for group in mixed if (group.label, group.sharing) == (mix, way)],
                                      Group.training_s if known else lambda group: group.total_s)
             for mix in mixes for way in ways}
    rows = []
    for mix in mixes:
        serial = found.get((mix, "serial"), (None, None))[0]
        rows.append([mix, *(cell for way in ways for cell in ([found[mix, way][0]] if way == "serial" else
                                                              [found[mix, way][0], change(found[mix, way][0], serial)]))])
    columns = ["mix", *(column for way in ways for column in ([("serial, s", 1)] if way == "serial" else [(f"{way}, s", 1), (f"{way}, % of change", 1)]))]
    span = "From when the first is ready to train, with its libraries loaded, to the last end" if known else "From the first start to the last end"
    page.table(columns, rows, f"{span}; the change is against one after the other.")
    page.figure(figure.bars("mixed", mixes, {way: [found[mix, way][0] for mix in mixes] for way in ways}, "s", flat=True, title="Time until all have ended",
                            spread={way: [found[mix, way][1] for mix in mixes] for way in ways}))
    draw_slowdowns(page, groups, mixed)


def change(value, base):
    return None if value is None or not base else 100 * (value / base - 1)


def draw_slowdowns(page, groups, mixed):
    alone = {}
    for group in groups:
        if group.uniform() and group.n_tasks == 1 and group.sharing == "streams" and group.timed:
            alone.setdefault(group.uniform()[0], []).append(float(group.timed[0]["samples"]) / float(group.timed[0]["epoch_s"]))
    rows = []
    for group in mixed:
        for epoch in group.timed if group.sharing != "serial" else ():
            base = alone.get(epoch["name"])
            rate = float(epoch["samples"]) / float(epoch["epoch_s"])
            rows.append([group.label, group.sharing, group.repeat, epoch["name"], int(epoch["threads"]), float(epoch["epoch_s"]),
                         statistics.fmean(base) / rate if base else None])
    page.table(["mix", "sharing", "repeat", "training", ("threads, %", 0), ("second epoch, s", 2), ("slower than alone, times", 2)], rows)


def draw_over_time(page, groups):
    """Of every mix the first repeat; of equal ones only where most were together."""
    most = {}
    for group in groups:
        if group.uniform():
            most[group.uniform()[0]] = max(most.get(group.uniform()[0], 0), group.n_tasks)
    chosen = collections.defaultdict(list)
    for group in groups:
        if group.repeat == 1 and group.looks and (group.uniform() is None or most[group.uniform()[0]] == group.n_tasks):
            chosen[group.label].append(group)
    if chosen:
        page.heading("The GPU over time")
    for mix, some in chosen.items():
        for key, name, y, scale in (("smact", "SMACT", "%", 100), ("mem_used_mib", "Memory", "GiB", 1 / 1024), ("power_w", "Power", "W", 1)):
            series = {group.sharing: over_time(group, key, scale) for group in sorted(some, key=lambda group: sharing_order(some).index(group.sharing))}
            if any(values for _, values in series.values()):
                page.figure(figure.lines(f"{key}-{slug(mix)}", series, "s", y, title=f"{name}: {mix}"))


def over_time(group, key, scale):
    points = [(float(look["time_s"]), float(look[key]) * scale) for look in group.looks if look[key]]
    return [at for at, _ in points], [value for _, value in points]


def write_summary(path, groups):
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(SUMMARY)
        for group in groups:
            table.writerow(["" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else cell for cell in group.summary()])


def draw(folder, report):
    groups = load(folder)
    gpus = sorted({row["gpu_name"] for row in read(os.path.join(folder, "groups.csv"))})
    page = Page(f"Collocation on {', '.join(gpus) or 'no GPU'}")
    page.text(f"{len(groups)} groups of trainings were run. The whiskers are the least and the most of the repeats.")
    failed = [group for group in groups if group.failed]
    if failed:
        page.text("Not every training ended well: " + ", ".join(f"{group.name} ({group.failed} of {group.n_tasks})" for group in failed) + ".")
    write_summary(os.path.join(folder, "summary.csv"), groups)
    draw_uniform(page, groups)
    draw_mixed(page, groups)
    draw_over_time(page, groups)
    return page.write(report)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(draw(sys.argv[1], os.path.join(sys.argv[1], "report")))
