# SPDX-License-Identifier: Apache-2.0
"""What each operator of a step reads and writes: with it, a reader can estimate the step's time.

An operator that writes nothing is a view, or it only allocates: it launches no kernel, but takes
time of the host. Operators that are alike are one row with the number of their calls.
"""
import collections
import functools

from .tracker import has_storage, name_of, storage_of, tensors_in

# They make tensors without a kernel.
ALLOCATING = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")

# They read of their first operand only what they write.
GATHERING = ("embedding", "gather", "index", "index_select", "_embedding_bag")

QUERIES = ("device",)  # fake tensors ask for it at every operator; a real run does not


@functools.lru_cache(maxsize=None)
def _changed_arguments(function):
    """The places of the arguments that an operator overwrites."""
    schema = getattr(function, "_schema", None)
    return [
        place
        for place, argument in enumerate(schema.arguments if schema else [])
        if argument.alias_info is not None and argument.alias_info.is_write
    ]


def _bytes(tensors):
    """Bytes of the tensors' elements; an expanded tensor has no more than its storage."""
    return sum(
        min(tensor.numel() * tensor.element_size(), storage_of(tensor).nbytes())
        for tensor in tensors
        if has_storage(tensor)
    )


def _keys(tensors):
    return {storage_of(tensor)._cdata for tensor in tensors if has_storage(tensor)}


def traffic_of(function, args, results):
    """(bytes read, bytes written, tensors written) of an operator."""
    inputs, made = tensors_in(args), tensors_in(results)
    changed = [
        tensor
        for place in _changed_arguments(function)
        if place < len(args)
        for tensor in tensors_in(args[place])
    ]
    old = _keys(inputs)
    new = [tensor for tensor in made if has_storage(tensor) and not _keys([tensor]) & old]
    written = changed or new
    if not written or (not changed and name_of(function) in ALLOCATING):
        return 0, 0, 0
    writes = _bytes(written)
    reads = writes if name_of(function) in GATHERING else _bytes(inputs)
    return reads, writes, len(written)


Call = collections.namedtuple("Call", "phase name tensors reads writes multiply_adds tick")


class Traffic:
    """The operators of a run, in the order of their calls. `tick`: of the last one."""

    def __init__(self):
        self.calls = []
        self.tick = 0

    def note(self, phase, name, reads, writes, tensors, multiply_adds=0):
        self.calls.append(Call(phase, name, tensors, reads, writes, multiply_adds, self.tick))

    def note_operator(self, phase, function, args, results):
        name = name_of(function) or str(function)
        if name not in QUERIES:
            reads, writes, tensors = traffic_of(function, args, results)
            self.note(phase, name if writes else "view", reads, writes, tensors)


def rows_of(low, high, line):
    """Rows of the operators of runs at two batch sizes; an empty list when these differ.

    low, high: their calls
    line(a, b): [fixed, per sample] of a size at the two batch sizes
    """
    if [call[:2] for call in low] != [call[:2] for call in high]:
        return []
    sizes = ("reads", "writes", "multiply_adds")
    found = collections.Counter(
        (*a[:3], *(tuple(line(getattr(a, size), getattr(b, size))) for size in sizes))
        for a, b in zip(low, high)
    )
    return [
        {
            "phase": phase,
            "name": name,
            "calls": calls,
            "tensors": tensors,
            **{size: list(pair) for size, pair in zip(sizes, pairs)},
        }
        for (phase, name, tensors, *pairs), calls in found.items()
    ]
