# SPDX-License-Identifier: Apache-2.0
"""The public interface of Triton: a decorated function is launched by kernel[grid](...)."""
from .runtime import jit as _jit


def jit(function):
    return _jit.JITFunction(function)
