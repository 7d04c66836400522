# SPDX-License-Identifier: Apache-2.0
"""The floors of src/core: a file includes and calls files of its floor and of floors below.

    src/core/core.c, core.h, lifecycle.c    "core", the top
    src/core/pass/                          "pass"
    src/core/decide/                        "decide"
    src/core/explain/                       "explain": as high as decide, which may not use it
    src/core/ask/                           "ask"
    src/core/state/                         "state"
    src/core/*                              "values", the ground
"""

import os
from typing import Dict, List, Optional

COMPONENT = os.path.join("src", "core")
TOP = ["core", "lifecycle"]  # files of src/core itself that are above all floors

BELOW: Dict[str, List[str]] = {
    "values": [],
    "state": ["values"],
    "ask": ["values", "state"],
    "decide": ["values", "state", "ask"],
    "explain": ["values", "state", "ask"],
    "pass": ["values", "state", "ask", "decide"],
    "core": ["values", "state", "ask", "decide", "pass"],
}


def floor_of(path: str) -> Optional[str]:
    """The floor of a file, by its path from the root; None: it is on none. The name of a folder
    that is no floor comes back as it is, and is in no list of BELOW."""
    folder, leaf = os.path.split(os.path.normpath(path))
    if folder == COMPONENT:
        return "core" if os.path.splitext(leaf)[0] in TOP else "values"
    if folder.startswith(COMPONENT + os.sep):
        return os.path.relpath(folder, COMPONENT)
    return None


def runs_up(path: str, other: str) -> bool:
    """Is `other`, which `path` uses, on no floor that it may use?"""
    floor, floor_of_other = floor_of(path), floor_of(other)
    if floor is None or floor_of_other is None or floor == floor_of_other:
        return False
    return floor_of_other not in BELOW.get(floor, [])
