#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what PyTorch computes in one training step of some networks: the operators, in order.

    tests/data/steps/record.py FOLDER     # writes gpt2.txt, bert.txt, resnet50.txt, recommender.txt

On a GPU each operator is a kernel or a few, so that these sequences are like those of a training's
launches, with all that they have in common from layer to layer: this is what the search for steps
may take for steps (src/preload/step_period.c). A file has a number for each launch; equal numbers
are the same kernel. The last one is the wait for the GPU. The networks are small in width, and have
the layers of the real ones.
"""
import os
import sys

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

# They make another view of the same memory, or only allocate.
NO_KERNELS = set(
    """view t transpose permute expand unsqueeze squeeze detach _unsafe_view split slice select alias
    as_strided _reshape_alias empty empty_like unbind split_with_sizes resize_ set_ new_empty
    empty_strided new_empty_strided _local_scalar_dense lift_fresh reshape
    _record_function_enter""".split()
)
PRODUCTS = {"mm", "addmm", "bmm", "baddbmm", "convolution", "convolution_backward"}
PARAMETERS_OF_A_LAUNCH = 40  # of an operator on many tensors


class Recorder(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.launches = []

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        name = function._schema.name.split("::")[1]
        if name not in NO_KERNELS:
            self.launches += self.kernels(name, arguments)
        return function(*arguments, **(options or {}))

    @staticmethod
    def kernels(name, arguments):
        if name in PRODUCTS:  # libraries choose a kernel by the shapes
            name += str([tuple(a.shape) for a in arguments if isinstance(a, torch.Tensor)])
        if name.startswith("convolution_backward"):
            return [name + " data", name + " weights"]
        if "norm_backward" in name:
            return [name, name + " weights"]
        if name.startswith("_foreach"):
            return [name] * max(1, len(arguments[0]) // PARAMETERS_OF_A_LAUNCH)
        return [name]


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout, self.heads = nn.Dropout(0.1), heads

    def attention(self, x):
        batch, length, width = x.shape
        query, key, value = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.inputs(x).split(width, 2)
        )
        weights = query @ key.transpose(-1, -2) * 0.1
        is_past = torch.tril(torch.ones(length, length, dtype=torch.bool))
        weights = torch.where(is_past, weights, torch.full([], -1e9)).softmax(-1)
        return (self.dropout(weights) @ value).transpose(1, 2).reshape(batch, length, width)

    def forward(self, x):
        x = x + self.dropout(self.output(self.attention(self.norms[0](x))))
        wide = self.widen(self.norms[1](x))
        wide = 0.5 * wide * (1 + torch.tanh(0.79 * (wide + 0.044 * torch.pow(wide, 3))))
        return x + self.dropout(self.narrow(wide))


class Decoder(nn.Module):
    def __init__(self, layers=12, width=32, words=100):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(64, width)
        self.blocks = nn.Sequential(*(Block(width, 4) for _ in range(layers)))
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(0.1)

    def forward(self, tokens):
        x = self.dropout(self.words(tokens) + self.places(torch.arange(tokens.shape[1])))
        return self.norm(self.blocks(x)) @ self.words.weight.t()


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.outputs = 4 * width
        self.layers = nn.Sequential(
            *self.layer(inputs, width, 1), nn.ReLU(), *self.layer(width, width, 3, stride)
        ).append(nn.ReLU())
        self.layers.extend(self.layer(width, self.outputs, 1))
        is_same = inputs == self.outputs and stride == 1
        self.shortcut = (
            nn.Identity()
            if is_same
            else nn.Sequential(*self.layer(inputs, self.outputs, 1, stride))
        )

    @staticmethod
    def layer(inputs, outputs, size, stride=1):
        convolution = nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)
        return [convolution, nn.BatchNorm2d(outputs)]

    def forward(self, x):
        return torch.relu(self.layers(x) + self.shortcut(x))


def residual(blocks, width=8):
    layers = [*Bottleneck.layer(3, width, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = width
    for stage, n in enumerate(blocks):
        for i in range(n):
            stride = 2 if i == 0 and stage > 0 else 1
            layers.append(Bottleneck(inputs, width * 2**stage, stride))
            inputs = layers[-1].outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))


class Recommender(nn.Module):
    def __init__(self, tables=26):
        super().__init__()
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(100, 8, mode="sum", sparse=True) for _ in range(tables)
        )
        self.above = nn.Linear(8 * tables, 10)

    def forward(self, words):
        return self.above(torch.cat([table(words) for table in self.tables], 1))


def words_loss(model):
    tokens = torch.randint(0, 100, (2, 16))
    return nn.functional.cross_entropy(
        model(tokens)[:, :-1].reshape(-1, 100), tokens[:, 1:].reshape(-1)
    )


def classes_loss(batch):
    def loss(model):
        x = batch()
        return nn.functional.cross_entropy(model(x), torch.randint(0, 10, (len(x),)))

    return loss


def adam(parameters, is_of_many=True):
    return torch.optim.AdamW(parameters, 1e-4, foreach=is_of_many)


def networks():
    """name: (model, its loss, optimizer)"""
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    yield "gpt2", Decoder(), words_loss, adam
    yield "bert", nn.TransformerEncoder(layer, 12), lambda m: m(torch.randn(2, 8, 32)).sum(), adam
    yield "resnet50", residual([3, 4, 6, 3]), classes_loss(
        lambda: torch.randn(2, 3, 32, 32)
    ), lambda p: adam(p, False)
    yield "recommender", Recommender(), classes_loss(
        lambda: torch.randint(0, 100, (4, 2))
    ), lambda p: torch.optim.SGD(p, 0.01)


def record(model, loss_of, optimizer):
    """The launches of the third step."""
    recorder, begins = Recorder(), []
    with recorder:
        for _ in range(3):
            begins.append(len(recorder.launches))
            optimizer.zero_grad(set_to_none=True)
            loss_of(model).backward()
            optimizer.step()
            recorder.launches.append("wait")
    return recorder.launches[begins[-1] :]


def main(folder):
    torch.manual_seed(1)
    for name, model, loss_of, optimizer in networks():
        launches, numbers = record(model, loss_of, optimizer(model.parameters())), {}
        words = [str(numbers.setdefault(launch, len(numbers) + 1)) for launch in launches]
        with open(os.path.join(folder, name + ".txt"), "w") as file:
            for i in range(0, len(words), 24):
                print(" ".join(words[i : i + 24]), file=file)
        print(f"{name}: {len(launches)} launches of {len(numbers)} kernels")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
