# SPDX-License-Identifier: Apache-2.0
"""Finds, without a GPU, every storage that a PyTorch training task will allocate; and for a
training step of JAX, what its compiler says that it takes (docs/export.md).

    from colloc_export import Task, export
    json.dump(export(Task(make_model, make_batch), batch=32), file)

    from colloc_export import jax_step
    json.dump(jax_step(step, parameters, state, images, labels), file)

Each framework is imported when a name that needs it is used: neither needs the other.
"""
import importlib
import sys

MODULES = {"Task": "task", "export": "describe", "jax_step": "compiled_step"}

__all__ = list(MODULES)


def need_torch():
    """Raises ImportError, with the interpreter's path, where PyTorch is not installed."""
    try:
        importlib.import_module("torch")
    except ImportError as missing:
        raise ImportError(
            f"colloc_export needs PyTorch, and {sys.executable} has none ({missing})"
        ) from None


def __getattr__(name):
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name != "jax_step":
        need_torch()
    return getattr(importlib.import_module(f".{MODULES[name]}", __name__), name)
