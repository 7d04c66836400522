# SPDX-License-Identifier: Apache-2.0
"""What the SM activity of the dissertation's trainings changes in chapter 6, by simulation.

    scripts/study-activity --simulate COLLOC    docs/measured/activity/effect.csv: the gains with
                                                the activity of data/traces/tasks.txt and with that
                                                derived from an H100 (tests/gpu/catalogue_trial.py)
    scripts/study-activity --estimate COLLOC DATA
                                                docs/measured/activity/waits.csv: the activity that
                                                is estimated from the authors' summaries
    scripts/study-activity                      the tables of docs/measured/activity.md, from these
                                                files and the measurements beside them

COLLOC: the program. Settings and machine are those of scripts/evaluate.
DATA: the folder of the reference implementation's summaries (*.model; github.com/itu-rad/CARMA).
"""

import csv
import json
import os
import subprocess
import sys
import tempfile

from colloc_evaluate import chapter6, inputs, runs
from colloc_fit.judge_predictive import ROOT
from colloc_fit.tables import markdown, write_blocks

PAGE = os.path.join(ROOT, "docs", "measured", "activity.md")
FOLDER = os.path.join(ROOT, "docs", "measured", "activity")
TASKS = os.path.join(ROOT, "data", "traces", "tasks.txt")
TRIAL = os.path.join(ROOT, "tests", "gpu", "catalogue_trial.py")
IMAGES = {"imagenet": 1281167, "cifar100": 50000, "mnist": 60000}  # of an epoch
RATIOS = "1.6", "2.15", "2.8"  # how much longer an A100 takes than an H100
BANDWIDTHS = "2.15"  # the ratio of the memory bandwidths
SEEDS = range(1, 11)

# Row -> setting, compared with exclusive; figure; published value.
GAINS = {
    "90 tasks: OWF, memory known": (chapter6.ORACLES["OWF on MPS"], "total_s", "30.13"),
    "90 tasks: LUG, memory unknown": (
        chapter6.RECOVERY["LUG (SMACT ≤ 80 % and GMem ≥ 5 GB)"],
        "total_s",
        "28.00",
    ),
    "60 tasks: MAGM, memory unknown": (
        chapter6.HEAVY["MAGM (2 GB, 80 %) + recovery"],
        "total_s",
        "",
    ),
    "60 tasks: the same, energy": (
        chapter6.HEAVY["MAGM (2 GB, 80 %) + recovery"],
        "energy_mj",
        "13.3",
    ),
    "90 tasks: predictive, memory known": (
        runs.Setting(90, "predictive", "declared"),
        "total_s",
        "",
    ),
}


def read_tasks():
    with open(TASKS, encoding="utf-8") as file:
        head, *lines = [line.split() for line in file if line.strip() and line[0] != "#"]
    return [dict(zip(head, line)) for line in lines]


def read_published():
    """The tasks whose activity was published."""
    path = os.path.join(ROOT, "data", "published", "activity.csv")
    with open(path, encoding="utf-8", newline="") as file:
        rows = csv.DictReader(line for line in file if line[0] != "#")
        return {row["task"] for row in rows}


# ---- simulation ----


def derive_tasks(ratio, path):
    """Writes the tasks with the activity that follows from the H100's."""
    done = subprocess.run(
        [sys.executable, TRIAL, "--tasks", FOLDER, TASKS, ratio],
        capture_output=True,
        text=True,
        check=True,
    )
    with open(path, "w", encoding="utf-8") as file:
        file.write(done.stdout)
    return path


def gains(colloc, tasks, folder):
    """Row of GAINS -> median, least and most over the seeds, in per cent."""
    mine = inputs.Inputs(folder, inputs.OWN_TRACES, {"": tasks}, (), "")
    bench = runs.Runs(colloc, mine, list(SEEDS))
    exclusive = {setting: chapter6.exclusive(setting.trace) for setting, *_ in GAINS.values()}
    bench.prepare([*exclusive, *exclusive.values()])
    return {
        row: bench.less_percent([setting], [exclusive[setting]], name)
        for row, (setting, name, _) in GAINS.items()
    }


def simulate(colloc):
    with tempfile.TemporaryDirectory() as folder:
        columns = {"tasks.txt": gains(colloc, None, folder)}
        for ratio in RATIOS:
            path = derive_tasks(ratio, os.path.join(folder, f"tasks-{ratio}.txt"))
            columns[ratio] = gains(colloc, path, folder)
    with open(os.path.join(FOLDER, "effect.csv"), "w", encoding="utf-8") as file:
        file.write("row,activity,median,least,most\n")
        for activity, rows in columns.items():
            for row, spread in rows.items():
                numbers = ",".join(f"{value:.4f}" for value in spread)
                file.write(f'"{row}",{activity},{numbers}\n')


# ---- estimates ----

GPU = "A100-40GB"
TOKENS = 512
SUMMARIES = {  # model -> the file of its summary; %s: the batch
    "bert_base": "BERT_base",
    "bert_large": "BERT_large",
    "gpt2_large": "gpt2_large",
    "xlnet_base": "xlnet_base_cased",
    "xlnet_large": "xlnet_large_cased",
    "efficientnet_b0": "efficientnet_%s",
    "inception_v3": "inceptionv3_%s",
    "mobilenet_v2": "mobilenet_%s",
    "resnet50": "resnet50_%s",
    "vgg16": "vgg_%s",
    "xception": "Xception_%s",
}


def rate_of(task):
    return IMAGES[task["dataset"]] * int(task["epochs"]) / float(task["solo_s"])


def loader_rate(tasks):
    """Images a second that the authors' machine loaded: the most that one of the trainings got."""
    return max(rate_of(task) for task in tasks if task["dataset"] == "imagenet")


