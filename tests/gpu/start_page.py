# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/measured/start*.md, from the lines of start_trial.py: what each way took, each
pair of neighbouring runs of an array, and where the time of its trainings went.

Runs of a minute on a machine that is shared differ by 10 % and more from hour to hour. So colloc's
are compared with those by hand next to them, in turns that alternate."""
import cmath
import math
import statistics

# Of Student's distribution, by the number of values: the factor of a 95 % interval.
STUDENT = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36}

ROWS = {
    "by-hand": "by hand, all at once by MPS",
    "one-by-one": "by hand, one after the other",
    "default": "colloc, nothing declared, by MPS",
    "auto": "colloc, nothing declared, `--sharing=auto`",
    "unset": "colloc, nothing declared, nothing set",
    "streams": "colloc, nothing declared, time-sliced",
    "declared": "colloc, `--memory=5GiB`, by MPS",
    "held": "colloc with the cautions before",
}


ARRAY_ROWS = {"array": "colloc, `--array`, nothing declared, nothing set"}


def totals_of(results):
    """The runs that have ended, by way."""
    totals = {}
    for result in results:
        if "total_s" in result:
            totals.setdefault(result["way"], []).append(result)
    return totals


def is_cut_off(runs):
    return any(run["cut_off"] for run in runs)


def has_failed(runs):
    return any(run["failed"] for run in runs)


def ratio(runs, reference):
    """Of the mean times; with a sign where a run of either was cut off, "-" where of both, where
    trainings failed, and without a reference."""
    if reference is None or has_failed(runs):
        return "-"
    value = f"{mean_s(runs) / mean_s(reference):.2f}"
    if is_cut_off(reference):
        return "-" if is_cut_off(runs) else "< " + value
    return "> " + value if is_cut_off(runs) else value


def row(words, runs, reference):
    seconds = [run["total_s"] for run in runs]
    waits = [task["wait_s"] for run in runs for task in run.get("tasks", [])]
    cut_off = sum(run["cut_off"] for run in runs)
    over = "> " if cut_off else ""
    note = f", {cut_off} not done" if cut_off else ""
    each = " ".join(f"{value:.1f}" for value in seconds)
    longest = f"{max(waits):.0f} s" if waits else "-"
    failed = sum(run["failed"] for run in runs)
    return (
        f"| {words}{note} | {len(runs)} | {over}{each} s |"
        f" {ratio(runs, reference)} | {longest} | {failed} |"
    )


def table(rows, totals, reference, name):
    """Of Markdown, for what was measured. reference: the runs that the others are relative to."""
    return [
        f"| way | runs | total | of {name} | longest wait | failed |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *[row(words, totals[way], reference) for way, words in rows.items() if way in totals],
    ]


def mean_s(runs):
    return statistics.fmean(run["total_s"] for run in runs)


def is_of_array(way):
    return way == "array" or way.startswith("fixed-")


def best_of(totals):
    """The fixed number that was soonest: one that was cut off only where no other is there; failed
    trainings end soon. None without any."""
    sound = [way for way in totals if way.startswith("fixed-") and not has_failed(totals[way])]
    return min(sound, key=lambda way: (is_cut_off(totals[way]), mean_s(totals[way])), default=None)


def neighbours(results, best):
    """The ratios of colloc's time to that of the best number, of runs next to each other."""
    runs = [run for run in results if run["way"] in ("array", best) and "total_s" in run]
    found = []
    while len(runs) > 1:
        one, other = runs[:2]
        is_pair = one["way"] != other["way"] and not one["cut_off"] and not other["cut_off"]
        if is_pair:
            colloc, by_hand = (one, other) if one["way"] == "array" else (other, one)
            found.append(colloc["total_s"] / by_hand["total_s"])
        del runs[: 2 if is_pair else 1]
    return found


def interval(values):
    """Half of the 95 % interval of their mean."""
    return STUDENT[len(values)] * statistics.stdev(values) / math.sqrt(len(values))


def pairs_table(results, best):
    ratios = neighbours(results, best)
    if len(ratios) not in STUDENT:
        return []
    each = " ".join(f"{value:.2f}" for value in ratios)
    return [
        "",
        "| pairs of neighbouring runs | colloc / by hand | mean |",
        "| ---: | ---: | ---: |",
        f"| {len(ratios)} | {each} | {statistics.fmean(ratios):.3f} ± {interval(ratios):.3f} |",
    ]


# ---- where the time went ----

SPENT_COLUMNS = (
    "run | contexts | first end | last end | side by side | of a step: batch | GPU | other"
    " | processor | GPU busy | power | clock | processors busy | loop | in step"
).split(" | ")


