# SPDX-License-Identifier: Apache-2.0
"""Compares the policy predictive with those of the dissertation, by simulation.

The traces are the two of the dissertation and traces resampled from them.

    scripts/judge-predictive build/src/cli/colloc --pages

The policy's constants were chosen on the seeds 1001 to 1040: evaluate it on others.
"""

import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess

from colloc_fit.tables import write_blocks

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TRACES = "philly-60", "philly-90"
THESIS = "rr", "magm", "lug", "mug", "first-fit", "best-fit"
ERROR = ["--need-error=0.2"]
IN_ORDER = "--backfill=no"  # as the policies of the dissertation do
ROWS = {
    "exclusive": ["--policy=exclusive", IN_ORDER],
    **{name: [f"--policy={name}", IN_ORDER] for name in THESIS},
    "magm with backfill": ["--policy=magm"],
    "magm with backfill, times known": ["--policy=magm", "--known=all"],
    "predictive": ["--policy=predictive"],
    "predictive, times known too": ["--policy=predictive", "--known=all"],
    "predictive, only memory known": ["--policy=predictive", "--known=none"],
    "magm, memory wrong by 20 %": ["--policy=magm", IN_ORDER, *ERROR],
    "predictive, memory wrong by 20 %": ["--policy=predictive", *ERROR],
    "predictive, the same, recovery-step 5 GiB": [
        "--policy=predictive",
        *ERROR,
        "--recovery-step-gib=5",
    ],
    "magm, no memory known": ["--policy=magm", IN_ORDER, "--estimator=none"],
    "magm, the same, recovery-step 5 GiB": [
        "--policy=magm",
        IN_ORDER,
        "--estimator=none",
        "--recovery-step-gib=5",
    ],
}
FIGURES = {"total time": "total_s", "JCT": "avg_jct_s", "energy": "energy_mj"}


