# SPDX-License-Identifier: Apache-2.0
"""Scratch memory: what CUDA's kernels take and free within one operation. No tensor shows it.

`scratch_of(name, args, results)` returns sizes in bytes: what is allocated beside the operation's
results at its peak. The list is empty where nothing is known, and always has the same length for
one operator. Each rule is that of PyTorch 2.11 on a GPU of the size of an H100 or H200. Workspaces
of convolutions are not in this file (kernels.py).
"""
import math

import torch

MULTIPROCESSORS, THREADS_OF_EACH = 132, 2048
LARGEST_BLOCK, WARP = 512, 32
VALUES_OF_A_THREAD = (16, 256)  # at least, at most, where several blocks share an output
INDICES_WITHOUT_SORTING = 3072


def _bytes(tensor):
    return tensor.numel() * tensor.element_size()


def _is_image(tensor):
    """Is the tensor an image in channels-last layout?"""
    return tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last)


def _copies(*tensors):
    """Kernels that index their inputs as one block copy non-contiguous ones."""
    return sum(0 if tensor.is_contiguous() else _bytes(tensor) for tensor in tensors)


def _copies_of_images(*tensors):
    """Pooling kernels take either layout."""
    return _copies(*(tensor for tensor in tensors if not _is_image(tensor)))


def _below(value):
    """The largest power of two that is not above the value."""
    return 1 << (max(int(value), 1).bit_length() - 1)


