# SPDX-License-Identifier: Apache-2.0
"""Random MLPs, CNNs and Transformers over the ranges of the thesis (tables 5.2, 5.4 and 5.6).

A specification is a small dictionary of plain values; `make_model(spec)` builds the network from
it. A configuration whose estimated size is above `LIMIT_BYTES`, or which computes too much for a
few steps, is replaced by another draw.
"""
import math

import torch
from torch import nn

LIMIT_BYTES = 44 << 30
LIMIT_MULTIPLY_ADDS = 2.5e12

ACTIVATIONS = {
    "relu": lambda: nn.ReLU(),
    "relu_inplace": lambda: nn.ReLU(inplace=True),
    "elu": nn.ELU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "leaky_relu": nn.LeakyReLU,
    "prelu": nn.PReLU,
    "selu": nn.SELU,
    "softplus": nn.Softplus,
    "mish": nn.Mish,
}
MLP_SHAPES = ("pyramid", "uniform", "bottleneck", "gradual")
CNN_SHAPES = ("pyramid", "uniform", "bottleneck", "gradual", "hourglass", "residual", "dense")


def _log_uniform(rng, low, high):
    return int(round(math.exp(rng.uniform(math.log(low), math.log(high)))))


def _batch(rng, low, high):
    """Half of them powers of two, as people choose."""
    if rng.random() < 0.5:
        return 2 ** rng.randint(math.ceil(math.log2(low)), int(math.log2(high)))
    return _log_uniform(rng, low, high)


# --- MLPs


