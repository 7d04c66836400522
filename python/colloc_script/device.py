# SPDX-License-Identifier: Apache-2.0
"""A GPU that is not there: routes each operation, and follows what the GPU would have held.

Tensors of the CPU are real. A tensor on CUDA is a fake tensor (torch._subclasses). As in the
exporter, PyTorch's C++ code takes it for one of the CPU, so that every build of PyTorch runs it;
only Python sees the device `cuda:0` (fake_tensor.py). An operation with a fake operand, or one that
asks for a tensor on CUDA, runs on fake tensors; all others run as they are.
"""
import os

import torch
from torch._subclasses import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from colloc_export.operations import Operations
from colloc_export.scratch import scratch_of
from colloc_export.tracker import (
    FOR_FAKE_TENSORS,
    LAST_RESULT_FIRST,
    Storages,
    is_called_by_autograd,
    name_of,
    tensors_in,
)

from . import sparse
from .guess import explain, is_guessed, mark_guessed, reshaped
from .trees import mapped
from .values import MOST_INTEGERS, Values, is_small

OWN = (os.path.dirname(__file__) + os.sep,)
HOST = torch.device("cpu")
GPU = torch.device("cuda", 0)

# Elements of a tensor of the CPU from which on random numbers are not drawn. Chosen: weights and
# made-up data sets stay untouched zero pages, which cost neither time nor memory. Integers are
# labels, indices and edges, whose values decide sizes.
FLOATS_DRAWN_MOST = 1 << 18
INTEGERS_DRAWN_MOST = 1 << 24

FILLS = set("uniform_ normal_ random_ bernoulli_ exponential_ log_normal_ cauchy_".split())
DRAWS = set("rand randn randint normal randperm".split()) - {"randperm"}
DRAWS_LIKE = set("rand_like randn_like randint_like".split())
RANDOM = FILLS | DRAWS | DRAWS_LIKE
AFTER_FILLS = set("erfinv_ mul_ add_ clamp_ copy_ zero_ fill_".split())

# Kernels of CUDA alone that write to their operands and allocate nothing.
IN_PLACE_ON_CUDA = set(
    """
_amp_foreach_non_finite_check_and_unscale_ _amp_update_scale_ _fused_adam_ _fused_adamw_ _fused_sgd_
_fused_adagrad_
""".split()
)


DEVICE = torch.ops.prim.device.default  # what C++ asks of each tensor, several times

# Operations that write to their first operand alone, and take no memory.
PLAIN_WRITES = set("copy_ fill_ zero_".split())

# Operations that give Python a number; in inference mode PyTorch does not split up the second.
SCALARS = ("_local_scalar_dense", "item")

# Operations whose result has a size that depends on values.
SELECTIONS = ("nonzero", "nms", "masked_select", "_unique2", "unique_dim")


def is_fake(tensor):
    return isinstance(tensor, FakeTensor)


def _as_tensor(result):
    """Autograd keeps the number of `x / 3` as a tensor, which hooks of saved tensors are given. Its
    detached copy reaches Python as a number again, which PyTorch does not take back."""
    return result if isinstance(result, torch.Tensor) else torch.tensor(result)


def _is_drawn(shape, dtype):
    is_float = dtype.is_floating_point or dtype.is_complex
    return shape.numel() <= (FLOATS_DRAWN_MOST if is_float else INTEGERS_DRAWN_MOST)


def _fake_mode():
    try:
        return FakeTensorMode(allow_non_fake_inputs=True)
    except TypeError:
        return FakeTensorMode()


def _sizes(args):
    return next(list(arg) for arg in args if isinstance(arg, (list, tuple, torch.Size)))


