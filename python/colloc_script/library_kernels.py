# SPDX-License-Identifier: Apache-2.0
"""Kernels of other packages, by what they allocate: flash-attn, xformers, Triton, bitsandbytes.

Their compiled code does not run on fake tensors. Each function here takes the place of one of them
after its package was imported, and creates the tensors that the package's source creates. The rest
of the package, which is Python over PyTorch, runs as it is.

| package      | replaced                       | source                                         |
| ------------ | ------------------------------ | ---------------------------------------------- |
| flash_attn   | attention, packed and ragged   | csrc/flash_attn/flash_api.cpp (2.7.4): mha_fwd |
|              |                                | and mha_bwd, and their varlen forms            |
| xformers     | memory_efficient_attention     | taken to be flash-attn's; source not read      |
| triton       | the launch of a kernel         | it writes to tensors that its caller made      |
| bitsandbytes | quantised layers, 8-bit steps  | bitsandbytes/functional.py (0.45)              |

Example: attention of flash_attn over [8, 1024, 12, 64] in bfloat16 creates its output, as large as
the query, and a float for each row of each head; the backward pass creates three gradients, and
sums in floats for the gradient of the query.
"""
import functools
import importlib
import sys

import torch

from . import after_import
from .ending import CannotFollow
from .stand_ins import nothing

ROWS = 128  # rows of a tile in flash-attn's backward pass (flash_api.cpp: round_multiple(.., 128))
HEAD = 32  # head sizes are rounded up to this, beyond 128 to 64 (flash_api.cpp)
BLOCK_OF_STATE2 = 256  # values that share a scale of the scales (functional.py: quantize_4bit)
LAUNCHED = (
    "kernels of Triton are taken to write to the tensors they are given, and to allocate none"
)


