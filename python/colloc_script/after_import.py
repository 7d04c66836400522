# SPDX-License-Identifier: Apache-2.0
"""Calls functions after modules were imported. Does not import PyTorch."""
import importlib.util
import sys


class _Finder:
    """Finds no module itself; calls a function after the module of that name was imported."""

    def __init__(self, calls):
        self._calls = calls

    def find_spec(self, name, path=None, target=None):
        call = self._calls.pop(name, None)
        if call is None:
            return None
        spec = importlib.util.find_spec(name) if path is None else None
        for finder in sys.meta_path:
            if spec is None and finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
        if spec and spec.loader:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                call()

            spec.loader.exec_module = exec_module
        return spec


def call(calls):
    """calls: functions without arguments by the name of the module after which each is called,
    once. Modules that were imported before are not waited for: theirs are called now."""
    for name in [name for name in calls if name in sys.modules]:
        calls.pop(name)()
    sys.meta_path.insert(0, _Finder(calls))
