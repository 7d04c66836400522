# SPDX-License-Identifier: Apache-2.0
"""rms_norm (torch.nn.RMSNorm) as CUDA runs it, by the version of PyTorch.

- Before 2.9: pow, mean, rsqrt and two products on every device. Each keeps its inputs: the input,
  its value in 32 bit if it has 16, and the normalized map, which the weight is multiplied with.
- Since 2.9: one kernel of CUDA, where input and weight have one type (layer_norm.cpp,
  rms_norm_symint). It keeps the input, the weight, and a float for each row (derivatives.yaml,
  `_fused_rms_norm`): one map less. The CPU has no such kernel and goes on as before
  (rms_norm_composite). Trainings under autocast have weights in 32 bit, and inputs in 16 behind
  each product: there CUDA goes on as before, too (pytorch/pytorch#167308).
- Since 2.12 autocast converts both to 32 bit first (pytorch/pytorch#174824), so the kernel runs.

The kernels are at aten/src/ATen/native/cuda/layer_norm_kernel.cu. `_fused_rms_norm` alone says
nothing: until 2.8 it was an operator of Apple's GPUs.
"""
import torch


class _Fused(torch.autograd.Function):
    """Keeps and makes the kernel's tensors. Its values are the input's: only sizes count."""

    @staticmethod
    def forward(ctx, input, axes, weight):
        output = input.clone(memory_format=torch.contiguous_format)
        rows = (*input.shape[: input.dim() - axes], *[1] * axes)
        wide = torch.float64 if input.dtype == torch.float64 else torch.float32
        scales = input.new_empty(rows, dtype=wide)
        ctx.mark_non_differentiable(scales)
        ctx.save_for_backward(input, weight, scales)
        return output, scales

    @staticmethod
    def backward(ctx, gradient, _):
        input, weight, _ = ctx.saved_tensors
        of_input, _, of_weight = ctx.needs_input_grad
        row = gradient.contiguous()
        return (
            row.clone() if of_input else None,
            None,
            torch.empty_like(weight) if of_weight else None,
        )


def fused_rms_norm(input, normalized_shape, weight=None, eps=None):
    """A replacement for `_fused_rms_norm`: (the output, a float for each row)."""
    return _Fused.apply(input, len(normalized_shape), weight)


def has_fused_kernel(operators):
    """Whether CUDA has the kernel in this version; operators: torch.ops.aten."""
    return hasattr(operators, "_fused_rms_norm_backward")


def is_cast_by_autocast():
    """Whether autocast of CUDA converts the input and weight of rms_norm in this version."""
    try:
        return torch._C._dispatch_has_kernel_for_dispatch_key("aten::rms_norm", "AutocastCUDA")
    except RuntimeError:  # before 2.4 there is no such operator
        return False
