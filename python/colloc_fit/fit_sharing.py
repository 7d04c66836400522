# SPDX-License-Identifier: Apache-2.0
"""Fits the constants of the interference model to measurements, and reports its errors.

    scripts/fit-sharing [--library LIB] [--constants FILE] [--write] [--page PAGE.md] [--quick]
                        [FILE.csv ...]

The constants are those of data/sharing/interference.txt. The formulae are the C code of
src/sharing: LIB is build/src/sharing/libcolloc-sharing.so. The measurements (default: those in
data/sharing) are written by scripts/measure-sharing; each file also has every training alone,
time-sliced, whose activity is its demand. Runs with thread percentages are predicted, not fitted.

The page, on stdout or as PAGE.md with its pictures in a folder beside it, has the errors

  - of FILE's constants on all measurements,
  - of each mix after a fit to the other mixes,
  - of mixed sets after a fit to equal trainings.

--write stores the constants of the fit to all measurements in FILE. --quick only evaluates FILE's
constants, and fails when a median error is above 10 % or a 90th percentile above 20 %.
"""
import argparse
import collections
import csv
import ctypes
import glob
import itertools
import math
import os
import re
import statistics
import sys

from colloc_report import Page

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIMITS = 0.10, 0.20  # median and 90th percentile that --quick accepts
ACTIVITIES = {"smact": "smact", "smocc": "smocc", "dram": "dram_active", "power_w": "power_w"}
WEIGHTS = {"speed": 1, "smact": 0.3, "dram": 0.3, "power_w": 0.3}  # no formula predicts SMOCC
CONSTANT = re.compile(r"^(constant +)(\w+)( +)(\S+)$", re.M)


class Demand(ctypes.Structure):
    _fields_ = [(name, ctypes.c_double) for name in ("gract", "smact", "smocc", "dram", "power_w")]


class Sharer(ctypes.Structure):
    _fields_ = [
        ("demand", Demand),
        ("mps", ctypes.c_bool),
        ("cap", ctypes.c_double),
        ("speed", ctypes.c_double),
        ("scratch", ctypes.c_double * 6),
    ]


class InterferenceModel:
    """The C code of the interference model, with constants that the caller sets."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.interference_constant.restype = ctypes.POINTER(ctypes.c_double)
        self.library.interference_activity.restype = Demand
        self.constants = (ctypes.c_double * 64)()
        self.one = ctypes.c_double(1)

    def set(self, values):
        """Sets constants by name; the others keep their values."""
        for name, value in values.items():
            self.library.interference_constant(self.constants, name.encode())[0] = value

    def predict(self, mix):
        """Returns the speeds of the mix's trainings, and the activity of its GPU."""
        sharers = (Sharer * len(mix.demands))(
            *[Sharer(demand, mix.how == "mps", cap) for demand, cap in zip(mix.demands, mix.caps)]
        )
        self.library.interference_solve(self.constants, self.one, self.one, sharers, len(sharers))
        now = self.library.interference_activity(
            self.constants, self.one, self.one, sharers, len(sharers)
        )
        return [sharer.speed for sharer in sharers], now


Mix = collections.namedtuple("Mix", "file how names demands caps speeds activity awake_w")


def watts(comment):
    """Power of a GPU without work, and what full work adds, in watts (data/gpu-kinds.txt).

    comment: first line of a file of measurements, which names the kind of GPU
    """
    with open(os.path.join(ROOT, "data", "gpu-kinds.txt"), encoding="utf-8") as file:
        kinds = [line.split() for line in file if line.startswith("kind ")]
    for kind in kinds:
        if kind[1] in comment:
            return float(kind[7]), float(kind[8])
    sys.exit(f"data/gpu-kinds.txt has no kind for: {comment.strip()}")


def caps_of(rows):
    """The share of the SMs that each training of a run was limited to; 0: no limit."""
    return [float(row.get("thread_percentage") or 0) / 100 for row in rows]


