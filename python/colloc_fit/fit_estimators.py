# SPDX-License-Identifier: Apache-2.0
"""Makes the tables that the estimators learned, from data/memory.

usage: scripts/fit-estimators [--data=data/memory] [--build=build] [--write] [--families]

Fits the coefficients of the correction (src/estimator/physics/graph_weights.inc) and the quantiles
by kind of evidence and of network (calibration.inc), and prints how well they do on networks whose
whole family was left out. With --write the tables are replaced, and those of
docs/measured/estimators.md; rebuild afterwards.
"""
import collections
import math
import os
import statistics
import sys
import tempfile

from colloc_fit import tables
from colloc_fit.algebra import order_statistic
from colloc_fit.memory_runs import MemoryRuns
from colloc_fit.options import read_options
from colloc_fit.other_runs import from_all_runs, from_one_run
from colloc_fit.physics import MIB, ask, is_training
from colloc_fit.quantiles import Outcome, calibrate, reserves, with_parents
from colloc_fit.residual import NO_CORRECTION, choose_strength, learn, left_out, predict

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
USUAL = {"--data": f"{ROOT}/data/memory", "--build": f"{ROOT}/build"}
EVIDENCE = {
    "doubtful summary": "EVIDENCE_DOUBTFUL",
    "summary": "EVIDENCE_SUMMARY",
    "declared": "EVIDENCE_DECLARED",
    "export": "EVIDENCE_EXPORT",
    "export with kernels": "EVIDENCE_KERNELS",
    "one other run": "EVIDENCE_ONE_RUN",
    "several runs": "EVIDENCE_RUNS",
    "same run": "EVIDENCE_SAME_RUN",
    "other optimizer": "EVIDENCE_OTHER_OPTIMIZER",
    "other runs": "EVIDENCE_OTHER_RUNS",
}
NETWORKS = (
    ("convolutions", lambda row: row["n_conv"] and not row["n_layer_norm"]),
    ("convolutions and tokens", lambda row: row["n_conv"] and row["n_layer_norm"]),
    ("tokens", lambda row: not row["n_conv"]),
)


# ---- errors of estimates: a pair is (point, correction)


def total(point, log_ratio=0.0):
    """The estimated memory of the whole process in bytes."""
    return point.context + point.reserved * math.exp(log_ratio)


def actual(point):
    return point.row["driver_mib"] * MIB


def relative_errors(pairs):
    """The relative errors of the estimated memory of whole processes, context included."""
    return [total(p, c) / actual(p) - 1 for p, c in pairs]


def errors_of(outcomes):
    return [o.estimated / o.actual - 1 for o in outcomes]


def sizes_of(errors):
    """Median, 95th percentile and largest of the errors' sizes."""
    sizes = [abs(e) for e in errors]
    return statistics.median(sizes), order_statistic(sizes, 0.95), max(sizes)


def cells_of(errors):
    median, p95, worst = sizes_of(errors)
    return [f"{median:.2%}", f"{p95:.1%}", f"{worst:.1%}"]


def print_line(name, errors):
    if errors:
        median, p95, worst = sizes_of(errors)
        under = sum(e < 0 for e in errors) / len(errors)
        print(f"  {name:44} {len(errors):6} {median:8.2%} {p95:8.1%} {worst:8.1%} {under:7.1%}")


def print_families(title, pairs):
    print(f"families, {title}")
    families = collections.defaultdict(list)
    for p, c in pairs:
        families[p.row["family"]].append((p, c))
    for family, some in sorted(families.items()):
        print_line(f"{family}, physics", relative_errors([(p, 0) for p, _ in some]))
        print_line(f"{family}", relative_errors(some))


def outcomes_of(pairs):
    """The pairs as the quantiles see them."""
    return [Outcome(p.row, p.network, total(p, c), actual(p), p.scale) for p, c in pairs]


# ---- evidence


