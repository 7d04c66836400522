# SPDX-License-Identifier: Apache-2.0
"""What a training prints: lines with a JSON object, as workloads/train.py writes them. Other lines
are ignored.

    {"event": "epoch", "seconds": 12.5, "from": 1.0, "to": 13.5, "samples": 50000}
"""

import json
import math
from dataclasses import dataclass, field
from typing import Any, Dict, List, NamedTuple, Optional

EPOCHS_MAX = 64  # further epochs are ignored
LINE_MAX = 4096  # bytes; longer lines are ignored


class Epoch(NamedTuple):
    """An epoch of a training; seconds of the wall clock."""

    number: int  # from 1
    took_s: float
    from_s: float
    to_s: float
    samples: float


@dataclass
class Report:
    """What a training said of itself; None: nothing."""

    ready_s: Optional[float] = None
    reserved_mib: Optional[float] = None  # the allocator's peak
    epochs: List[Epoch] = field(default_factory=list)


def number_of(event: Dict[str, Any], key: str) -> Optional[float]:
    """A finite number of an event."""
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def refuse_constant(word: str) -> None:
    """NaN and Infinity are no JSON."""
    raise ValueError(word)


def parse_line(report: Report, line: bytes) -> None:
    """Adds one line to the report."""
    if not line.startswith(b"{"):
        return
    try:
        event = json.loads(line.decode("utf-8"), parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return
    name = event.get("event")
    if name == "ready":
        report.ready_s = number_of(event, "at")
    elif name == "end":
        report.reserved_mib = number_of(event, "reserved_mib")
    elif name == "epoch":
        seconds, first, last = (number_of(event, key) for key in ("seconds", "from", "to"))
        if not seconds or seconds <= 0 or first is None or last is None:
            return
        if len(report.epochs) < EPOCHS_MAX:
            samples = number_of(event, "samples") or 0.0
            report.epochs.append(Epoch(len(report.epochs) + 1, seconds, first, last, samples))


class LineFeed:
    """Assembles lines from output that comes in pieces of any size."""

    def __init__(self, report: Report):
        self.report = report
        self._line = b""
        self._is_too_long = False

    def feed(self, data: bytes) -> None:
        """Adds all complete lines to the report; an incomplete one waits for its end."""
        *complete, rest = data.split(b"\n")
        for piece in complete:
            self._add(piece)
            if not self._is_too_long:
                parse_line(self.report, self._line)
            self._line, self._is_too_long = b"", False
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        self._is_too_long |= len(self._line) + len(piece) > LINE_MAX
        self._line = b"" if self._is_too_long else self._line + piece
