# SPDX-License-Identifier: Apache-2.0
"""Compares predictive with preemption, and with it and look-ahead, with predictive without.

On the two traces and on resampled ones:

    scripts/judge-preempt build/src/cli/colloc

Prints a table in Markdown. The constants of both were chosen on the seeds 1001 to 1010:
judge it by others.
"""

import concurrent.futures
import os
import statistics

from colloc_fit.judge_predictive import ROOT, TRACES, make_parser, resampled, simulate, table
from colloc_fit.tables import write_block

RUN = ["--policy=predictive", "--known=all"]
GAIN_WANTED = 0.15
WAYS = {"": ["--preempt"], ", look-ahead": ["--preempt", "--look-ahead"]}


def row(name, before, after):
    """`before`, `after`: results of the same traces without preemption and in a way."""
    bound = lambda run: run["total_s"] / run["lower_bound_s"]
    change = [b["avg_jct_s"] / a["avg_jct_s"] - 1 for a, b in zip(before, after)]
    return [
        name,
        f"{100 * statistics.median(change):+.1f} %",
        f"{sum(x <= -GAIN_WANTED for x in change)} of {len(change)}",
        f"{statistics.median(map(bound, before)):.3f}",
        f"{statistics.median(map(bound, after)):.3f}",
        f"{statistics.median(run['max_stretch'] for run in after):.2f}",
        str(sum(run["suspensions"] for run in after)),
    ]


def judge(colloc, seeds):
    folder = os.path.join(ROOT, "data", "traces")
    words = [(), *map(resampled, seeds)]
    ways = {None: [], **WAYS}
    keys = [(trace, word, way) for trace in TRACES for word in words for way in ways]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = pool.map(
            lambda key: simulate(colloc, folder, key[0], RUN + ways[key[2]], key[1]), keys
        )
        results = dict(zip(keys, runs))
    for trace in TRACES:
        of = lambda chosen, way: [results[trace, word, way] for word in chosen]
        for way in WAYS:
            yield row(trace + way, of(words[:1], None), of(words[:1], way))
        for way in WAYS if seeds else ():
            name = f"{trace}, {len(seeds)} resampled{way}"
            yield row(name, of(words[1:], None), of(words[1:], way))


def main():
    parser = make_parser(__doc__, "6001-6060")
    parser.add_argument("--page", help="a page whose table is written; default: printed")
    arguments = parser.parse_args()
    head = [
        "",
        "completion time",
        "by 15 % shorter on",
        "total of the bound, without",
        "with",
        "longest completion, of FIFO's",
        "tasks stopped",
    ]
    rows = list(judge(arguments.colloc, arguments.seeds))
    write_block(arguments.page, "judge-preempt", "\n".join(table(head, rows)))


if __name__ == "__main__":
    main()
