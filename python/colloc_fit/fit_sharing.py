# SPDX-License-Identifier: Apache-2.0
"""Fits the constants of the interference model (data/sharing/interference.txt) to measurements, and says how well they hold.

    scripts/fit-sharing [--library LIB] [--laws FILE] [--write] [--page PAGE.md] [--quick] [FILE.csv ...]

The formulae are those of src/sharing, called as they are: LIB is build/src/sharing/libcolloc-sharing.so. The measurements, those
in data/sharing unless named, are what scripts/measure-sharing writes; every file brings its own trainings alone by streams, which are
the demands. Runs with thread percentages are only predicted.

The page on stdout, or as PAGE.md with its pictures in a folder beside it, has the errors of FILE's constants; of mixes
none of whose measurements were in the fit (one mix after the other is left out); and of mixed sets after a fit to equal trainings. --write
puts the constants of the fit to all into FILE. --quick only judges FILE, and fails when a median error is above 10 % or a 90th percentile
above 20 %.
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
WEIGHTS = {"speed": 1, "smact": 0.3, "dram": 0.3, "power_w": 0.3}  # SMOCC has no formula of its own
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


class Laws:
    """The C code, with constants of one's own."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.interference_constant.restype = ctypes.POINTER(ctypes.c_double)
        self.library.interference_activity.restype = Demand
        self.constants = (ctypes.c_double * 64)()
        self.one = ctypes.c_double(1)

    def set(self, values):
        for name, value in values.items():
            self.library.interference_constant(self.constants, name.encode())[0] = value

    def predict(self, mix):
        """Speeds of the mix's trainings, and the activity of its GPU."""
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
    """What a GPU of the kind that the file's first line names draws awake, and what full work adds: data/gpu-kinds.txt."""
    with open(os.path.join(ROOT, "data", "gpu-kinds.txt"), encoding="utf-8") as file:
        kinds = [line.split() for line in file if line.startswith("kind ")]
    for kind in kinds:
        if kind[1] in comment:
            return float(kind[7]), float(kind[8])
    sys.exit(f"data/gpu-kinds.txt has no kind for: {comment.strip()}")


def caps_of(rows):
    """The parts of the SMs that a run's trainings were held to; 0: all."""
    return [float(row.get("thread_percentage") or 0) / 100 for row in rows]


