# SPDX-License-Identifier: Apache-2.0
"""Forward passes without gradients, such as an evaluation before the training begins.

Hundreds of them take as much memory as one. From the third on that is like an earlier one, a
network does not run: its results are made, with their shapes.

Inputs may also grow from pass to pass, such as a text that a network writes letter by letter. Two
passes tell which sizes of the results grow with them. Then the network runs again only when its
inputs are an eighth larger, or as large as those just before.

Example: inputs of 16, 17, 18, ... letters give scores of 16, 17, 18, ... letters. The passes with
16, 17 and 20 letters run; those with 18 and 19 are made.
"""
import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from .device import GPU, is_fake

RUNS = 2  # the first of which may differ: what is made once and kept
PARTS = 8  # chosen: memory is seen of inputs that are at most an eighth smaller than the largest

PLAIN = (type(None), bool, int, float, str, torch.dtype, torch.device)


class _Opaque(Exception):
    """A value that may change what a network does."""


def _kind(leaf):
    """A leaf of the inputs without its sizes."""
    if isinstance(leaf, torch.Tensor):
        return (leaf.dim(), leaf.dtype, is_fake(leaf))
    if isinstance(leaf, PLAIN):
        return leaf
    raise _Opaque


def _sizes(leaves):
    return [size for leaf in leaves if hasattr(leaf, "shape") for size in leaf.shape]


def _chosen(sizes, which):
    return [size for size, is_chosen in zip(sizes, which) if is_chosen]


def _growth(before, after):
    """(number, which sizes) where all sizes that differ grew by the same number, else (0, None)."""
    steps = {b - a for a, b in zip(before, after) if a != b}
    if len(steps) != 1 or min(steps) < 0:
        return 0, None
    return steps.pop(), [a != b for a, b in zip(before, after)]


class _Like:
    """A tensor without data."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(shape), dtype

    def made(self):
        return torch.empty(self.shape, dtype=self.dtype, device=GPU)


class _Results:
    """The form of what a pass returned: a tensor of the GPU, a plain value, or a tree of them."""

    def __init__(self, leaves, form):
        self._leaves, self._form = leaves, form
        self.sizes = _sizes(leaves)

    @classmethod
    def of(cls, results):
        """The form of these, or None where they hold anything else."""
        leaves, form = tree_flatten(results)
        if not all(is_fake(leaf) or isinstance(leaf, PLAIN) for leaf in leaves):
            return None
        return cls([_Like(one.shape, one.dtype) if is_fake(one) else one for one in leaves], form)

    def grown(self, step, which):
        """With the sizes that `which` names larger by `step`."""
        sizes = iter([size + step * grows for size, grows in zip(self.sizes, which)])
        leaves = [
            _Like([next(sizes) for _ in leaf.shape], leaf.dtype)
            if isinstance(leaf, _Like)
            else leaf
            for leaf in self._leaves
        ]
        return _Results(leaves, self._form)

    def made(self):
        leaves = [leaf.made() if isinstance(leaf, _Like) else leaf for leaf in self._leaves]
        return tree_unflatten(leaves, self._form)


class _Passes:
    """The passes of one network with inputs of one kind."""

    def __init__(self):
        self._runs = {}  # by sizes: number, results
        self._last_run = self._last = None  # sizes
        self._growing = None  # which sizes of inputs and results grow

    def known(self, sizes):
        """The form of the results of a pass that need not run, or None."""
        is_repeated, self._last = sizes == self._last, sizes
        count, results = self._runs.get(sizes, (0, None))
        if results and count >= RUNS:
            return results
        return None if is_repeated or not self._growing else self._from_smaller(sizes)

    def _from_smaller(self, sizes):
        inputs, outputs = self._growing
        for smaller, (_, results) in self._runs.items():
            step, which = _growth(smaller, sizes)
            if results and which == inputs and step * PARTS <= min(_chosen(smaller, inputs)):
                return results.grown(step, outputs)
        return None

    def note(self, sizes, results):
        """A pass ran."""
        step, inputs = _growth(self._last_run or sizes, sizes)
        if step:
            outputs = self._growing_outputs(self._runs[self._last_run][1], results, step)
            self._growing = outputs and (inputs, outputs)
        self._last_run = sizes
        self._runs[sizes] = self._runs.get(sizes, (0,))[0] + 1, results

    @staticmethod
    def _growing_outputs(before, after, step):
        """Which sizes of the results grew by `step`, or None where others changed."""
        if not before or not after or len(before.sizes) != len(after.sizes):
            return None
        grew = [b - a for a, b in zip(before.sizes, after.sizes)]
        return [one == step for one in grew] if set(grew) <= {0, step} else None


class Evaluations:
    def __init__(self):
        self._passes = {}  # by network and kind of its inputs

    @staticmethod
    def _key(module, leaves, form):
        try:
            modes = tuple(part.training for part in module.modules())
            key = (id(module), modes, tuple(map(_kind, leaves)), str(form))
            hash(key)
        except (_Opaque, TypeError):
            return None
        return key

    def call(self, run, module, args, kwargs):
        """Runs a network, or makes the results that it would have."""
        if torch.is_grad_enabled():
            return run()
        leaves, form = tree_flatten((args, kwargs))
        key = self._key(module, leaves, form)
        if key is None:
            return run()
        passes, sizes = self._passes.setdefault(key, _Passes()), tuple(_sizes(leaves))
        known = passes.known(sizes)
        if known:
            return known.made()
        results = run()
        passes.note(sizes, _Results.of(results))
        return results
