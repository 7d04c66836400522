# SPDX-License-Identifier: Apache-2.0
"""Scaled dot-product attention as CUDA runs it.

Which kernel runs, which tensors it keeps for the backward pass, and which scratch memory it takes.
Sizes are those of PyTorch 2.11 with cuDNN 9 on a GPU of compute capability 9. Where PyTorch decides
by what the GPU and its libraries support (sdp_utils.cpp), such a GPU is assumed.
"""
import torch

HALVES = (torch.float16, torch.bfloat16)
LARGEST_HEAD = 256  # of cuDNN's and of the flash kernel


def _round_up(value, step):
    return -(-value // step) * step


def _rows_are_dense(tensor):
    return tensor is None or tensor.stride(-1) == 1


def kernel_of(query, key, value, mask=None):
    """The kernel that PyTorch chooses: "cudnn", "flash", "efficient" or "math", in this order."""
    half, size = query.dtype in HALVES, query.shape[-1]
    same_size = size == key.shape[-1] == value.shape[-1]
    learned_mask = mask is not None and mask.requires_grad
    if not all(tensor.dim() == 4 for tensor in (query, key, value)) or not all(
        map(_rows_are_dense, (query, key, value, mask))
    ):
        return "math"
    grouped = query.shape[-3] != key.shape[-3]
    if (
        not query.shape[0] == key.shape[0] == value.shape[0]
        or query.shape[-3] % key.shape[-3]
        or query.dtype == torch.float64
    ):
        return "math"
    if half and same_size and size <= LARGEST_HEAD:
        if size % 8 == 0 and not learned_mask:
            return "cudnn"
        if mask is None:
            return "flash"
    if (
        not grouped
        and size == key.shape[-1]
        and not size % (8 if half else 4)
        and not value.shape[-1] % (8 if half else 4)
    ):
        return "efficient"
    return "math"


def _like_transposed(tensor, size=None):
    """A tensor [batch, heads, tokens, size] in which the heads of a token are adjacent."""
    batch, heads, tokens, own = tensor.shape
    return tensor.new_empty(batch, tokens, heads, size or own).transpose(1, 2)


def _scratch(tensor, count):
    return tensor.new_empty(count, dtype=torch.uint8)


def _tiles_of_query(query):
    """Scratch bytes of the efficient kernel for the query's gradient.

    It is summed in tiles of floats, each with a lock of 16 bytes.
    """
    batch, heads, tokens, size = query.shape
    large = size > 128 or (size > 64 and query.dtype in HALVES)
    rows, columns = 128 if large else 64, 128 if 64 < size <= 128 else 64
    return batch * heads * -(-tokens // rows) * -(-size // columns) * (4 * rows * columns + 16)


def _sums_of_key(query, key):
    """Scratch bytes for the gradients of key and value.

    They are summed in floats when heads of half precision do not fit into registers.
    """
    if query.dtype not in HALVES or query.shape[-1] <= 128:
        return 0
    return (
        2
        * 4
        * query.shape[0]
        * query.shape[1]
        * _round_up(key.shape[-2], 128)
        * _round_up(query.shape[-1], 128)
    )


def _delta(query, gradient):
    """Gradient times output, summed by rows. In half precision the kernel itself multiplies."""
    product = None if query.dtype in HALVES else gradient.new_empty(gradient.shape)
    delta = query.new_empty(query.shape[:3], dtype=torch.float32)
    del product
    return delta


def _efficient_backward(query, key, value, mask, gradient):
    gradients = [_like_transposed(query), _like_transposed(key), _like_transposed(value)]
    of_mask = None
    if mask is not None and mask.requires_grad:
        of_mask = query.new_empty(*query.shape[:3], _round_up(key.shape[-2], 16))[
            ..., : key.shape[-2]
        ]
    gradient = gradient.transpose(1, 2).contiguous()
    delta = _delta(query, gradient)
    workspace = _scratch(query, _tiles_of_query(query) + _sums_of_key(query, key))
    del workspace, delta
    return (*gradients, of_mask)


def _cudnn_backward(query, key, value):
    gradients = torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)
    workspace = 4 * (query.numel() + query[..., 0].numel()) + 256
    if query.shape[-3] != key.shape[-3]:  # for each head of the query, then added up
        workspace += (
            2
            * query.element_size()
            * query.shape[0]
            * query.shape[1]
            * key.shape[-2]
            * key.shape[-1]
        )
    workspace = _scratch(query, workspace)
    del workspace
    return (*gradients, None)


def _flash_backward(query, key, value):
    gradients = _like_transposed(query), _like_transposed(key), _like_transposed(value)
    batch, heads, tokens, size = query.shape
    sums = _scratch(query, 4 * batch * heads * _round_up(tokens, 128))
    of_query = _scratch(
        query,
        4 * batch * heads * _round_up(tokens, 128) * _round_up(size, 32 if size <= 128 else 64),
    )
    del of_query, sums
    return (*gradients, None)


class _Fused(torch.autograd.Function):
    """A kernel without a matrix of scores: keeps its inputs, its output and a float per row."""

    @staticmethod
    def forward(ctx, kernel, query, key, value, mask):
        output = (
            torch.empty_like(query)
            if kernel == "cudnn"
            else _like_transposed(query, value.shape[-1])
        )
        rows = _round_up(query.shape[-2], 32) if kernel == "efficient" else query.shape[-2]
        sums = query.new_empty(*query.shape[:2], rows, dtype=torch.float32)
        if kernel == "efficient" and query.dtype in HALVES and value.shape[-1] > 128:
            _scratch(
                query, 4 * output.numel()
            )  # the output does not fit into registers; goes at once
        ctx.kernel = kernel
        ctx.save_for_backward(query, key, value, mask, output, sums)
        return output

    @staticmethod
    def backward(ctx, gradient):
        query, key, value, mask, _, _ = ctx.saved_tensors
        if ctx.kernel == "efficient":
            return (None, *_efficient_backward(query, key, value, mask, gradient))
        backward = _cudnn_backward if ctx.kernel == "cudnn" else _flash_backward
        return (None, *backward(query, key, value))


def _padded_mask(mask, query, key):
    """The mask as the efficient kernel needs it: rows of a multiple of 16 elements.

    It is padded before it is expanded over the batch.
    """
    short = -mask.shape[-1] % 16
    if short:
        mask = torch.nn.functional.pad(mask, (0, short))[..., : mask.shape[-1]]
    return mask.expand(*query.shape[:3], key.shape[-2])


def fused(kernel, query, key, value, mask):
    """The result of a kernel that keeps no scores."""
    size = query.shape[-1]
    if mask is not None and mask.dtype == torch.bool:
        mask = query.new_zeros(mask.shape)  # zero or minus infinity
    if kernel == "efficient" and mask is not None:
        mask = _padded_mask(mask, query, key)
    if kernel == "flash" and size % 8:
        query, key, value = (
            torch.nn.functional.pad(tensor, (0, -size % 8)) for tensor in (query, key, value)
        )
        return _Fused.apply(kernel, query, key, value, None)[..., :size]
    return _Fused.apply(kernel, query, key, value, mask)


def _math(query, key, value, mask, dropout, causal, scale, grouped):
    if grouped:
        repeats = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(repeats, -3), value.repeat_interleave(repeats, -3)
    return torch.ops.aten._scaled_dot_product_attention_math.default(
        query, key, value, mask, dropout, causal, scale=scale
    )[0]


def attention_with(on_attention):
    """Returns a replacement for `scaled_dot_product_attention`.

    on_attention: called with query, key and value when one kernel computes the attention
    """

    def attention(
        query,
        key,
        value,
        attn_mask=None,
        dropout_p=0.0,
        is_causal=False,
        *,
        scale=None,
        enable_gqa=False,
    ):
        kernel = kernel_of(query, key, value, attn_mask)
        if kernel == "math":
            return _math(
                query,
                key,
                value,
                attn_mask,
                dropout_p,
                is_causal,
                scale,
                enable_gqa and query.shape[-3] != key.shape[-3],
            )
        on_attention(query, key, value)
        return fused(kernel, query, key, value, attn_mask)

    return attention
