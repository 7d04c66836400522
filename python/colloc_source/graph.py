# SPDX-License-Identifier: Apache-2.0
"""The includes and calls between the files of a folder of C sources, as graphs.

A module is a .c file with the header of the same name: `state/apply` for state/apply.c and
state/apply.h. An arrow leads from a module to one that it includes; or that defines an extern
function which it names, in code and not in a comment or text. A call through a pointer is an arrow
to where the function is named, and not to where it runs.
"""

import os
import re
from typing import Dict, Iterable, List, Set, Tuple

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
COMMENT_OR_TEXT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
# A definition begins in the first column; its body with a brace in the first column of a line.
DEFINITION = re.compile(r"^(?!static\b|typedef\b)[A-Za-z_][^;{}()=]*?\b(\w+)\([^;{}]*\)\n\{", re.M)
NAME = re.compile(r"[A-Za-z_]\w*")

Graph = Dict[str, Set[str]]


def read_sources(root: str, folder: str) -> Dict[str, str]:
    """The C files below `folder`, by path from `root`."""
    sources = {}
    for place, names, leaves in os.walk(os.path.join(root, folder)):
        names.sort()
        for leaf in sorted(leaves):
            if leaf.endswith((".c", ".h")):
                path = os.path.join(place, leaf)
                with open(path, encoding="utf-8", errors="replace") as file:
                    sources[os.path.relpath(path, root)] = file.read()
    return sources


def module_of(path: str) -> str:
    return os.path.splitext(path)[0]


def code_of(text: str) -> str:
    """The text without comments and string constants; lines stay."""
    return COMMENT_OR_TEXT.sub(lambda found: "\n" * found[0].count("\n") or " ", text)


def include_graph(sources: Dict[str, str]) -> Graph:
    graph: Graph = {module_of(path): set() for path in sources}
    for path, text in sources.items():
        for header in INCLUDE.findall(text):
            other = os.path.join("src", header)
            if other in sources and module_of(other) != module_of(path):
                graph[module_of(path)].add(module_of(other))
    return graph


def call_graph(sources: Dict[str, str]) -> Graph:
    graph: Graph = {module_of(path): set() for path in sources}
    code = {path: code_of(text) for path, text in sources.items()}
    defined: Dict[str, Set[str]] = {}
    for path, text in code.items():
        for name in DEFINITION.findall(text) if path.endswith(".c") else ():
            defined.setdefault(name, set()).add(module_of(path))
    for path, text in code.items():
        if path.endswith(".h"):  # it declares; what it names in an inline function is an include
            continue
        for name in set(NAME.findall(text)):
            places = defined.get(name, set())
            if len(places) == 1 and module_of(path) not in places:
                graph[module_of(path)] |= places
    return graph


def arrows(graph: Graph) -> List[Tuple[str, str]]:
    return sorted((start, end) for start, ends in graph.items() for end in ends)


def rings(graph: Graph) -> List[List[str]]:
    """The sets of modules that reach each other (strongly connected components of more than one
    module), the largest first. Tarjan's algorithm, without recursion."""
    index: Dict[str, int] = {}
    low: Dict[str, int] = {}
    stack: List[str] = []
    on_stack: Set[str] = set()
    found = []
    for start in sorted(graph):
        if start in index:
            continue
        work = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            module, others = work[-1]
            for other in others:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(sorted(graph[other]))))
                    break
                if other in on_stack:
                    low[module] = min(low[module], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[module])
                if low[module] == index[module]:
                    ring = _take_ring(stack, on_stack, module)
                    if len(ring) > 1:
                        found.append(sorted(ring))
    return sorted(found, key=lambda ring: (-len(ring), ring))


def _take_ring(stack: List[str], on_stack: Set[str], module: str) -> List[str]:
    ring: List[str] = []
    while not ring or ring[-1] != module:
        ring.append(stack.pop())
        on_stack.discard(ring[-1])
    return ring


def count_lines(sources: Dict[str, str], modules: Iterable[str]) -> int:
    wanted = set(modules)
    return sum(text.count("\n") for path, text in sources.items() if module_of(path) in wanted)
