# SPDX-License-Identifier: Apache-2.0
"""The pictures of `colloc memnet eval -o FOLDER`, after chapter 5 of the thesis on collocation.

    python3 -m colloc_report.memnet FOLDER

Reads FOLDER/answers.csv and features.csv, writes FOLDER/index.html and each figure as SVG and CSV.
"""

import collections
import csv
import os
import sys

import numpy

from colloc_memnet import evaluate, tables
from colloc_report import Page, figure

SETS = {"mlp": ("MLPs", 1024), "cnn": ("CNNs", 8192), "transformer": ("Transformers", 8192)}
PUBLISHED = {name: accuracy for name, (accuracy, *_) in evaluate.PUBLISHED.items()}
POINTS_MOST = 600
VALUES = tables.VALUES


def read(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return list(csv.DictReader(file))


def sample(rows, most):
    """Points that are evenly spread, and always the same."""
    return rows if len(rows) <= most else [rows[i * len(rows) // most] for i in range(most)]


# --- projections


def standardised(rows):
    values = numpy.array([[float(row[name]) for name in VALUES] for row in rows])
    deviation = values.std(axis=0)
    return (values - values.mean(axis=0))[:, deviation > 1e-9] / deviation[deviation > 1e-9]


def pca(values):
    """The two directions of most variance, and their shares of it."""
    _, strengths, directions = numpy.linalg.svd(values - values.mean(axis=0), full_matrices=False)
    for direction in directions:  # the sign is arbitrary: the largest part points up
        direction *= numpy.sign(direction[numpy.argmax(abs(direction))])
    shares = strengths**2 / (strengths**2).sum()
    return values @ directions[:2].T, shares[:2]


def neighbourhood(squares, perplexity):
    """Symmetric probabilities of being neighbours.

    The width of each point's kernel gives the perplexity.
    """
    n = len(squares)
    result = numpy.zeros((n, n))
    for i in range(n):
        distances = numpy.delete(squares[i], i)
        low, high, precision = 0.0, numpy.inf, 1.0
        for _ in range(50):
            weights = numpy.exp(-precision * (distances - distances.min()))
            weights /= weights.sum()
            entropy = -(weights * numpy.log(weights + 1e-30)).sum()
            if abs(entropy - numpy.log(perplexity)) < 1e-4:
                break
            if entropy > numpy.log(perplexity):
                low, precision = (
                    precision,
                    precision * 2 if high == numpy.inf else (precision + high) / 2,
                )
            else:
                high, precision = precision, (precision + low) / 2
        result[i] = numpy.insert(weights, i, 0)
    return (result + result.T) / (2 * n)


def squared_distances(values):
    sums = (values**2).sum(axis=1)
    return numpy.maximum(sums[:, None] + sums[None, :] - 2 * values @ values.T, 0)


def tsne(values, perplexity=30, steps=400):
    """Exact t-SNE (van der Maaten and Hinton, 2008).

    It starts from the PCA, so that the same rows give the same picture.
    """
    p = numpy.maximum(
        neighbourhood(squared_distances(values), min(perplexity, (len(values) - 1) / 3)), 1e-12
    )
    start = pca(values)[0]
    y = 1e-4 * start / start[:, 0].std()
    speed, gain = numpy.zeros_like(y), numpy.ones_like(y)
    for step in range(steps):
        kernel = 1 / (1 + squared_distances(y))
        numpy.fill_diagonal(kernel, 0)
        pull = ((12 if step < 100 else 1) * p - kernel / kernel.sum()) * kernel
        gradient = 4 * (numpy.diag(pull.sum(axis=1)) - pull) @ y
        gain = numpy.maximum(
            numpy.where((gradient > 0) != (speed > 0), gain + 0.2, gain * 0.8), 0.01
        )
        speed = (0.5 if step < 100 else 0.8) * speed - max(len(y) / 12, 50) * gain * gradient
        y = y + speed - (y + speed).mean(axis=0)
    return y


def by_class(rows, points, bin_mib):
    series = collections.OrderedDict()
    for k in sorted({int(float(row["measured_mib"]) // bin_mib) for row in rows}):
        chosen = [
            i for i, row in enumerate(rows) if int(float(row["measured_mib"]) // bin_mib) == k
        ]
        step = bin_mib // 1024
        series[f"{k * step} to {(k + 1) * step} GiB"] = (
            [float(points[i, 0]) for i in chosen],
            [float(points[i, 1]) for i in chosen],
        )
    return series


def draw_projections(page, features):
    page.heading("The sets seen from two sides")
    page.text(
        "PCA and t-SNE of the thesis's features and our two (figures 5.8 to 5.10), coloured by "
        "memory. Real networks are not in them. "
        f"t-SNE is exact, of at most {POINTS_MOST} rows."
    )
    for name, (title, bin_mib) in SETS.items():
        rows = [row for row in features if row["set"] == name and row["real"] == "0"]
        if len(rows) < 10:
            continue
        points, shares = pca(standardised(rows))
        page.figure(
            figure.scatter(
                f"pca-{name}",
                by_class(rows, points, bin_mib),
                f"first, {100 * shares[0]:.0f} % of the variance",
                f"second, {100 * shares[1]:.0f} %",
            ),
            f"{title}: PCA",
        )
        rows = sample(rows, POINTS_MOST)
        points = tsne(standardised(rows))
        page.figure(
            figure.scatter(f"tsne-{name}", by_class(rows, points, bin_mib), "first", "second"),
            f"{title}: t-SNE",
        )


# --- memory


def draw_staircase(page, features):
    rows = [
        (numpy.expm1(float(row["log_parameters"])) / 1e6, row)
        for row in features
        if row["set"] == "mlp" and row["real"] == "0"
    ]
    rows = [(millions, row) for millions, row in rows if millions > 0.1]
    if not rows:
        return
    page.heading("Memory against parameters")
    page.text(
        "The thesis's figure 5.4 shows memory growing in stairs. The allocator takes memory from "
        "the GPU in blocks of 2 MiB or "
        "20 MiB; below a few million parameters all MLPs take the same."
    )
    series = {}
    for label, states in (("no state (SGD)", 0), ("one (momentum)", 1), ("two (Adam)", 2)):
        chosen = [(millions, row) for millions, row in rows if float(row["states"]) == states]
        if chosen:
            series[label] = (
                [float(millions) for millions, _ in chosen],
                [float(row["measured_mib"]) for _, row in chosen],
            )
    page.figure(
        figure.scatter("staircase", series, "parameters, millions", "memory, MiB", log="xy"),
        "MLPs, by what the optimizer keeps per parameter",
    )


def draw_batches(page, features):
    """Networks with several batch sizes at one precision and one size of optimizer state."""
    groups = collections.defaultdict(dict)
    for row in features:
        groups[row["network"], row["states"], row["half"]][int(row["batch"])] = float(
            row["measured_mib"]
        )
    longest = sorted(
        (key for key in groups if len(groups[key]) >= 2),
        key=lambda key: (-len(groups[key]), -max(groups[key]) / min(groups[key]), key),
    )[:4]
    if not longest:
        return
    page.heading("Memory against batch size")
    page.text(
        "The thesis's figure 5.5, of real networks. Where only two batches were measured, a line "
        "says nothing of what lies between."
    )
    series = {}
    for network, states, half in longest:
        batches = sorted(groups[network, states, half])
        series[network] = (batches, [groups[network, states, half][batch] for batch in batches])
    page.figure(
        figure.lines("batches", series, "batch", "memory, MiB", points=True),
        "Real networks that ran with several batch sizes",
    )


# --- answers


def draw_accuracy(page, answers):
    groups = [
        name
        for name in PUBLISHED
        if any(row["net"] == name and row["part"] == "test" for row in answers)
    ]
    ours = []
    for name in groups:
        rows = [row for row in answers if row["net"] == name and row["part"] == "test"]
        ours.append(sum(row["class"] == row["answered"] for row in rows) / len(rows))
    page.heading("Accuracy")
    page.text(
        "Test rows in the right bin, beside tables 5.3, 5.5 and 5.7, which are of other data: Adam "
        "only, another GPU."
    )
    page.figure(
        figure.bars(
            "accuracy",
            groups,
            {"ours": ours},
            "accuracy",
            marks={"ours": [PUBLISHED[name] for name in groups]},
            flat=True,
        )
    )


def draw_answers(page, answers):
    page.heading("Estimated against measured")
    page.text(
        "The upper edge of the likeliest bin, for drawn networks of the test part and for real "
        "ones. Points below the line are "
        "under-estimates."
    )
    for name in PUBLISHED:
        series = {}
        for label, part in (("drawn, test part", "test"), ("real", "real")):
            rows = [row for row in answers if row["net"] == name and row["part"] == part]
            if rows:
                series[label] = (
                    [float(row["measured_mib"]) / 1024 for row in rows],
                    [float(row["edge_mib"]) / 1024 for row in rows],
                )
        if series:
            page.figure(
                figure.scatter(
                    f"answers-{name}",
                    series,
                    "measured, GiB",
                    "estimated, GiB",
                    diagonal=True,
                    log="xy",
                ),
                name,
            )


def draw(folder):
    answers, features = read(folder, "answers.csv"), read(folder, "features.csv")
    page = Page("The learned estimators of memory")
    draw_accuracy(page, answers)
    draw_answers(page, answers)
    draw_staircase(page, features)
    draw_batches(page, features)
    draw_projections(page, features)
    return page.write(folder)


if __name__ == "__main__":
    print(draw(sys.argv[1]))
