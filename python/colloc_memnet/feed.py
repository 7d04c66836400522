# SPDX-License-Identifier: Apache-2.0
"""What `colloc memnet` writes to our standard input: JSON, an object in each line.

    {"plan": NAME, "family", "method", "bin_mib", "values", "encoders", "members"}
    {"row": ID, "set", "real", "part", "family", "network", "batch", "optimizer", "precision",
     "bytes", "values", "tokens"}
    {"answer": PLAN, "row": N, "classes", "edge_bytes", "p50_bytes", "p90_bytes", "p99_bytes"}

Plans come first, then rows, then answers; an answer's `row` is the position of the row, from 0.
"""

import dataclasses
import json


@dataclasses.dataclass(frozen=True)
class Plan:
    """A network to train: its shape, which src/estimator/gpumemnet/gpumemnet_layout.c decides."""

    name: str  # of the file of weights, without its ending
    family: str  # "mlp", "cnn" or "transformer": which rows it is trained on
    method: str  # "mlp" (ensemble) or "transformer" (encoder)
    bin_mib: int  # class k is [k, k + 1) bins; the last class has no upper end
    values: tuple  # positions of its inputs in a row's `values`
    encoders: tuple  # (width, layers) of each encoder
    members: tuple  # blocks of each perceptron

    @property
    def bin_bytes(self):
        return self.bin_mib * 2**20

    def class_of(self, size_bytes, classes):
        return min(int(size_bytes / self.bin_bytes), classes - 1)


@dataclasses.dataclass(frozen=True)
class Row:
    """A measured training and the inputs that an estimate of it has."""

    id: str
    set: str  # the family of networks that it belongs to
    real: bool  # a published network: nothing is trained on it
    part: str  # "training", "validation" or "test"
    family: str  # of the network, finer than `set`
    network: str
    batch: int
    optimizer: str
    precision: str
    bytes: float  # measured
    values: tuple  # every input, unscaled
    tokens: tuple  # (type, activations, parameters) of each layer, unscaled; empty for evaluation


@dataclasses.dataclass(frozen=True)
class Answer:
    """What the C program answers for a row with a network's weights."""

    row: Row
    classes: int
    edge_bytes: float  # upper edge of the most probable bin
    p50_bytes: float
    p90_bytes: float
    p99_bytes: float


@dataclasses.dataclass
class Feed:
    plans: list
    rows: list
    answers: dict  # name of a plan -> its answers, in the order of the rows


def read(stream):
    """Reads a whole feed. Raises KeyError or ValueError for a line of another form."""
    feed = Feed([], [], {})
    for line in stream:
        told = json.loads(line)
        if "plan" in told:
            name = told.pop("plan")
            shape = {key: tuple(map(_frozen, told.pop(key))) for key in _SHAPE}
            feed.plans.append(Plan(name=name, **shape, **told))
        elif "answer" in told:
            row = feed.rows[told.pop("row")]
            feed.answers.setdefault(told.pop("answer"), []).append(Answer(row=row, **told))
        else:
            tokens = tuple(map(tuple, told.pop("tokens", ())))
            values = tuple(told.pop("values"))
            feed.rows.append(Row(id=told.pop("row"), values=values, tokens=tokens, **told))
    return feed


_SHAPE = ("values", "encoders", "members")


def _frozen(item):
    return tuple(item) if isinstance(item, list) else item
