# SPDX-License-Identifier: Apache-2.0
"""LoRA layers, and linear layers of 4 bits below them (QLoRA)."""
import math

import torch
from torch import nn

BLOCK = 64  # weights with one constant
LEVELS = torch.linspace(-1, 1, 16)


class LoraLinear(nn.Module):
    """A frozen layer and a trained product of two small ones."""

    def __init__(self, base, rank, scale=2.0, drop=0.05):
        super().__init__()
        size = dict(device="cuda", dtype=torch.float32)
        out = base.out_features if hasattr(base, "out_features") else base.nf
        first = base.in_features if hasattr(base, "in_features") else base.weight.shape[0]
        self.base = base
        self.lora_dropout = nn.Dropout(drop)
        self.lora_A = nn.Linear(first, rank, bias=False, **size)
        self.lora_B = nn.Linear(rank, out, bias=False, **size)
        self.scale = scale
        nn.init.kaiming_uniform_(self.lora_A.weight, a=math.sqrt(5))
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x):
        result = self.base(x)
        x = self.lora_dropout(x.to(self.lora_A.weight.dtype))
        return result + (self.lora_B(self.lora_A(x)) * self.scale).to(result.dtype)


class _Product4bit(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, layer):
        ctx.layer = layer
        return x @ layer.dequantize(x.dtype).t()

    @staticmethod
    def backward(ctx, gradient):
        return gradient @ ctx.layer.dequantize(gradient.dtype), None


class Linear4bit(nn.Module):
    """Two weights in a byte, and a constant for each block of 64."""

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        count = in_features * out_features
        packed = torch.randint(0, 256, (count // 2, 1), dtype=torch.uint8, device="cuda")
        self.weight = nn.Parameter(packed, requires_grad=False)
        constants = torch.rand(count // BLOCK, device="cuda") * 0.02
        self.register_buffer("absmax", constants)
        self.register_buffer("code", LEVELS.to("cuda"))
        self.bias = None
        if bias:
            size = dict(device="cuda", dtype=torch.bfloat16)
            self.bias = nn.Parameter(torch.zeros(out_features, **size), requires_grad=False)

    def dequantize(self, dtype):
        packed = self.weight.view(-1)
        whole = torch.stack((packed >> 4, packed & 15), dim=1).view(-1, BLOCK).int()
        weight = self.code[whole] * self.absmax[:, None]
        return weight.to(dtype).view(self.out_features, self.in_features)

    def forward(self, x):
        result = _Product4bit.apply(x, self)
        return result if self.bias is None else result + self.bias

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


def add_lora(model, names, rank):
    """Freezes the model, and puts LoRA around the layers whose names end so."""
    for weight in model.parameters():
        weight.requires_grad = False
    for path, layer in list(model.named_modules()):
        name = path.rpartition(".")[2]
        if name in names:
            owner = model.get_submodule(path.rpartition(".")[0])
            setattr(owner, name, LoraLinear(layer, rank))