def estimate_of(colloc, data, task, *options):
    """The estimate of the graph for one of the trainings."""
    name = SUMMARIES[task["model"]]
    path = os.path.join(data, (name % task["batch"] if "%" in name else name) + ".model")
    words = [colloc, "estimate", path, "--estimator=graph", "--json", f"--gpu={GPU}"]
    words += [f"--batch={task['batch']}", f"--gpus={task['gpus']}"]
    if task["dataset"] not in IMAGES:
        words.append(f"--seq={TOKENS}")
    done = subprocess.run([*words, *options], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["estimates"][0]


def estimate(colloc, data):
    published = read_published()
    tasks = {t["task"]: t for t in read_tasks() if t["task"] in published}
    rate = loader_rate(list(tasks.values()))
    with open(os.path.join(FOLDER, "waits.csv"), "w", encoding="utf-8") as file:
        file.write("task,gpus,published,step_ms,exchange_ms,smact,loader_rate,smact_with_loader\n")
        for name, task in tasks.items():
            has_images = task["dataset"] in IMAGES
            alone = estimate_of(colloc, data, task)
            loaded = alone
            if has_images:
                loaded = estimate_of(colloc, data, task, f"--loader-rate={rate:.4f}")
            each = estimate_of(colloc, data, task, "--parallel=none")
            file.write(
                f"{name},{task['gpus']},{task['smact']},{alone['step_ms']:.3f},"
                f"{alone['step_ms'] - each['step_ms']:.3f},"
                f"{alone['smact']:.4f},{rate if has_images else 0:.1f},{loaded['smact']:.4f}\n"
            )


# ---- the page ----


def read_means():
    with open(os.path.join(FOLDER, "means.csv"), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def derived_smact():
    """(model, dataset, batch) -> SMACT by the ratio of the bandwidths."""
    with tempfile.TemporaryDirectory() as folder:
        path = derive_tasks(BANDWIDTHS, os.path.join(folder, "tasks.txt"))
        with open(path, encoding="utf-8") as file:
            head, *lines = [line.split() for line in file]
    rows = [dict(zip(head, line)) for line in lines]
    return {(row["model"], row["dataset"], row["batch"]): row["smact"] for row in rows}


def images_per_s(task):
    if task["dataset"] not in IMAGES:
        return ""
    rate = IMAGES[task["dataset"]] * int(task["epochs"]) / float(task["solo_s"])
    return f"{rate:,.0f}"


def dash_is_empty(cell):
    return "" if cell == "-" else cell


def trainings_table():
    tasks = {(t["model"], t["dataset"], t["batch"]): t for t in reversed(read_tasks())}
    published, derived = read_published(), derived_smact()
    rows = []
    for mean in read_means():
        key = mean["model"], mean["dataset"], mean["batch"]
        task = tasks[key]
        source = "" if task["task"] in published else " (assumed)"
        rows.append(
            [
                ", ".join(key),
                f"{float(mean['samples_per_s']):,.0f}",
                images_per_s(task),
                f"{int(mean['gpu_mib']):,}",
                dash_is_empty(task["memory_mib"]),
                dash_is_empty(task["rerun_mib"]),
                *(mean[name] for name in ("smact", "smocc", "dram", "power_w")),
                task["smact"] + source,
                derived[key],
            ]
        )
    head = [
        *("training, data set, batch", "samples/s", "published, with loading", "MiB"),
        *("published", "rerun", "SMACT", "SMOCC", "DRAM", "W"),
        *("SMACT on the A100", "derived"),
    ]
    return markdown(head, rows)


def effect_table():
    with open(os.path.join(FOLDER, "effect.csv"), encoding="utf-8", newline="") as file:
        cells = {(row["row"], row["activity"]): row for row in csv.DictReader(file)}
    rows = []
    for label, (_, _, published) in GAINS.items():
        row = [label, published]
        for activity in ("tasks.txt", *RATIOS):
            cell = {
                name: float(cells[label, activity][name]) for name in ("median", "least", "most")
            }
            row.append("{median:.1f} ({least:.1f} to {most:.1f})".format(**cell))
        rows.append(row)
    derived = [f"derived, {ratio}" for ratio in RATIOS]
    return markdown(["", "published", "as in tasks.txt", *derived], rows)


def exchange(cell):
    """The part of a step that waits for the other GPU's gradients."""
    share = float(cell["exchange_ms"]) / float(cell["step_ms"])
    return f"{100 * share:.2f} %" if int(cell["gpus"]) > 1 else ""


def waits_table():
    with open(os.path.join(FOLDER, "waits.csv"), encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    names = "smact", "smact_with_loader"
    errors = {n: [abs(float(c[n]) - float(c["published"])) for c in cells] for n in names}
    rows = [
        [c["task"], c["gpus"], c["published"], exchange(c), *(f"{float(c[n]):.2f}" for n in names)]
        for c in cells
    ]
    means = [f"**{sum(errors[n]) / len(cells):.3f}**" for n in names]
    rows.append(["mean error", "", "", "", *means])
    head = ["training", "GPUs", "published", "exchange", "estimated", "with the loader's rate"]
    return markdown(head, rows)


def tables():
    """Name of a block of the page -> its Markdown."""
    return {
        "trainings": trainings_table(),
        "effect": effect_table(),
        "waits": waits_table(),
    }


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--simulate":
        simulate(sys.argv[2])
        return
    if len(sys.argv) == 4 and sys.argv[1] == "--estimate":
        estimate(sys.argv[2], sys.argv[3])
        return
    if len(sys.argv) != 1:
        sys.exit(__doc__)
    write_blocks(PAGE, tables())


if __name__ == "__main__":
    main()
