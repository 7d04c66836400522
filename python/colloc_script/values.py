# SPDX-License-Identifier: Apache-2.0
"""The values of small tensors on the pretended GPU.

Fake tensors have shapes and no data, but training scripts read some values: the scale of a gradient
scaler, the number of labels in a batch, whether a loss is finite. A tensor that was copied from the
CPU or made of constants keeps its value beside the fake one, as long as every operation on it has
known inputs. A number that is not known is 1, a comparison that is not known is false.
Where values decide how many elements are selected, all are, and their indices are known: so is what
a detector then samples from them. A random permutation is drawn as on the GPU.
An empty tensor of integers has any values, here zeros: they are known once known ones are written
to a part of it.

Example: `(labels.cuda() != -100).sum().item()` gives the real number, `loss.item()` gives 1.
"""
import math

import torch

from colloc_export.tracker import storage_of, tensors_in

from . import ending

MOST_INTEGERS = 1 << 22  # elements of a tensor whose values are kept; chosen: a detector's anchors
MOST_FLOATS = 1 << 12  # chosen: positions and scales, but no weights

UNKNOWN_RESULTS = set(
    """
rand randn randint normal normal_ uniform_ random_ bernoulli bernoulli_ multinomial
native_dropout exponential_ geometric_ cauchy_ log_normal_ rand_like randn_like randint_like
""".split()
)

EMPTY = set("empty empty_like empty_strided new_empty new_empty_strided".split())

NOT_COMPUTED = UNKNOWN_RESULTS | EMPTY

VIEWS = set("slice select view unsqueeze squeeze expand permute transpose t alias detach".split())

# Results that depend on their input's shape alone.
OF_SHAPE = set("zeros_like ones_like full_like new_zeros new_ones new_full".split())

PASS_TRUTH_ON = set(
    """
all any bitwise_and bitwise_or mul logical_and logical_or _to_copy clone view detach select squeeze
unsqueeze expand alias
""".split()
)


NOTHING_WRITTEN = None  # validity of an empty tensor


class _Value:
    """A real tensor; views of it share its memory and its validity: [whether it is known]."""

    __slots__ = ("tensor", "validity")

    def __init__(self, tensor, validity):
        self.tensor, self.validity = tensor, validity


def is_small(tensor):
    most = MOST_FLOATS if tensor.is_floating_point() else MOST_INTEGERS
    return tensor.layout == torch.strided and tensor.numel() <= most


def _value_of(tensor):
    value = getattr(tensor, "_colloc_value", None)
    return value if value is not None and value.validity[0] else None


def _target(name, args, kwargs):
    """The operand whose values the operation does not use: it writes to it, or takes a part."""
    return args[0] if name in VIEWS or name.endswith("_") else kwargs.get("out")


def _is_truth_of_finite(name, args):
    """Whether a comparison asks if an unknown number is finite, so that it is true."""
    if name == "isfinite":
        return True
    if name == "eq":
        return len(args) > 1 and args[0] is args[1]
    return name == "ne" and isinstance(args[1], float) and math.isinf(args[1])


def _truth(name, args):
    if name in PASS_TRUTH_ON:
        return getattr(args[0], "_colloc_truth", False)
    if name in ("logical_not", "bitwise_not"):
        return not getattr(args[0], "_colloc_truth", False)
    return _is_truth_of_finite(name, args)


