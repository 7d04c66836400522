# SPDX-License-Identifier: Apache-2.0
"""The learned estimators of Transformers with more labels: what data and an easy class are worth.

    scripts/study-transformers --make SET FOLDER LABELS...
        data for `colloc memnet train` and `eval`, in a folder, from lines of
        `python3 -m colloc_collect.labels` and the measured runs of data/memory
    scripts/study-transformers --judge COLLOC STUDY LABELS...
        in docs/measured/memnet, transformers.csv: what the weights in STUDY/SET/weights answer for
        the rows of STUDY/SET that were kept back; the same of trainings that were stopped before
        they ended, whose weights are in STUDY/SET/stopped with the epochs that each network had
        (epochs.json: a number by network). labels.csv: labels beside published memory, and
        measured-labels.csv: labels beside the runs of data/memory. A file of which LABELS has
        nothing stays as it is
    scripts/study-transformers
        the tables of docs/measured/memnet.md, from these files

A SET is one of

    crashes-out     drawn as the published ones were, labelled for their A100; those that do not fit
                    it are left out
    crashes-in      the same, with these as a class of their own, as published: 42,000 MiB
    measured-K      the measured runs alone, of which the K-th third (0 to 2) is kept back
    both-K          these and all labels, for the H200 of the measured ones
    measured, both  the same by the split of data/memory, as the weights are shipped

The rows that are kept back are measured ones wherever there are any: a label is an estimate.
"""
import csv
import hashlib
import json
import lzma
import math
import os
import statistics
import subprocess
import sys

from colloc_collect.clean import split_of
from colloc_collect.folded import unfold
from colloc_fit.memory_runs import read_lines
from colloc_fit.tables import markdown, write_blocks

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MEASURED = f"{ROOT}/data/memory"
PUBLISHED = f"{ROOT}/data/published/transformers.csv"
FOLDER = f"{ROOT}/docs/measured/memnet"
PAGE = f"{ROOT}/docs/measured/memnet.md"
COLUMNS = "id kind family split model batch optimizer precision status driver_mib".split()
H200, A100 = "NVIDIA H200", "NVIDIA A100-SXM4-40GB"
A100_MIB = 40960
CRASHED_MIB = 42000  # what GPUMemNet's data have for a run that ran out of memory
LARGEST_MIB = 46 << 10  # chosen: just above the largest measured run, so that classes are the same
FOLDS, VALIDATION_OF = 3, 5  # a fifth of what is not kept back is for validation
SETS = ("crashes-out", "crashes-in", "measured-0", "measured-1", "measured-2", "both-0", "both-1",
        "both-2", "measured", "both")  # fmt: skip
NETWORKS = ("transformer-mlp-8gib", "transformer-transformer-8gib")
PUBLISHED_ACCURACY = {"transformer-mlp-8gib": 0.8552, "transformer-transformer-8gib": 0.8650}
DRAWN = ("published", "collected")  # the others are labelled to be compared, not to learn from
CONFIDENCE = 1.96  # standard errors: 95 %


# ---- data ----


def read_labels(paths):
    """Lines that have a label, each network once, whatever files they are in."""
    found = {}
    for path in paths:
        for row in read_lines(path):
            if "mib" in row and row["draw"] in DRAWN:
                found[row["id"]] = row
    return [found[key] for key in sorted(found)]


def row_of(label, mib, split):
    return {
        "id": label["id"],
        "kind": "transformer",
        "family": f"drawn-{label['draw']}",
        "split": split,
        "model": label["id"],
        "batch": label["batch"],
        "optimizer": label["optimizer"],
        "precision": label["precision"],
        "status": "ok",
        "driver_mib": mib,
    }


def number_of(key, count):
    """0 to count - 1, by a hash of the row's name."""
    return int(hashlib.sha256(key.encode()).hexdigest()[:8], 16) % count


def published_rows(labels, with_crashes):
    """Labels for an A100, divided as in the dissertation: 70, 20 and 10 %."""
    for label in labels:
        mib = label["mib"][A100]
        if label["draw"] != "published" or mib > A100_MIB and not with_crashes:
            continue
        split = split_of({"kind": "transformer", "id": label["id"]})
        yield row_of(label, min(mib, CRASHED_MIB) if mib <= A100_MIB else CRASHED_MIB, split)


def is_kept_back(row, fold):
    return number_of(f"fold {row['id']}", FOLDS) == fold


def learning_part(key):
    return "validation" if number_of(f"part {key}", VALIDATION_OF) == 0 else "train"


def measured_rows(fold):
    """The measured Transformers; fold: the third that is kept back, None: as data/memory says."""
    with lzma.open(f"{MEASURED}/runs.csv.xz", "rt") as file:
        for row in csv.DictReader(file):
            if row["kind"] != "transformer" or row["status"] != "ok":
                continue
            if fold is not None:
                row["split"] = "test" if is_kept_back(row, fold) else learning_part(row["id"])
            yield {name: row[name] for name in COLUMNS}


