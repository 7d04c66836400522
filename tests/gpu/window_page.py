#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/measured/windows.md from the results of window_trial.py and mixes_trial.py.

    tests/gpu/window_page.py MIXES.csv WINDOWS.jsonl... >docs/measured/windows.md
"""
import statistics
import sys

import window_trial
from carrier_page import table

from colloc_fit.measure_mixes import COLUMNS, SEPARATOR, read_table  # after window_trial's path

PART_S = 45  # chosen: about as long as a mix was measured

HEAD = """# The 60-task trace at true speed, on an H200

After this page you know what sharing gains where nothing is compressed: real imports, the daemon's
own times, data loading. And how far seconds of each mix ([mixes.md](../mixes.md)) predict minutes.
NVIDIA H200, driver 580.159.04, 16 cores, PyTorch 2.11, 1 December 2026. The raw results are
[windows.jsonl](windows.jsonl), [windows-predictive.jsonl](windows-predictive.jsonl) and
[windows-mixes.csv](windows-mixes.csv); this page is made of them.

    tests/gpu/session bundle OUT --gpus=0 --seconds=578 --only=windows-magm
    tests/gpu/session bundle OUT --gpus=0 --seconds=578 --only=windows-default
    tests/gpu/session bundle OUT --gpus=0 --seconds=578 --only=windows-alone
    tests/gpu/session bundle OUT --gpus=0 --seconds=578 --only=windows-predictive
    tests/gpu/window_page.py docs/measured/windows-mixes.csv docs/measured/windows.jsonl \\
        docs/measured/windows-predictive.jsonl >docs/measured/windows.md

One GPU has every fourth task of the trace, from its second 3,600 on: five wait, a sixth comes 166 s
later. Trainings of ImageNet read JPEGs of 500 x 375 pixels and 20 to 40 KiB, which four processes
of each decode; ImageNet's have 113 KiB on average, for which a training waits longer. A task takes
the share of the GPU's memory that it took of an A100. No task is shortened, so a window is judged
by its _progress_: seconds of trainings alone for each second, by their steps.
"""

WINDOWS = """
## The windows

- `magm` and `predictive` had the estimate of each script, by MPS. `default`: as installed, nothing
  declared.
- `exclusive` cannot be measured in nine minutes, which are the first task only. It is composed of
  each training alone: its time in the trace, after its measured start.
- Predicted before: 0.99 for `exclusive`; each window within 3 % of its mixes.
"""

WORDS = """
**Sharing made {least} to {most} times the progress of one training at a time.** What makes it
large: alone each training waits for its four decoders, and three have twelve on 16 cores. Without
data loading see [trace.md](trace.md). Energy for the same progress, against one after the other:
{energies}. The windows of `magm` and `predictive` ran on one other H200 each, all else on a
third one, whose mean power with the same three trainings was {more_power} lower.

`default` started all five at once, and took two back before their first steps, when the GPU was
full; `magm` and `predictive` started three, since no fourth fits beside them. From then on all had
the same three trainings.
"""

DECODED = """
The decoders set these speeds: three trainings that decode to 224 pixels got {images} images a
second. So a speed alone is uncertain by some per cent, and with it what is relative to it.
"""

SPEEDS = """
## How steady the speeds are

Speeds of the three trainings, relative to alone, in parts of {part} s from the first steps of the
last one on: the mean, and the least and the most of {parts} parts of a window.
"""

STEADY = """
A training's own speed varies from part to part by far more than the sum: when one waits, another
has its SMs. So a mix that is measured for as long as such a part says what the GPU makes of it
within {spread:.0f} %, and less about one training.

**The aim was to compose progress and energy within 3 %.** On the GPU on which the mixes were
measured (`default`) they were within {same_progress} and {same_energy}. On the two others they were
within {progress}, and {energy}.
"""

MIXES = """
## The mixes
"""

PREDICTED = """
Speeds are relative to those alone of the same program, which starts trainings by a fork server.
VGG-16 took {mix_watts} W alone there and {watts} W above, so it was slower alone, and looks faster
in the mixes than in the windows. Predicted before: two trainings at 0.75 to 0.95 each, three at
0.55 to 0.85. **Wrong for each, nearly right in the sum**: VGG-16, whose kernels fill all SMs, loses
least, and Inception, with many small ones, three quarters.
"""

LEFT = """
## What this does not say

