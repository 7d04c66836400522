"""What PyTorch does on a GPU where it does otherwise on a CPU, as far as it changes which tensors there are.

A model without a GPU runs the CPU's operators: dropout with a mask of floats, attention through a matrix of scores as soon as there
is dropout, recurrent layers step by step, autocast with a shorter list of operators that stay in fp32. Inside `cuda_rules()` these
operators keep what their CUDA forms keep.
"""
import contextlib
import warnings

import torch
from torch.utils._pytree import tree_map

# Operators that autocast runs in fp32 on CUDA and not on the CPU (PyTorch, "Autocast Op Reference").
FP32_ON_CUDA = """
acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan softplus layer_norm native_layer_norm group_norm
cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss
huber_loss mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss
binary_cross_entropy_with_logits dist cdist renorm logsumexp prod softmax.int log_softmax.int cumprod cumsum sum sum.dim_IntList
linalg_vector_norm pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar
upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d
""".split()

ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"

# cuDNN keeps its gates and cell states of all steps for backward.
RESERVED_PER_UNIT = {"lstm": 6, "gru": 5, "rnn_tanh": 2, "rnn_relu": 2}


def _to_fp32(value):
    if isinstance(value, torch.Tensor) and value.dtype in (torch.bfloat16, torch.float16):
        return value.float()
    return value


def _in_fp32(operator):
    def kernel(*args, **kwargs):
        with torch.autocast("cpu", enabled=False):
            return operator(*tree_map(_to_fp32, args), **tree_map(_to_fp32, kwargs))

    return kernel


def _dropout(input, p, train):
    if not train or p == 0:
        return input
    return torch.native_dropout(input, p, train)[0]


def _attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False):
    if attn_mask is not None and attn_mask.requires_grad:
        return torch.ops.aten._scaled_dot_product_attention_math.default(query, key, value, attn_mask, 0.0, is_causal, scale=scale)[0]
    if enable_gqa:
        repeats = query.size(-3) // key.size(-3)
        key, value = key.repeat_interleave(repeats, -3), value.repeat_interleave(repeats, -3)
    flash = getattr(torch.ops.aten, ATTENTION).default
    return flash(query, key, value, 0.0, is_causal, attn_mask=None, scale=scale)[0]


class _Recurrent(torch.autograd.Function):
    """A recurrent layer as one operation that keeps its input, its output and a reserve."""

    @staticmethod
    def forward(ctx, input, units, layers, directions, batch_first, *weights):
        states = input.new_empty(layers * directions, input.shape[0 if batch_first else 1], units[1])
        output = input.new_empty(*input.shape[:2], units[1] * directions)
        reserve = input.new_empty(layers * directions, *input.shape[:2], units[1] * units[0])
        ctx.save_for_backward(input, output, reserve, *weights)
        return output, states, states.clone()

    @staticmethod
    def backward(ctx, *gradients):
        input, _, _, *weights = ctx.saved_tensors
        return (torch.empty_like(input), None, None, None, None, *[torch.empty_like(weight) for weight in weights])


def _recurrent(kind):
    def kernel(input, hidden, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
        first = hidden[0] if isinstance(hidden, (list, tuple)) else hidden
        units = (RESERVED_PER_UNIT[kind], first.shape[-1])
        output, state, cell = _Recurrent.apply(input, units, num_layers, 2 if bidirectional else 1, batch_first, *params)
        return (output, state, cell) if kind == "lstm" else (output, state)

    return kernel


def _operator(name):
    packet, _, overload = name.partition(".")
    found = getattr(torch.ops.aten, packet, None)
    return found and getattr(found, overload or "default", None)


def _override(library):
    library.impl("dropout", _dropout, "AutogradCPU")
    if hasattr(torch.ops.aten, ATTENTION):
        library.impl("scaled_dot_product_attention", _attention, "AutogradCPU")
    for kind in RESERVED_PER_UNIT:
        library.impl(f"{kind}.input", _recurrent(kind), "AutogradCPU")
    for name in FP32_ON_CUDA:
        operator = _operator(name)
        if operator:
            library.impl(name, _in_fp32(operator), "AutocastCPU")


@contextlib.contextmanager
def cuda_rules():
    """While it is open, CPU operators of this process keep what CUDA's would. Not for real training."""
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there were kernels before is the point
        _override(library)
    try:
        yield
    finally:
        if hasattr(library, "_destroy"):
            library._destroy()
        del library
