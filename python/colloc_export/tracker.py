# SPDX-License-Identifier: Apache-2.0
"""Follows every storage a run makes, from the tick it is made to the tick it is released."""
import functools
import os
import sys
import weakref

import torch
from torch._subclasses import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

NEVER = -1

WITHOUT_TENSORS = {
    type(None), bool, int, float, str, torch.Size, torch.dtype, torch.device, torch.layout,
    torch.memory_format,
}  # fmt: skip


def storage_of(tensor):
    """The storage under a tensor and its views; PyTorch before 2.0 has another name for it."""
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()


def has_storage(tensor):
    """False for a sparse tensor: its indices and values are tensors, which have one each."""
    return tensor.layout == torch.strided


def parts_of(tensor):
    """The tensor itself, or the indices and values of a sparse one."""
    is_sparse = tensor.layout == torch.sparse_coo
    return [tensor._indices(), tensor._values()] if is_sparse else [tensor]


@functools.lru_cache(maxsize=None)
def name_of(function):
    """The name of an operator, without its namespace and overload."""
    return getattr(function, "_schema", None) and function._schema.name.split("::")[-1]


def tensors_in(value):
    """The tensors in a tree of lists, tuples, dictionaries and other containers of PyTorch's trees.

    Operators have simple arguments, for which tree_flatten is slow.
    """
    if isinstance(value, torch.Tensor):
        return [value]
    if type(value) in (list, tuple):
        return [tensor for one in value for tensor in tensors_in(one)]
    if type(value) is dict:
        return [tensor for one in value.values() for tensor in tensors_in(one)]
    if type(value) in WITHOUT_TENSORS:
        return []
    return [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, torch.Tensor)]


def _gradients_of_convolution(_, input, weight, bias_sizes, *rest):
    """The shapes of a convolution's gradients.

    Fake tensors before PyTorch 2 do not know them, and compute a convolution of zeros on the CPU.
    """
    wanted = rest[-1]
    return (
        torch.empty_like(input) if wanted[0] else None,
        torch.empty_like(weight) if wanted[1] else None,
        input.new_empty(bias_sizes) if wanted[2] else None,
    )


_make_sparse = torch.sparse_coo_tensor  # colloc_script replaces it for the script's own code


def _gradient_of_embedding_bag(gradient, indices, *rest):
    """A sparse gradient has a row for each index, which fake tensors do not know."""
    weights, is_sparse = rest[4], rest[7]
    if not is_sparse:
        return torch.ops.aten._embedding_bag_backward.default(gradient, indices, *rest)
    width = gradient.shape[1]
    rows = gradient.new_empty((indices.numel(), width))
    return _make_sparse(indices.view(1, -1), rows, (weights, width))


AUTOGRAD = os.path.dirname(torch.autograd.__file__) + os.sep
BETWEEN = (  # files of frames between autograd and a dispatched operation
    os.path.dirname(__file__) + os.sep,
    os.path.dirname(torch.utils.__file__) + os.sep,
    # PyTorch 2.11 wraps the method of each dispatch mode (TorchDispatchMode.__init_subclass__).
    os.path.join(os.path.dirname(torch.__file__), "_compile.py"),
    os.path.join(os.path.dirname(torch.__file__), "_dynamo") + os.sep,
)


def is_called_by_autograd(own=()):
    """Whether autograd's engine itself called the operation, and no backward pass in Python.

    own: further folders of the dispatcher
    """
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((*BETWEEN, *own)):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(AUTOGRAD)


LAST_RESULT_FIRST = {"native_dropout"}  # CUDA makes the mask first

FOR_FAKE_TENSORS = {
    torch.ops.aten.convolution_backward.default: _gradients_of_convolution,
    torch.ops.aten._embedding_bag_backward.default: _gradient_of_embedding_bag,
}


class Interval:
    """One storage: its bytes, and its life on the clock."""

    __slots__ = ("bytes", "first", "last", "kind", "is_scratch", "summed")

    def __init__(self, size, first, kind, is_scratch=False):
        self.bytes, self.first, self.last, self.kind, self.is_scratch = (
            size,
            first,
            NEVER,
            kind,
            is_scratch,
        )
        self.summed = None


