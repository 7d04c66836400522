# SPDX-License-Identifier: Apache-2.0
"""Sizes that depend on values, and errors that the pretended GPU causes.

How many elements a mask selects is not known: all are taken. The next view of the result often says
how many there are:

    torch.masked_select(images, mask).view(64, 3, 32, 32)

Then the result has that size. Where an operation fails all the same, it is tried again on real
tensors of the same shapes. If it works there, or if one of its operands has a size that was taken,
the error is not the script's.
"""
import math

import torch

from colloc_export.tracker import tensors_in

from .trees import mapped

TRIED_MOST = (
    1 << 22
)  # elements of an operation's operands that is tried again; chosen: milliseconds

VIEWS_OF_SIZE = set("view _unsafe_view reshape _reshape_alias".split())


def is_guessed(tensor):
    return getattr(tensor, "_colloc_guessed", False)


def mark_guessed(results):
    """Notes that the sizes of these tensors were taken; returns them."""
    for tensor in results if isinstance(results, (list, tuple)) else [results]:
        tensor._colloc_guessed = True
    return results


def reshaped(name, args, storages, mode):
    """The arguments of a view, where its sizes tell how many elements there are; else as given."""
    if name not in VIEWS_OF_SIZE or not is_guessed(args[0]) or args[0].dim() != 1:
        return args
    sizes = list(args[1])
    count = math.prod(sizes)
    if any(size < 0 for size in sizes) or not 0 < count < args[0].numel():
        return args
    storages.resize(args[0], count * args[0].element_size())
    with mode:
        smaller = torch.empty(count, dtype=args[0].dtype)
    return (smaller, *args[1:])


def _real(tensor):
    if tensor.layout != torch.strided:
        return tensor
    return torch.zeros(tensor.shape, dtype=tensor.dtype)


def _works_on_host(function, args, kwargs):
    try:
        kwargs = {key: value for key, value in kwargs.items() if key != "device"}
        function(*mapped(_real, args), **mapped(_real, kwargs))
        return True
    except Exception:
        return False


def _lacks_half_on_host(error, operands):
    """CUDA has kernels for 16 bit where older versions of PyTorch have none of the CPU."""
    half = (torch.float16, torch.bfloat16)
    return "not implemented for" in str(error) and any(one.dtype in half for one in operands)


def explain(error, function, name, args, kwargs, notes):
    """Notes at an error that it is the pretended GPU's, where it is."""
    if hasattr(error, "_colloc_own"):
        return
    operands = tensors_in((args, kwargs))
    if any(map(is_guessed, operands)):
        error._colloc_own = f"a size was taken that depends on values ({'; '.join(notes)})"
    elif sum(one.numel() for one in operands) <= TRIED_MOST and _works_on_host(
        function, args, kwargs
    ):
        error._colloc_own = f"{name} works on the CPU, but not on the GPU that is not there"
    elif _lacks_half_on_host(error, operands):
        error._colloc_own = f"{name} has no kernel of the CPU for 16 bit in this PyTorch"
