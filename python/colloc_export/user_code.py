# SPDX-License-Identifier: Apache-2.0
"""Loads the user's code, whatever framework it uses; and what is said of its mistakes."""
import importlib
import importlib.util
import os
import sys


class Mistake(Exception):
    """A mistake of the user; its text says how to correct it."""


def load(path):
    """The module of a name, or of a file that ends in .py."""
    if path.endswith(".py"):
        spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module
    sys.path.insert(0, os.getcwd())
    return importlib.import_module(path)


def function_of(source):
    """The function that MODULE:FUNCTION or FILE.py:FUNCTION names. Raises Mistake."""
    module, _, function = source.rpartition(":")
    if not module:
        raise Mistake(f"{source}: expected MODULE:FUNCTION or FILE.py:FUNCTION")
    try:
        return getattr(load(module), function)
    except (ImportError, AttributeError, OSError) as error:
        raise Mistake(f"{source}: {error}") from None
