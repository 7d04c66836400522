# SPDX-License-Identifier: Apache-2.0
"""Exports of PyTorch 2.9 to 2.11 from before December 2026, as the exporter writes rms_norm now.

rms_norm is one kernel on CUDA since PyTorch 2.9 (colloc_export/normalization.py). A CPU runs five
operators in its place, and the exporter listed these. Their tensors begin and end in one order:

    square      ssssssss        of the input: as large as the input
    mean         mmmmmmmm       of each row; ends one tick later
    root              rrrrrrrr  of each row; begins one tick before the square ends
    normalized           nnnnn  as large as the input; begins one tick after the mean ended

The kernel makes the root alone, and keeps it beside the input, as they do. So the others become
empty here; what they made in the backward pass stays. An rms_norm that is written in Python frees
its tensors in another order, and CUDA runs it as it is: it stays, too.
"""

BEGIN, END, SIZE = 2, 3, slice(0, 2)  # of an entry of `tensors`


def norms_of(tensors, phases):
    """Indices of (square, mean, normalized) for each rms_norm of a forward pass."""
    begun = {one[BEGIN]: i for i, one in enumerate(tensors)}
    forward = [(phase["forward"], phase["backward"]) for phase in phases if "backward" in phase]
    for i, square in enumerate(tensors):
        places = (square[BEGIN] + 1, square[END] - 1, square[END] + 2)
        mean, root, normalized = (begun.get(tick) for tick in places)
        if None in (mean, root, normalized) or mean == root:
            continue
        rows, row_ends = tensors[mean][SIZE], tensors[mean][END] == square[END] + 1
        is_norm = tensors[root][SIZE] == rows and tensors[normalized][SIZE] == square[SIZE]
        if is_norm and row_ends and any(rows) and sum(rows) < sum(square[SIZE]):
            if any(first <= square[BEGIN] < last for first, last in forward):
                yield i, mean, normalized


def with_fused_norms(export):
    """The export in which each rms_norm of PyTorch is CUDA's kernel."""
    tensors = list(map(list, export["tensors"]))
    for norm in list(norms_of(tensors, export["phases"])):
        for i in norm:
            tensors[i][SIZE] = [0, 0]
    return {**export, "tensors": tensors}
