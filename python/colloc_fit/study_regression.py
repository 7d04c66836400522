# SPDX-License-Identifier: Apache-2.0
"""The dissertation's first attempts at the memory of MLPs: regression, and table 5.1.

    scripts/study-regression [--mlps FILE]

From layers, batch size, parameters and activations, extremely randomised trees predict the memory
as a number, and as one of classes of 1000 MB. Beside them: a straight line through the four, the
nearest neighbour, and the mean. Each sample is predicted by a fit to the other four fifths.

FILE: a table with the columns of GPUMemNet's data of MLPs (github.com/itu-rad/GPUMemNet,
mlp_data_step2.csv), which the dissertation used. Without it the MLPs of data/memory are taken.
Prints two tables in Markdown.
"""
import argparse
import ast
import csv
import lzma
import os

import numpy

from colloc_fit.extra_trees import Forest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NAMES = ("layers", "batch size", "parameters", "activations")
CLASS_MIB = 1000  # the dissertation's
FOLDS = 5
SEED = 1


def read_own(path):
    """The MLPs of data/memory: rows of the four features, and MiB."""
    with lzma.open(path, "rt") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if row["kind"] == "mlp" and row["status"] == "ok" and row["driver_mib"]
        ]
    names = ("layers", "batch", "parameters", "activations")
    features = [[float(row[name]) for name in names] for row in rows]
    return numpy.array(features), numpy.array([float(row["driver_mib"]) for row in rows])


def read_gpumemnet(path):
    """The same of GPUMemNet's table. A layer is each entry of its list."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    features = [
        [
            len(ast.literal_eval(row["Activations-Params"])),
            float(row["Batch Size"]),
            float(row["Total Parameters"]),
            float(row["Total Activations"]),
        ]
        for row in rows
    ]
    return numpy.array(features), numpy.array([float(row["Max GPU Memory (MiB)"]) for row in rows])


# ---- what predicts: fit(features, targets) returns a function of features ----


def fit_trees(features, targets):
    return Forest(features, targets, seed=SEED).predict


def fit_line(features, targets):
    columns = numpy.column_stack([features, numpy.ones(len(features))])
    weights = numpy.linalg.lstsq(columns, targets, rcond=None)[0]
    return lambda rows: numpy.column_stack([rows, numpy.ones(len(rows))]) @ weights


def fit_neighbour(features, targets):
    """Each feature counts in units of its standard deviation."""
    scale = features.std(axis=0)
    scale[scale == 0] = 1

    def predict(rows):
        nearest = [(((features - row) / scale) ** 2).sum(axis=1).argmin() for row in rows]
        return targets[nearest]

    return predict


def fit_mean(features, targets):
    return lambda rows: numpy.tile(targets.mean(axis=0), (len(rows), 1))


FITS = {
    "extremely randomised trees": fit_trees,
    "nearest neighbour": fit_neighbour,
    "straight line": fit_line,
    "the mean": fit_mean,
}


def cross_validate(fit, features, targets):
    """What is predicted of each sample by a fit without its fold."""
    fold = numpy.random.default_rng(SEED).permutation(len(features)) % FOLDS
    predicted = numpy.empty_like(targets)
    for k in range(FOLDS):
        predicted[fold == k] = fit(features[fold != k], targets[fold != k])(features[fold == k])
    return predicted


# ---- how good it is ----


def class_scores(truth, answers):
    """Accuracy, and precision, recall and F1 of the classes, weighted by their samples."""
    scores = numpy.zeros(3)
    for name in numpy.unique(truth):
        hits = ((truth == name) & (answers == name)).sum()
        precision = hits / max(1, (answers == name).sum())
        recall = hits / (truth == name).sum()
        both = precision + recall
        f1 = 2 * precision * recall / both if both else 0
        scores += (truth == name).mean() * numpy.array([precision, recall, f1])
    return ((truth == answers).mean(), *scores)


def print_regression(features, mib):
    print("| regression | mean error | 95 % of the errors below | variance explained |")
    print("| --- | --- | --- | --- |")
    for name, fit in FITS.items():
        errors = numpy.abs(cross_validate(fit, features, mib[:, None])[:, 0] - mib)
        explained = 1 - (errors**2).mean() / mib.var()
        high = numpy.quantile(errors, 0.95)
        print(f"| {name} | {errors.mean():.0f} MiB | {high:.0f} MiB | {100 * explained:.1f} % |")
    weights = Forest(features, mib[:, None], seed=SEED).importances()
    parts = ", ".join(f"{name} {weight:.3f}" for name, weight in zip(NAMES, weights))
    print(f"\nImportances of the trees: {parts}.\n")


def print_classes(features, mib):
    numbers = (mib // CLASS_MIB).astype(int)
    one_hot = (numbers[:, None] == numpy.arange(numbers.max() + 1)).astype(float)
    print("| classes of 1000 MB | accuracy | precision | recall | F1 |")
    print("| --- | --- | --- | --- | --- |")
    for name, fit in FITS.items():
        answers = cross_validate(fit, features, one_hot).argmax(axis=1)
        cells = " | ".join(f"{score:.4f}" for score in class_scores(numbers, answers))
        print(f"| {name} | {cells} |")
    counts = numpy.bincount(numbers)
    print(f"\n{len(mib)} MLPs in {(counts > 0).sum()} classes, {counts.max()} in the largest.")


def main():
    parser = argparse.ArgumentParser(prog="study-regression", description=__doc__.splitlines()[0])
    parser.add_argument("--mlps", metavar="FILE")
    args = parser.parse_args()
    own = os.path.join(TOP, "data", "memory", "runs.csv.xz")
    features, mib = read_gpumemnet(args.mlps) if args.mlps else read_own(own)
    print_regression(features, mib)
    print_classes(features, mib)


if __name__ == "__main__":
    main()
