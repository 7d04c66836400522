# SPDX-License-Identifier: Apache-2.0
"""The dissertation's 60-task trace composed from mixes that were measured on one GPU, beside what
its tables 6.5 and 6.6 print (docs/mixes.md).

    scripts/study-mixes --plan=FOLDER --kind=H200   # what to measure: for tests/gpu/mixes_trial.py
    scripts/study-mixes MIXES.csv [--page=FILE.md]                  # the tables, of measured mixes

A row is a setting of colloc_evaluate.chapter6 on four GPUs of the measured kind, each with the
memory of the dissertation's A100 of 40 GB, so that the same tasks fit beside each other. Memory and
times alone of the tasks are the dissertation's; speeds of tasks that share a GPU, SM activity and
power are those that were measured. The rows of Horus, FakeTensor and GPUMemNet need
COLLOC_EVAL_DATA, which has the answers of these estimators.
"""
import argparse
import csv
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from typing import Any, Dict, Iterator, List, Optional, Tuple

from colloc_evaluate import chapter6, inputs
from colloc_fit.measure_mixes import SEPARATOR
from colloc_fit.tables import markdown, write_blocks

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
KINDS = os.path.join(ROOT, "data", "gpu-kinds.txt")
PUBLISHED = os.path.join(ROOT, "data", "published", "chapter6.csv")
A100_MIB = ("40960", "624")  # of data/gpu-kinds.txt: memory, and what no process can have of it
GPUS = 4

# In the order in which their mixes are measured. Names of table 6.6, where it has the row.
ROWS = {
    "Exclusive": chapter6.HEAVY["Exclusive"],
    "MAGM + GPUMemNet on MPS": chapter6.HEAVY["MAGM + GPUMemNet (80 %)"],
    "MAGM on MPS": chapter6.HEAVY["MAGM (2 GB, 80 %) + recovery"],
    "MAGM + Horus on MPS": chapter6.HEAVY["MAGM + Horus (80 %)"],
    "MAGM + FakeTensor on MPS": chapter6.HEAVY["MAGM + FakeTensor (80 %)"],
    "LUG on MPS": chapter6.HEAVY["LUG (2 GB, 80 %) + recovery"],
    "RR on MPS": chapter6.HEAVY["RR on MPS + recovery"],
}
CRASHES = {name: key for name, setting in ROWS.items()
           for key, other in chapter6.HEAVY.items() if other is setting}  # fmt: skip


