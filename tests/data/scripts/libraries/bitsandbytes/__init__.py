# SPDX-License-Identifier: Apache-2.0
"""The public interface of bitsandbytes 0.45, whose kernels need a GPU."""
from . import functional, nn, optim

__all__ = ["functional", "nn", "optim"]
