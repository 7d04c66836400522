# SPDX-License-Identifier: Apache-2.0
"""Fits the roofline of a training step to steps that were measured alone on a GPU.

usage: scripts/fit-steps [--data=data/steps] [--build=build] [--write] [--details]

The constants are those of src/estimator/physics/activity_rates.h. Each run is estimated with
constants that were fitted without its family: the families are in two halves, and each half is
estimated from the other one. Then the constants are fitted to all runs. With --write they replace
activity_rates.inc, and the table of docs/measured/estimators.md; rebuild afterwards.
"""
import hashlib
import json
import math
import os
import statistics
import sys
import tempfile

from colloc_fit import tables
from colloc_fit.algebra import rank_correlation
from colloc_fit.memory_runs import read_lines, torchinfo_text
from colloc_fit.options import read_options
from colloc_fit.physics import Physics

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
USUAL = {"--data": f"{ROOT}/data/steps", "--build": f"{ROOT}/build"}
RATES = f"{ROOT}/src/estimator/physics/activity_rates.inc"
FACTORS = (1.6, 1.25, 1.1)  # chosen: steps of the search, the last one as fine as the data allow
SMACT_WEIGHT = 2.0  # chosen: an error of 0.05 counts as much as 10 % of a time
OF_SUMMARIES = "hidden"  # fitted to summaries, which alone depend on it

# Chosen: where the search begins.
START = {
    "phase_us": 200,
    "forward_us": 25,
    "backward_us": 25,
    "view_us": 5,
    "module_us": 15,
    "conv_us": 15,
    "tensor_us": 2,
    "kernel_us": 2.5,
    "chain_us": 6,
    "half_share": 0.75,
    "tf32_share": 0.5,
    "single_share": 0.75,
    "attention_share": 0.2,
    "attention_single_share": 0.5,
    "depthwise_rate": 7.691,
    "depthwise_gradient_rate": 3.845,
    "square_tile_share": 0.85,
    "small_tile_share": 0.6,
    "pointwise_share": 0.7937,
    "gradient_share": 0.6,
    "unaligned_share": 0.5,
    "grouped_share": 0.5,
    "bandwidth_share": 0.7,
    "transform_share": 0.5,
    "norm_share": 0.5,
    "norm_element_ns": 0.45,
    "active_share": 0.95,
    "hidden": 2,
}


class StepRuns:
    """The measured runs, and files in the folder `scratch` that describe their networks."""

    def __init__(self, folder, scratch):
        self.scratch = scratch
        exports = {line["id"]: line["export"] for line in read_lines(f"{folder}/exports.jsonl.xz")}
        self.runs = [row for row in read_lines(f"{folder}/steps.jsonl.xz") if row["id"] in exports]
        self.exports, self.summaries = {}, {}
        for row in self.runs:
            export = exports[row["id"]]
            self.exports[row["id"]] = self._write(json.dumps(export))
            self.summaries[row["id"]] = self._write(
                torchinfo_text(export["layers"], export["parameters"])
            )

    def _write(self, text):
        file = tempfile.NamedTemporaryFile("w", dir=self.scratch, delete=False, encoding="utf-8")
        with file:
            file.write(text)
        return file.name

    def program(self, build, files, runs):
        """colloc-physics about these runs."""
        questions = [
            (
                {**row, "sequence": row["sequence"] or 0},
                files[row["id"]],
                row["optimizer"],
                row["precision"],
            )
            for row in runs
        ]
        return Physics(build, questions, self.scratch, Step)


class Step:
    """A measured step and its estimate, in milliseconds."""

    def __init__(self, row, cells):
        self.row = row
        self.step, self.gpu, self.host = (float(cell) / 1000 for cell in cells[4:7])
        self.phases = [float(cell) / 1000 for cell in cells[7:10]]
        self.smact, self.dram = map(float, cells[10:12])


HEAD = ["evidence", "networks", "what", "runs", "rank correlation", "median error", "mean error"]


def half_of(family):
    """The half of the families, 0 or 1: by a hash of the name, as in data/memory."""
    return int(hashlib.sha256(family.encode()).hexdigest(), 16) % 2


def phases_error(point):
    """The errors of the host's phases, as a part of its time."""
    measured = point.row["host_ms"]
    return sum(abs(a - b) for a, b in zip(point.phases, measured)) / sum(measured)


def error_of(points):
    """What the fit makes least: the mean errors of the logarithms of times, and of SM activity."""
    gpu = [abs(math.log(p.gpu / p.row["busy_ms"])) for p in points if p.row["busy_ms"]]
    host = [phases_error(p) for p in points if is_of_the_host(p.row)]
    step = [abs(math.log(p.step / p.row["step_ms"])) for p in points]
    smact = [abs(p.smact - p.row["smact"]) for p in points if p.row.get("smact") is not None]
    return sum(
        weight * statistics.mean(some)
        for weight, some in ((1, gpu), (1, host), (1, step), (SMACT_WEIGHT, smact))
        if some
    )


