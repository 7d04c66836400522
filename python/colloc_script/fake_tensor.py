# SPDX-License-Identifier: Apache-2.0
"""Fake tensors as Python sees them: on the device cuda:0, with values where some are asked for.

For PyTorch's C++ code they are on the CPU (device.py). What a tensor of CUDA can do and a fake one
cannot is replaced here: copies between the devices, printing, numbers.
"""
import functools
import inspect

import torch
from torch._subclasses import FakeTensor

from . import sparse
from .device import GPU, HOST


def _is_gpu(device):
    return device is not None and torch.device(device).type == "cuda"


def _on_host_for_cpp(device):
    return HOST if _is_gpu(device) else device


def _patch_constructor():
    """The device that C++ sees is the CPU, whatever Python asks for."""
    new, initialize = FakeTensor.__new__, FakeTensor.__init__

    def __new__(cls, mode, element, device, *rest, **options):
        return new(cls, mode, element, _on_host_for_cpp(device), *rest, **options)

    def __init__(self, mode, element, device, *rest, **options):
        initialize(self, mode, element, _on_host_for_cpp(device), *rest, **options)

    FakeTensor.__new__ = staticmethod(__new__)
    if "device" in inspect.signature(initialize).parameters:  # before PyTorch 2.1
        FakeTensor.__init__ = __init__


def _device(tensor):
    return torch.device("meta") if tensor.fake_mode.in_kernel_invocation else GPU


def _parse_to(args, kwargs):
    """(device, dtype, memory format, copy) of the arguments of Tensor.to."""
    kwargs = dict(kwargs)
    copy = kwargs.pop("copy", False)
    if args and isinstance(args[0], torch.Tensor):
        return args[0].device, args[0].dtype, None, copy
    if "other" in kwargs:
        return kwargs["other"].device, kwargs["other"].dtype, None, copy
    args = [arg for arg in args if not isinstance(arg, bool)]
    kwargs.pop("non_blocking", None)
    device, dtype, _, memory_format = torch._C._nn._parse_to(*args, **kwargs)
    return device, dtype, memory_format, copy


def _methods(device):
    """Replacements for methods of fake tensors; device: the pretended GPU (device.Device)."""
    plain = torch.Tensor.to

    def to(self, *args, **kwargs):
        target, dtype, memory_format, copy = _parse_to(args, kwargs)
        options = {} if memory_format is None else {"memory_format": memory_format}
        if target is not None and torch.device(target).type == "cpu":
            return cpu(self).to(dtype or self.dtype, **options)
        if dtype is None and not options and not copy:
            return self
        return plain(self, dtype=dtype or self.dtype, copy=copy, **options)

    def cuda(self, *_, **__):
        return self

    def cpu(self, *_, **__):
        return _ToHost.apply(self, device) if self.requires_grad else device.on_host(self)

    def numpy(self, **_):
        return device.on_host(self.detach()).numpy()

    def tolist(self):
        return device.on_host(self.detach()).tolist()

    def array(self, dtype=None):
        return numpy(self) if dtype is None else numpy(self).astype(dtype)

    def deepcopy(self, memo):
        if id(self) not in memo:
            copied = self.detach().clone()
            if isinstance(self, torch.nn.Parameter):
                copied = torch.nn.Parameter(copied, self.requires_grad)
            memo[id(self)] = copied.requires_grad_(self.requires_grad)
        return memo[id(self)]

    def text(self, **_):
        return f"tensor(..., device='{GPU}', size={tuple(self.shape)}, dtype={self.dtype})"

    def formatted(self, form):
        return format(self.item() if self.dim() == 0 else text(self), form)

    return {
        "to": to,
        "cuda": cuda,
        "cpu": cpu,
        "numpy": numpy,
        "tolist": tolist,
        "__array__": array,
        "__deepcopy__": deepcopy,
        "__repr__": text,
        "__format__": formatted,
        "get_device": lambda self: 0,
        "data_ptr": lambda self: id(self),
        "pin_memory": lambda self, *_: self,
        "record_stream": lambda self, *_: None,
        "share_memory_": lambda self: self,
    }


def _with_index(value):
    """C++ asks CUDA for the number of a device without one, and for the kind of a mere number."""
    is_named = isinstance(value, (str, torch.device)) and str(value).startswith("cuda")
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return GPU if is_named or is_number else value


def _with_indices(args, kwargs):
    return tuple(map(_with_index, args)), {k: _with_index(v) for k, v in kwargs.items()}


def _patch_copies_to_gpu():
    """Tensor.to and Tensor.cuda of tensors on the CPU."""
    plain = torch.Tensor.to

    @functools.wraps(plain)
    def to(self, *args, **kwargs):
        if args and isinstance(args[0], FakeTensor):
            args = (GPU, args[0].dtype, *args[1:])
        args, kwargs = _with_indices(args, kwargs)
        return plain(self, *args, **kwargs)

    torch.Tensor.to = to
    parse = torch._C._nn._parse_to

    def parse_to(*args, **kwargs):
        args, kwargs = _with_indices(args, kwargs)
        return parse(*args, **kwargs)

    torch._C._nn._parse_to = parse_to  # of Module.to
    torch.Tensor.cuda = lambda self, *_, **__: to(self, GPU)


class _ToHost(torch.autograd.Function):
    """A copy on the CPU through which gradients flow back."""

    @staticmethod
    def forward(ctx, tensor, device):
        ctx.shape = tensor.shape
        return device.on_host(tensor.detach())

    @staticmethod
    def backward(ctx, gradient):
        return gradient.cuda(), None


def patch(device):
    """Replaces what Python code sees of fake tensors, for the whole process."""
    _patch_constructor()
    FakeTensor.device = property(_device)
    FakeTensor.is_cuda = property(lambda tensor: not tensor.fake_mode.in_kernel_invocation)
    FakeTensor.is_cpu = property(lambda tensor: False)
    for name, method in _methods(device).items():
        setattr(FakeTensor, name, method)
    _patch_copies_to_gpu()
    sparse.patch(device.make_sparse)
    torch.Tensor.pin_memory = lambda self, *_, **__: self
    torch.Tensor.is_pinned = lambda self, *_, **__: False


def without_device(function, device_kept=False):
    """A function that makes its tensor on the CPU, then copies it to CUDA.

    For functions such as torch.tensor, which copy below the level where device.py sees it.
    """

    @functools.wraps(function)
    def made(*args, **kwargs):
        if not _is_gpu(kwargs.get("device")):
            return function(*args, **kwargs)
        requires_grad = kwargs.pop("requires_grad", False)
        kwargs["device"] = HOST
        tensor = function(*args, **kwargs).cuda()
        return tensor.requires_grad_() if requires_grad else tensor

    return made
