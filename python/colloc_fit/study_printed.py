# SPDX-License-Identifier: Apache-2.0
"""Estimates from print(model) for the real runs of data/memory that are of torchvision's networks.

    scripts/study-printed COLLOC FOLDER

COLLOC is the program. Each network is built by the installed torchvision, printed, and each of its
runs is estimated from that text and the shape of one sample (--input). Networks that this
torchvision cannot build are skipped and counted. FOLDER gets a row for each run (runs.csv) and
summary.csv: by evidence, the errors of the whole process as the driver saw it, and P99. Run it with
the Python that has torchvision.
"""
import collections
import os
import statistics
import sys
import tempfile

from colloc_fit.memory_runs import MemoryRuns
from colloc_fit.study_baselines import TOP, ask_colloc, percentile, write_rows

FRAMES = 16  # of a video, as colloc_collect.real feeds it


def input_of(architecture):
    """The shape of one sample: 3x224x224."""
    frames = [FRAMES] if architecture.feed == "video" else []
    return "x".join(map(str, [3, *frames, architecture.size, architecture.size]))


def print_networks(architectures, make, folder):
    """Name -> the file with what print(model) shows, of those that `make` can build."""
    texts = {}
    for architecture in architectures:
        try:
            text = str(make(architecture))
        except (AttributeError, ImportError, TypeError, ValueError) as error:
            print(f"{architecture.name} is skipped: {error}", file=sys.stderr)
            continue
        texts[architecture.name] = os.path.join(folder, architecture.name)
        with open(texts[architecture.name], "w", encoding="utf-8") as file:
            file.write(text)
    return texts


def run_row(run, found):
    """A row of runs.csv; the evidence is "none" where there is no estimate.

    found: the estimates, of which the first is taken.
    """
    row = {name: run[name] for name in ("id", "model", "batch", "optimizer", "precision")}
    row["measured_mib"] = run["driver_mib"]
    answer = found[0] if found and found[0]["mib"] is not None else {"evidence": "none"}
    row.update({name: answer.get(name) for name in ("evidence", "mib", "p99_mib")})
    return row


def summarize(evidence, rows):
    """Errors of the runs with this evidence, and how P99 held."""
    known = [row for row in rows if row["evidence"] == evidence and row["mib"] is not None]
    sizes = [abs(row["mib"] / row["measured_mib"] - 1) for row in known]
    ratios = [row["p99_mib"] / row["measured_mib"] for row in known]
    return {
        "evidence": evidence,
        "networks": len({row["model"] for row in rows if row["evidence"] == evidence}),
        "runs": sum(row["evidence"] == evidence for row in rows),
        "median_error": statistics.median(sizes) if sizes else None,
        "p95_error": percentile(sizes, 0.95) if sizes else None,
        "worst_error": max(sizes, default=None),
        "above_p99": sum(ratio < 1 for ratio in ratios) / len(ratios) if ratios else None,
        "p99_over": statistics.mean(ratios) - 1 if ratios else None,
    }


def main(colloc, folder):
    from colloc_collect.real import ARCHITECTURES, MAKE

    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        runs = MemoryRuns(os.path.join(TOP, "data", "memory"), scratch).runs
        counts = collections.Counter(run["model"] for run in runs if run["kind"] == "real")
        named = {a.name: a for a in ARCHITECTURES if a.source == "torchvision" and counts[a.name]}
        texts = print_networks(named.values(), MAKE["torchvision"], scratch)
        rows = [
            run_row(
                run,
                ask_colloc(
                    colloc,
                    run,
                    texts[run["model"]],
                    "--estimator=graph",
                    f"--input={input_of(named[run['model']])}",
                ),
            )
            for run in runs
            if run["kind"] == "real" and run["model"] in texts
        ]
    summary = [summarize(name, rows) for name in sorted({row["evidence"] for row in rows})]
    write_rows(os.path.join(folder, "runs.csv"), rows)
    write_rows(os.path.join(folder, "summary.csv"), summary)
    print(f"{len(texts)} networks, {len(rows)} runs; {len(named) - len(texts)} networks skipped")
    for line in summary:
        print(line)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