def mean_between(rows, column, begin, end):
    """Of the seconds between; None where it is not known in any."""
    values = [row[column] for row in rows if begin <= row[0] <= end]
    numbers = [float(value) for value in values if value not in (None, "[N/A]")]
    return statistics.fmean(numbers) if numbers else None


def known(value, form):
    return "-" if value is None else form.format(value)


def side_by_side(run):
    """From when all of its trainings compute until the first has ended; None if they never do."""
    begin = max(one["computes"] for one in run["trainings"])
    end = min(one["ended"] for one in run["trainings"])
    return (begin, end) if end - begin >= 2 else None


def rate_between(run, begin, end):
    """Steps a second, of all."""
    first, last = math.ceil(begin), math.floor(end)
    return (run["steps_at"][last] - run["steps_at"][first]) / (last - first)


def ms_of_a_step(run, key):
    steps = sum(one["steps"] for one in run["trainings"])
    if not steps or any(key not in one for one in run["trainings"]):
        return None
    return 1000 * sum(one[key] for one in run["trainings"]) / steps


def noted_seconds(trainings):
    """[first, last end of a step] of each second in which these were noted: seconds are between."""
    moments = sorted(moment for one in trainings for moment in one.get("ends", []))
    found = []
    for moment in moments:
        if not found or moment - found[-1][1] > 2:
            found.append([moment, moment])
        found[-1][1] = moment
    return found


def in_step(run, begin, end):
    """How much the trainings' steps end together, 1: all at the same moment, 0: evenly spread. The
    mean over the noted seconds; None without one."""
    found = []
    for first, last in noted_seconds(run["trainings"]):
        of_each = [[t for t in one["ends"] if first <= t <= last] for one in run["trainings"]]
        of_each = [ends for ends in of_each if len(ends) > 2]
        if begin <= first and last <= end and of_each:
            cycle_s = statistics.fmean((ends[-1] - ends[0]) / (len(ends) - 1) for ends in of_each)
            turns = [cmath.exp(2j * math.pi * t / cycle_s) for ends in of_each for t in ends]
            found.append(abs(sum(turns)) / len(turns))
    return statistics.fmean(found) if found else None


def spent_row(number, run):
    trainings, host = run["trainings"], run["host"]
    gpu = [row for row in run["gpu"] if len(row) == 5]  # of one GPU
    wall = [{**one, "wall": one["ended"] - one["computes"]} for one in trainings]
    whole = ms_of_a_step({"trainings": wall}, "wall")
    batch, waited, processor = (
        ms_of_a_step(run, key) for key in ("batches_s", "gpu_s", "processor_s")
    )
    other = None if None in (whole, batch, waited) else whole - batch - waited
    both = side_by_side(run)
    begin, end = both or (0, run["total_s"])
    parts = [
        f"{number} {run['way']}",
        f"{max(one['computes'] for one in trainings):.1f} s",
        f"{min(one['ended'] for one in trainings):.1f} s",
        f"{max(one['ended'] for one in trainings):.1f} s",
        f"{rate_between(run, *both):.0f} steps/s" if both else "-",
        *(known(value, "{:.1f} ms") for value in (batch, waited, other, processor)),
        known(mean_between(gpu, 2, begin, end), "{:.0f} %"),
        known(mean_between(gpu, 3, begin, end), "{:.0f} W"),
        known(mean_between(gpu, 4, begin, end), "{:.0f} MHz"),
        known(mean_between(host, 1, begin, end), "{:.0%}"),
        known(mean_between(host, 3, begin, end), "{:.2f} ms"),
        known(in_step(run, begin, end), "{:.2f}"),
    ]
    return "| " + " | ".join(parts) + " |"


def spent_table(results):
    runs = [run for run in results if run.get("trainings")]
    if not runs:
        return []
    return [
        "",
        "| " + " | ".join(SPENT_COLUMNS) + " |",
        "| --- |" + " ---: |" * (len(SPENT_COLUMNS) - 1),
        *(spent_row(number, run) for number, run in enumerate(runs, 1)),
    ]


def tables(results):
    totals, lines = totals_of(results), []
    if "by-hand" in totals:
        lines += table(ROWS, totals, totals["by-hand"], "by hand")
    fixed = sorted((int(way.split("-")[1]), way) for way in totals if way.startswith("fixed-"))
    if fixed:
        best = best_of(totals)
        rows = {way: f"by hand, {number} on each GPU" for number, way in fixed}
        lines += [""] * bool(lines)
        lines += table({**ARRAY_ROWS, **rows}, totals, totals.get(best), "the best")
        lines += pairs_table(results, best)
    return lines + spent_table([run for run in results if is_of_array(run["way"])])
