# SPDX-License-Identifier: Apache-2.0
"""Finds, without a GPU, every storage that a PyTorch training task will allocate (docs/export.md).

    from colloc_export import Task, export
    json.dump(export(Task(make_model, make_batch), batch=32), file)
"""
import importlib
import sys

try:
    importlib.import_module("torch")
except ImportError as missing:
    raise ImportError(
        f"colloc_export needs PyTorch, and {sys.executable} has none ({missing})"
    ) from None

from .export import export  # noqa: E402
from .task import Task  # noqa: E402

__all__ = ["Task", "export"]
