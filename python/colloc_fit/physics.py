# SPDX-License-Identifier: Apache-2.0
"""The physical model's answers for many runs.

The model is C (src/estimator/physics); colloc-physics answers for it. Names of features and of
constants come from there, so that nothing depends on an order in two languages.
"""
import collections
import math
import subprocess
import tempfile

from colloc_fit.memory_runs import GPU

MIB = 1 << 20
FEATURES_FROM = 15  # the first column of colloc-physics that is a feature
REAL_WEIGHT = 4.0  # chosen: a real network counts as four random ones, of which there are more


def constants_line(chosen):
    """The constants as colloc-physics reads them: "step_us=100 half_share=0.6 ...". None are
    those that it was built with."""
    return " ".join(f"{name}={value:g}" for name, value in chosen.items())


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
        ) = map(float, cells[:4])
        self.evidence, self.network, self.scale = cells[12], cells[13], float(cells[14])
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
    """colloc-physics over [(row, file, optimizer, precision)], which it reads once.

    point: makes a point of a row and the cells of its answer
    """

    def __init__(self, build, questions, scratch, point=Point):
        self.questions, self.point = questions, point
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

    def points(self, chosen=None):
        """The answers with these constants, or with the built-in ones.

        Runs without an answer are left out, counted in `silent`.
        """
        self.program.stdin.write(constants_line(chosen or {}) + "\n")
        self.program.stdin.flush()
        points, self.silent = [], collections.Counter()
        for row, *_ in self.questions:
            cells = self._cells()
            if cells[0] == "-":
                self.silent[cells[1][:70]] += 1
            else:
                points.append(self.point(row, cells))
        return points

    def close(self):
        self.program.stdin.close()
        self.program.wait()
        self.program.stdout.close()


def ask(build, questions, scratch, what):
    """The answers to these questions, each asked once, and the names of the features."""
    program = Physics(build, questions, scratch)
    points = program.points()
    program.close()
    print(
        f"{what}: {len(questions)} runs; physics is silent on {sum(program.silent.values())} "
        f"{dict(program.silent.most_common(3))}"
    )
    return points, program.feature_names
