# SPDX-License-Identifier: Apache-2.0
"""Memory of the whole host over time, as `free` counts it: radT's listener of that name.

What is used is the total less what is free, in buffers and in caches, the kernel's reclaimable
memory included. (Newer versions of `free` take the total less what is available; both are in the
file.)

    MemTotal: 100 kB, MemFree: 20 kB, Buffers: 5 kB, Cached: 30 kB, SReclaimable: 5 kB
    -> used 40, buffers and caches 40
"""

import re
from typing import Dict, Optional

COLUMNS = (
    "total_mib",
    "used_mib",
    "free_mib",
    "shared_mib",
    "buffers_cache_mib",
    "available_mib",
    "swap_total_mib",
    "swap_used_mib",
    "swap_free_mib",
)
HEADER = f"unix_s,{','.join(COLUMNS)}\n"
LINE = re.compile(r"^(\w+):[ \t]*([0-9]+)", re.MULTILINE | re.ASCII)


def parse_meminfo(text: str) -> Dict[str, Optional[float]]:
    """The columns from the text of /proc/meminfo. A value without its line is not known: None."""
    kib: Dict[str, int] = {}
    for name, value in LINE.findall(text):
        kib.setdefault(name, int(value))

    def total(*names: str) -> Optional[int]:
        return sum(kib[name] for name in names) if all(name in kib for name in names) else None

    def less(name: str, *others: str) -> Optional[int]:
        taken = total(*others)
        left = kib[name] - taken if name in kib and taken is not None else None
        return left if left is not None and left >= 0 else None

    found = (
        kib.get("MemTotal"),
        less("MemTotal", "MemFree", "Buffers", "Cached", "SReclaimable"),
        kib.get("MemFree"),
        kib.get("Shmem"),
        total("Buffers", "Cached", "SReclaimable"),
        kib.get("MemAvailable"),
        kib.get("SwapTotal"),
        less("SwapTotal", "SwapFree"),
        kib.get("SwapFree"),
    )
    return {name: None if value is None else value / 1024 for name, value in zip(COLUMNS, found)}


def sample_line(unix_s: float) -> str:
    """A line with the values of now. Unknown values are empty."""
    try:
        with open("/proc/meminfo", encoding="ascii", errors="replace") as file:
            values = parse_meminfo(file.read())
    except OSError:
        values = parse_meminfo("")
    shown = ("" if value is None else f"{value:.1f}" for value in values.values())
    return f"{unix_s:.3f},{','.join(shown)}\n"
