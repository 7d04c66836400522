# SPDX-License-Identifier: Apache-2.0
"""radT's YAML specifications: a script, and values for its parameters.

As in radT each combination is a separate workload, the last parameter changes fastest, and a
parameter becomes an option of the script:

    name: sweep                      Experiment,Workload,Name,...,Devices,...,File,Params
    experiment: 0                    0,000,sweep,...,0,...,fit.py,--lr 0.1 --batch 8
    devices: 0                       0,001,sweep,...,0,...,fit.py,--lr 0.1 --batch 16
    collocation: "-"
    listeners: smi+top
    file: fit.py
    method: grid
    parameters:
      lr: {values: [0.1]}
      batch: {values: [8, 16]}
"""

import itertools
import math
import re
from typing import Any, List, NamedTuple

from colloc_bench.columns import cell
from colloc_bench.status import TABLE_MAX
from colloc_bench.text import Fault, encode, read_bytes
from colloc_bench.yaml_text import YamlError, compose, items, member, pairs, scalar

TEXT_MAX = 1 << 20  # bytes of a specification; chosen
COMBINATIONS_MAX, PARAMETERS_MAX = 10_000, 64  # chosen
HEADER = "Experiment,Workload,Name,Status,Run,Devices,Collocation,Listeners,File,Params\n"
KEYS = ("name", "", "", "devices", "collocation", "listeners", "file")
# Plain words of YAML as Python prints them, which is how radT passes them.
WORDS = {"true": "True", "false": "False", "null": "None", "~": "None"}


class Parameter(NamedTuple):
    """An option of the script, and the nodes of its values."""

    name: str
    values: List[Any]


def is_sweep(path: str) -> bool:
    """Is this the name of a YAML file?"""
    return path.endswith((".yaml", ".yml"))


def read_parameter(key: Any, node: Any) -> Parameter:
    """Raises Fault without the name of the file."""
    name, values = scalar(key), items(member(node, "values"))
    if not name or re.search("[ \t\r\n]", name):
        raise Fault("a parameter's name must be a word")
    if not values:
        raise Fault(f"a parameter must have a list of values, as in 'values: [1, 2]': {name[:60]}")
    if any(scalar(value) is None for value in values):
        raise Fault(f"a value is a list or a mapping, of the parameter {name[:60]}")
    return Parameter(name, values)


def read_parameters(root: Any) -> List[Parameter]:
    """Raises Fault without the name of the file."""
    method, listed = scalar(member(root, "method")), pairs(member(root, "parameters"))
    if method is not None and method != "grid":
        raise Fault(f"the method must be grid, not {method[:60]}")
    if listed is None:
        raise Fault("it has no mapping 'parameters'")
    found: List[Parameter] = []
    for key, node in listed:
        parameter = read_parameter(key, node)
        if len(found) == PARAMETERS_MAX:
            raise Fault(f"too many parameters, the first of them: {parameter.name[:60]}")
        found.append(parameter)
        if math.prod(len(each.values) for each in found) > COMBINATIONS_MAX:
            raise Fault(f"more than {COMBINATIONS_MAX} combinations")
    return found


def as_python(node: Any) -> str:
    """A value as it is passed to the script."""
    return node.value if node.style else WORDS.get(node.value.lower(), node.value)


def make_table(root: Any) -> bytes:
    """A value is in many rows, and an alias of YAML in many parameters: a short text can be a long
    table. Raises Fault without the name of the file."""
    if scalar(member(root, "file")) is None:
        raise Fault("it names no 'file'")
    parameters = read_parameters(root)
    experiment = scalar(member(root, "experiment"))
    cells = [scalar(member(root, key)) if key else None for key in KEYS]
    fixed = ",".join(cell(text or "") for text in cells)
    begin = cell("0" if experiment is None else experiment)
    rows, size = [encode(HEADER)], len(HEADER)
    for i, values in enumerate(itertools.product(*(each.values for each in parameters))):
        params = " ".join(
            f"--{each.name} {as_python(value)}" for each, value in zip(parameters, values)
        )
        rows.append(encode(f"{begin},{i:03d},{fixed},{cell(params)}\n"))
        size += len(rows[-1])
        if size > TABLE_MAX:
            raise Fault(
                f"its {math.prod(len(each.values) for each in parameters)} combinations make a "
                f"table of more than {TABLE_MAX >> 20} MiB: give fewer or shorter values"
            )
    return b"".join(rows)


def sweep_table(path: str) -> bytes:
    """The comma-separated table of a specification, with radT's columns. Raises Fault."""
    data = read_bytes(path, TEXT_MAX)
    try:
        return make_table(compose(data))
    except YamlError as error:
        raise Fault(f"{path}:{error.line}: {error.problem}") from None
    except Fault as fault:
        raise Fault(f"{path}: {fault}") from None