class Device(TorchDispatchMode):
    """The pretended GPU. Enter it once, for the whole run.

    Its attributes hold what it saw: storages (tracker.py), operations (operations.py), and notes
    for the user.
    """

    def __init__(self):
        super().__init__()
        self._mode = _fake_mode()
        self.storages, self.operations = Storages(), Operations()
        self.values = Values(is_fake)
        self.notes = []
        self.is_backward = False

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is DEVICE and is_fake(args[0]):
            return args[0].fake_device
        kwargs = dict(kwargs or {})
        device = kwargs.get("device")
        has_fakes = any(issubclass(kind, FakeTensor) for kind in types)
        wants_gpu = device is not None and torch.device(device).type == "cuda"
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        if not has_fakes and not wants_gpu:
            return self._on_host(function, args, kwargs)
        if device is not None:
            kwargs["device"] = HOST  # also where C++ names the device of a fake tensor, the CPU
        return self._on_gpu(function, name_of(function), args, kwargs)

    # ---- the CPU ----

    def _on_host(self, function, args, kwargs):
        name = name_of(function)
        if name == "detach":
            return _as_tensor(function(*args, **kwargs))
        if name not in RANDOM:
            return function(*args, **kwargs)
        if name in FILLS:
            drawn = _is_drawn(args[0].shape, args[0].dtype)
            return function(*args, **kwargs) if drawn else args[0]
        if name in DRAWS_LIKE:
            return self._draw_like(function, args, kwargs)
        return self._draw(function, name, args, kwargs)

    @staticmethod
    def _draw_like(function, args, kwargs):
        if _is_drawn(args[0].shape, kwargs.get("dtype") or args[0].dtype):
            return function(*args, **kwargs)
        kwargs = {key: kwargs[key] for key in ("dtype", "device") if key in kwargs}
        return torch.zeros_like(args[0], **kwargs)

    @staticmethod
    def _draw(function, name, args, kwargs):
        """A large tensor of random numbers is one of zeros, whose pages are never touched."""
        lists = [arg for arg in args if isinstance(arg, (list, tuple, torch.Size))]
        usual = torch.int64 if name == "randint" else torch.get_default_dtype()
        dtype = kwargs.get("dtype") or usual
        if not lists or tensors_in(args) or _is_drawn(torch.Size(lists[0]), dtype):
            return function(*args, **kwargs)
        return torch.zeros(lists[0], dtype=dtype)

    def on_host(self, tensor):
        """A copy of a tensor of the GPU: its values where they are known, else zeros."""
        known = self.values.known(tensor)
        if known is not None:
            return known.clone()
        return torch.zeros(tensor.shape, dtype=tensor.dtype)

    # ---- the GPU ----

    def _fake(self, tensor):
        """A fake tensor like a real one, which is not followed itself."""
        if is_fake(tensor):
            return tensor
        with self._mode:
            fake = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
        self.values.copied(fake, tensor)
        return fake

    def _on_gpu(self, function, name, args, kwargs):
        try:
            return self._follow(function, name, args, kwargs)
        except Exception as error:
            explain(error, function, name, args, kwargs, self.notes)
            raise

    def _sparse_on_gpu(self, tensor, dtype=None):
        """What stands for a sparse tensor of the CPU that is copied to the GPU (sparse.py)."""
        copy = torch.ops.aten._to_copy.default
        parts = [
            self._on_gpu(copy, "_to_copy", (part,), {"device": HOST})
            for part in sparse.parts_of(tensor)
        ]
        with self._mode:
            stand_in = torch.empty(tensor.shape, dtype=dtype or tensor.dtype)
        return sparse.keep_parts(stand_in, parts)

    def make_sparse(self, indices, values, size):
        """The same for one that is made on the GPU."""
        with self._mode:
            stand_in = torch.empty(tuple(size), dtype=values.dtype)
        return sparse.keep_parts(stand_in, (indices, values))

    def _follow(self, function, name, args, kwargs):
        if name in SCALARS:
            return self.values.scalar(args[0])
        if name == "_to_copy" and sparse.is_sparse(args[0]):
            return self._sparse_on_gpu(args[0], kwargs.get("dtype"))
        if name in IN_PLACE_ON_CUDA:
            return args[0] if name == "_amp_update_scale_" else None
        if name.endswith("_") and isinstance(args[0], torch.Tensor) and not is_fake(args[0]):
            return args[0]  # a tensor of the CPU that is overwritten
        self.storages.collect()
        tick = self.storages.clock
        is_factory = not tensors_in((args, kwargs))
        real = None if is_factory else self._real(function, name, args, kwargs)
        if name in PLAIN_WRITES and real is not None:
            self.values.write(args[0])
            return args[0]  # its values are known, and written
        args, kwargs = mapped(self._fake, args), mapped(self._fake, kwargs)
        operands = tensors_in((args, kwargs))
        guessed = any(map(is_guessed, operands))
        args = reshaped(name, args, self.storages, self._mode) if guessed else args
        results = self._run(function, name, args, kwargs, real)
        if guessed:
            mark_guessed(tensors_in(results))
        if is_factory and isinstance(results, torch.Tensor) and is_small(results):
            real = self.values.compute(function, name, args, kwargs, mapped)
        self.storages.collect()
        sparse.inherit(operands, tensors_in(results))
        for tensor in tensors_in(results)[:: -1 if name in LAST_RESULT_FIRST else 1]:
            if not sparse.stands_for_sparse(tensor):
                self.storages.add(tensor, "temp")
        if name == "add" and self.is_backward and is_called_by_autograd(OWN):
            self.storages.note_sum(results, *args[:2])
        self.values.note(name, args, kwargs, results, real)
        self.values.choose_order(name, args, kwargs, results)
        self.storages.add_scratch(scratch_of(name, args, results))
        self.operations.phase = self._phase_of(name)
        self.operations(function, args, results, tick)
        return results

    def _real(self, function, name, args, kwargs):
        """The operation's result on real tensors where it is known or chosen, else None."""
        known = self.values.compute(function, name, args, kwargs, mapped)
        if known is None and name in ("nonzero", "nms") and args[0].numel() <= MOST_INTEGERS:
            self._note_selection(name)
            return _all_indices(name, args[0])
        return known

    def _note_selection(self, name):
        self.note(
            f"{name}: the size of its result depends on values; taken as if all were selected"
        )

    def _phase_of(self, name):
        """Of a convolution by its kernel, also where a forward pass is run again; else by time."""
        if name == "convolution":
            return "forward"
        return "backward" if self.is_backward or name == "convolution_backward" else "forward"

    def _run(self, function, name, args, kwargs, real):
        stand_in = FOR_FAKE_TENSORS.get(function) or self._by_values(function, name, args, real)
        with self._mode:
            return (stand_in or function)(*args, **kwargs)

    def _by_values(self, function, name, args, real):
        """A stand-in for an operation whose result has a shape that depends on values."""
        has_mask = name in ("index", "index_put", "index_put_", "_index_put_impl_") and any(
            index is not None and index.dtype in (torch.bool, torch.uint8) for index in args[1]
        )
        if name in ("index_put_", "_index_put_impl_") and has_mask:
            return lambda target, *rest, **_: target
        if name == "index_put" and has_mask:
            return lambda target, *rest, **_: torch.empty_like(target)
        if name == "multinomial":
            return lambda weights, count, *_, **__: torch.empty(
                (*weights.shape[:-1], count), dtype=torch.int64
            )
        if not has_mask and name not in SELECTIONS:
            return None
        if real is not None:
            shapes = mapped(lambda t: (t.shape, t.dtype), real)
            return lambda *_, **__: _empties(shapes)
        selected = self._selected(args[1]) if name == "index" else None
        if selected is not None:
            return lambda *_, **__: self._rows(args, selected)
        self._note_selection(name)
        return lambda *_, **__: mark_guessed(self._all_selected(name, args))

    def _selected(self, indices):
        """The number of elements that a mask among the indices selects, where it is known."""
        known = self.values.known(next(i for i in indices if i is not None))
        return None if known is None else int(known.count_nonzero())

    @staticmethod
    def _rows(args, count):
        """What indexing by a mask gives if it selects `count` elements."""
        first, indices = args[:2]
        place, mask = next((i, m) for i, m in enumerate(indices) if m is not None)
        shape = list(first.shape)
        shape[place : place + mask.dim()] = [count]
        return torch.empty(shape, dtype=first.dtype)

    @classmethod
    def _all_selected(cls, name, args):
        first = args[0]
        if name == "nonzero":
            return torch.empty((first.numel(), first.dim()), dtype=torch.int64)
        if name == "nms":
            return torch.empty(len(first), dtype=torch.int64)
        if name == "index":
            return cls._rows(args, next(m for m in args[1] if m is not None).numel())
        if name == "masked_select":
            shape = torch.broadcast_shapes(first.shape, args[1].shape)
            return torch.empty(shape.numel(), dtype=first.dtype)
        counts = [torch.empty(first.numel(), dtype=torch.int64) for _ in range(2)]
        return (torch.empty(first.numel(), dtype=first.dtype), *counts)


def _all_indices(name, tensor):
    """What nonzero, or torchvision's nms, returns where it selects all."""
    if name == "nms":
        return torch.arange(len(tensor))
    return torch.ones(tensor.shape, dtype=torch.bool).nonzero()


def _empties(shapes):
    """Tensors of these shapes, in a tree of the same form."""
    if isinstance(shapes, tuple) and len(shapes) == 2 and isinstance(shapes[0], torch.Size):
        return torch.empty(shapes[0], dtype=shapes[1])
    return type(shapes)(_empties(one) for one in shapes)
