# SPDX-License-Identifier: Apache-2.0
"""Judges two limits of placement by simulation: `smact-max` and predictive's `slowdown-max`.

    scripts/judge-limits build/src/cli/colloc [--page=PAGE.md]

Each value is compared with the default on the same resampled traces: total time, mean completion,
crashes. The defaults (80 %, from the dissertation; 3, chosen on the seeds 1001 to 1040) were not
chosen on these seeds.
"""

import concurrent.futures
import math
import os
import statistics

from colloc_fit.judge_predictive import ROOT, TRACES, make_parser, resampled, simulate
from colloc_fit.tables import markdown, write_block

MACHINE = ["--gpus=4xA100-40GB-DGX-Station"]
WAYS = {
    "magm, memory known": ["--policy=magm", "--backfill=no"],
    "magm, no memory known": ["--policy=magm", "--backfill=no", "--estimator=none"],
    "predictive": ["--policy=predictive"],
    "predictive, times known": ["--policy=predictive", "--known=all"],
}
LIMITS = {
    "smact-max": ("0.8", ("0.6", "0.7", "0.75", "0.85", "0.9", "0.95", "1")),
    "slowdown-max": ("3", ("1.5", "2", "2.5", "4", "6")),
}


def settings():
    """(limit, way) for each pair of which the limit counts: predictive, which knows the activity of
    the tasks here, predicts in place of `smact-max`."""
    for limit in LIMITS:
        for way, words in WAYS.items():
            if (limit == "slowdown-max") == ("--policy=predictive" in words):
                yield limit, way


def difference(mine, others):
    """Of paired runs, in per cent, with the 95 % interval of the mean; bold beyond noise."""
    ratios = [100 * (a / b - 1) for a, b in zip(mine, others)]
    mean, spread = statistics.mean(ratios), statistics.stdev(ratios)
    interval = 1.96 * spread / math.sqrt(len(ratios))
    text = f"{mean:+.1f} ± {interval:.1f}"
    return f"**{text}**" if abs(mean) > interval else text


def rows(results, seeds):
    for trace in TRACES:
        for limit, way in settings():
            default, values = LIMITS[limit]
            base = [results[trace, seed, limit, way, default] for seed in seeds]
            for value in values:
                runs = [results[trace, seed, limit, way, value] for seed in seeds]
                yield [
                    trace,
                    way,
                    f"`{limit}` {value}",
                    *(
                        difference([run[key] for run in runs], [run[key] for run in base])
                        for key in ("total_s", "avg_jct_s")
                    ),
                    f"{sum(run['oom'] for run in runs)}, {sum(run['oom'] for run in base)}",
                ]


def main():
    parser = make_parser(__doc__, "7001-7060")
    parser.add_argument("--page", help="file whose block judge-limits is replaced")
    arguments = parser.parse_args()
    folder, seeds = os.path.join(ROOT, "data", "traces"), arguments.seeds
    keys = [
        (trace, seed, limit, way, value)
        for trace in TRACES
        for limit, way in settings()
        for value in (LIMITS[limit][0], *LIMITS[limit][1])
        for seed in seeds
    ]

    def run(key):
        trace, seed, limit, way, value = key
        words = [*MACHINE, *WAYS[way], f"--{limit}={value}"]
        return simulate(arguments.colloc, folder, trace, words, resampled(seed))

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(keys, pool.map(run, keys)))
    head = [
        "trace",
        "policy",
        "limit",
        "total time, %",
        "mean completion, %",
        "crashes, of default",
    ]
    write_block(arguments.page, "judge-limits", markdown(head, list(rows(results, seeds))))


if __name__ == "__main__":
    main()