One run of each window; which of them makes more progress, the differences between GPUs do not let
us say. The windows again are part of another session
([tests/gpu](../../tests/gpu/README.md#the-trace-at-true-speed)). The windows visited two mixes of
several trainings; the whole trace visits 67, so tables of whole traces are not composed of measured
mixes yet.
"""


def parts_of(window, alone):
    """The speed of each training, by its name, in each part, from the first sample on in which all
    that run at the end make steps."""
    rows = window["samples"]
    names = set(rows[-1][3])
    first = next(i for i, row in enumerate(rows) if names <= {n for n, s in row[3].items() if s})
    found, begin = [], rows[first]
    for row in rows[first:]:
        passed_s = row[0] - begin[0]
        if passed_s >= PART_S:
            of = window_trial.training_of
            rates = {n: (row[3][n] - begin[3][n]) / passed_s for n in names}
            found.append({of(n): rate / alone[of(n)]["steps_per_s"] for n, rate in rates.items()})
            begin = row
    return found


def range_of(values):
    return f"{statistics.fmean(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def speed_rows(windows, alone):
    rows = []
    for window in windows:
        parts = parts_of(window, alone)
        for name in sorted(parts[0]):
            rows.append([window["way"], name, range_of([part[name] for part in parts])])
        rows.append([window["way"], "sum", range_of([sum(part.values()) for part in parts])])
    return rows


def spread_of(windows, alone):
    """The most that the sum of a part is off the mean of its window, in per cent."""
    most = 0.0
    for window in windows:
        sums = [sum(part.values()) for part in parts_of(window, alone)]
        mean = statistics.fmean(sums)
        most = max(most, *(abs(one / mean - 1) for one in sums))
    return 100 * most


def composed_of(window, alone, mixes):
    """(progress, energy) as composed of the mixes, in per cent more than measured."""
    progress, joules, known = window_trial.compose(window, mixes)
    if known < 0.99:
        raise SystemExit(f"{window['way']}: the mixes of {100 * known:.0f} % are known")
    truth = window_trial.progress_of(window, alone), window["energy_j"]
    return 100 * (progress / truth[0] - 1), 100 * (joules / truth[1] - 1)


def per_progress(window, alone):
    return window["energy_j"] / window_trial.progress_of(window, alone)


def power_of(window):
    """Mean watts while three trainings make steps."""
    full = [row[1] for row in window["samples"] if sum(1 for s in row[3].values() if s) == 3]
    return statistics.fmean(full)


def words_of(windows, alone):
    ratio, joules = window_trial.exclusive_of(alone)
    by_way = {window["way"]: window for window in windows}
    gains = [window_trial.progress_of(w, alone) / w["seconds"] / ratio for w in windows]
    more = {window["way"]: per_progress(window, alone) / joules - 1 for window in windows}
    watts = {way: power_of(window) for way, window in by_way.items()}
    less = [1 - watts["default"] / watts[way] for way in ("magm", "predictive")]
    return WORDS.format(
        least=f"{min(gains):.2f}",
        most=f"{max(gains):.2f}",
        energies=", ".join(f"`{way}` {100 * part:+.0f} %" for way, part in more.items()),
        more_power=" and ".join(f"{100 * part:.0f}" for part in less) + " %",
    )


def steady_of(windows, alone, mixes):
    off = {window["way"]: composed_of(window, alone, mixes) for window in windows}
    same = [f"{abs(value):.1f}" for value in off.pop("default")]
    progress, energy = ([f"{abs(pair[i]):.1f}" for pair in off.values()] for i in (0, 1))
    return STEADY.format(
        spread=spread_of(windows, alone),
        progress=" and ".join(progress) + " %",
        energy=" and ".join(energy) + " %",
        same_progress=same[0],
        same_energy=same[1] + " %",
    )


def decoded_of(alone):
    """The range of images a second of trainings whose images have 224 pixels."""
    rates = [
        line["steps_per_s"] * int(name.rsplit("-b", 1)[1])
        for name, line in alone.items()
        if not name.startswith("inception")  # 299 pixels
    ]
    return DECODED.format(images=f"{min(rates):,.0f} to {max(rates):,.0f}")


def watts_of(mixes, alone, name):
    """Of a training alone, as a mix and as a window's."""
    return {
        "mix_watts": f"{mixes[('mps', (name,))][1]:.0f}",
        "watts": f"{alone[name]['power_w']:.0f}",
    }


def alone_rows(alone):
    return [
        [name, f"{line['steps_per_s']:.2f}", f"{line['power_w']:.0f}", f"{line['start_s']:.0f}"]
        for name, line in sorted(alone.items())
    ]


def mix_rows(path):
    rows = []
    for row in read_table(path, *COLUMNS):
        speeds = [float(speed) for speed in row["speeds"].split(SEPARATOR)]
        cells = [" + ".join(f"{speed:.2f}" for speed in speeds), f"{sum(speeds):.2f}"]
        activity = f"{float(row['smact']):.2f}", f"{float(row['power_w']):.0f}"
        rows.append([row["trainings"], *cells, *activity])
    return rows


def page(mixes_path, paths):
    alone, windows = window_trial.read(paths)
    mixes = window_trial.read_mixes(mixes_path, windows)
    parts = [len(parts_of(window, alone)) for window in windows]
    said = f"{min(parts)}" if min(parts) == max(parts) else f"{min(parts)} to {max(parts)}"
    return "".join(
        [
            HEAD,
            WINDOWS,
            "\n" + table(window_trial.HEADS, window_trial.rows_of(alone, windows, mixes)),
            words_of(windows, alone),
            "\n" + table(["training alone", "steps/s", "W", "start (s)"], alone_rows(alone)),
            decoded_of(alone),
            SPEEDS.format(part=PART_S, parts=said),
            "\n" + table(["window", "training", "speed"], speed_rows(windows, alone)),
            steady_of(windows, alone, mixes),
            MIXES,
            "\n" + table(["trainings", "speeds", "sum", "SMACT", "W"], mix_rows(mixes_path)),
            PREDICTED.format(**watts_of(mixes, alone, "vgg16-b128")),
            LEFT,
        ]
    )


if __name__ == "__main__":
    print(page(sys.argv[1], sys.argv[2:]), end="")