def is_of_the_host(row):
    """Whether the host did not wait for the GPU while its time was taken: the GPU's queue holds
    about a thousand kernels."""
    return bool(row["busy_ms"]) and row["busy_ms"] < sum(row["host_ms"])


def fit(program, start, names):
    """The constants of these names with the least error: by coordinates, in factors that become
    finer."""
    best, least = dict(start), error_of(program.points(start))
    for factor in FACTORS:
        for name in names:
            for by in (factor, 1 / factor):
                while True:
                    trial = {**best, name: best[name] * by}
                    if name.endswith("_share") and trial[name] > 1:
                        break
                    error = error_of(program.points(trial))
                    if error >= least:
                        break
                    best, least = trial, error
    return best, least


def errors_table(evidence, networks, points):
    """Rows of the page's table: what was estimated, how near it comes."""
    rows = []
    for name, mine, measured in (
        ("`step_ms`", lambda p: p.step, lambda p: p.row["step_ms"]),
        ("time of the GPU", lambda p: p.gpu, lambda p: p.row["busy_ms"]),
        (
            "time of the host",
            lambda p: p.host,
            lambda p: sum(p.row["host_ms"]) if is_of_the_host(p.row) else None,
        ),
        ("`smact`", lambda p: p.smact, lambda p: p.row.get("smact")),
        ("`dram`", lambda p: p.dram, lambda p: p.row.get("dram")),
    ):
        known = [(mine(p), measured(p)) for p in points if measured(p)]
        if len(known) < 3:
            continue
        is_time = not name.startswith("`") or name == "`step_ms`"
        sizes = [abs(a / b - 1) if is_time else abs(a - b) for a, b in known]
        form = "{:.1%}" if is_time else "{:.3f}"
        rows.append(
            [evidence, networks, name, str(len(known)), f"{rank_correlation(*zip(*known)):.2f}"]
            + [form.format(value) for value in (statistics.median(sizes), statistics.mean(sizes))]
        )
        print("  " + " ".join(rows[-1]))
    return rows


def fit_all(data, build, runs):
    """The constants that fit these runs."""
    program = data.program(build, data.exports, runs)
    chosen, least = fit(program, START, [name for name in START if name != OF_SUMMARIES])
    program.close()
    print(f"exports: {len(runs)} runs fitted, error {least:.3f}")
    program = data.program(build, data.summaries, runs)
    chosen, least = fit(program, chosen, [OF_SUMMARIES])
    program.close()
    print(f"summaries: error {least:.3f}")
    return chosen


def left_out(data, build):
    """Each run by its export and by its summary, with the constants that fit the other half of the
    families."""
    points = {"export": [], "declared": []}
    for half in (0, 1):
        chosen = fit_all(data, build, [r for r in data.runs if half_of(r["family"]) != half])
        unseen = [row for row in data.runs if half_of(row["family"]) == half]
        for evidence, files in (("export", data.exports), ("declared", data.summaries)):
            program = data.program(build, files, unseen)
            points[evidence] += program.points(chosen)
            program.close()
    return points


def print_runs(points):
    for p in sorted(points, key=lambda p: p.step / p.row["step_ms"]):
        row = p.row
        print(
            f"  {row['model'] if row['kind'] == 'real' else row['kind']} {row['batch']} "
            f"{row['precision']} {row['optimizer']}: step {row['step_ms']:.2f} {p.step:.2f} "
            f"GPU {row['busy_ms']:.2f} {p.gpu:.2f} host {sum(row['host_ms']):.2f} {p.host:.2f} "
            f"SMACT {row['smact']:.3f} {p.smact:.3f}"
        )


def main():
    options, flags = read_options(sys.argv[1:], USUAL, ("--write", "--details"), __doc__)
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        data = StepRuns(options["--data"], scratch)
        for evidence, points in left_out(data, options["--build"]).items():
            real = [p for p in points if p.row["kind"] == "real"]
            rows += errors_table(f"`{evidence}`", "all", points)
            rows += errors_table(f"`{evidence}`", "real", real)
            if "--details" in flags:
                print_runs(points)
        chosen = fit_all(data, options["--build"], data.runs)
    for name, value in chosen.items():
        print(f"  {name} {value:.4g}")
    if "--write" in flags:
        with open(RATES, "w", encoding="utf-8") as file:
            file.write(tables.rates_row(chosen))
        tables.write_block(
            f"{ROOT}/docs/measured/estimators.md", "activity", tables.markdown(HEAD, rows)
        )


if __name__ == "__main__":
    main()
