# SPDX-License-Identifier: Apache-2.0
"""A task from a module that exists already and an example batch, as `colloc.estimate` takes them.

The exporter trains what it is given, so it gets a copy on the CPU. Batches of other sizes repeat
the first sample of the example: its numbers are valid, for example as indices of an embedding.
"""
import copy
import itertools

import torch
from torch.utils._pytree import tree_flatten, tree_map

from .task import OPTIMIZERS, Task


def copy_of(module):
    """A copy of the module on the CPU, without its gradients; it is of fake tensors among these."""
    copies = {}
    for tensor in itertools.chain(module.parameters(), module.buffers()):
        copied = tensor.detach().to("cpu", copy=True)
        if isinstance(tensor, torch.nn.Parameter):
            copied = torch.nn.Parameter(copied, tensor.requires_grad)
        copies[id(tensor)] = copied
    return copy.deepcopy(module, copies)


def samples(example, n):
    """A batch of n samples, each of which is the first one of the example; None stays None."""

    def repeated(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return leaf[:1].detach().cpu().repeat(n, *[1] * (leaf.dim() - 1))

    return tree_map(repeated, example)


def batch_of(example):
    """The number of samples of an example. Raises ValueError when it has none."""
    tensors = [leaf for leaf in tree_flatten(example)[0] if isinstance(leaf, torch.Tensor)]
    sizes = {tensor.shape[0] if tensor.dim() else 0 for tensor in tensors}
    if len(sizes) != 1 or 0 in sizes:
        raise ValueError(
            "the tensors of inputs and target need a first dimension, "
            f"the samples of the batch, of one size: they have {sorted(sizes) or 'none'}"
        )
    return sizes.pop()


def task_of_module(module, inputs, target=None, loss=None, optimizer="adam", precision="fp32"):
    """The training of a module.

    inputs: a batch: a tensor, a tuple of the positional or a dictionary of the keyword arguments
    target: of the batch; None: the module returns its loss, or the mean of its output is taken
    loss: a function of the output and the target; None: as colloc_export does (docs/export.md)
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"{module!r} is no torch.nn.Module")
    if optimizer not in OPTIMIZERS:
        raise ValueError(f"optimizer={optimizer!r}: must be one of {', '.join(OPTIMIZERS)}")
    if precision not in ("fp32", "amp"):
        raise ValueError(f"precision={precision!r}: must be fp32 or amp")
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    batch_of((inputs, target))
    return Task(
        lambda: copy_of(module),
        lambda n: (samples(inputs, n), samples(target, n)),
        loss=loss and (lambda output, wanted: (loss(output, wanted), "own")),
        optimizer=optimizer,
        precision=precision,
        name=type(module).__name__,
    )