def read_runs(path, held=False):
    """Reads a file of measurements.

    held: read the runs with thread percentages instead of those without

    Returns the watts of the GPU (`watts`), and a dictionary of rows by (how, mix, caps). A mix that
    was measured several times has several rows of each training.
    """
    with open(path, encoding="utf-8", newline="") as file:
        lines = file.readlines()
    runs = collections.OrderedDict()
    table = csv.DictReader(line for line in lines if not line.startswith("#"))
    while run := list(itertools.islice(table, 1)):
        how, names = run[0]["how"], tuple(run[0]["mix"].split("+"))
        run += itertools.islice(table, len(names) - 1)
        if any(row["error"] or row["mix"] != run[0]["mix"] for row in run):
            print(f"{path}: {how} {'+'.join(names)}: left out: it failed", file=sys.stderr)
        elif any(caps_of(run)) == held:
            runs.setdefault((how, names, tuple(caps_of(run))), []).extend(run)
    return watts(lines[0]), runs


def mean(rows, column):
    return statistics.fmean(float(row[column]) for row in rows)


def read(path, held=False):
    """Yields the mixes of a file; `held` as in read_runs."""
    (awake, _), runs = read_runs(path)
    alone = {
        names[0]: rows
        for (how, names, _), rows in runs.items()
        if how == "streams" and len(names) == 1
    }
    demands = {
        name: Demand(
            mean(rows, "gract"),
            mean(rows, "smact"),
            mean(rows, "smocc"),
            mean(rows, "dram_active"),
            mean(rows, "power_w") - awake,
        )
        for name, rows in alone.items()
    }
    if held:
        runs = read_runs(path, held)[1]
    for (how, names, caps), rows in runs.items():
        if how not in ("streams", "mps") or not all(name in alone for name in names):
            why = "neither streams nor MPS, or not measured alone"
            print(f"{path}: {how} {'+'.join(names)}: left out: {why}", file=sys.stderr)
        elif how == "mps" or len(names) > 1:
            places = [
                [row for k, row in enumerate(rows) if k % len(names) == i]
                for i in range(len(names))
            ]
            yield Mix(
                path,
                how,
                names,
                [demands[name] for name in names],
                caps,
                [
                    mean(place, "steps_per_s") / mean(alone[name], "steps_per_s")
                    for name, place in zip(names, places)
                ],
                {name: mean(rows, column) for name, column in ACTIVITIES.items()},
                awake,
            )


def of(name, names, values):
    return [value for other, value in zip(names, values) if other == name]


def errors(model, mix):
    """ln(predicted / measured) by quantity: a speed of each training, and the activities."""
    predicted, now = model.predict(mix)
    speeds = {
        name: (predicted[mix.names.index(name)], statistics.fmean(of(name, mix.names, mix.speeds)))
        for name in dict.fromkeys(mix.names)
    }
    found = {
        name: [math.log((getattr(now, name) + (mix.awake_w if name == "power_w" else 0)) / value)]
        for name, value in mix.activity.items()
    }
    found["speed"] = [math.log(predicted / measured) for predicted, measured in speeds.values()]
    return found


def cost(model, mixes, values):
    """The weighted mean error, which the fit minimises."""
    if min(values.values()) < 0 or max(values.values()) > 10:
        return math.inf
    model.set(values)
    return statistics.fmean(
        WEIGHTS[name] * statistics.fmean(map(abs, found[name]))
        for mix in mixes
        for found in [errors(model, mix)]
        for name in WEIGHTS
    )


def complete(model, path):
    """Yields the ratio of the demand derived from SMACT to the demand, for each training alone."""
    (awake, work), runs = read_runs(path)
    for (how, names, _), rows in runs.items():
        if how == "streams" and len(names) == 1:
            guess = Demand(math.nan, mean(rows, "smact"), math.nan, math.nan, math.nan)
            model.library.demand_complete(ctypes.byref(guess), ctypes.c_double(work))
            yield {
                "gract": guess.gract / mean(rows, "gract"),
                "smocc": guess.smocc / mean(rows, "smocc"),
                "dram": guess.dram / mean(rows, "dram_active"),
                "power_w": (guess.power_w + awake) / mean(rows, "power_w"),
            }


def fit(model, mixes, start, but=()):
    """Returns the constants that fit the mixes best; those named in `but` keep the values of
    `start`."""
    from colloc_fit.algebra import minimise  # imported here: only a fit needs SciPy

    names = [name for name in start if name not in but]
    found = minimise(
        lambda point: cost(model, mixes, {**start, **dict(zip(names, point))}),
        [max(start[name], 0.01) for name in names],
    )
    return {**start, **dict(zip(names, found))}


