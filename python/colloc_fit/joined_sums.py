# SPDX-License-Identifier: Apache-2.0
"""Exports of PyTorch 2.11 from before 30 November 2026, as the exporter writes them since then.

Autograd adds the second gradient of a map to the first, in place. The exporter did not notice that
in PyTorch 2.11, which calls its functions through two others, so each sum was one more storage
(colloc_export/tracker.py). Example: gradients A and B of a map, and their sum S:

    A  ......aaaaaaaa          ends one tick after S begins
    B  .........bbbbbb         ends one tick later
    S  ............sssss       becomes the rest of A's life

An export without such sums stays as it is.
"""

BEGIN, END, SIZE = 2, 3, slice(0, 2)  # of an entry of `tensors`


def sums_of(tensors, phases):
    """(sum, first gradient) of autograd's sums: a storage as large as two others of the backward
    pass that end with it, one after the other. Indices of tensors."""
    backward = [(phase["backward"], phase.get("optimizer", phase.get("end"))) for phase in phases]
    is_gradient = [any(a <= one[BEGIN] < b for a, b in backward) for one in tensors]
    ended = {one[END]: i for i, one in enumerate(tensors)}
    for i, one in enumerate(tensors):
        parts = [ended.get(one[BEGIN] + tick, i) for tick in (1, 2)]
        is_sum = all(k != i and is_gradient[k] and tensors[k][SIZE] == one[SIZE] for k in parts)
        if is_gradient[i] and any(one[SIZE]) and is_sum:
            yield i, parts[0]


def with_joined_sums(export):
    """The export in which a sum of gradients is the first one's storage."""
    tensors, first_of = list(map(list, export["tensors"])), {}
    found = sorted(sums_of(tensors, export["phases"]), key=lambda one: tensors[one[0]][BEGIN])
    for made, first in found:
        first_of[made] = first = first_of.get(first, first)
        begin, end = tensors[made][BEGIN], tensors[made][END]
        tensors[first][END], tensors[made][:4] = end, [0, 0, begin, begin + 1]
    return {**export, "tensors": tensors}