def added_rows(labels):
    """Labels for the H200 of the measured runs; none is kept back."""
    for label in labels:
        if label["mib"][H200] <= LARGEST_MIB:
            yield row_of(label, label["mib"][H200], learning_part(label["id"]))


def rows_of_set(name, labels):
    if name.startswith("crashes"):
        return list(published_rows(labels, name == "crashes-in"))
    kind, _, fold = name.partition("-")
    rows = list(measured_rows(int(fold) if fold else None))
    return rows + list(added_rows(labels)) if kind == "both" else rows


def make(name, folder, paths):
    """Writes runs.csv and layers.jsonl of a set."""
    if name not in SETS:
        raise SystemExit(f"study-transformers: no set {name}: {', '.join(SETS)}")
    labels = read_labels(paths)
    rows = rows_of_set(name, labels)
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/runs.csv", "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    wanted = {row["model"] for row in rows}
    with open(f"{folder}/layers.jsonl", "w", encoding="utf-8") as file:
        for layers in read_lines(f"{MEASURED}/layers.jsonl.xz"):
            if layers["model"] in wanted:
                file.write(json.dumps(layers) + "\n")
        for label in labels:
            if label["id"] in wanted:
                line = {"model": label["id"], "rows": unfold(label["layers"])}
                file.write(json.dumps(line) + "\n")
    parts = [sum(row["split"] == part for row in rows) for part in ("train", "validation", "test")]
    print(f"{name}: {parts[0]} rows to learn from, {parts[1]} for validation, {parts[2]} kept back")


# ---- results ----


def interval(share, count):
    """Wilson's interval of a share of `count` rows (Wilson, 1927)."""
    z2 = CONFIDENCE**2
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = CONFIDENCE * math.sqrt(share * (1 - share) / count + z2 / (4 * count * count))
    half /= 1 + z2 / count
    return middle - half, middle + half