class Storages:
    """The storages that are alive.

    Since PyTorch 2.1 a storage reports its end by a weak reference. Before, all are checked after
    every operation.
    """

    def __init__(self):
        self.clock = 0
        self.intervals = []
        self._bounds = set()
        self._alive = {}
        self._reports_ends = self._storages_are_kept()

    @staticmethod
    def _storages_are_kept():
        tensor = torch.empty(1)
        return (
            hasattr(tensor, "untyped_storage")
            and tensor.untyped_storage() is tensor.untyped_storage()
        )

    def _end(self, key, interval):
        if self._alive.get(key, (None,))[0] is interval:
            del self._alive[key]
            interval.last = self.clock
            self.clock += 1

    def _watch(self, storage, key, interval):
        if self._reports_ends:
            return weakref.ref(storage, lambda _: self._end(key, interval))
        return storage._weak_ref()

    def collect(self):
        """Records the end of each storage whose end was not reported."""
        if self._reports_ends:
            return
        gone = [
            (key, entry[0])
            for key, entry in self._alive.items()
            if torch.UntypedStorage._expired(entry[1])
        ]
        for key, interval in gone:
            torch.UntypedStorage._free_weak_ref(self._alive[key][1])
            self._end(key, interval)

    def add(self, tensor, kind):
        """Notes the tensor's storage, or those of a sparse one, if they are new."""
        for part in filter(has_storage, parts_of(tensor)):
            self._add_storage(storage_of(part), kind)

    def _add_storage(self, storage, kind):
        key, size = storage._cdata, storage.nbytes()
        if size == 0 or key in self._alive:
            return
        interval = Interval(size, self.clock, kind)
        self.clock += 1
        self.intervals.append(interval)
        self._alive[key] = (interval, self._watch(storage, key, interval))

    def resize(self, tensor, size):
        """The tensor's storage has this many bytes, as is known only now."""
        entry = self._alive.get(storage_of(tensor)._cdata)
        if entry:
            entry[0].bytes = size

    def add_scratch(self, sizes):
        """Records memory that an operation takes and frees: all is taken, then all is freed.

        Sizes of zero have ticks, too.
        """
        passing = [
            Interval(size, self.clock + i, "temp", is_scratch=True) for i, size in enumerate(sizes)
        ]
        self.clock += len(passing)
        for interval in passing:
            interval.last = self.clock
            self.clock += 1
        self.intervals.extend(passing)

    def note_sum(self, result, first, second):
        """Autograd adds two gradients of one tensor. It adds the second to the first where nothing
        else holds that; fake tensors it adds into a new one (input_buffer.cpp: accumulate)."""
        made, *parts = (self._alive.get(storage_of(one)._cdata) for one in (result, first, second))
        is_whole = first.numel() * first.element_size() == storage_of(first).nbytes()
        if made and all(parts) and is_whole and made[0].bytes == parts[0][0].bytes:
            made[0].summed = tuple(part[0] for part in parts)

    def _join_sums(self):
        """A sum is its first gradient's storage if that ends with it, before anything is made."""
        joined = {}  # the interval that has a sum's storage, by the sum's
        for interval in filter(lambda one: one.summed, self.intervals):
            first, second = (joined.get(one, one) for one in interval.summed)
            steps = first.last - interval.first
            if steps == 1 or (steps == 2 and second.last == interval.first + 1):
                first.last, first.kind, interval.bytes = interval.last, interval.kind, 0
                interval.kind, joined[interval] = "joined", first

    def mark(self, tensor, kind):
        """Sets the class of a storage that is already recorded."""
        for part in filter(has_storage, parts_of(tensor)):
            entry = self._alive.get(storage_of(part)._cdata)
            if entry:
                entry[0].kind = kind

    def living(self):
        return [entry[0] for entry in self._alive.values()]

    def bound(self):
        """A phase ends here. Returns the clock."""
        self.collect()
        self._bounds.add(self.clock)
        return self.clock

    def _order_ends(self):
        """Sorts ends that follow each other without an allocation between them, oldest storage
        first.

        Their order is not defined: autocast empties a hash table.
        """
        ended = sorted((i for i in self.intervals if i.last != NEVER), key=lambda i: i.last)
        while ended:
            start = ended[0].last
            size = next(
                (
                    n
                    for n in range(1, len(ended))
                    if ended[n].last != start + n or start + n in self._bounds
                ),
                len(ended),
            )
            run, ended = ended[:size], ended[size:]
            for tick, interval in enumerate(sorted(run, key=lambda i: i.first), run[0].last):
                interval.last = tick

    def peak_bytes(self):
        """The peak of all live storages."""
        changes = [(i.first, i.bytes) for i in self.intervals] + [
            (i.last, -i.bytes) for i in self.intervals if i.last != NEVER
        ]
        total = peak = 0
        for _, change in sorted(changes):
            total += change
            peak = max(peak, total)
        return peak

    def close(self):
        """Stops recording ends of storages."""
        self._order_ends()
        self._join_sums()
        for _, watch in self._alive.values():
            if not self._reports_ends:
                torch.UntypedStorage._free_weak_ref(watch)
        self._alive = {}


class Tracker(TorchDispatchMode):
    """Follows each operation of the forward and backward pass.

    on_operation(name, arguments, results, tick): called after each
    scratch_of(name, arguments, results): sizes in bytes that the operation took beside its results
    """

    def __init__(self, storages, on_operation, scratch_of=lambda *_: []):
        super().__init__()
        self.storages = storages
        self.on_operation = on_operation
        self.scratch_of = scratch_of

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.storages.collect()
        tick = self.storages.clock
        stand_in = (
            FOR_FAKE_TENSORS.get(function) if args and isinstance(args[0], FakeTensor) else None
        )
        results = (stand_in or function)(*args, **(kwargs or {}))
        self.storages.collect()
        name = name_of(function)
        for tensor in tensors_in(results)[:: -1 if name in LAST_RESULT_FIRST else 1]:
            self.storages.add(tensor, "temp")
        if name == "add" and is_called_by_autograd():
            self.storages.note_sum(results, *args[:2])
        self.storages.add_scratch(self.scratch_of(name, args, results))
        self.on_operation(function, args, results, tick)
        return results
