# SPDX-License-Identifier: Apache-2.0
"""Sparse matrices on the pretended GPU.

Fake tensors know no sparse layout before PyTorch 2. A sparse matrix on the GPU, such as the
adjacency matrix of a graph, is a dense fake tensor here, which takes no memory itself: its indices
and values do, and live as long as it does. Products with it have the shapes that they would have.
"""
import sys

import torch
from torch._subclasses import FakeTensor


# Methods that what stands for a sparse tensor answers as one.
ANSWERED = (
    "coalesce is_coalesced indices _indices values _values _nnz sparse_dim to_dense"
).split()


def is_sparse(tensor):
    return isinstance(tensor, torch.Tensor) and tensor.layout != torch.strided


def parts_of(tensor):
    """The dense tensors in a real sparse one."""
    if tensor.layout == torch.sparse_coo:
        return tensor._indices(), tensor._values()
    return tensor.crow_indices(), tensor.col_indices(), tensor.values()


def keep_parts(stand_in, parts):
    """Makes a fake tensor stand for the sparse one that has these parts on the GPU."""
    stand_in._colloc_parts = tuple(parts)
    return stand_in


def stands_for_sparse(tensor):
    return getattr(tensor, "_colloc_parts", None) is not None


def inherit(operands, results):
    """Results as large as a matrix that they are made of (its transpose, say) are sparse, too."""
    first = next(filter(stands_for_sparse, operands), None)
    for result in results if first is not None else ():
        if result.numel() == first.numel():
            keep_parts(result, first._colloc_parts)


def _patched(plain, name):
    """A method that a sparse tensor answers; a dense one has it from PyTorch."""

    def method(self, *args, **kwargs):
        if not stands_for_sparse(self):
            return plain(self, *args, **kwargs)
        if name in ("indices", "_indices"):
            return self._colloc_parts[0]
        if name in ("values", "_values"):
            return self._colloc_parts[-1]
        if name in ("_nnz", "sparse_dim"):
            return len(self._colloc_parts[-1]) if name == "_nnz" else self.dim()
        if name == "to_dense":
            return torch.zeros(self.shape, dtype=self.dtype, device=self.device)
        return True if name == "is_coalesced" else self  # coalesce

    return method


def _is_sparse_for(plain):
    """What `is_sparse` says: to PyTorch's own code of fake tensors a stand-in is dense."""

    def is_sparse_now(tensor):
        if not stands_for_sparse(tensor):
            return plain.__get__(tensor)
        asks = sys._getframe(1).f_globals.get("__name__", "")
        in_rows = len(tensor._colloc_parts) == 3  # CSR, of which is_sparse is False
        return not in_rows and not asks.startswith("torch._subclasses")

    return is_sparse_now


def _made_by(plain, make):
    """A constructor of sparse tensors: of indices, values and sizes."""

    def made(indices, values, size=None, **options):
        is_on_gpu = isinstance(indices, FakeTensor) or isinstance(values, FakeTensor)
        if not is_on_gpu or size is None:
            return plain(indices, values, *([] if size is None else [size]), **options)
        return make(indices, values, size)

    return made


def patch(make):
    """Replaces, for the whole process, what Python code asks of sparse tensors.

    make(indices, values, size): what stands for a sparse tensor that is made on the GPU
    """
    torch.sparse_coo_tensor = _made_by(torch.sparse_coo_tensor, make)
    for holder in filter(None, (torch.sparse, getattr(torch.cuda, "sparse", None))):
        if hasattr(holder, "FloatTensor"):
            holder.FloatTensor = _made_by(holder.FloatTensor, make)
    for name in ANSWERED:
        setattr(FakeTensor, name, _patched(getattr(torch.Tensor, name), name))
    FakeTensor.is_sparse = property(_is_sparse_for(torch.Tensor.is_sparse))
    multiply = torch.sparse.mm

    def mm(first, second, *rest):
        has_stand_in = stands_for_sparse(first) or stands_for_sparse(second)
        return torch.mm(first, second) if has_stand_in else multiply(first, second, *rest)

    torch.sparse.mm = mm