def lines(pairs):
    """The estimates from runs with the same optimizer and precision at the nearest two batches."""
    groups, found = collections.defaultdict(list), []
    for p, c in pairs:
        groups[p.row["model"], p.row["optimizer"], p.row["precision"]].append((p, c))
    for group in groups.values():
        group.sort(key=lambda pair: pair[0].row["batch"])
        for p, _ in group:
            batch = p.row["batch"]
            others = [(o, k) for o, k in group if o.row["batch"] != batch]
            if len(others) < 2:
                continue
            others.sort(key=lambda pair, b=batch: abs(math.log(pair[0].row["batch"] / b)))
            (a, _), (b, _) = others[:2]
            if a.row["batch"] == b.row["batch"]:
                continue
            slope = (b.measured - a.measured) / (b.row["batch"] - a.row["batch"])
            line = a.measured + slope * (batch - a.row["batch"])
            if line > 0:
                found.append((p, math.log(line / p.reserved)))
    return found


def other_optimizers(pairs):
    """The estimates from a run of the same network at the same batch with another optimizer: what
    it took, and the difference of the physical estimates."""
    groups, found = collections.defaultdict(list), []
    for p, c in pairs:
        groups[p.row["model"], p.row["batch"], p.row["precision"]].append((p, c))
    for group in groups.values():
        for p, _ in group:
            for o, _ in group:
                if o.row["optimizer"] != p.row["optimizer"]:
                    changed = p.reserved + o.measured - o.reserved
                    found.append((p, math.log(max(changed, p.live) / p.reserved)))
    return found


def repeated(points, reserved):
    """The outcomes of trainings that ran twice, each estimated as what the first run took.

    reserved: id of a run -> what the allocator held when it ran again.
    """
    return [
        Outcome(p.row, p.network, actual(p), p.row["context_mib"] * MIB + reserved[p.row["id"]])
        for p in points
        if p.row["id"] in reserved
    ]


def set_aside(points, strength):
    """The points of the families that were set aside from the beginning, with corrections learned
    from the training families."""
    weights = learn([p for p in points if is_training(p.row)], strength)
    return [(p, predict(weights, p)) for p in points if p.row["split"] == "held-out"]


# ---- the page's tables


def report_row(name, label, groups, table):
    """The row of several kinds of evidence together, each with its quantiles: [(all outcomes,
    counted outcomes)]."""
    some = [outcome for _, counted in groups for outcome in counted]
    errors = errors_of(some)
    print_line(label, errors)
    cells = cells_of(errors)
    for q in (0.9, 0.99):
        parts = [(len(counted), *reserves(outcomes, counted, q)) for outcomes, counted in groups]
        under, over = (sum(n * part[i] for n, *part in parts) / len(some) for i in (0, 1))
        print(f"    at p{100 * q:.0f}: under {under:.2%}, mean over-reservation {over:.1%}")
        cells += [f"{under:.1%}", f"{over:.1%}"]
    table.append([name, label, str(len(some)), *cells])


def is_assumed(outcome):
    """Whether the run has the optimizer and precision that are assumed for a summary without
    them."""
    return outcome.row["precision"] == "fp32" and outcome.row["optimizer"] in ("adam", "adamw")


def report(name, outcomes, rows, table):
    """Prints the errors of a kind of evidence and adds them to the tables."""
    if not outcomes:
        return
    rows[name] = calibrate(outcomes)
    print(f"{name}\n  {'':44} {'runs':>6} {'median':>8} {'p95':>8} {'worst':>8} {'under':>7}")
    real = [o for o in outcomes if o.row["kind"] == "real"]
    parts = [("real", real), ("all", outcomes)]
    if name == "summary":
        parts.insert(0, ("real, as assumed", [o for o in real if is_assumed(o)]))
    for label, some in parts:
        if some:
            report_row(f"`{name}`", label, [(outcomes, some)], table)