def _divide_up(value, step):
    return -(-value // step)


class Stepped(int):
    """A size that follows the batch in steps, up to what fills the GPU.

    It can be computed again for other batches.
    """

    def __new__(cls, size, launch, index):
        self = super().__new__(cls, size)
        self.launch, self.index = launch, index
        return self

    def at(self, twice, ratio):
        """The size at `ratio` times its batch; `twice` is the same size at twice the batch."""
        a, b = self.launch, twice.launch
        outputs, inputs = (
            max(1, round(x + (y - x) * (ratio - 1)))
            for x, y in ((a.outputs, b.outputs), (a.inputs, b.inputs))
        )
        return int(
            _Launch(outputs, inputs, a.along_rows, a.vector, a.one_dimension).scratch()[self.index]
        )


RATIOS = [2.0**k for k in range(-2, 3)]


def line(low, high, base, batch):
    """[fixed, per sample] of a stepped size that was `low` at `base` and `high` at twice that.

    The line is exact at `batch`, and closest between a quarter and four times it: the sum of its
    errors, each as a part of what the task takes, is the least. The sum and not the largest error,
    so that a size that no longer grows is constant.
    """
    sizes = {ratio: low.at(high, ratio * batch / base) for ratio in RATIOS}
    here = sizes[1]
    chords = (
        int((size - here) // ((ratio - 1) * batch)) for ratio, size in sizes.items() if ratio != 1
    )
    lines = [
        (here - slope * batch, slope)
        for slope in {0, here // batch, *chords}
        if 0 <= slope * batch <= here
    ]

    def error(one):
        fixed, slope = one
        return sum(
            abs(fixed + slope * batch * ratio - size) / (1 + ratio) for ratio, size in sizes.items()
        )

    return list(min(sorted(lines), key=error))


class _Launch:
    """How a reduction is spread over threads (ATen/native/cuda/Reduce.cuh, setReduceConfig)."""

    def __init__(self, outputs, inputs, along_rows, vector, one_dimension):
        self.one_dimension = one_dimension
        self.outputs, self.inputs, self.along_rows, self.vector = (
            outputs,
            inputs,
            along_rows,
            vector,
        )
        self.step_in = self.step_out = 1
        width, height = (inputs, outputs) if along_rows else (outputs // vector, inputs)
        if along_rows and one_dimension and width > 128:
            width //= 4
        self._shape_block(width, height)
        self.blocks_an_output = self._blocks_an_output()

    def _shape_block(self, width, height):
        most = LARGEST_BLOCK // self.vector
        width, height = min(_below(width), most), min(_below(height), most)
        self.width = min(width, WARP)
        self.height = min(height, most // self.width)
        self.width = min(width, most // self.height)

    def _values_of_a_thread(self):
        return _divide_up(self.inputs, self.step_in)

    def _blocks_an_output(self):
        if self.along_rows:
            self.step_in *= self.width
        else:
            self.step_out *= self.width
        shares_block = self._values_of_a_thread() >= min(self.height * 16, VALUES_OF_A_THREAD[1])
        if shares_block:
            self.step_in *= self.height
        else:
            self.step_out *= self.height
        wanted = MULTIPROCESSORS * (THREADS_OF_EACH // (self.width * self.height))
        grid, values = self.grid(), self._values_of_a_thread()
        if not shares_block or values < VALUES_OF_A_THREAD[1] or grid > wanted:
            return 1
        least, most = (_divide_up(values, count) for count in reversed(VALUES_OF_A_THREAD))
        return max(min(_divide_up(wanted, grid), most), least)

    def grid(self):
        return max(1, _divide_up(self.outputs // self.vector, self.step_out))

    def scratch(self):
        """Partial results that the blocks of an output exchange, and their semaphores."""
        sizes = 0, 0
        if self.blocks_an_output > 1:
            lanes = 1 if self.along_rows else self.width * self.vector
            sizes = 4 * self.outputs * self.blocks_an_output * lanes, 4 * self.grid()
        return [Stepped(size, self, index) for index, size in enumerate(sizes)]


def _runs(tensor, reduced):
    """[[size, reduced], ...]: dimensions from the slowest to the fastest.

    Neighbours that are reduced alike are merged.
    """
    order = sorted(
        (d for d in range(tensor.dim()) if tensor.shape[d] > 1), key=lambda d: -tensor.stride(d)
    )
    runs = []
    for dimension in order:
        if runs and runs[-1][1] == (dimension in reduced):
            runs[-1][0] *= tensor.shape[dimension]
        else:
            runs.append([tensor.shape[dimension], dimension in reduced])
    return runs


def reduction(tensor, dims=None):
    """The scratch memory of a sum or a mean over `dims`; over all dimensions when it is empty."""
    reduced = {d % max(tensor.dim(), 1) for d in dims} if dims else set(range(tensor.dim()))
    runs = _runs(tensor, reduced)
    if not runs or tensor.numel() == 0 or not tensor.dtype.is_floating_point:
        return [0, 0]
    along_rows = runs[-1][1]
    vector = 1 if along_rows else math.gcd(runs[-1][0], 4)
    inputs = math.prod(size for size, is_reduced in runs if is_reduced)
    return _Launch(tensor.numel() // inputs, inputs, along_rows, vector, len(runs) == 1).scratch()


def _reduce(args, _):
    dims = args[1] if len(args) > 1 and isinstance(args[1], (list, tuple)) else None
    return reduction(args[0], dims)


def _softmax_backward(args, _):
    """The product of gradient and result; the rest is in place."""
    return [_copies(args[0]), _bytes(args[0])]


def _input_copy(args, _):
    return [_copies(args[0])]


def _two_copies(args, _):
    return [_copies(args[0], args[1])]


def _image_copy(args, _):
    return [_copies_of_images(args[0])]


def _two_image_copies(args, _):
    return [_copies_of_images(args[0], args[1])]


def _safe_softmax(args, results):
    """A byte for each score: whether it is minus infinity."""
    return [results.numel()]


def _roll(args, results):
    """Sums over several dimensions, one after the other."""
    return [_bytes(results) if len(args) > 2 and len(args[2]) > 1 else 0]


def _loss_by_element(args, _):
    """The loss of each element before the mean, and what its reduction takes."""
    without_mean = len(args) > 2 and args[2] == 0
    return [0, 0, 0] if without_mean else [_bytes(args[0]), *reduction(args[0])]


def _cross_entropy_of_bits(args, _):
    """Computed in two steps; without a mean the second is the result."""
    without_mean = len(args) > 4 and args[4] == 0
    return [_bytes(args[0]), 0 if without_mean else _bytes(args[0])]


def _embedding_backward(args, _):
    """Sorts the indices and adds up pieces of at most ten rows in floats."""
    gradient, indices, rows = args[:3]
    count = indices.numel()
    if count <= INDICES_WITHOUT_SORTING:
        return [0, 0, 0, 0]
    segments = min(count, rows)
    pieces = count // 10 + segments
    return [
        _copies(gradient),
        8 * (3 * count + 2 * segments),
        8 * pieces,
        4 * pieces * gradient.shape[-1],
    ]


def _add_sparse(args, _):
    """A sparse tensor is added to a dense one row by row: its scaled values are a copy."""
    added = args[1] if len(args) > 1 else None
    is_sparse = isinstance(added, torch.Tensor) and added.layout == torch.sparse_coo
    return [_bytes(added._values())] if is_sparse else []


RULES = {
    "add_": _add_sparse,
    "sum": _reduce,
    "mean": _reduce,
    "_softmax": _input_copy,
    "_log_softmax": _input_copy,
    "_safe_softmax": _safe_softmax,
    "_softmax_backward_data": _softmax_backward,
    "_log_softmax_backward_data": _two_copies,
    "native_layer_norm": _input_copy,
    "native_layer_norm_backward": _two_copies,
    "avg_pool2d": _image_copy,
    "avg_pool2d_backward": _two_image_copies,
    "max_pool2d_with_indices_backward": _image_copy,
    "upsample_bilinear2d_backward": _image_copy,
    "roll": _roll,
    "mse_loss": _loss_by_element,
    "binary_cross_entropy_with_logits": _cross_entropy_of_bits,
    "embedding_dense_backward": _embedding_backward,
}


def scratch_of(name, args, results):
    """Sizes in bytes; see the head of this file."""
    rule = RULES.get(name)
    return rule(args, results) if rule else []