def simulate(colloc, folder, trace, run, words):
    """The totals of one run as `colloc simulate --json` prints them."""
    done = subprocess.run(
        [
            colloc,
            "simulate",
            f"--trace={folder}/{trace}.txt",
            *run,
            "--sharing=mps",
            "--json",
            *words,
        ],
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


def resampled(seed):
    return (f"--resample={seed}",)


def spread(seed):
    return (f"--seed={seed}",)


def numbers(text):
    """The numbers that a text like "1-3,7" lists: 1, 2, 3, 7."""
    bounds = [part.partition("-") for part in text.split(",")]
    return [n for first, _, last in bounds for n in range(int(first), int(last or first) + 1)]


def ranges(seeds):
    runs = [[seeds[0]]]
    for seed in seeds[1:]:
        runs.append([seed]) if seed != runs[-1][-1] + 1 else runs[-1].append(seed)
    return " and ".join(f"{run[0]} to {run[-1]}" for run in runs)


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "| --- |" + " ---: |" * (len(head) - 1)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def means(results, trace, runs_of):
    for name in ROWS:
        runs = [results[trace, run, name] for run in runs_of]
        mean = lambda key: statistics.mean(run[key] for run in runs)
        bound = statistics.mean(run["total_s"] / run["lower_bound_s"] for run in runs)
        yield [
            name,
            f"{mean('total_s'):,.0f}",
            f"{bound:.3f}",
            f"{mean('avg_jct_s'):,.0f}",
            f"{mean('energy_mj'):.2f}",
            f"{mean('oom'):.2f}",
        ]


def comparison(results, trace, runs, row):
    """Yields table rows that compare `row` with the best of the dissertation's policies."""
    best = min(
        THESIS,
        key=lambda name: statistics.mean(results[trace, run, name]["total_s"] for run in runs),
    )
    others = {
        f"{best}, the best on average": (best,),
        "the best of the six on each trace": THESIS,
    }
    for name, policies in others.items():
        for figure, key in FIGURES.items():
            more = sorted(
                100
                * (
                    results[trace, run, row][key]
                    / min(results[trace, run, p][key] for p in policies)
                    - 1
                )
                for run in runs
            )
            low, middle, high = statistics.quantiles(more, n=4)
            yield [
                f"{figure}, against {name}",
                f"{sum(x < 0 for x in more)} of {len(more)}",
                f"{middle:+.1f}",
                f"{low:+.1f} to {high:+.1f}",
            ]


def page(results, seeds):
    yield (
        "Made by `scripts/judge-predictive`. Simulated: 4 x A100-40GB, MPS, memory declared; the "
        "policy predictive knows the SM activity of the tasks. The resampled traces have the seeds "
        f"{ranges(seeds)}; the policy's constants were chosen on the seeds 1001 to 1040. The bound "
        "is a total time that no policy can beat (`src/sim/bound.c`)."
    )
    yield ""
    yield (
        "The result on one trace depends by some per cent on which task happens to be last. The "
        "traces are therefore also simulated with slightly varied run times (`--seed`)."
    )
    for trace in TRACES:
        groups = (
            (f"{trace} itself", [()]),
            (
                f"{trace} itself, run times varied {len(seeds)} times: means",
                [spread(s) for s in seeds],
            ),
            (f"{trace} resampled {len(seeds)} times: means", [resampled(s) for s in seeds]),
        )
        for title, of in groups:
            yield from ("", f"## {title}", "")
            yield from table(
                ["", "total, s", "of the bound", "JCT, s", "energy, MJ", "OOM"],
                means(results, trace, of),
            )
        for row in ("predictive", "predictive, times known too"):
            yield from ("", f"{row}, on the resampled traces (less is better):", "")
            yield from table(
                ["", "less on", "median, %", "quartiles, %"],
                comparison(results, trace, [resampled(s) for s in seeds], row),
            )


def traces_of(results, row, figure, base, runs):
    """Per cent by which the mean of a row exceeds that of another one, on each trace."""
    mean = lambda trace, name: statistics.mean(results[trace, run, name][figure] for run in runs)
    return [100 * (mean(trace, row) / mean(trace, base(trace)) - 1) for trace in TRACES]


def shortest(results, runs):
    """Trace -> the dissertation's policy of the least mean total there."""
    total = lambda trace, name: statistics.mean(results[trace, r, name]["total_s"] for r in runs)
    return {trace: min(THESIS, key=lambda name: total(trace, name)) for trace in TRACES}


def summary(results, seeds):
    """Rows of docs/predictive.md: predictive against the best of the dissertation's policies."""
    groups = [()], [spread(s) for s in seeds], [resampled(s) for s in seeds]
    found = []
    for title, row, figure in (
        ("times known: total time", "predictive, times known too", "total_s"),
        ("completion time", "predictive, times known too", "avg_jct_s"),
        ("energy", "predictive, times known too", "energy_mj"),
        ("not known: total time", "predictive", "total_s"),
    ):
        cells = []
        for runs in groups[:2]:
            best = shortest(results, runs)
            more = traces_of(results, row, figure, best.get, runs)
            cells.append(", ".join(f"{x:+.1f} %" for x in more))
        best, medians, less = shortest(results, groups[2]), [], []
        for trace in TRACES:
            mine = [
                results[trace, run, row][figure] / results[trace, run, best[trace]][figure] - 1
                for run in groups[2]
            ]
            medians.append(f"{100 * statistics.median(mine):+.1f} %")
            less.append(str(sum(x < 0 for x in mine)))
        found.append([title, *cells, ", ".join(medians), f"{', '.join(less)} of {len(seeds)}"])
    names = (shortest(results, runs) for runs in groups)
    against = [" and ".join(best[trace] for trace in TRACES) for best in names]
    found.append(["compared with", *against, ""])
    yield from table(["", "trace itself", "times spread", "resampled, median", "better on"], found)


def backfill(results, seeds):
    """Rows of docs/placement.md: what backfill gains."""
    runs, head = [resampled(s) for s in seeds], [""]
    rows = [["MAGM, strictly in order"], ["MAGM with backfill"], ["... times known as well"]]
    names = "magm", "magm with backfill", "magm with backfill, times known"
    for trace in TRACES:
        head += [f"{trace}: total", "completion"]
    for row, name in zip(rows, names):
        for i, trace in enumerate(TRACES):
            for figure in ("total_s", "avg_jct_s"):
                mean = statistics.mean(results[trace, run, "magm"][figure] for run in runs)
                more = traces_of(results, name, figure, lambda _: "magm", runs)[i]
                row.append(f"{mean:,.0f} s" if name == "magm" else f"{more:+.1f} %")
    yield from table(head, rows)


PAGES = {
    "docs/measured/predictive.md": ("judge-predictive", page),
    "docs/predictive.md": ("judge-predictive", summary),
    "docs/placement.md": ("judge-predictive", backfill),
}


def make_parser(description, seeds):
    """Of a program that judges by simulations; `seeds`: its usual ones."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("colloc", help="the program")
    parser.add_argument(
        "--seeds", type=numbers, default=seeds, help="FIRST-LAST,...; default: %(default)s"
    )
    return parser


def main():
    parser = make_parser(__doc__, "4001-4030,5001-5030")
    parser.add_argument(
        "--pages", action="store_true", help="write the tables into the pages; default: printed"
    )
    arguments = parser.parse_args()
    seeds = arguments.seeds
    folder = os.path.join(ROOT, "data", "traces")
    runs_of = [(), *map(spread, seeds), *map(resampled, seeds)]
    keys = [(trace, run, name) for trace in TRACES for run in runs_of for name in ROWS]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = pool.map(
            lambda key: simulate(arguments.colloc, folder, key[0], key[1], ROWS[key[2]]), keys
        )
        results = dict(zip(keys, runs))
    for path, (name, lines) in PAGES.items():
        block = "\n".join(lines(results, seeds))
        if arguments.pages:
            write_blocks(os.path.join(ROOT, path), {name: block})
        else:
            print(block)


if __name__ == "__main__":
    main()
