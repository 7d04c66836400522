# SPDX-License-Identifier: Apache-2.0
"""Reads activity and power of the dissertation's tasks off its figures 6.13 to 6.15.

    git clone https://github.com/itu-rad/CARMA
    scripts/read-published-figures CARMA/assets/scripts/output

The repository of the reference implementation has these figures as vector drawings (GPU_Mem, smact,
power: *_comparison_all_gpus_smoothed.pdf): of each of the four GPUs a line with all samples of the
exclusive run of the 60 tasks, and one of MAGM with GPUMemNet. In the exclusive run the tasks are
placed in the order of the trace, so the n-th level stretch of memory is the n-th task of
data/traces/philly-60.txt, where a task of two GPUs has two: 63 stretches for 60 tasks.

Writes data/published/activity.csv and power.csv, and prints what the whole runs had.
"""

import bisect
import os
import re
import statistics
import sys
import zlib

from colloc_evaluate.inputs import OWN_TRACES, ROOT

# The exclusive run lasts 630 min by the lengths of table 6.2, and has 96,920 samples.
SAMPLE_S = 0.390
# The lines are means over 40 samples or more: that far from its ends a task's are its own.
EDGE = 300
LEVEL_LEAST = 110  # samples of a stretch: the shortest task has 190
LEVEL_GB = 0.5  # within a stretch the memory differs by less: cuDNN's workspaces
USED_GB = 0.8  # less is no task
SAME_GB = 0.3  # all runs of a task on one GPU have the same memory within this
STEP = 2  # samples
ALONE_LEAST_S = 200  # of a task whose activity can be read: the lines are smoothed
GAP_MOST_S = 150  # longer ones are of a GPU that waits: for a second one, or for a task
CURVE = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1)
CURVE_WIDTH = 0.025  # samples with so much more or less SMACT make a point of the curve

FIGURES = {  # file, and the distance of its labels on the vertical axis
    "memory_gb": ("GPU_Mem_comparison_all_gpus_smoothed.pdf", 20),
    "smact": ("smact_comparison_all_gpus_smoothed.pdf", 0.5),
    "power_w": ("power_comparison_all_gpus_smoothed.pdf", 100),
}
LABEL_SAMPLES = 20000  # distance of the labels on the horizontal axis
EXCLUSIVE, SHARED = 0, 1


class Failed(Exception):
    pass


# ---- a figure ----


def read_drawing(path):
    """The drawing operators of a PDF of one page."""
    with open(path, "rb") as file:
        data = file.read()
    start = re.search(rb"stream\r?\n", data)
    if not start:
        raise Failed(f"{path}: no drawing")
    try:
        return zlib.decompressobj().decompress(data[start.end() :]).decode("latin1")
    except zlib.error as fault:
        raise Failed(f"{path}: {fault}") from fault


def _numbers(groups):
    return [tuple(map(float, group)) for group in groups]


def _ticks(drawing):
    """The marks of the labels: (x, y) of those of the horizontal axes, and of the vertical ones."""
    marks = _numbers(re.findall(r"([\d.]+) ([\d.]+) m\n([\d.]+) ([\d.]+) l\n\nB", drawing))
    return (
        [(x, y) for x, y, to_x, _ in marks if x == to_x],
        [(x, y) for x, y, _, to_y in marks if y == to_y],
    )


def _lines(drawing):
    """The lines of samples: points from the last move on, of all that is drawn at once."""
    lines = []
    for stroke in re.split(r"\bS\b", drawing):
        points = re.findall(r"([-\d.]+) ([-\d.]+) ([ml])\b", stroke)
        moves = [i for i, (_, _, operator) in enumerate(points) if operator == "m"]
        if moves and len(points) - moves[-1] > 30:
            lines.append(_numbers(point[:2] for point in points[moves[-1] :]))
    return lines