def parts_table(name, points, table):
    """Divides the error: into that of the memory in use, and that of what the allocator holds
    beyond it."""
    for precision in ("fp32", "amp"):
        for label, belongs in NETWORKS:
            some = [
                p
                for p in points
                if p.row["kind"] == "real" and belongs(p.row) and p.row["precision"] == precision
            ]
            if len(some) < 5:
                continue
            peak = [abs(math.exp(-p.peak_y) - 1) for p in some]
            held = [abs(math.exp(-p.y) - 1) for p in some]
            table.append(
                [
                    f"`{name}`",
                    f"{label}, {precision}",
                    str(len(some)),
                    f"{statistics.median(peak):.2%}",
                    f"{order_statistic(peak, .9):.1%}",
                    f"{statistics.median(held):.2%}",
                    f"{order_statistic(held, .9):.1%}",
                ]
            )


def other_runs_table(pairs, one):
    """The errors of the layers alone and of the layers with one other run, by what it differs in;
    and with all other runs."""
    table, alone = [], {id(p): c for p, c in pairs}

    def add(name, some):
        before = relative_errors([(p, alone[id(p)]) for p, _ in some])
        table.append(
            [name, str(len(some)), *cells_of(before)[:2], *cells_of(relative_errors(some))[:2]]
        )

    for kind in sorted({kind for *_, kind in one}):
        add(
            f"one run with another {kind.replace('+', ' and ')}",
            [(p, c) for p, c, k in one if k == kind and p.row["kind"] == "real"],
        )
    add("one run with another optimizer alone", other_optimizers(pairs))
    add("all others in other configurations", from_all_runs(pairs))
    bound = [(p, p.peak_y) for p, _ in pairs if p.row["kind"] == "real"]
    add("no run, but what it had in use at the peak itself, exactly (a bound)", bound)
    return table


# ---- the fit


