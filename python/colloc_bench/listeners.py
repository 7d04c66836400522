# SPDX-License-Identifier: Apache-2.0
"""radT's listeners. Three kinds of them:

    smi, dcgmi, top, ps, iostat  colloc's samples have their figures: of the GPU, and the trainings'
                                 processor time, memory and disk traffic
    nsys, ncu, ...               the training runs under that profiler
    free                         the memory of the whole host (meminfo.py)
    macmon, ncuattach            nothing here does the same
"""

import re
from typing import Optional, Tuple

SAMPLED = ("none", "smi", "dcgmi", "top", "ps", "iostat")
PROFILERS = ("nsys", "nsysraw", "ncu", "ncuraw")
REFUSED = ("ncuattach", "macmon")  # waits until a person attaches; Apple's GPUs
WORD = re.compile(r" *([^+ ]*) *(\+|$)?")
SHOWN = 40  # characters of a name in a message


class ListenerError(Exception):
    """Why a listener cannot be had."""

    def __init__(self, name: str, why: str):
        super().__init__(f"the listener '{name[:SHOWN]}' {why}")


def parse_listeners(text: str) -> Tuple[Optional[str], bool]:
    """The profiler's listener of "smi+nsys+free", or None; and whether it has `free`. Raises
    ListenerError."""
    profiler, lists_host_memory, at = None, False, 0
    while at < len(text):
        match = WORD.match(text, at)
        assert match
        name, at = match[1], match.end()
        known = name.lower()
        if match[2] is None or known not in (*SAMPLED, *PROFILERS, *REFUSED, "free"):
            raise ListenerError(name, "is not one of radT's")
        if known in REFUSED:
            raise ListenerError(
                name,
                "is not supported: smi, dcgmi, top, ps, iostat, free, nsys, nsysraw, ncu and "
                "ncuraw are",
            )
        if known in PROFILERS and profiler:
            raise ListenerError(name, "is a second profiler: a training runs under one")
        profiler = known if known in PROFILERS else profiler
        lists_host_memory |= known == "free"
    return profiler, lists_host_memory