def evaluate(colloc, data, weights):
    """What `colloc memnet eval` says of the rows that were kept back, by network."""
    done = subprocess.run(
        [colloc, "memnet", "eval", f"--weights={weights}", "--only=transformer-", "--json", data],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return {
        row["network"]: row
        for row in json.loads(done.stdout)["memnet"]
        if row["group"] == "test" and row["family"] is None and row["network"] in NETWORKS
    }


def judge(colloc, study, paths):
    """Writes labels.csv and, once a set is trained, transformers.csv."""
    write_labels(paths)
    write_measured_labels(paths)
    with_weights = [name for name in SETS if weights_of(f"{study}/{name}")]
    if not with_weights:
        print("no set is trained")
        return
    with open(f"{FOLDER}/transformers.csv", "w", encoding="utf-8") as file:
        file.write("set,network,stopped_after,learned_from,kept_back,accuracy,under,"
                   "commonest_class\n")  # fmt: skip
        for name in with_weights:
            data = f"{study}/{name}"
            with open(f"{data}/runs.csv", encoding="utf-8", newline="") as runs:
                learned = sum(row["split"] == "train" for row in csv.DictReader(runs))
            for weights, epochs in weights_of(data):
                for network, row in evaluate(colloc, data, weights).items():
                    file.write(
                        f"{name},{network},{epochs.get(network, '')},{learned},{row['rows']},"
                        f"{row['accuracy']:.4f},{row['under']:.4f},{row['commonest_class']:.4f}\n"
                    )


def weights_of(data):
    """The folders of weights of a set, each with the epochs of networks that were stopped."""
    found = [(f"{data}/weights", {})] if os.path.exists(f"{data}/weights") else []
    if os.path.exists(f"{data}/stopped"):
        with open(f"{data}/stopped/epochs.json", encoding="utf-8") as file:
            found.append((f"{data}/stopped", json.load(file)))
    return found


def read_published():
    with open(PUBLISHED, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def write_labels(paths):
    """labels.csv: a row for each published network, its label, and what was measured."""
    published = read_published()
    given = {
        row["number"]: row["mib"][A100]
        for path in paths
        for row in read_lines(path)
        if row["draw"] == "given" and "mib" in row
    }
    if not given:
        return
    with open(f"{FOLDER}/labels.csv", "w", encoding="utf-8") as file:
        file.write("width,layers,sequence,batch,published_mib,label_mib\n")
        for number, row in enumerate(published):
            if number in given:
                cells = [row[key] for key in ("width", "layers", "sequence", "batch", "memory_mib")]
                file.write(",".join([*cells, f"{given[number]:.0f}"]) + "\n")


def write_measured_labels(paths):
    """measured-labels.csv: a row for each measured run, its label, and the process's memory."""
    rows = (row for path in paths for row in read_lines(path))
    labels = {
        row["id"]: row["mib"][H200] for row in rows if row["draw"] == "planned" and "mib" in row
    }
    if not labels:
        return
    with open(f"{FOLDER}/measured-labels.csv", "w", encoding="utf-8") as file:
        file.write("id,precision,measured_mib,label_mib\n")
        for row in measured_rows(None):
            if row["id"] in labels:
                cells = [row["id"], row["precision"], row["driver_mib"], f"{labels[row['id']]:.0f}"]
                file.write(",".join(cells) + "\n")


# ---- the page ----


def read_csv(name):
    with open(f"{FOLDER}/{name}", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def percent(value):
    return f"{100 * value:.1f} %"


def accuracy_cells(rows):
    """Rows kept back, accuracy with its interval, under-estimates: of all rows together."""
    counts = [int(row["kept_back"]) for row in rows]
    total = sum(counts)
    mean = {
        key: sum(float(row[key]) * count for row, count in zip(rows, counts)) / total
        for key in ("accuracy", "under", "commonest_class")
    }
    low, high = interval(mean["accuracy"], total)
    return [
        str(total),
        f"**{percent(mean['accuracy'])}** ({100 * low:.1f} to {100 * high:.1f})",
        percent(mean["under"]),
        percent(mean["commonest_class"]),
    ]


def accuracy_rows(found, stopped):
    """The rows of a table: of the trainings that ended, or of those that were stopped."""
    rows = []
    for name, folds in (
        ("crashes-out", 0), ("crashes-in", 0), ("measured", FOLDS), ("both", FOLDS),
        ("measured", 0), ("both", 0),
    ):  # fmt: skip
        names = {f"{name}-{fold}" for fold in range(folds)} if folds else {name}
        for network in NETWORKS:
            mine = [
                row
                for row in found
                if row["set"] in names
                and row["network"] == network
                and bool(row["stopped_after"]) is stopped
            ]
            if len(mine) != len(names):
                continue
            learned = round(statistics.mean(int(row["learned_from"]) for row in mine))
            label = f"{name}, each third kept back once" if folds else name
            rows.append([label, f"`{network}`", str(learned), *accuracy_cells(mine)])
            if stopped:
                epochs = sorted({int(row["stopped_after"]) for row in mine})
                rows[-1].append(" to ".join(map(str, sorted({epochs[0], epochs[-1]}))))
            else:
                is_published = name.startswith("crashes")
                rows[-1].append(percent(PUBLISHED_ACCURACY[network]) if is_published else "")
    return rows


def accuracy_table(stopped):
    head = ["data", "network", "learned from", "kept back", "accuracy (95 %)", "under",
            "always the most frequent class", "epochs" if stopped else "published"]  # fmt: skip
    return markdown(head, accuracy_rows(read_csv("transformers.csv"), stopped))


def label_errors():
    """Errors of labels beside published memory: as they are, and with the constant of every second
    row, of all rows and of the others."""
    pairs = [(float(r["label_mib"]), float(r["published_mib"])) for r in read_csv("labels.csv")]
    others = statistics.median(measured - label for label, measured in pairs[::2])
    plain = [label / measured - 1 for label, measured in pairs]
    less = [(label + others) / measured - 1 for label, measured in pairs]
    return others, plain, less


def labels_table():
    others, plain, less = label_errors()
    of_runs = [
        float(row["label_mib"]) / float(row["measured_mib"]) - 1
        for row in read_csv("measured-labels.csv")
    ]
    rows = []
    for name, errors in (
        ("labels as they are", plain),
        (f"with {others:,.0f} MiB of the device, by every second row", less),
        ("the same, the other rows alone", less[1::2]),
        ("measured runs of data/memory", of_runs),
    ):
        sizes = sorted(abs(error) for error in errors)
        rows.append(
            [name, str(len(sizes)), f"{100 * statistics.median(sizes):.2f} %",
             percent(sizes[math.ceil(0.95 * len(sizes)) - 1]), percent(sizes[-1]),
             percent(statistics.mean(error < 0 for error in errors))]
        )  # fmt: skip
    return markdown(["", "networks", "median error", "p95", "worst", "too low"], rows)


def tables():
    """Name of a block of the page -> its Markdown."""
    found = {"labels": labels_table()}
    if os.path.exists(f"{FOLDER}/transformers.csv"):
        found["transformers"] = accuracy_table(stopped=False)
        found["stopped"] = accuracy_table(stopped=True)
    return found


def main():
    words = sys.argv[1:]
    if words[:1] == ["--make"] and len(words) > 3:
        make(words[1], words[2], words[3:])
    elif words[:1] == ["--judge"] and len(words) > 3:
        judge(words[1], words[2], words[3:])
    elif words:
        raise SystemExit(__doc__)
    else:
        write_blocks(PAGE, tables())


if __name__ == "__main__":
    main()