def _round_up(value, step):
    return -(-value // step) * step


class _Flash(torch.autograd.Function):
    """Attention of flash-attn: [batch, tokens, heads, size], or [tokens, heads, size] of ragged
    sequences. Keeps its inputs, its output, and a float for each row of each head."""

    @staticmethod
    def forward(ctx, query, key, value, dropout):
        output = query.new_empty((*query.shape[:-1], value.shape[-1]))
        sums = query.new_empty(query.shape[:-1].numel(), dtype=torch.float32)
        state = query.new_empty(2, dtype=torch.int64) if dropout else None
        ctx.save_for_backward(query, key, value, output, sums, state)
        return output

    @staticmethod
    def backward(ctx, gradient):
        query, key, value, _, sums, _ = ctx.saved_tensors
        size = query.shape[-1]
        rows = sums.numel() // query.shape[-2]
        if query.dim() == 4:
            rows = query.shape[0] * _round_up(query.shape[1], ROWS)
        rows *= query.shape[-2]
        gradients = [torch.empty_like(one) for one in (query, key, value)]
        delta = query.new_empty(rows, dtype=torch.float32)
        tile = query.new_empty(
            rows * _round_up(size, HEAD if size <= 128 else 2 * HEAD), dtype=torch.float32
        )
        repeats = query.shape[-2] // key.shape[-2]
        wide = [  # the gradients for each head of the query, summed afterwards
            one.new_empty(one.numel() * repeats) for one in (key, value) if repeats > 1
        ]
        del delta, tile, wide
        return (*gradients, None)


def flash(query, key, value, dropout=0.0):
    """Heads are padded to a multiple of 8 elements, as flash_attn_interface.py does."""
    size, short = value.shape[-1], -query.shape[-1] % 8
    if short:
        query, key, value = (
            torch.nn.functional.pad(one, (0, short)) for one in (query, key, value)
        )
    return _Flash.apply(query, key, value, dropout)[..., :size]


def _with_extras(output, query, wants_them):
    """With return_attn_probs: the output, the sums of rows, and no scores."""
    if not wants_them:
        return output
    return output, query.new_empty(query.shape[:-1], dtype=torch.float32), None


def _flash_attn_func(q, k, v, dropout_p=0.0, *_, return_attn_probs=False, **__):
    return _with_extras(flash(q, k, v, dropout_p), q, return_attn_probs)


def _flash_attn_qkvpacked_func(qkv, dropout_p=0.0, *_, return_attn_probs=False, **__):
    query, key, value = qkv.unbind(2)
    return _with_extras(flash(query, key, value, dropout_p), query, return_attn_probs)


def _flash_attn_kvpacked_func(q, kv, dropout_p=0.0, *_, return_attn_probs=False, **__):
    key, value = kv.unbind(2)
    return _with_extras(flash(q, key, value, dropout_p), q, return_attn_probs)


def _flash_attn_varlen_func(
    q, k, v, cu_seqlens_q, cu_seqlens_k, max_q, max_k, dropout_p=0.0, *_, **options
):
    return _with_extras(flash(q, k, v, dropout_p), q, options.get("return_attn_probs"))


def _flash_attn_varlen_qkvpacked_func(qkv, cu_seqlens, longest, dropout_p=0.0, *_, **options):
    query, key, value = qkv.unbind(1)
    return _with_extras(
        flash(query, key, value, dropout_p), query, options.get("return_attn_probs")
    )


def _memory_efficient_attention(query, key, value, attn_bias=None, p=0.0, *_, **__):
    """[batch, tokens, heads, size], or [batch, tokens, size] of one head."""
    if query.dim() == 3:
        one = (part.unsqueeze(2) for part in (query, key, value))
        return flash(*one, p).squeeze(2)
    return flash(query, key, value, p)


# ---- bitsandbytes ----


def _blocks(count, size):
    return -(-count // size)


class _Scales:
    """The tensors beside 4-bit weights: a float for each block; compressed a byte for each block
    and a float for each 256 of these."""

    def __init__(self, weights, blocksize, is_compressed):
        self.shape, self.dtype = weights.shape, weights.dtype
        self.blocks = _blocks(weights.numel(), blocksize)
        kind = torch.uint8 if is_compressed else torch.float32
        self.absmax = weights.new_empty(self.blocks, dtype=kind)
        self.code = weights.new_empty(16, dtype=torch.float32)
        self.of_scales = None
        if is_compressed:
            groups = _blocks(self.blocks, BLOCK_OF_STATE2)
            self.of_scales = [weights.new_empty(n, dtype=torch.float32) for n in (groups, 256, 1)]

    def to(self, *_, **__):
        return self

    def unpack(self):
        """The weights in the type that they had."""
        scales = None
        if self.of_scales:
            scales = self.absmax.new_empty(self.blocks, dtype=torch.float32)
        whole = self.absmax.new_empty(self.shape, dtype=self.dtype)
        del scales
        return whole


class _Rows:
    """The floats beside 8-bit weights: one for each row (int8_vectorwise_quant)."""

    def __init__(self, weights):
        self.shape, self.dtype = weights.shape, weights.dtype
        self.values = weights.new_empty(weights.shape[0], dtype=torch.float32)

    def unpack(self):
        return self.values.new_empty(self.shape, dtype=self.dtype)


class _Product(torch.autograd.Function):
    """A product with quantised weights, which are unpacked for each pass (autograd/_functions.py:
    MatMul4Bit and MatMul8bitLt). The second keeps its input, and multiplies bytes to 32 bit."""

    @staticmethod
    def forward(ctx, values, scales, bias):
        ctx.scales, ctx.has_bias, ctx.input = scales, bias is not None, None
        if isinstance(scales, _Scales):
            return torch.nn.functional.linear(values, scales.unpack().to(values.dtype), bias)
        ctx.input = values if ctx.needs_input_grad[0] else None
        packed = values.new_empty(values.shape, dtype=torch.int8)
        sums = values.new_empty((*values.shape[:-1], scales.shape[0]), dtype=torch.int32)
        result = values.new_empty(sums.shape)
        del packed, sums
        return result

    @staticmethod
    def backward(ctx, gradient):
        of_bias = gradient.flatten(0, -2).sum(0) if ctx.has_bias else None
        whole = ctx.scales.unpack().to(gradient.dtype)
        return torch.matmul(gradient, whole), None, of_bias


def _quantize_4bit(weights, blocksize, is_compressed, storage):
    """(two values in each byte, _Scales)."""
    element = torch.empty((), dtype=storage).element_size()
    scales = _Scales(weights, blocksize, is_compressed)
    return weights.new_empty((_blocks(weights.numel(), 2 * element), 1), dtype=storage), scales


def _moves_to_gpu(args, kwargs):
    device = torch._C._nn._parse_to(*args, **kwargs)[0]
    return device is not None and torch.device(device).type == "cuda"


def _to_gpu(quantize, to):
    """`to` of a quantised parameter, which becomes bytes on its way to the GPU.

    quantize: (weights on the GPU, parameter) to (bytes, what is beside them)
    """

    def moved(parameter, *args, **kwargs):
        is_packed = getattr(parameter, "_colloc_scales", None) is not None
        is_plain = getattr(parameter, "has_fp16_weights", False)
        if is_packed or is_plain or not _moves_to_gpu(args, kwargs):
            return to(parameter, *args, **kwargs)
        weights = parameter.data.contiguous().cuda()
        packed, scales = quantize(weights, parameter)
        packed._colloc_scales = scales
        module = getattr(parameter, "module", None)
        if module is not None:
            module._colloc_scales = scales
        return packed

    return moved


def _pack_4bit(weights, parameter):
    return _quantize_4bit(
        weights,
        parameter.blocksize,
        parameter.compress_statistics,
        getattr(parameter, "quant_storage", torch.uint8),
    )


def _pack_8bit(weights, parameter):
    weights = weights.half()
    return weights.new_empty(weights.shape, dtype=torch.int8), _Rows(weights)


def _forward_with(apply):
    """`forward` of a quantised layer."""

    def forward(layer, values):
        scales = getattr(layer, "_colloc_scales", None)
        scales = getattr(layer.weight, "_colloc_scales", scales)
        if scales is None:
            raise CannotFollow(
                "the kernel of this layer is bitsandbytes' own",
                "only layers that are quantised on their way to the GPU are known",
            )
        dtype, wanted = values.dtype, getattr(layer, "compute_dtype", None)
        values = values.to(wanted or dtype)
        bias = None if layer.bias is None else layer.bias.to(values.dtype)
        return apply(values, scales, bias).to(dtype)

    return forward


def _applied_with(apply):
    """`_apply` of a quantised layer, which its weights know when they become bytes."""

    def applied(layer, *args, **kwargs):
        layer.weight.module = layer
        return apply(layer, *args, **kwargs)

    return applied


def _paged(*shape, dtype=torch.float32, device=None):
    """A state in managed memory: on the GPU while it is used, and counted there."""
    state = torch.zeros(*shape, dtype=dtype, device="cuda")
    state.is_paged, state.page_deviceid = True, 0
    return state


IN_PLACE_OF_BITSANDBYTES = (
    "optimizer_update_32bit",
    "optimizer_update_8bit",
    "optimizer_update_8bit_blockwise",
    "prefetch_tensor",
)


def _replace_bitsandbytes(note):
    functional = importlib.import_module("bitsandbytes.functional")
    for name in IN_PLACE_OF_BITSANDBYTES:
        setattr(functional, name, nothing)
    functional.get_paged = _paged
    layers = importlib.import_module("bitsandbytes.nn.modules")
    for layer, parameter, pack in (
        ("Linear4bit", "Params4bit", _pack_4bit),
        ("Linear8bitLt", "Int8Params", _pack_8bit),
    ):
        layer, parameter = getattr(layers, layer, None), getattr(layers, parameter, None)
        if layer is None or parameter is None:
            continue
        parameter.to = _to_gpu(pack, parameter.to)
        parameter.cuda = lambda self, device=None, **_: self.to("cuda")
        layer.forward = _forward_with(_Product.apply)
        layer._apply = _applied_with(layer._apply)


# ---- where they are put ----


def _replace_flash_attn(note):
    interface = sys.modules.get("flash_attn.flash_attn_interface")
    functions = {
        "flash_attn_func": _flash_attn_func,
        "flash_attn_qkvpacked_func": _flash_attn_qkvpacked_func,
        "flash_attn_kvpacked_func": _flash_attn_kvpacked_func,
        "flash_attn_varlen_func": _flash_attn_varlen_func,
        "flash_attn_varlen_qkvpacked_func": _flash_attn_varlen_qkvpacked_func,
    }
    for holder in filter(None, (sys.modules["flash_attn"], interface)):
        for name, function in functions.items():
            if hasattr(holder, name):
                setattr(holder, name, function)


def _replace_xformers(note):
    sys.modules["xformers.ops"].memory_efficient_attention = _memory_efficient_attention


def _replace_triton(note):
    """A launch does nothing. Tuning a kernel would launch it many times."""

    def launch(*_, **__):
        note(LAUNCHED)

    for name in ("triton.runtime.jit", "triton.runtime.autotuner"):
        module = sys.modules.get(name)
        for kind in ("JITFunction", "Autotuner", "Heuristics"):
            if hasattr(module, kind):
                getattr(module, kind).run = launch


REPLACED = {
    "flash_attn": _replace_flash_attn,
    "xformers.ops": _replace_xformers,
    "triton.runtime": _replace_triton,
    "bitsandbytes": _replace_bitsandbytes,
}


def patch(note):
    """Replaces what is imported of these packages, now and from now on.

    note: called with a sentence for the user when something is left out
    """
    after_import.call(
        {name: functools.partial(replace, note) for name, replace in REPLACED.items()}
    )
