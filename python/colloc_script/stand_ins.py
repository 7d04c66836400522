# SPDX-License-Identifier: Apache-2.0
"""What takes the place of functions and contexts that have no effect on memory."""
import contextlib


def nothing(*_, **__):
    return None


def always(value):
    """A function of anything."""
    return lambda *_, **__: value


class Context(contextlib.ContextDecorator):
    """Of any arguments; errors in it stay."""

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False
