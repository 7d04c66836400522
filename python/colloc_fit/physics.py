# SPDX-License-Identifier: Apache-2.0
"""The physical model's answers for many runs, and the fit of its few constants.

The model is C (src/estimator/physics); colloc-physics answers for it. Names of features and of
constants come from there, so that nothing depends on an order in two languages.
"""
import collections
import math
import statistics
import subprocess
import tempfile

from colloc_fit.algebra import descend, rank_correlation
from colloc_fit.memory_runs import GPU

MIB = 1 << 20
FEATURES_FROM = 10  # the first column of colloc-physics that is a feature
REAL_WEIGHT = 4.0  # chosen: a real network counts as four random ones, of which there are more

# Values to try. Microseconds of a launch; shares of the data sheet's rates.
RATES = {
    "launch_us": (5, 7, 10, 14, 20, 28, 40, 56, 80, 110),
    "matrix_share": (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6),
    "bandwidth_share": (0.1, 0.15, 0.2, 0.3, 0.4, 0.55, 0.7),
}
START = {"launch_us": 5, "matrix_share": 0.3, "bandwidth_share": 0.55}


def constants_line(chosen):
    """The constants as colloc-physics reads them: "launch_us=5 matrix_share=0.3 ..."."""
    return " ".join(f"{name}={chosen[name]:g}" for name in RATES)


class Point:
    """A run and its physical estimate in bytes. y: the value that the correction learns, the
    logarithm of measured to physical memory above the CUDA context."""

    def __init__(self, row, cells):
        self.row = row
        (
            self.context,
            self.reserved,
            self.active,
            self.live,
            self.step_us,
            self.smact,
            self.dram,
        ) = map(float, cells[:7])
        self.evidence, self.network, self.scale = cells[7], cells[8], float(cells[9])
        self.features = [float(cell) for cell in cells[FEATURES_FROM:]]
        self.measured = row["driver_mib"] * MIB - self.context
        self.y = math.log(self.measured / self.reserved)
        self.peak_y = math.log(row["allocated_mib"] * MIB / self.active)  # in use, before any cache


def weight_of(point):
    """The weight of a run in a fit."""
    return REAL_WEIGHT if point.row["kind"] == "real" else 1.0


def is_training(row):
    """Whether the run's family is one of those to learn from; the others were set aside."""
    return row["split"] == "train"


class Physics:
    """colloc-physics over [(row, file, optimizer, precision)], which it reads once."""

    def __init__(self, build, questions, scratch):
        self.questions = questions
        with tempfile.NamedTemporaryFile("w", dir=scratch, delete=False) as tasks:
            for row, path, optimizer, precision in questions:
                fields = (path, row["batch"], optimizer, precision, row.get("sequence") or 0, GPU)
                tasks.write("\t".join(map(str, fields)) + "\n")
        self.program = subprocess.Popen(
            [f"{build}/tools/colloc-physics", tasks.name],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.feature_names = self._cells()[FEATURES_FROM:]
        self.silent = collections.Counter()

    def _cells(self):
        return self.program.stdout.readline().rstrip("\n").split("\t")

    def points(self, chosen):
        """The answers with these constants; runs without one are left out, counted in `silent`."""
        self.program.stdin.write(constants_line(chosen) + "\n")
        self.program.stdin.flush()
        points, self.silent = [], collections.Counter()
        for row, *_ in self.questions:
            cells = self._cells()
            if cells[0] == "-":
                self.silent[cells[1][:70]] += 1
            else:
                points.append(Point(row, cells))
        return points

    def close(self):
        self.program.stdin.close()
        self.program.wait()
        self.program.stdout.close()


def ask(build, questions, chosen, scratch, what):
    """The answers to these questions, each asked once, and the names of the features."""
    program = Physics(build, questions, scratch)
    points = program.points(chosen)
    program.close()
    print(
        f"{what}: {len(questions)} runs; physics is silent on {sum(program.silent.values())} "
        f"{dict(program.silent.most_common(3))}"
    )
    return points, program.feature_names


def step_error(points):
    """Mean absolute logarithm of predicted to measured step times."""
    return statistics.mean(abs(math.log(p.step_us / 1000 / p.row["step_ms"])) for p in points)


def fit_rates(build, questions, chosen, scratch):
    """Chooses the rates of the roofline: the least error of step times and of SMACT, over runs
    alone on their GPU."""
    alone = Physics(build, [q for q in questions if q[0]["alone"] and q[0]["step_ms"]], scratch)

    def error_of(trial):
        points = alone.points(trial)
        return step_error(points) + statistics.mean(
            2 * abs(p.smact - (p.row["smact"] or 0)) for p in points
        )

    chosen, _ = descend(RATES, chosen, error_of)
    points = alone.points(chosen)
    alone.close()
    print(
        f"activity: {len(points)} runs alone; launch {chosen['launch_us']} us, matrix "
        f"{chosen['matrix_share']}, bandwidth {chosen['bandwidth_share']}: step time off by a "
        f"factor of {math.exp(step_error(points)):.2f} in the geometric mean"
    )
    return chosen


def activity_rows(evidence, networks, points):
    """Rows of the page's table: how near step time and activities come, over the points whose task
    ran alone on its GPU. The step time's error is relative, that of the others absolute."""
    alone = [p for p in points if p.row["alone"] and p.row["step_ms"]]
    table = []
    for theirs, mine in (
        ("step_ms", lambda p: p.step_us / 1000),
        ("smact", lambda p: p.smact),
        ("dram", lambda p: p.dram),
    ):
        known = [(mine(p), p.row[theirs]) for p in alone if p.row[theirs] is not None]
        if len(known) < 3:
            continue
        is_time = theirs == "step_ms"
        sizes = [abs(a / b - 1) if is_time else abs(a - b) for a, b in known]
        median, mean = statistics.median(sizes), statistics.mean(sizes)
        table.append(
            [
                f"`{evidence}`",
                networks,
                f"`{theirs}`",
                str(len(known)),
                f"{rank_correlation(*zip(*known)):.2f}",
                f"{median:.1%}" if is_time else f"{median:.3f}",
                f"{mean:.1%}" if is_time else f"{mean:.3f}",
            ]
        )
        print("  " + " ".join(table[-1]))
    return table
