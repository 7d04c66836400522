# SPDX-License-Identifier: Apache-2.0
"""YAML as nodes: words stay as they are written, so that `no` is not False and 1e-3 not 0.001."""

import importlib
from typing import Any, Iterator, Optional, Tuple

from colloc_bench.text import Fault


class YamlError(Exception):
    """The text is no YAML; line: where it is wrong, counted from 1."""

    def __init__(self, line: int, problem: str):
        super().__init__(problem)
        self.line, self.problem = line, problem


def compose(data: bytes) -> Any:
    """The root node of the first document; None: it is empty.

    Raises YamlError, or Fault without PyYAML.
    """
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise Fault(
            "this Python has no module yaml, which reads YAML: install python3-yaml, or PyYAML"
        ) from None
    loader = None
    try:
        loader = getattr(yaml, "CLoader", yaml.Loader)(data)
        return loader.get_node() if loader.check_node() else None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None)
        raise YamlError(mark.line + 1 if mark else 1, problem or "invalid YAML") from None
    except RecursionError:
        raise YamlError(1, "nested too deeply") from None
    finally:
        if loader:
            loader.dispose()


def pairs(node: Any) -> Optional[Iterator[Tuple[Any, Any]]]:
    """The keys and values of a mapping; None: it is none."""
    return iter(node.value) if node is not None and node.id == "mapping" else None


def items(node: Any) -> Optional[list]:
    """The members of a sequence; None: it is none."""
    return list(node.value) if node is not None and node.id == "sequence" else None


def scalar(node: Any) -> Optional[str]:
    """The text of a scalar; None: it is none."""
    return node.value if node is not None and node.id == "scalar" else None


def member(node: Any, key: str) -> Any:
    """The first value of a mapping with this key; None: it has none, or is no mapping."""
    return next((value for name, value in pairs(node) or () if scalar(name) == key), None)
