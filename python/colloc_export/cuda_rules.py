# SPDX-License-Identifier: Apache-2.0
"""Runs CUDA's variants of operators on the CPU, where they create other tensors.

Without a GPU a model runs the CPU's operators: dropout with a mask of floats, attention with
dropout through a matrix of scores, rms_norm by five operators, recurrent layers step by step,
autocast with a shorter list of operators that stay in fp32. Inside `cuda_rules()` these operators
keep the tensors that their CUDA variants keep.
"""
import contextlib
import warnings

import torch
from torch.utils._pytree import tree_map

from .attention import HALVES, attention_with
from .normalization import fused_rms_norm, has_fused_kernel, is_cast_by_autocast
from .recurrent import GATES, recurrent

# Operators that autocast runs in fp32 on CUDA, but not on the CPU ("Autocast Op Reference").
FP32_ON_CUDA = """
acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan softplus layer_norm
native_layer_norm group_norm cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss
nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss
margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss
binary_cross_entropy_with_logits dist cdist renorm logsumexp pow.Tensor_Scalar pow.Tensor_Tensor
pow.Scalar upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d
upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d
""".split()

# Operators with an argument for the type of their result: autocast sets it and casts no input. It
# keeps a type that the caller gave.
WITH_DTYPE = (
    "prod softmax.int log_softmax.int cumprod cumsum sum sum.dim_IntList linalg_vector_norm".split()
)

# Operators that autocast runs in fp32 on the CPU, but leaves alone on CUDA. The loss computes its
# log-softmax in the type of the logits.
LET_PASS_ON_CUDA = """
cross_entropy_loss avg_pool3d max_pool3d adaptive_avg_pool3d reflection_pad1d reflection_pad2d
replication_pad1d replication_pad2d
replication_pad3d
""".split()


def _to_fp32(value):
    if isinstance(value, torch.Tensor) and value.dtype in HALVES:
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


def _with_dtype(operator):
    place = [argument.name for argument in operator._schema.arguments].index("dtype")

    def kernel(*args, **kwargs):
        given = args[place] if len(args) > place else kwargs.get("dtype")
        if given is None and args[0].dtype in HALVES:
            args, kwargs = args[:place], {**kwargs, "dtype": torch.float32}
        with torch.autocast("cpu", enabled=False):
            return operator(*args, **kwargs)

    return kernel


def _let_pass(operator):
    """A kernel that only calls the operators it is made of.

    Before PyTorch 2 only such composite operators can have one.
    """
    if hasattr(torch.library, "fallthrough_kernel"):
        return torch.library.fallthrough_kernel
    is_composite = torch._C._dispatch_has_kernel_for_dispatch_key(
        operator._schema.name, "CompositeImplicitAutograd"
    )
    return operator.decompose if is_composite else None


def _is_autocast():
    try:
        return torch.is_autocast_enabled("cpu")
    except TypeError:
        return torch.is_autocast_cpu_enabled()


def _operator(name):
    packet, _, overload = name.partition(".")
    found = getattr(torch.ops.aten, packet, None)
    return found and getattr(found, overload or "default", None)


def _autocast_rules():
    """Replacements for kernels under autocast, by the operators' names."""
    rules = {name: _in_fp32 for name in FP32_ON_CUDA}
    if is_cast_by_autocast():
        rules["rms_norm"] = _in_fp32
    rules.update({name: _with_dtype for name in WITH_DTYPE})
    rules.update({name: _let_pass for name in LET_PASS_ON_CUDA})
    return rules


def _override(library, on_attention, on_recurrent):
    library.impl("dropout", _dropout, "AutogradCPU")
    if hasattr(torch.ops.aten, "scaled_dot_product_attention"):
        library.impl("scaled_dot_product_attention", attention_with(on_attention), "AutogradCPU")
    if has_fused_kernel(torch.ops.aten):
        library.impl("_fused_rms_norm", fused_rms_norm, "AutogradCPU")
    for kind in GATES:
        library.impl(f"{kind}.input", recurrent(kind, _is_autocast, on_recurrent), "AutogradCPU")
    for name, rule in _autocast_rules().items():
        operator = _operator(name)
        kernel = operator and rule(operator)
        if kernel:
            library.impl(name, kernel, "AutocastCPU")


def _note_nothing(*_):
    pass


@contextlib.contextmanager
def cuda_rules(on_attention=_note_nothing, on_recurrent=_note_nothing):
    """In this context CPU operators keep the tensors that CUDA's would. Not for real training.

    on_attention: see attention.py
    on_recurrent: see recurrent.py
    """
    library = torch.library.Library("aten", "IMPL")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # replacing existing kernels is intended
            _override(library, on_attention, on_recurrent)
        yield
    finally:
        if hasattr(library, "_destroy"):
            library._destroy()
        del library
