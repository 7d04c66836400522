# SPDX-License-Identifier: Apache-2.0
"""The cost of single operations: multiply-adds, and the sizes that decide a library's workspace."""
import math

import torch

from .tracker import name_of
from .traffic import Traffic

PRODUCTS = {"mm": (0, 1), "addmm": (1, 2), "bmm": (0, 1), "baddbmm": (1, 2)}


def _dtype(tensor):
    return str(tensor.dtype).replace("torch.", "")


def _product(left, right):
    *count, m, k = left.shape
    return {"m": m, "n": right.shape[-1], "k": k, "count": math.prod(count), "dtype": _dtype(left)}


def _conv(input, weight, output, stride, padding, dilation, transposed, output_padding, groups):
    return {
        "batch": input.shape[0],
        "input": list(input.shape[1:]),
        "weight": list(weight.shape),
        "output": list(output[1:]),
        "stride": list(stride),
        "padding": list(padding),
        "dilation": list(dilation),
        "groups": groups,
        "transposed": bool(transposed),
        "output_padding": list(output_padding),
        "dtype": _dtype(input),
        "channels_last": convs_use_channels_last(input) or convs_use_channels_last(weight),
    }


def _is_batched(input, weight):
    return input.dim() == weight.dim()


class Operations:
    """Collects convolutions and matrix products with the tick at which they start, and the traffic
    of all other operators."""

    def __init__(self):
        self.clear()
        self.phase = None
        self.attention = False
        self.on_multiply_adds = lambda count: None

    def clear(self):
        self.convs, self.matmuls, self.traffic = [], [], Traffic()

    def _note_conv(self, tick, conv):
        self.convs.append({"tick": tick, "phase": self.phase, **conv})
        outputs = conv["input"] if conv["transposed"] else conv["output"]
        return conv["batch"] * math.prod(conv["weight"]) * math.prod(outputs[1:])

    def _note_product(self, tick, product):
        self.matmuls.append({"tick": tick, "phase": self.phase, **product})
        return product["m"] * product["n"] * product["k"] * product["count"]

    def note_attention(self, query, key, value):
        """Attention in one kernel: counts a matrix product before the softmax and one after it.

        The backward pass computes the first one again, and two gradients of each.
        """
        self.attention = True
        count = 2 * query.numel() * key.shape[-2]
        self.on_multiply_adds(count)
        reads, writes = (
            sum(tensor.numel() * tensor.element_size() for tensor in tensors)
            for tensors in ((query, key, value), (query,))
        )
        self.traffic.note(self.phase, "attention", reads, writes, 1, count)
        if query.requires_grad:
            self.traffic.note("backward", "attention", reads + 2 * writes, reads, 1, 5 * count // 2)

    def note_recurrent(self, input, weights, steps):
        """A recurrent layer: in each of its steps a sample is multiplied by all its weights."""
        steps_of_input, batch, _ = input.shape
        elements = sum(weight.numel() for weight in weights)
        bytes_of_weights = elements * weights[0].element_size()
        count = elements * steps_of_input * batch
        traffic = bytes_of_weights * steps_of_input
        self.traffic.note(self.phase, "recurrent", traffic, bytes_of_weights, steps, count)
        self.traffic.note("backward", "recurrent", traffic, bytes_of_weights, steps, 2 * count)

    def __call__(self, function, args, results, tick):
        name = name_of(function)
        count = 0
        self.traffic.tick = tick
        if name == "convolution" and _is_batched(args[0], args[1]):
            input, weight, _, *rest = args[:9]
            count = self._note_conv(tick, _conv(input, weight, results.shape, *rest))
        elif name == "convolution_backward" and _is_batched(args[1], args[2]):
            output, input, weight, _, *rest = args[:10]
            count = self._note_conv(tick, _conv(input, weight, output.shape, *rest))
        elif name in PRODUCTS:
            left, right = (args[i] for i in PRODUCTS[name])
            count = self._note_product(tick, _product(left, right))
        else:
            self.traffic.note_operator(self.phase, function, args, results)
        if count:
            self.on_multiply_adds(count)


def convs_use_channels_last(tensor):
    return (
        tensor.dim() == 4
        and tensor.is_contiguous(memory_format=torch.channels_last)
        and not tensor.is_contiguous()
    )