def _mlp_widths(shape, first, last, hidden):
    if shape == "pyramid":
        return [max(first >> i, last, 2) for i in range(hidden)]
    if shape == "uniform":
        return [first] * hidden
    if shape == "bottleneck":
        return [
            max(2, first // 4 if hidden // 3 <= i < hidden - hidden // 3 else first)
            for i in range(hidden)
        ]
    return [max(2, round(first + (last - first) * i / max(hidden, 1))) for i in range(hidden)]


def _mlp_parameters(spec):
    sizes = [spec["input"], *spec["widths"], spec["output"]]
    return sum(a * b + b for a, b in zip(sizes, sizes[1:]))


def draw_mlp(rng):
    while True:
        size = _log_uniform(rng, 4, 4096)
        output = rng.randint(1, max(1, min(1024, size // 4)))
        shape, hidden = rng.choice(MLP_SHAPES), rng.randint(1, 11)
        widths = _mlp_widths(shape, _log_uniform(rng, 4, 8192), output, hidden)
        spec = {
            "kind": "mlp",
            "shape": shape,
            "input": size,
            "output": output,
            "widths": widths,
            "activation": rng.choice(list(ACTIVATIONS)),
            "batch_norm": rng.random() < 0.5,
            "dropout": rng.choice([0, 0, 0.1, 0.3, 0.5]),
        }
        if 27 <= _mlp_parameters(spec) <= 160e6:
            return spec, _batch(rng, 4, 1024), None


def _mlp_size(spec, batch):
    return 20 * _mlp_parameters(spec) + 16 * batch * sum(spec["widths"]), batch * _mlp_parameters(
        spec
    )


def _make_mlp(spec):
    layers, width = [], spec["input"]
    for following in spec["widths"]:
        layers.append(nn.Linear(width, following))
        if spec["batch_norm"]:
            layers.append(nn.BatchNorm1d(following))
        layers.append(ACTIVATIONS[spec["activation"]]())
        if spec["dropout"]:
            layers.append(nn.Dropout(spec["dropout"]))
        width = following
    return nn.Sequential(*layers, nn.Linear(width, spec["output"]))


# --- CNNs


def _cnn_filters(shape, base, depth):
    middle = (depth - 1) / 2
    if shape == "pyramid":
        return [min(512, base << (4 * i // max(depth, 4))) for i in range(depth)]
    if shape == "bottleneck":
        return [max(8, base // 4) if i % 3 == 1 else base for i in range(depth)]
    if shape == "gradual":
        return [min(512, round(base * (1 + 3 * i / max(depth - 1, 1)))) for i in range(depth)]
    if shape == "hourglass":
        return [
            max(8, round(base * (0.25 + 0.75 * abs(i - middle) / max(middle, 1))))
            for i in range(depth)
        ]
    if shape == "dense":
        return [min(base, 64)] * depth
    return [base] * depth


def _cnn_pools(shape, side, depth, pooling):
    """The layers that are followed by a pooling, which halves the map."""
    if not pooling:
        return []
    step = max(1, depth // max(1, int(math.log2(side)) - 2))
    places = list(range(step - 1, depth // 2 if shape == "hourglass" else depth, step))
    return places[: max(0, int(math.log2(side)) - 2)]


def draw_cnn(rng):
    while True:
        shape, depth, side = (
            rng.choice(CNN_SHAPES),
            rng.randint(1, 29),
            rng.choice([28, 32, 64, 96, 128, 224, 224]),
        )
        pooling = rng.random() < 0.6
        spec = {
            "kind": "cnn",
            "shape": shape,
            "channels": rng.choice([1, 3]),
            "side": side,
            "classes": _log_uniform(rng, 2, 22000),
            "filters": _cnn_filters(shape, _log_uniform(rng, 16, 512), depth),
            "kernel": rng.choice([3, 3, 3, 5, 7]),
            "activation": rng.choice(list(ACTIVATIONS)),
            "batch_norm": rng.random() < 0.6,
            "dropout": rng.choice([0, 0, 0, 0.2, 0.5]),
            "pools": _cnn_pools(shape, side, depth, pooling),
        }
        batch = _batch(rng, 2, 62)
        size, work = rough_size(spec, batch)
        if (
            size <= LIMIT_BYTES
            and work <= LIMIT_MULTIPLY_ADDS
            and (size > 1 << 30 or rng.random() < 0.4)
        ):
            return spec, batch, None


def _cnn_size(spec, batch):
    side, width, parameters, maps, work = spec["side"], spec["channels"], 0, 0, 0
    ups = 0
    for i, filters in enumerate(spec["filters"]):
        weights = width * filters * spec["kernel"] ** 2
        parameters += weights
        work += weights * side * side
        maps += (
            filters
            * side
            * side
            * (2 + spec["batch_norm"] + bool(spec["dropout"]) + (spec["shape"] == "dense") * i)
        )
        width = width + filters if spec["shape"] == "dense" else filters
        if i in spec["pools"]:
            side //= 2
            ups += 1
        elif spec["shape"] == "hourglass" and i >= len(spec["filters"]) // 2 and ups:
            side *= 2
            ups -= 1
    parameters += width * spec["classes"]
    return 20 * parameters + 4 * maps * batch, work * batch


class ConvUnit(nn.Sequential):
    """Convolution, and the layers that the specification puts behind it."""

    def __init__(self, spec, inputs, outputs):
        parts = [
            nn.Conv2d(
                inputs,
                outputs,
                spec["kernel"],
                padding=spec["kernel"] // 2,
                bias=not spec["batch_norm"],
            )
        ]
        if spec["batch_norm"]:
            parts.append(nn.BatchNorm2d(outputs))
        parts.append(ACTIVATIONS[spec["activation"]]())
        if spec["dropout"]:
            parts.append(nn.Dropout(spec["dropout"]))
        super().__init__(*parts)


class ResidualUnit(nn.Module):
    def __init__(self, spec, inputs, outputs):
        super().__init__()
        self.body = ConvUnit(spec, inputs, outputs)
        self.skip = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)

    def forward(self, x):
        return self.body(x) + self.skip(x)


class DenseUnit(nn.Module):
    def __init__(self, spec, inputs, outputs):
        super().__init__()
        self.body = ConvUnit(spec, inputs, outputs)

    def forward(self, x):
        return torch.cat([x, self.body(x)], 1)


class Cnn(nn.Module):
    def __init__(self, spec):
        super().__init__()
        unit = {"residual": ResidualUnit, "dense": DenseUnit}.get(spec["shape"], ConvUnit)
        width, halvings, layers = spec["channels"], 0, []
        for i, filters in enumerate(spec["filters"]):
            layers.append(unit(spec, width, filters))
            width = width + filters if spec["shape"] == "dense" else filters
            if i in spec["pools"]:
                layers.append(nn.MaxPool2d(2))
                halvings += 1
            elif spec["shape"] == "hourglass" and i >= len(spec["filters"]) // 2 and halvings:
                layers.append(nn.Upsample(scale_factor=2))
                halvings -= 1
        self.features = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(width, spec["classes"])

    def forward(self, x):
        return self.classifier(self.pool(self.features(x)).flatten(1))


# --- Transformers


def draw_transformer(rng):
    while True:
        heads = rng.choice([2, 4, 8, 16])
        width = 64 * rng.randint(2, 32)
        if width % (8 * heads):
            continue
        spec = {
            "kind": "transformer",
            "vocabulary": _log_uniform(rng, 50_000, 1_000_000),
            "width": width,
            "heads": heads,
            "layers": rng.randint(2, 39),
            "hidden": width * rng.randint(2, 4),
            "dropout": rng.choice([0.1, 0.2, 0.3, 0.5]),
            "sequence": rng.choice([128, 256, 512, 1024]),
            "classes": rng.randint(2, 1000),
            "activation": rng.choice(["relu", "gelu"]),
            "norm_first": rng.random() < 0.3,
            "per_token": rng.random() < 0.2,
        }
        batch = _batch(rng, 1, 128)
        size, work = rough_size(spec, batch)
        if size <= LIMIT_BYTES and work <= LIMIT_MULTIPLY_ADDS:
            return spec, batch, spec["sequence"]


def _transformer_size(spec, batch):
    width, hidden, tokens = spec["width"], spec["hidden"], batch * spec["sequence"]
    per_layer = 4 * width * width + 2 * width * hidden
    parameters = spec["vocabulary"] * width + spec["layers"] * per_layer
    kept = spec["layers"] * tokens * (9 * width + 3 * hidden)
    return 20 * parameters + 4 * kept, tokens * (
        spec["layers"] * (per_layer + 2 * spec["sequence"] * width)
    )


class Transformer(nn.Module):
    """Classifies tokens: embedding with learned positions, encoder, mean over the sequence."""

    def __init__(self, spec):
        super().__init__()
        self.per_token = spec["per_token"]
        self.embedding = nn.Embedding(spec["vocabulary"], spec["width"])
        self.position = nn.Parameter(torch.zeros(1, spec["sequence"], spec["width"]))
        layer = nn.TransformerEncoderLayer(
            spec["width"],
            spec["heads"],
            spec["hidden"],
            spec["dropout"],
            spec["activation"],
            batch_first=True,
            norm_first=spec["norm_first"],
        )
        self.encoder = nn.TransformerEncoder(layer, spec["layers"])
        self.classifier = nn.Linear(spec["width"], spec["classes"])

    def forward(self, tokens):
        x = self.encoder(self.embedding(tokens) + self.position)
        return self.classifier(x if self.per_token else x.mean(1))


# --- all three

DRAW = {"mlp": draw_mlp, "cnn": draw_cnn, "transformer": draw_transformer}
MAKE = {"mlp": _make_mlp, "cnn": Cnn, "transformer": Transformer}
SIZE = {"mlp": _mlp_size, "cnn": _cnn_size, "transformer": _transformer_size}


def rough_size(spec, batch):
    """(bytes, multiply-adds of a forward pass), exact enough to plan with."""
    return SIZE[spec["kind"]](spec, batch)


def make_model(spec):
    return MAKE[spec["kind"]](spec)


def make_batch(spec, n):
    if spec["kind"] == "mlp":
        x = torch.randn(n, spec["input"])
        return (x,), (
            torch.randn(n, 1) if spec["output"] == 1 else torch.randint(0, spec["output"], (n,))
        )
    if spec["kind"] == "cnn":
        return (torch.randn(n, spec["channels"], spec["side"], spec["side"]),), torch.randint(
            0, spec["classes"], (n,)
        )
    shape = (n, spec["sequence"]) if spec["per_token"] else (n,)
    return (torch.randint(0, spec["vocabulary"], (n, spec["sequence"])),), torch.randint(
        0, spec["classes"], shape
    )
