# SPDX-License-Identifier: Apache-2.0
"""For tests that need PyTorch: importing `nn` and `torch` from here skips the test without it.

It also finds the packages in python/.
"""
import os
import sys

PYTHON_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python")
sys.path.insert(0, PYTHON_FOLDER)

try:
    import torch
    from torch import nn
except ImportError:
    print("skipped: no PyTorch for this Python (python3-torch)")
    sys.exit(77)  # "skipped" for Meson

__all__ = ["PYTHON_FOLDER", "nn", "torch"]