def collect(model, mixes, values):
    model.set(values)
    return [(mix, errors(model, mix)) for mix in mixes]


def held_out(model, mixes, start):
    """Predicts every mix with constants that were fitted to all other mixes."""
    found = []
    for names in dict.fromkeys(mix.names for mix in mixes):
        values = fit(model, [mix for mix in mixes if mix.names != names], start)
        found += collect(model, [mix for mix in mixes if mix.names == names], values)
    return found


def summary(errors_of_one):
    off = sorted(abs(math.expm1(error)) for error in errors_of_one)
    return statistics.median(off), off[math.ceil(0.9 * len(off)) - 1], off[-1]


def parts(found):
    """Yields the rows of the report: a title and its errors."""
    for how in ("streams", "mps"):
        yield f"speed, {how}", [error for mix, e in found if mix.how == how for error in e["speed"]]
    for how in ("streams", "mps"):
        for name in ACTIVITIES:
            yield f"{name}, {how}", [
                error for mix, e in found if mix.how == how for error in e[name]
            ]


def add_errors(page, title, rows):
    page.heading(title)
    page.table(
        ["", ("median, %", 1), ("90th percentile, %", 1), ("largest, %", 1), "of"],
        [
            [what, *(100 * value for value in summary(found)[:3]), len(found)]
            for what, found in rows
            if found
        ],
    )


def slowdowns(found):
    """Yields (how, mix, training, measured slowdown, predicted slowdown)."""
    for mix, e in found:
        for name, error in zip(dict.fromkeys(mix.names), e["speed"]):
            measured = 1 / statistics.fmean(of(name, mix.names, mix.speeds))
            yield mix.how, "+".join(mix.names), name, measured, measured / math.exp(error)


def add_limits(page, found):
    rows = list(slowdowns(found))
    page.heading("Where it does not hold")
    page.text(
        "Not measured at all: MIG, other GPUs than one H200, plain processes beside clients of MPS."
    )
    page.text("Held out: how much more slowdown is predicted than was measured, mean by training:")
    names = dict.fromkeys(row[2] for row in rows)
    page.table(
        ["training", ("streams, %", 1), ("MPS, %", 1)],
        [
            [
                name,
                *(
                    100
                    * statistics.fmean(
                        row[4] / row[3] - 1 for row in rows if (row[0], row[2]) == (how, name)
                    )
                    for how in ("streams", "mps")
                ),
            ]
            for name in names
        ],
    )
    page.text("All errors of more than 10 %:")
    page.table(
        ["", "mix", "training", ("slowdown measured", 2), ("predicted", 2)],
        [row for row in rows if abs(row[4] / row[3] - 1) > LIMITS[0]],
    )


def add_limited_clients(page, model, values, mixes):
    """Adds the errors for MPS clients with a thread percentage."""
    model.set(values)
    rows, off = [], []
    for mix in mixes:
        predicted, _ = model.predict(mix)
        off += [math.log(p / m) for p, m in zip(predicted, mix.speeds)]
        parts_of = " + ".join(
            f"{name} {100 * cap:.0f} %" if cap else name for name, cap in zip(mix.names, mix.caps)
        )
        rows.append(
            [
                parts_of,
                " ".join(f"{speed:.2f}" for speed in mix.speeds),
                " ".join(f"{speed:.2f}" for speed in predicted),
                sum(mix.speeds),
                sum(predicted),
            ]
        )
    if not rows:
        return
    page.heading("MPS clients with a thread percentage, which no constant was fitted to")
    page.text(
        "Speeds of all clients, and their sum. "
        + "The error of speed is {:.1f} % (median), {:.1f} % (90th percentile), "
        "{:.1f} % at most.".format(*(100 * value for value in summary(off)))
    )
    page.table(["MPS", "measured", "predicted", ("together", 2), ("predicted", 2)], rows)


def draw(page, found):
    from colloc_report import figure

    series = {}
    for how, _, _, measured, predicted in slowdowns(found):
        xs, ys = series.setdefault({"mps": "MPS"}.get(how, how), ([], []))
        xs.append(measured)
        ys.append(predicted)
    page.figure(
        figure.scatter(
            "slowdown",
            series,
            "slowdown measured",
            "slowdown predicted",
            diagonal=True,
            log="xy",
            title="Slowdown of each training in each mix, held out: predicted against measured",
        )
    )


