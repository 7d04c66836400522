# SPDX-License-Identifier: Apache-2.0
"""Compares tasks placed anywhere, whose allocations wait, with MAGM that knows their memory.

    scripts/judge-waits [--page=docs/measured/memory-waits.md] build/src/cli/colloc

Simulates the first 20 tasks of the 60-task trace, the 60-task and the 90-task trace, and traces
resampled from each, at the traces' own speed. All tasks are time-sliced. "Anywhere" is the policy
rr with no estimates, no margin and no limits. Prints a table in Markdown, or writes it into the
page. Differences of a per cent are chance: compare the means of the resampled traces.
"""
import concurrent.futures
import json
import os
import statistics
import subprocess
import tempfile

from colloc_fit.judge_predictive import ROOT, make_parser
from colloc_fit.tables import markdown, write_block

ANYWHERE = ["--policy=rr", "--estimator=none", "--known=none", "--smact-max=1",
            "--min-free-gib=0", "--margin-gib=0"]  # fmt: skip
EXACT = "MAGM, exact memory"
WAYS = {
    "anywhere, allocations wait": [*ANYWHERE, "--preload=yes"],
    "anywhere, recovery after a crash": ANYWHERE,
    EXACT: ["--policy=magm", "--preload=yes"],
}
HEAD = ["", "total, s", "of MAGM's", "less on", "mean completion, s", "OOM crashes",
        "allocations waited", "each, s", "suspensions", "moves"]  # fmt: skip


def write_first(trace, count, path):
    """Writes a trace of the first tasks of another one."""
    with open(trace, encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("#")]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines[: 1 + count])


def simulate(colloc, trace, way, seed):
    words = [f"--trace={trace}", *WAYS[way], f"--resample={seed}", "--sharing=streams", "--json"]
    done = subprocess.run([colloc, "simulate", *words], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def row(name, runs, exact):
    """`runs`, `exact`: results of the same traces, of this way and of MAGM."""
    mean = lambda key: statistics.mean(run.get(key, 0) for run in runs)
    share = [run["total_s"] / other["total_s"] for run, other in zip(runs, exact)]
    each = sum(run.get("memory_wait_s", 0) for run in runs) / max(
        1, len(runs) * mean("memory_waits")
    )
    count = "{:.1f}" if len(runs) > 1 else "{:.0f}"
    return [
        name,
        f"{mean('total_s'):,.0f}",
        f"{statistics.median(share):.3f}",
        f"{sum(x < 1 for x in share)} of {len(share)}" if runs is not exact else "-",
        f"{mean('avg_jct_s'):,.0f}",
        count.format(mean("oom")),
        count.format(mean("memory_waits")),
        f"{each:.0f}",
        count.format(mean("suspensions")),
        count.format(mean("moves")),
    ]


def judge(colloc, seeds, folder):
    """The rows; `folder` is for a file."""
    traces = os.path.join(ROOT, "data", "traces")
    of_60 = os.path.join(traces, "philly-60.txt")
    of_20 = os.path.join(folder, "first-20.txt")
    write_first(of_60, 20, of_20)
    for name, trace in (
        ("20 tasks", of_20),
        ("60 tasks", of_60),
        ("90 tasks", os.path.join(traces, "philly-90.txt")),
    ):
        for chosen, what in (([0], name), (seeds, f"{name}, {len(seeds)} resampled")):
            keys = [(way, seed) for way in WAYS for seed in chosen]
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                found = list(pool.map(lambda key: simulate(colloc, trace, *key), keys))
            runs = {way: found[i * len(chosen) :][: len(chosen)] for i, way in enumerate(WAYS)}
            for way in WAYS:
                yield row(f"{what}: {way}", runs[way], runs[EXACT])


def main():
    parser = make_parser(__doc__, "1-60")
    parser.add_argument("--page", help="file whose block judge-waits is replaced; default: prints")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = list(judge(arguments.colloc, arguments.seeds, folder))
    write_block(arguments.page, "judge-waits", markdown(HEAD, rows))


if __name__ == "__main__":
    main()