def kind_line(kind: str) -> str:
    """The kind of GPU as data/gpu-kinds.txt has it, with the memory of an A100 of 40 GB."""
    with open(KINDS, encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if words[:2] == ["kind", kind]:
                return " ".join([*words[:2], *A100_MIB, *words[4:]]) + "\n"
    raise SystemExit(f"--kind={kind}: data/gpu-kinds.txt has no such kind")


class Folder:
    """What colloc_evaluate.runs.Setting.words needs of the inputs, with paths within a folder."""

    kinds = {"": "kinds"}

    def options(self, trace: int, memory: str) -> List[str]:
        """The options that name the trace and its tasks."""
        return ["--trace=trace", "--tasks=tasks"]


def own_rows(path: str) -> List[List[str]]:
    """The lines of a table of data/traces, the names of its columns first."""
    with open(path, encoding="utf-8") as file:
        return [line.split() for line in file if line.strip() and line[0] != "#"]


def answers_of(data: str) -> Dict[str, Dict[str, str]]:
    """What each estimator answered to each task of the trace, by the task's name in data/traces.

    data: the evaluation data, which have other names: the two traces are the same, task by task.
    """
    with open(os.path.join(data, "carma", "tasks.csv"), encoding="utf-8", newline="") as file:
        rows = {row["task"]: row for row in csv.DictReader(file)}
    with open(os.path.join(data, "traces", "philly-60.csv"), encoding="utf-8") as file:
        theirs = [row["task"] for row in csv.DictReader(file)]
    found = {}
    for (_, own), other in zip(own_rows(inputs.OWN_TRACES[60])[1:], theirs):
        found[own] = {
            name: rows[other][f"{name}_mb_reported"] or inputs.NO_ANSWER_MB
            for name in inputs.ESTIMATORS
        }
    return found


def write_tasks(path: str, answers: Dict[str, Dict[str, str]]) -> None:
    """Writes the tasks of the trace, with the estimators' answers, where there are any."""
    head, *rows = own_rows(inputs.OWN_TASKS)
    names = inputs.ESTIMATORS if answers else ()
    visited = {words[1] for words in own_rows(inputs.OWN_TRACES[60])[1:]}
    with open(path, "w", encoding="utf-8") as file:
        file.write(" ".join([*head, *(f"{name}_mb_reported" for name in names)]) + "\n")
        for row in rows:
            if row[0] in visited:
                file.write(" ".join([*row, *(answers[row[0]][name] for name in names)]) + "\n")


def write_plan(folder: str, kind: str) -> None:
    """Writes the rows' inputs into a folder, and rows.json: name and words of `colloc simulate`
    for each, with paths within the folder. Rows of an estimator without answers are left out."""
    os.makedirs(folder, exist_ok=True)
    data = os.environ.get("COLLOC_EVAL_DATA")
    answers = answers_of(data) if data else {}
    shutil.copyfile(inputs.OWN_TRACES[60], os.path.join(folder, "trace"))
    write_tasks(os.path.join(folder, "tasks"), answers)
    with open(inputs.MACHINE, encoding="utf-8") as file:
        machine = file.read()
    with open(os.path.join(folder, "kinds"), "w", encoding="utf-8") as file:
        file.write(machine + kind_line(kind))
    rows = [
        (name, setting._replace(gpus=f"{GPUS}x{kind}").words(Folder(), 0))
        for name, setting in ROWS.items()
        if answers or setting.estimator in ("none", "declared")
    ]
    with open(os.path.join(folder, "rows.json"), "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)


def read_plan(folder: str) -> List[Tuple[str, List[str]]]:
    """The rows that write_plan wrote."""
    with open(os.path.join(folder, "rows.json"), encoding="utf-8") as file:
        return [(name, words) for name, words in json.load(file)]


def simulate(colloc: str, folder: str, words: List[str], mixes: str) -> Dict[str, Any]:
    """What `colloc simulate` says of a row with a table of mixes."""
    done = subprocess.run(
        [os.path.abspath(colloc), *words, f"--mixes={os.path.abspath(mixes)}", "--json"],
        cwd=folder, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    return dict(json.loads(done.stdout))


def read_mixes(path: str) -> List[Dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_alone(rows: List[Dict[str, str]], path: str) -> None:
    """Writes the rows of trainings alone: with them speeds beside others are modelled."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(row for row in rows if SEPARATOR not in row["trainings"])


def published(source: str, row: str) -> Optional[float]:
    """A figure of data/published/chapter6.csv; None: it is not printed there."""
    with open(PUBLISHED, encoding="utf-8") as file:
        for found in csv.DictReader(line for line in file if line[0] != "#"):
            if (found["source"], found["row"]) == (source, row):
                if found["metric"] in ("oom", "energy_mj", "shorter_percent"):
                    return float(found["value"])
    return None


def percent_less(than: float, figure: float) -> float:
    return 100 * (1 - figure / than)


def text_of(figure: Optional[float], decimals: int = 1) -> str:
    return "" if figure is None else f"{figure:.{decimals}f}"


def is_alone_known(rows: List[Dict[str, str]]) -> bool:
    """Was each training of the trace measured alone? Otherwise energy is partly that of the
    published GPU, which has another limit of power."""
    known = {row["trainings"] for row in rows if row["power_w"]}
    return {words[1] for words in own_rows(inputs.OWN_TRACES[60])[1:]} <= known


def trace_rows(
    composed: Dict[str, Dict[str, Any]], modelled: Dict[str, Dict[str, Any]], has_energy: bool
) -> Iterator[List[str]]:
    """The rows of the table of the trace. The first two: what simulate returned, by the row's
    name."""

    def saved(runs: Dict[str, Dict[str, Any]], run: Dict[str, Any]) -> str:
        mj = percent_less(runs["Exclusive"]["energy_mj"], run["energy_mj"])
        return text_of(mj if has_energy else None)

    exclusive, exclusive_mj = composed["Exclusive"], published("table 6.6", "Exclusive")
    for name, run in composed.items():
        model, mj = modelled[name], published("table 6.6", name)
        key = CRASHES[name]
        yield [
            name,
            text_of(run["total_s"] / 60, 0),
            text_of(published("figures 6.13 to 6.15", key) if name != "Exclusive" else 0),
            text_of(percent_less(exclusive["total_s"], run["total_s"])),
            text_of(percent_less(modelled["Exclusive"]["total_s"], model["total_s"])),
            text_of(mj and exclusive_mj and percent_less(exclusive_mj, mj)),
            saved(composed, run),
            saved(modelled, model),
            text_of(published("table 6.5", key), 0),
            text_of(run["oom"], 0),
            text_of(100 * run["mixes"]["measured"], 0) + " %",
        ]


TRACE_HEAD = [
    "",
    "total, min",
    "total, % less: published",
    "measured mixes",
    "modelled",
    "energy, % less: published",
    "measured mixes",
    "modelled",
    "crashes: published",
    "measured mixes",
    "time of sharing that is measured",
]


def activity_published() -> Dict[str, float]:
    """SM activity of each training alone, as the dissertation's figures have it."""
    path = os.path.join(ROOT, "data", "published", "activity.csv")
    with open(path, encoding="utf-8") as file:
        rows = csv.DictReader(line for line in file if line[0] != "#")
        return {row["task"]: float(row["smact"]) for row in rows}


def alone_rows(rows: List[Dict[str, str]]) -> Iterator[List[str]]:
    """The rows of the table of trainings alone."""
    activity = activity_published()
    for row in sorted(rows, key=lambda row: row["trainings"]):
        name = row["trainings"]
        if SEPARATOR not in name and row["speeds"]:
            activity_here = row["smact"] and f"{float(row['smact']):.2f}"
            yield [name, activity_here, text_of(activity.get(name), 2),
                   row["power_w"] and f"{float(row['power_w']):.0f}"]  # fmt: skip


def figures(rows: List[Dict[str, str]], key: str) -> List[float]:
    """Those that are known."""
    return [float(row[key]) for row in rows if row[key]]


def middle(values: List[float], decimals: int) -> str:
    if not values:
        return ""
    least, most = min(values), max(values)
    return (f"{statistics.median(values):.{decimals}f} "
            f"({least:.{decimals}f} to {most:.{decimals}f})")  # fmt: skip


def size_rows(rows: List[Dict[str, str]]) -> Iterator[List[str]]:
    """The rows of the table of mixes by how many trainings they have."""
    by_size: Dict[int, List[Dict[str, str]]] = {}
    for row in rows:
        by_size.setdefault(len(row["trainings"].split(SEPARATOR)), []).append(row)
    for size, group in sorted(by_size.items()):
        known = [row for row in group if row["speeds"]]
        speeds = [[float(word) for word in row["speeds"].split(SEPARATOR)] for row in known]
        if size > 1 and known:
            yield [str(size), str(len(group)), str(len(group) - len(known)),
                   middle([sum(one) for one in speeds], 2),
                   middle([speed for one in speeds for speed in one], 2),
                   middle(figures(known, "smact"), 2),
                   middle(figures(known, "power_w"), 0)]  # fmt: skip


def blocks_of(colloc: str, mixes: str) -> Dict[str, str]:
    """The tables of the page."""
    rows = read_mixes(mixes)
    with tempfile.TemporaryDirectory() as folder:
        write_plan(folder, rows[0]["gpu"])
        alone = os.path.join(folder, "alone.csv")
        write_alone(rows, alone)
        plan = read_plan(folder)
        composed = {name: simulate(colloc, folder, words, mixes) for name, words in plan}
        modelled = {name: simulate(colloc, folder, words, alone) for name, words in plan}
    return {
        "study-mixes-trace": markdown(
            TRACE_HEAD, trace_rows(composed, modelled, is_alone_known(rows))
        ),
        "study-mixes-sizes": markdown(
            ["trainings", "mixes", "crashed", "sum of speeds", "speed of each", "SMACT", "W"],
            size_rows(rows),
        ),
        "study-mixes-alone": markdown(
            ["training alone", "SMACT here", "published, A100", "W here"], alone_rows(rows)
        ),
    }


def main() -> None:
    """Reads the options, and writes a plan or the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plan", metavar="FOLDER", help="write what is to be measured")
    parser.add_argument("--kind", default="H200", help="of the GPU, as in data/gpu-kinds.txt")
    parser.add_argument("--colloc", default=os.path.join(ROOT, "build", "src", "cli", "colloc"))
    parser.add_argument("--page", metavar="FILE", help="write the tables into its blocks")
    parser.add_argument("mixes", nargs="?")
    options = parser.parse_args()
    if options.plan:
        write_plan(options.plan, options.kind)
        return
    if not options.mixes:
        parser.error("name a table of mixes, or --plan=FOLDER")
    blocks = blocks_of(options.colloc, options.mixes)
    if options.page:
        write_blocks(options.page, blocks)
    else:
        print("\n\n".join(blocks.values()))


if __name__ == "__main__":
    main()