def read_figure(drawing, label):
    """Returns, for each GPU, the two lines of a figure as lists of (sample, value)."""
    across, up = _ticks(drawing)
    bottoms = sorted({y for _, y in across}, reverse=True)
    lines = _lines(drawing)
    if not bottoms or len(lines) != 2 * len(bottoms):
        raise Failed(f"{len(bottoms)} GPUs, {len(lines)} lines: not such a figure")
    panels = []
    for i, bottom in enumerate(bottoms):
        top = bottoms[i - 1] if i else float("inf")
        xs = sorted(x for x, y in across if y == bottom)
        ys = sorted(y for _, y in up if bottom <= y < top)
        sample, unit = (xs[1] - xs[0]) / LABEL_SAMPLES, (ys[1] - ys[0]) / label
        panels.append(
            [
                [((x - xs[0]) / sample, (y - ys[0]) / unit) for x, y in line]
                for line in lines[2 * i : 2 * i + 2]
            ]
        )
    return panels


def sampled(line):
    """The line at every STEP-th sample: its points, of which those on straight parts are left
    out."""
    xs = [x for x, _ in line]
    values = {}
    for x in range(max(0, int(xs[0]) + 1) // STEP * STEP + STEP, int(xs[-1]), STEP):
        i = bisect.bisect_right(xs, x)
        (x0, y0), (x1, y1) = line[i - 1], line[i]
        values[x] = y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return values


# ---- the tasks ----


def level_stretches(line):
    """(first sample, last sample, GB) of each stretch of level memory of a GPU."""
    stretches = []
    for (x0, y0), (x1, y1) in zip(line, line[1:]):
        is_level = abs(y1 - y0) < LEVEL_GB and min(y0, y1) > USED_GB
        if not is_level:
            continue
        if stretches and stretches[-1][1] == x0 and abs(stretches[-1][2] - y0) < LEVEL_GB:
            stretches[-1][1:] = x1, y1
        else:
            stretches.append([x0, x1, y1])
    return [tuple(each) for each in stretches if each[1] - each[0] >= LEVEL_LEAST]


def read_table(path):
    """The rows of one of the project's tables, without its comments."""
    with open(path, encoding="utf-8") as file:
        head, *rows = [line.split() for line in file if line.strip() and line[0] != "#"]
    return [dict(zip(head, row)) for row in rows]


def assign(memory, trace, gpus_of):
    """The stretches of each training: task -> [(GPU, first sample, last sample)]."""
    stretches = sorted(
        (first, last, gpu, gb)
        for gpu, lines in enumerate(memory)
        for first, last, gb in level_stretches(lines[EXCLUSIVE])
    )
    wanted = [task for task in trace for _ in range(gpus_of[task])]
    if len(stretches) != len(wanted):
        raise Failed(f"{len(stretches)} stretches of level memory for {len(wanted)} GPUs of tasks")
    found, used = {}, {}
    for task, (first, last, gpu, gb) in zip(wanted, stretches):
        found.setdefault(task, []).append((gpu, first, last))
        used.setdefault(task, []).append(gb)
    for task, each in used.items():
        if gpus_of[task] == 1 and max(each) - min(each) > SAME_GB:
            raise Failed(f"{task}: memory of {min(each):.1f} and {max(each):.1f} GB in two runs")
    return found


def activity(stretches, smact, power):
    """Mean SMACT and power over a training's stretches; None where these are too short."""
    means = []
    for gpu, first, last in stretches:
        inner = [
            (smact[gpu][x], power[gpu][x])
            for x in smact[gpu]
            if first + EDGE <= x <= last - EDGE and x in power[gpu]
        ]
        if (last - first) * SAMPLE_S < ALONE_LEAST_S:
            return None
        means.append([statistics.mean(values) for values in zip(*inner)])
    return [statistics.mean(values) for values in zip(*means)]


def power_curve(pairs):
    """Median power of the samples of about each SMACT of CURVE: [(SMACT, W, samples)]. The last
    point is not below the one before it."""
    curve = []
    for smact in CURVE:
        near = [power for x, power in pairs if abs(x - smact) <= CURVE_WIDTH]
        if near:
            least = curve[-1][1] if curve else 0
            curve.append((smact, max(least, round(statistics.median(near))), len(near)))
    return curve


# ---- the files ----

SOURCE = """\
# {what}, read off
# figures 6.13 to 6.15 of E. Yousefzadeh-Asl-Miandoab, "Collocation and Memory Estimation for
# Efficient GPU Resource Management in Deep Learning Training", IT University of Copenhagen, 2025:
# the drawings of these figures in github.com/itu-rad/CARMA (assets/scripts/output), by
# scripts/read-published-figures. DGX Station A100, A100-40GB.
"""


def write_csv(name, what, head, rows):
    path = os.path.join(ROOT, "data", "published", name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(SOURCE.format(what=what) + head + "\n")
        file.writelines(",".join(map(str, row)) + "\n" for row in rows)


def read_folder(folder):
    """name of FIGURES -> its panels."""
    return {
        name: read_figure(read_drawing(os.path.join(folder, file)), label)
        for name, (file, label) in FIGURES.items()
    }


def print_runs(smact, power):
    for name, which in (("exclusive", EXCLUSIVE), ("MAGM with GPUMemNet", SHARED)):
        minutes = max(panel[which][-1][0] for panel in smact) * SAMPLE_S / 60
        means = [
            statistics.mean(value for panel in figure for value in sampled(panel[which]).values())
            for figure in (smact, power)
        ]
        print(f"{name}: {minutes:.0f} min, SMACT {means[0]:.3f}, {means[1]:.1f} W a GPU")


def print_gaps(memory):
    """From the level memory of a task to that of the next one on its GPU: its process ends, RAD-RM
    decides, the next one starts and allocates."""
    gaps = sorted(
        round((after[0] - before[1]) * SAMPLE_S)
        for lines in memory
        for stretches in [level_stretches(lines[EXCLUSIVE])]
        for before, after in zip(stretches, stretches[1:])
    )
    gaps = [gap for gap in gaps if gap <= GAP_MOST_S]
    print(
        f"between two tasks on a GPU, exclusive: {gaps[0]} to {gaps[-1]} s, "
        f"median {statistics.median(gaps):.0f} s ({len(gaps)} gaps)"
    )


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        figures = read_folder(sys.argv[1])
        tasks = read_table(os.path.join(ROOT, "data", "traces", "tasks.txt"))
        gpus_of = {row["task"]: int(row["gpus"]) for row in tasks}
        trace = [row["task"] for row in read_table(OWN_TRACES[60])]
        found = assign(figures["memory_gb"], trace, gpus_of)
    except Failed as fault:
        sys.exit(f"read-published-figures: {fault}")
    except OSError as fault:
        sys.exit(f"read-published-figures: {fault.filename}: {fault.strerror}")
    alone = {
        name: [sampled(panel[EXCLUSIVE]) for panel in figures[name]]
        for name in ("smact", "power_w")
    }
    rows = []
    for task in (row["task"] for row in tasks if row["task"] in found):
        means = activity(found[task], alone["smact"], alone["power_w"])
        if means:
            rows.append((task, gpus_of[task], len(found[task]), f"{means[0]:.3f}", round(means[1])))
    write_csv(
        "activity.csv",
        "SM activity and power of the trainings alone, means over their GPUs and runs",
        "task,gpus,stretches,smact,power_w",
        rows,
    )
    pairs = [
        (value, watts[x])
        for which in (EXCLUSIVE, SHARED)
        for smact, power in zip(figures["smact"], figures["power_w"])
        for values, watts in [(sampled(smact[which]), sampled(power[which]))]
        for x, value in values.items()
        if x in watts
    ]
    write_csv(
        "power.csv",
        "Power of a GPU with tasks by its SM activity, of both runs",
        "smact,power_w,samples",
        power_curve(pairs),
    )
    print_runs(figures["smact"], figures["power_w"])
    print_gaps(figures["memory_gb"])
    print(f"{len(rows)} trainings, {len(pairs)} samples of SMACT and power")


if __name__ == "__main__":
    main()
