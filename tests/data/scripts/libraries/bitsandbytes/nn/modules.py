# SPDX-License-Identifier: Apache-2.0
import torch


class _Quantised(torch.nn.Parameter):
    def to(self, *args, **kwargs):
        if getattr(self, "has_fp16_weights", False):
            return super().to(*args, **kwargs)
        raise RuntimeError("no kernel image is available")

    def cuda(self, device=None):
        return self.to("cuda")


class Params4bit(_Quantised):
    def __new__(cls, data, requires_grad=False, compress_statistics=True, module=None):
        self = torch.Tensor._make_subclass(cls, data, requires_grad)
        self.blocksize, self.compress_statistics = 64, compress_statistics
        self.quant_storage, self.module = torch.uint8, module
        return self


class Int8Params(_Quantised):
    def __new__(cls, data, requires_grad=False, has_fp16_weights=False):
        self = torch.Tensor._make_subclass(cls, data, requires_grad)
        self.has_fp16_weights = has_fp16_weights
        return self


class Linear4bit(torch.nn.Linear):
    def __init__(self, inputs, outputs, bias=True, compute_dtype=None, compress_statistics=True):
        super().__init__(inputs, outputs, bias)
        self.weight = Params4bit(
            self.weight.data, compress_statistics=compress_statistics, module=self
        )
        self.compute_dtype = compute_dtype


class Linear8bitLt(torch.nn.Linear):
    def __init__(self, inputs, outputs, bias=True, has_fp16_weights=True):
        super().__init__(inputs, outputs, bias)
        self.weight = Int8Params(self.weight.data, has_fp16_weights=has_fp16_weights)
