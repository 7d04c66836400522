# SPDX-License-Identifier: Apache-2.0
"""The networks of GPUMemNet in PyTorch (the RAD thesis, section 5.4.4 and figure 5.7).

An ensemble of perceptrons, whose logits are averaged, over the values of a row. With encoders,
over the values and the summed outputs of Transformer encoders that read the sequence of layers.
PyTorch's own modules draw the first weights.
"""

import torch
from torch import nn

TOKEN_SIZE = 3  # inputs of a layer
FEED_FORWARD = 4  # width within an encoder's layer
WIDEST, NARROWEST = 8, 4  # units of a perceptron's first block, and of the others
WAVE_MAX = 1e4  # positions; the longest wave of the encoding (Vaswani et al., 2017, section 3.5)
GROUP = 32  # sequences that are padded together; chosen: lengths differ by a factor of ten


def block(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU())


def perceptron(inputs, blocks, classes):
    widths = [inputs, WIDEST, *[NARROWEST] * (blocks - 1)]
    return nn.Sequential(
        *(block(a, b) for a, b in zip(widths, widths[1:])), nn.Linear(widths[-1], classes)
    )


def positions(length, width):
    """The sinusoidal encoding of positions: (length, width)."""
    channels = torch.arange(0, width, 2, dtype=torch.float64)
    angles = torch.arange(length, dtype=torch.float64)[:, None] * WAVE_MAX ** (-channels / width)
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(1).float()


class EncoderLayer(nn.Module):
    """Attention with one head, then two linear layers; a norm after each sum, no dropout."""

    def __init__(self, width):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 1, batch_first=True)  # draws its weights
        self.norm_attention = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, FEED_FORWARD), nn.Linear(FEED_FORWARD, width)
        self.norm_feed_forward = nn.LayerNorm(width)

    def attend(self, x, is_padding):
        attention = self.attention
        query, key, value = nn.functional.linear(
            x, attention.in_proj_weight, attention.in_proj_bias
        ).chunk(3, -1)
        scores = query @ key.transpose(1, 2) / x.shape[-1] ** 0.5
        scores = scores.masked_fill(is_padding[:, None, :], float("-inf"))
        return attention.out_proj(scores.softmax(-1) @ value)

    def forward(self, x, is_padding):
        """x: (sequences, length, width); is_padding: (sequences, length)."""
        x = self.norm_attention(x + self.attend(x, is_padding))
        return self.norm_feed_forward(x + self.down(self.up(x).relu()))


class Encoder(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.width = width
        self.embedding = nn.Sequential(block(TOKEN_SIZE, width), block(width, width))
        self.layers = nn.ModuleList(EncoderLayer(width) for _ in range(layers))

    def encode_group(self, sequences):
        x = nn.utils.rnn.pad_sequence(sequences, batch_first=True)
        lengths = torch.tensor([len(sequence) for sequence in sequences])
        is_padding = torch.arange(x.shape[1])[None] >= lengths[:, None]
        x = x + positions(x.shape[1], self.width)
        for layer in self.layers:
            x = layer(x, is_padding)
        return x.masked_fill(is_padding[:, :, None], 0).sum(1)

    def forward(self, sequences):
        """Sums over each sequence, (sequences, width). Batch norm is over the layers of all of
        them, so that padding has no part in it; sequences of like length are padded together."""
        lengths = [len(sequence) for sequence in sequences]
        embedded = self.embedding(torch.cat(sequences)).split(lengths)
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        groups = [order[i : i + GROUP] for i in range(0, len(order), GROUP)]
        sums = torch.cat([self.encode_group([embedded[i] for i in group]) for group in groups])
        return sums[torch.tensor(order).argsort()]


class Network(nn.Module):
    """The network of a plan (feed.Plan) with a number of classes."""

    def __init__(self, plan, classes):
        super().__init__()
        self.encoders = nn.ModuleList(Encoder(*shape) for shape in plan.encoders)
        inputs = sum(encoder.width for encoder in self.encoders) + len(plan.values)
        self.members = nn.ModuleList(perceptron(inputs, blocks, classes) for blocks in plan.members)

    def forward(self, values, sequences):
        """Logits, (rows, classes).

        values:    (rows, inputs)
        sequences: a tensor (layers, 3) for each row; unused without encoders
        """
        inputs = torch.cat([*(encoder(sequences) for encoder in self.encoders), values], 1)
        return torch.stack([member(inputs) for member in self.members]).mean(0)

    def file_order(self):
        """All tensors in the order of a file of weights (gpumemnet_layout.c)."""
        for encoder in self.encoders:
            yield from _blocks(encoder.embedding)
            for layer in encoder.layers:
                yield layer.attention.in_proj_weight
                yield layer.attention.in_proj_bias
                yield from _affine(layer.attention.out_proj)
                yield from _affine(layer.norm_attention)
                yield from _affine(layer.up)
                yield from _affine(layer.down)
                yield from _affine(layer.norm_feed_forward)
        for member in self.members:
            yield from _blocks(member[:-1])
            yield from _affine(member[-1])

    def numbers(self):
        """All weights as a list of floats, in the order of a file."""
        return torch.cat([tensor.detach().flatten() for tensor in self.file_order()]).tolist()

    def load_numbers(self, numbers):
        left = torch.tensor(numbers)
        with torch.no_grad():
            for tensor in self.file_order():
                tensor.copy_(left[: tensor.numel()].reshape(tensor.shape))
                left = left[tensor.numel() :]
        assert len(left) == 0, "numbers of another network"


def _affine(module):
    yield module.weight
    yield module.bias


def _blocks(sequential):
    for linear, norm, _ in sequential:
        yield from _affine(linear)
        yield from _affine(norm)
        yield norm.running_mean
        yield norm.running_var
