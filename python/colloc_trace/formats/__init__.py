# SPDX-License-Identifier: Apache-2.0
"""One file for each format of a log. `read(file, name, log)` adds the jobs of the file to the log;
it raises Fault, and BreaksOff where the file ends within a job.
"""

from typing import BinaryIO, Callable, Dict

from colloc_trace.formats import (
    alibaba_2020,
    alibaba_2026,
    alibaba_pods,
    alibaba_spot,
    helios,
    philly,
    sacct,
    swf,
)
from colloc_trace.log import Log

READERS: Dict[str, Callable[[BinaryIO, str, Log], None]] = {
    "philly": philly.read,
    "helios": helios.read,
    "acme": helios.read_acme,
    "alibaba": alibaba_2020.read,
    "alibaba-2023": alibaba_pods.read_2023,
    "alibaba-2025": alibaba_pods.read_2025,
    "alibaba-spot": alibaba_spot.read,
    "alibaba-2026": alibaba_2026.read,
    "sacct": sacct.read,
    "swf": swf.read,
}
HAS_SECOND_TABLE = frozenset(("alibaba", "alibaba-2026"))
