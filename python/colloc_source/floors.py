# SPDX-License-Identifier: Apache-2.0
"""The floors of src/core and the parts of src/daemon: which files a file may include and call.

In the core, a file uses files of its floor and of floors below:

    src/core/core.c, core.h, lifecycle.c    "core", the top
    src/core/pass/                          "pass"
    src/core/decide/                        "decide"
    src/core/explain/                       "explain": as high as decide, which may not use it
    src/core/ask/                           "ask"
    src/core/state/                         "state"
    src/core/*                              "values", the ground

In the daemon, a file uses files of its part and of lower parts; not those of another part on the
same line. A call up is a hook.

    src/daemon/main.c, wiring.c ...         "main": creates and connects the parts
    src/daemon/outside/
    src/daemon/messages/, scrape/
    src/daemon/http/
    src/daemon/suspension/, metrics/, kernels/
    src/daemon/attempts/, node/
    src/daemon/preload/, mps/
    src/daemon/gpus/, services/, rooms/
    src/daemon/*                            "tables", which every part may use
    src/daemon/driver.c, effect_queue.c     "driver", the ground
"""

import os
from typing import Dict, List, Optional

CORE = os.path.join("src", "core")
CORE_TOP = ["core", "lifecycle"]  # files of src/core itself that are above all floors
DAEMON = os.path.join("src", "daemon")
DAEMON_TOP = ["main", "wiring", "log_replay", "reload", "daemon", "node_main"]

# Of the daemon's parts, the lowest first.
PARTS: List[List[str]] = [
    ["driver"],
    ["tables"],
    ["gpus", "services", "rooms"],
    ["preload", "mps"],
    ["attempts", "node"],
    ["suspension", "metrics", "kernels"],
    ["http"],
    ["messages", "scrape"],
    ["outside"],
    ["main"],
]

BELOW: Dict[str, Dict[str, List[str]]] = {
    CORE: {
        "values": [],
        "state": ["values"],
        "ask": ["values", "state"],
        "decide": ["values", "state", "ask"],
        "explain": ["values", "state", "ask"],
        "pass": ["values", "state", "ask", "decide"],
        "core": ["values", "state", "ask", "decide", "pass"],
    },
    DAEMON: {
        part: [lower for line in PARTS[:height] for lower in line]
        for height, parts in enumerate(PARTS)
        for part in parts
    },
}


def component_of(path: str) -> Optional[str]:
    """The component with floors that the file is in; None: another one."""
    folder = os.path.dirname(os.path.normpath(path))
    for component in BELOW:
        if folder == component or folder.startswith(component + os.sep):
            return component
    return None


def _floor_of_daemon(leaf: str) -> str:
    name = os.path.splitext(leaf)[0]
    if name in DAEMON_TOP:
        return "main"
    return "driver" if name in ("driver", "driver_options", "effect_queue") else "tables"


def floor_of(path: str) -> Optional[str]:
    """The floor of a file, by its path from the root; None: it is on none. The name of a folder
    that is no floor comes back as it is, and is in no list of BELOW."""
    folder, leaf = os.path.split(os.path.normpath(path))
    component = component_of(path)
    if component is None:
        return None
    if folder != component:
        return os.path.relpath(folder, component)
    if component == DAEMON:
        return _floor_of_daemon(leaf)
    return "core" if os.path.splitext(leaf)[0] in CORE_TOP else "values"


def is_floor(path: str) -> bool:
    """Is the file on a known floor?"""
    component = component_of(path)
    return component is not None and floor_of(path) in BELOW[component]


def lower_floors(path: str) -> List[str]:
    """The floors below that of the file, which it may use."""
    component, floor = component_of(path), floor_of(path)
    return BELOW[component].get(floor, []) if component and floor else []


def runs_up(path: str, other: str) -> bool:
    """Is `other`, which `path` uses, on no floor that it may use?"""
    component, floor, floor_of_other = component_of(path), floor_of(path), floor_of(other)
    if component is None or component != component_of(other) or floor == floor_of_other:
        return False
    return floor_of_other not in lower_floors(path)