def read_runs(path, held=False):
    """
    The watts of the GPU, and (how, mix, parts of the SMs) -> its rows; a mix that was measured again has several of each
    training. Without thread percentages, or only those with.
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
            print(
                f"{path}: {how} {'+'.join(names)}: left out: neither streams nor MPS, or not measured alone",
                file=sys.stderr,
            )
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


def errors(laws, mix):
    """ln(predicted / measured): of speeds one for each different training, of activities one."""
    predicted, now = laws.predict(mix)
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


def cost(laws, mixes, values):
    if min(values.values()) < 0 or max(values.values()) > 10:
        return math.inf
    laws.set(values)
    return statistics.fmean(
        WEIGHTS[name] * statistics.fmean(map(abs, found[name]))
        for mix in mixes
        for found in [errors(laws, mix)]
        for name in WEIGHTS
    )


def complete(laws, path):
    """For each training alone: its demand as measured, and what follows from its SMACT alone."""
    (awake, work), runs = read_runs(path)
    for (how, names, _), rows in runs.items():
        if how == "streams" and len(names) == 1:
            guess = Demand(math.nan, mean(rows, "smact"), math.nan, math.nan, math.nan)
            laws.library.demand_complete(ctypes.byref(guess), ctypes.c_double(work))
            yield {
                "gract": guess.gract / mean(rows, "gract"),
                "smocc": guess.smocc / mean(rows, "smocc"),
                "dram": guess.dram / mean(rows, "dram_active"),
                "power_w": (guess.power_w + awake) / mean(rows, "power_w"),
            }


def fit(laws, mixes, start, but=()):
    from colloc_fit.algebra import minimise  # SciPy is needed to fit, not to judge

    names = [name for name in start if name not in but]
    found = minimise(
        lambda point: cost(laws, mixes, {**start, **dict(zip(names, point))}),
        [max(start[name], 0.01) for name in names],
    )
    return {**start, **dict(zip(names, found))}


def collect(laws, mixes, values):
    laws.set(values)
    return [(mix, errors(laws, mix)) for mix in mixes]


def held_out(laws, mixes, start):
    """Every mix predicted from a fit that saw neither its streams nor its MPS."""
    found = []
    for names in dict.fromkeys(mix.names for mix in mixes):
        values = fit(laws, [mix for mix in mixes if mix.names != names], start)
        found += collect(laws, [mix for mix in mixes if mix.names == names], values)
    return found


def summary(errors_of_one):
    off = sorted(abs(math.expm1(error)) for error in errors_of_one)
    return statistics.median(off), off[math.ceil(0.9 * len(off)) - 1], off[-1]


def parts(found):
    """The rows of the report: what, and its errors."""
    for how in ("streams", "mps"):
        yield f"speed, {how}", [error for mix, e in found if mix.how == how for error in e["speed"]]
    for how in ("streams", "mps"):
        for name in ACTIVITIES:
            yield f"{name}, {how}", [
                error for mix, e in found if mix.how == how for error in e[name]
            ]


def tell(page, title, rows):
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
    """how, mix, training, slowdown measured and predicted."""
    for mix, e in found:
        for name, error in zip(dict.fromkeys(mix.names), e["speed"]):
            measured = 1 / statistics.fmean(of(name, mix.names, mix.speeds))
            yield mix.how, "+".join(mix.names), name, measured, measured / math.exp(error)


def tell_where_not(page, found):
    rows = list(slowdowns(found))
    page.heading("Where it does not hold")
    page.text(
        "Not measured at all: MIG, other GPUs than one H200, plain processes beside clients of MPS."
    )
    page.text(
        "Held out, by how much more than measured each training is predicted to be slowed, on average:"
    )
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
    page.text("All that are off by more than 10 %:")
    page.table(
        ["", "mix", "training", ("slowdown measured", 2), ("predicted", 2)],
        [row for row in rows if abs(row[4] / row[3] - 1) > LIMITS[0]],
    )


def tell_held(page, laws, values, mixes):
    """Clients of MPS held to a part of the SMs."""
    laws.set(values)
    rows, off = [], []
    for mix in mixes:
        predicted, _ = laws.predict(mix)
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
    page.heading("Clients held to a part of the SMs, which no constant was fitted to")
    page.text(
        "Speeds of all, and their sum. "
        + "Speed is off by {:.1f} % (median), {:.1f} % (90th percentile), {:.1f} % at most.".format(
            *(100 * value for value in summary(off))
        )
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
    return f"too far off: {', '.join(wrong)}: fit the constants anew" if wrong else None


def study(laws, mixes, present, files):
    """The page without its picture, the constants of the fit to all, and all held out."""
    page = Page("How well the interference model holds")
    best = fit(laws, mixes, present)
    out = held_out(laws, mixes, best)
    page.text(
        "Predicted against measured: the laws of `src/sharing/interference.c` and the measurements of `scripts/measure-sharing` in "
        + ", ".join(f"`{os.path.relpath(path, ROOT)}`" for path in files)
        + ". Made by `scripts/fit-sharing --write --page=docs/measured/sharing.md`. "
        "Speed is the share of its steps per second alone that a training has in a mix; equal trainings of a mix count as one. "
        "The form of the formulae was chosen with all measurements in view; only the constants are held out."
    )
    page.text(
        "The fit to all: " + ", ".join(f"{name} {value:.3f}" for name, value in best.items()) + "."
    )
    tell(page, "Held out, one mix after the other, by streams and by MPS", parts(out))
    tell_where_not(page, out)
    uniform = [mix for mix in mixes if len(set(mix.names)) == 1]
    alike = fit(laws, uniform, best, but=["weight_power"])
    tell(
        page,
        "Mixed sets, after a fit to equal trainings alone (but weight_power, which those cannot tell)",
        parts(collect(laws, [mix for mix in mixes if mix not in uniform], alike)),
    )
    tell(
        page,
        "The constants of data/sharing/interference.txt on all that was measured",
        parts(collect(laws, mixes, present)),
    )
    tell_held(page, laws, present, [mix for path in files for mix in read(path, held=True)])
    guesses = [ratio for path in files for ratio in complete(laws, path)]
    tell(
        page,
        "Trainings alone: what is taken to follow where only SMACT is known",
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
    parser.add_argument("--laws", default=os.path.join(ROOT, "data", "sharing", "interference.txt"))
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
    laws, (text, present) = Laws(options.library), read_constants(options.laws)
    mixes = [mix for path in options.files for mix in read(path)]
    if options.quick:
        return judge(collect(laws, mixes, present))
    page, best, out = study(laws, mixes, present, options.files)
    if options.page:
        draw(page, out)
        write_page(page, options.page)
    else:
        print(page.markdown())
    if options.write:
        with open(options.laws, "w", encoding="utf-8") as file:
            file.write(
                CONSTANT.sub(
                    lambda line: line[1] + line[2] + line[3] + f"{best[line[2]]:.3f}", text
                )
            )
    return None


if __name__ == "__main__":
    sys.exit(main())
