# SPDX-License-Identifier: Apache-2.0
"""Rows as scaled inputs and classes of memory.

Inputs have mean 0 and standard deviation 1 over the training rows. The scaling is stored with the
weights, since an estimate scales in the same way. A class is a range of memory; the last one has
no upper end, so that there are as many classes as the largest training row needs.
"""

import dataclasses
import math

import numpy

CLASSES_MAX = 64  # GPUMEMNET_CLASSES_MAX: of a file of weights
ROWS_LEAST = 20  # training rows; chosen
VARIANCE_LEAST = 1e-9  # below it an input is constant, and the network must not depend on it


class NoData(Exception):
    """Too few rows of a plan's family; its text says how many there are."""


@dataclasses.dataclass(frozen=True)
class Scaling:
    """Subtract the mean, multiply by the factor; in 32 bits, as an estimate does."""

    mean: numpy.ndarray  # of each of the plan's inputs
    factor: numpy.ndarray
    token_mean: numpy.ndarray  # of a layer's three inputs
    token_factor: numpy.ndarray
    longest: int  # layers; longer sequences are cut


@dataclasses.dataclass(frozen=True)
class Example:
    values: numpy.ndarray  # float32, (inputs,)
    tokens: numpy.ndarray  # float32, (layers, 3)
    label: int


def rows_of(feed, plan, part):
    """The rows of one part that a plan's network learns from or is judged by."""
    return [
        row for row in feed.rows if not row.real and row.set == plan.family and row.part == part
    ]


def count_classes(rows, plan):
    """Up to that of the largest row. Raises NoData, or ValueError for more than CLASSES_MAX."""
    if len(rows) < ROWS_LEAST:
        raise NoData(
            f"{len(rows)} training rows of kind {plan.family}: at least {ROWS_LEAST} are needed"
        )
    classes = math.floor(max(row.bytes for row in rows) / plan.bin_bytes) + 1
    if classes > CLASSES_MAX:
        raise ValueError(f"{classes} classes of {plan.bin_mib} MiB: at most {CLASSES_MAX}")
    return classes


def spread(columns):
    """Mean and factor of each column of a two-dimensional array."""
    mean, variance = columns.mean(axis=0), columns.var(axis=0)
    factor = numpy.where(
        variance > VARIANCE_LEAST, 1 / numpy.sqrt(numpy.maximum(variance, VARIANCE_LEAST)), 0
    )
    return mean.astype(numpy.float32), factor.astype(numpy.float32)


def make_scaling(rows, plan):
    values = numpy.array([[row.values[i] for i in plan.values] for row in rows])
    tokens = numpy.array([token for row in rows for token in row.tokens] or [(0.0, 0.0, 0.0)])
    return Scaling(*spread(values), *spread(tokens), max(len(row.tokens) for row in rows))


def make_examples(rows, plan, scaling, classes):
    result = []
    for row in rows:
        values = numpy.array([row.values[i] for i in plan.values], dtype=numpy.float32)
        tokens = numpy.array(row.tokens[: scaling.longest], dtype=numpy.float32).reshape(-1, 3)
        result.append(
            Example(
                (values - scaling.mean) * scaling.factor,
                (tokens - scaling.token_mean) * scaling.token_factor,
                plan.class_of(row.bytes, classes),
            )
        )
    return result