class Fit:
    """The learned tables, and the points that they were learned from."""

    def __init__(self, data, build, scratch):
        self.data = data
        declared = [
            (row, data.summaries[row["model"]], row["optimizer"], row["precision"])
            for row in data.runs
        ]
        bare = [(row, path, "-", "-") for row, path, *_ in declared]
        exports = [
            (row, data.export_of(row), row["optimizer"], row["precision"])
            for row in data.runs
            if data.export_of(row)
        ]
        kernels = [(row, data.export_with_kernels_of(row), *rest) for row, _, *rest in exports]
        self.n_exports = len(exports)
        self.declared, self.names = ask(build, declared, scratch, "summaries")
        self.bare, _ = ask(build, bare, scratch, "bare summaries")
        self.exported, _ = ask(build, exports, scratch, "exports")
        asked, _ = ask(build, [q for q in kernels if q[1]], scratch, "exports with kernels")
        self.asked = [p for p in asked if p.evidence == "export with kernels"]
        self.sound = [p for p in self.declared if p.evidence == "declared"]
        self._choose()
        self._leave_out()

    def _choose(self):
        self.strength = choose_strength("summaries", self.sound)
        self.export_strength = choose_strength("exports", self.exported)
        self.asked_strength = choose_strength("exports with kernels", self.asked)

    def _leave_out(self):
        """Pairs of a point and a correction that was learned without the point's family."""
        self.held_out = left_out(self.declared, self.strength, learn_from=self.sound)
        bare = left_out(self.bare, self.strength, learn_from=self.sound)
        self.bare_pairs = [(p, c) for p, c in bare if p.evidence == "summary"]
        self.pairs = [(p, c) for p, c in self.held_out if p.evidence == "declared"]
        self.export_pairs = left_out(self.exported, self.export_strength)
        self.asked_pairs = left_out(self.asked, self.asked_strength)
        self.doubtful = [(p, c) for p, c in self.held_out if p.evidence == "doubtful summary"]

    def tables(self):
        """The rows of calibration.inc by kind of evidence, and the page's tables by name."""
        rows, errors, aside, parts = {}, [], [], []
        one = from_one_run(self.pairs)
        exported, asked = outcomes_of(self.export_pairs), outcomes_of(self.asked_pairs)
        for name, some in (
            ("summary", outcomes_of(self.bare_pairs)),
            ("declared", outcomes_of(self.pairs)),
            ("export", exported),
            ("export with kernels", asked),
            ("one other run", outcomes_of([(p, c) for p, c, _ in one])),
            ("other runs", outcomes_of(from_all_runs(self.pairs))),
            ("several runs", outcomes_of(lines(self.pairs))),
            ("other optimizer", outcomes_of(other_optimizers(self.pairs))),
            ("same run", repeated(self.declared, self.data.reserved_again)),
            ("doubtful summary", outcomes_of(self.doubtful)),
        ):
            report(name, some, rows, errors)
        without = [o for o in exported if o.row["kind"] == "real" and not o.row["n_conv"]]
        name = "`export with kernels`, and `export` of networks without convolutions"
        print(name)
        report_row(
            name,
            "real",
            [(asked, [o for o in asked if o.row["kind"] == "real"]), (exported, without)],
            errors,
        )
        for name, some, strength in (
            ("declared", self.sound, self.strength),
            ("export", self.exported, self.export_strength),
            ("export with kernels", self.asked, self.asked_strength),
        ):
            missed = relative_errors(set_aside(some, strength))
            aside.append([f"`{name}`", str(len(missed)), *cells_of(missed)])
            parts_table(name, some, parts)
        return rows, {
            "errors": errors,
            "aside": aside,
            "parts": parts,
            "runs before": other_runs_table(self.pairs, one),
        }

    def _named(self, weights):
        return dict(zip(self.names, weights))

    def write_tables(self, folder, rows):
        """Replaces the .inc tables in `folder`."""
        corrections = {
            "WEIGHTS_SUMMARY": (self.sound, self.strength),
            "WEIGHTS_EXPORT": (self.exported, self.export_strength),
            "WEIGHTS_KERNELS": (self.asked, self.asked_strength),
        }
        texts = {
            "graph_weights": tables.weight_rows(
                {
                    row: {} if strength == NO_CORRECTION else self._named(learn(points, strength))
                    for row, (points, strength) in corrections.items()
                }
            ),
            "calibration": tables.calibration_rows(
                {constant: with_parents(name, rows) for name, constant in EVIDENCE.items()}
            ),
        }
        for name, text in texts.items():
            with open(f"{folder}/{name}.inc", "w", encoding="utf-8") as file:
                file.write(text)

    def write_page(self, path, page):
        """Replaces the tables of docs/measured/estimators.md."""
        heads = {
            "errors": [
                "evidence",
                "networks",
                "runs",
                "median",
                "p95",
                "worst",
                "under p90",
                "over at p90",
                "under p99",
                "over at p99",
            ],
            "aside": ["evidence", "runs", "median", "p95", "worst"],
            "parts": [
                "evidence",
                "networks",
                "runs",
                "in use: median",
                "p90",
                "held: median",
                "p90",
            ],
            "runs before": [
                "known of earlier runs",
                "pairs",
                "layers alone: median",
                "p95",
                "with the runs: median",
                "p95",
            ],
        }
        real = sum(row["kind"] == "real" for row in self.data.runs)
        blocks = {
            "runs": f"{len(self.data.runs)} runs that ended well, {real} of them of real "
            f"networks; {self.n_exports} with an export.",
            **{name: tables.markdown(head, page[name]) for name, head in heads.items()},
        }
        tables.write_blocks(path, blocks)


def main():
    options, flags = read_options(sys.argv[1:], USUAL, ("--write", "--families"), __doc__)
    with tempfile.TemporaryDirectory() as scratch:
        data = MemoryRuns(options["--data"], scratch)
        if not data.runs:
            print(f"{options['--data']}: no runs there: skipped")
            return
        fit = Fit(data, options["--build"], scratch)
        rows, page = fit.tables()
        if "--families" in flags:
            print_families("declared", fit.held_out)
            print_families("export", fit.export_pairs)
            print_families("export with kernels", fit.asked_pairs)
        if "--write" in flags:
            fit.write_tables(f"{ROOT}/src/estimator/physics", rows)
            fit.write_page(f"{ROOT}/docs/measured/estimators.md", page)


if __name__ == "__main__":
    main()