def write_page(page, path):
    folder = os.path.splitext(path)[0]
    os.makedirs(folder, exist_ok=True)
    for picture in page.pictures():
        picture.save(folder)
    with open(path, "w", encoding="utf-8") as file:
        file.write(page.markdown(os.path.basename(folder)))


def read_constants(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return text, {name: float(value) for _, name, _, value in CONSTANT.findall(text)}


def judge(found):
    wrong = []
    for what, all_errors in parts(found):
        errors_of_it = summary(all_errors)
        print(f"{what}: median {errors_of_it[0]:.1%}, 90th percentile {errors_of_it[1]:.1%}")
        if what.startswith(("speed", "smact", "power")) and any(
            error > limit for error, limit in zip(errors_of_it, LIMITS)
        ):
            wrong.append(what)
    return f"errors too large: {', '.join(wrong)}: fit the constants again" if wrong else None


def study(model, mixes, present, files):
    """Returns the page without picture, the constants of the fit to all, and held-out errors."""
    page = Page("How well the interference model holds")
    best = fit(model, mixes, present)
    out = held_out(model, mixes, best)
    page.text(
        "After this page you know how far the predicted speeds of trainings that share a GPU are "
        "from measured ones."
    )
    page.text(
        "Predicted against measured: the formulae of `src/sharing/interference.c` and the "
        "measurements of `scripts/measure-sharing` in "
        + ", ".join(f"`{os.path.relpath(path, ROOT)}`" for path in files)
        + ". Made by `scripts/fit-sharing --write --page=docs/measured/sharing.md`. "
        "Speed is a training's steps per second in a mix, divided by those alone; equal trainings "
        "of a mix count as one. The form of the formulae was chosen with all measurements in "
        "view; only the constants are held out."
    )
    page.text(
        "The fit to all: " + ", ".join(f"{name} {value:.3f}" for name, value in best.items()) + "."
    )
    add_errors(page, "Held out, one mix after the other, time-sliced and by MPS", parts(out))
    add_limits(page, out)
    uniform = [mix for mix in mixes if len(set(mix.names)) == 1]
    alike = fit(model, uniform, best, but=["weight_power"])
    add_errors(
        page,
        "Mixed sets, after a fit to equal trainings (weight_power as fitted to all)",
        parts(collect(model, [mix for mix in mixes if mix not in uniform], alike)),
    )
    add_errors(
        page,
        "The constants of data/sharing/interference.txt on all that was measured",
        parts(collect(model, mixes, present)),
    )
    add_limited_clients(
        page, model, present, [mix for path in files for mix in read(path, held=True)]
    )
    guesses = [ratio for path in files for ratio in complete(model, path)]
    add_errors(
        page,
        "Trainings alone: demands derived from SMACT",
        [(name, [math.log(ratio[name]) for ratio in guesses]) for name in guesses[0]],
    )
    return page, best, out


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--library", default=os.path.join(ROOT, "build", "src", "sharing", "libcolloc-sharing.so")
    )
    parser.add_argument(
        "--constants",
        "--laws",  # the former name
        default=os.path.join(ROOT, "data", "sharing", "interference.txt"),
    )
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--page")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "files",
        nargs="*",
        default=sorted(glob.glob(os.path.join(ROOT, "data", "sharing", "*.csv"))),
    )
    return parser.parse_args()


def main():
    options = arguments()
    model, (text, present) = InterferenceModel(options.library), read_constants(options.constants)
    mixes = [mix for path in options.files for mix in read(path)]
    if options.quick:
        return judge(collect(model, mixes, present))
    page, best, out = study(model, mixes, present, options.files)
    if options.page:
        draw(page, out)
        write_page(page, options.page)
    else:
        print(page.markdown())
    if options.write:
        with open(options.constants, "w", encoding="utf-8") as file:
            file.write(
                CONSTANT.sub(
                    lambda line: line[1] + line[2] + line[3] + f"{best[line[2]]:.3f}", text
                )
            )
    return None


if __name__ == "__main__":
    sys.exit(main())