class Values:
    """Computes on known values beside the fake tensors.

    is_fake: tells a tensor of the pretended GPU
    """

    def __init__(self, is_fake):
        self._is_fake = is_fake

    def known(self, tensor):
        """The real tensor behind one of the GPU, or None."""
        value = _value_of(tensor)
        return value.tensor if value else None

    def copied(self, tensor, real):
        """`tensor` is the copy of a tensor of the CPU."""
        if is_small(real) and not real.requires_grad:
            tensor._colloc_value = _Value(real.detach().clone().to(tensor.dtype), [True])

    def forget(self, tensors):
        """The tensors were written to, with values that are not known."""
        for tensor in tensors:
            value = getattr(tensor, "_colloc_value", None)
            if value is not None:
                value.validity[0] = False

    def scalar(self, tensor):
        """What .item() returns."""
        value = _value_of(tensor)
        if value:
            return value.tensor.item()
        ending.note_value_read()
        if tensor.dtype == torch.bool:
            return getattr(tensor, "_colloc_truth", False)
        return 1.0 if tensor.dtype.is_floating_point else 1

    def write(self, tensor):
        """Known values were written to the tensor."""
        value = getattr(tensor, "_colloc_value", None)
        if value is not None and value.validity[0] is NOTHING_WRITTEN:
            value.validity[0] = True

    def _real_input(self, tensor):
        return self.known(tensor) if self._is_fake(tensor) else tensor

    @staticmethod
    def _real_target(tensor):
        value = getattr(tensor, "_colloc_value", None)
        return value.tensor if value is not None and value.validity[0] is not False else None

    def _shaped_input(self, tensor):
        return torch.empty(tensor.shape, dtype=tensor.dtype)

    def compute(self, function, name, args, kwargs, mapped):
        """The operation on real tensors, or None where an input or the result is not known.

        mapped(f, tree): a copy of the arguments with each tensor replaced by f(tensor)
        """
        inputs = tensors_in((args, kwargs))
        if name.startswith("new_") and math.prod(args[1]) > MOST_INTEGERS:
            return None  # a large result of a small tensor
        target = _target(name, args, kwargs)

        def real_input(tensor):
            if tensor is target and self._is_fake(tensor):
                return self._real_target(tensor)
            return (self._shaped_input if name in OF_SHAPE else self._real_input)(tensor)

        if name in NOT_COMPUTED or any(
            not is_small(tensor) or real_input(tensor) is None for tensor in inputs
        ):
            return None
        try:
            return function(*mapped(real_input, args), **mapped(real_input, kwargs))
        except (RuntimeError, NotImplementedError, TypeError, IndexError):
            return None

    def note(self, name, args, kwargs, results, real):
        """Notes what is known of the results.

        real: what `compute` returned
        """
        fakes = tensors_in(results)
        reals = tensors_in(real) if real is not None else []
        if len(fakes) == len(reals) and all(map(self._matches, fakes, reals)):
            for fake, value in zip(fakes, reals):
                if self._real_target(fake) is not value and is_small(value):
                    fake._colloc_value = _Value(value, self._validity(value, (args, kwargs)))
                if name not in VIEWS:
                    self.write(fake)
            return
        if name not in VIEWS:
            self.forget(tensors_in(_target(name, args, kwargs)))
        for fake in fakes:
            if name in EMPTY and not fake.is_floating_point() and is_small(fake):
                zeros = torch.zeros(fake.shape, dtype=fake.dtype)
                fake._colloc_value = _Value(zeros, [NOTHING_WRITTEN])
            if fake.dtype == torch.bool:
                fake._colloc_truth = _truth(name, args)

    def choose_order(self, name, args, kwargs, results):
        """The order of unknown values is taken to be the one that they have."""
        if name not in ("sort", "topk") or self.known(results[1]) is not None:
            return
        indices = results[1]
        place = 2 if name == "topk" else 1
        dim = args[place] if len(args) > place else kwargs.get("dim", -1)
        if indices.dim() and is_small(indices):
            line = [1] * indices.dim()
            line[dim] = indices.shape[dim]
            order = torch.arange(indices.shape[dim]).view(line).expand(indices.shape).clone()
            indices._colloc_value = _Value(order, [True])

    @staticmethod
    def _matches(fake, real):
        return fake.shape == real.shape and fake.dtype == real.dtype

    @staticmethod
    def _validity(real, inputs):
        """That of the input which it is a view of."""
        for tensor in tensors_in(inputs):
            value = getattr(tensor, "_colloc_value", None)
            if value is not None and storage_of(value.tensor)._cdata == storage_of(real)._cdata:
                return value.validity
        return [True]
