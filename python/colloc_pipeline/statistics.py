# SPDX-License-Identifier: Apache-2.0
"""What the times of requests come to. Pure.

A request at a stage has four times:

    offered   the stage before had it ready; until `entered` the queue was full, and that one stood
    entered   it is in the queue
    taken     a process of the stage has it, in a batch
    done      the batch is done

`blocked` is entered - offered, `waiting` taken - entered, `service` done - taken; the latency of
the stage is their sum. Where requests lose time is the stage and the part with the largest mean.
"""

import math
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple

PARTS = ("blocked", "waiting", "service")


@dataclass
class Visit:
    """One request at one stage; seconds of one clock."""

    request: int
    offered: float
    entered: float
    taken: float
    done: float

    def part(self, name: str) -> float:
        """The time that is `blocked`, `waiting` or `service`."""
        if name == "blocked":
            return self.entered - self.offered
        return self.taken - self.entered if name == "waiting" else self.done - self.taken

    def latency(self) -> float:
        """All three."""
        return self.done - self.offered


def quantile(values: Sequence[float], q: float) -> Optional[float]:
    """The nearest rank: of 100 values, q = 0.99 is the 99th in order. None: no values."""
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[min(len(ordered), max(1, math.ceil(q * len(ordered)))) - 1]


def mean(values: Sequence[float]) -> Optional[float]:
    """The mean. None: no values."""
    return sum(values) / len(values) if values else None


def stage_row(visits: Sequence[Visit], batches: Sequence[Tuple[float, float, int]]) -> Dict:
    """The figures of one stage.

    batches: begin, end and size of each, of all its processes
    """
    row: Dict[str, Optional[float]] = {"items": len(visits), "batches": len(batches)}
    row["mean_batch"] = mean([size for _, _, size in batches])
    for name, times in [("latency", [v.latency() for v in visits])] + [
        (part, [v.part(part) for v in visits]) for part in PARTS
    ]:
        for q in (50, 95, 99):
            value = quantile(times, q / 100)
            row[f"{name}_p{q}_ms"] = None if value is None else 1e3 * value
    span = max((v.done for v in visits), default=0) - min((v.offered for v in visits), default=0)
    row["items_per_s"] = len(visits) / span if span > 0 else None
    busy = sum(end - begin for begin, end, _ in batches)
    row["busy"] = busy / span if span > 0 else None
    return row


def find_loss(visits: Dict[str, List[Visit]]) -> Tuple[str, str, Optional[float]]:
    """The stage and the part in which requests spend most time, and its fraction of all of them."""
    means = {
        (stage, part): mean([visit.part(part) for visit in of_stage]) or 0.0
        for stage, of_stage in visits.items()
        for part in PARTS
    }
    total = sum(means.values())
    if total <= 0:
        return "", "", None
    (stage, part), most = max(means.items(), key=lambda item: item[1])
    return stage, part, most / total


def pipeline_row(begun: Dict[int, float], ended: Dict[int, float], visits: Dict) -> Dict:
    """The figures of one pipeline: of the requests that have ended."""
    times = [ended[request] - begun[request] for request in ended]
    span = max(ended.values(), default=0) - min(begun.values(), default=0)
    stage, part, fraction = find_loss(visits)
    row: Dict = {"requests": len(ended), "seconds": span}
    row["requests_per_s"] = len(ended) / span if span > 0 else None
    for q in (50, 95, 99):
        value = quantile(times, q / 100)
        row[f"p{q}_ms"] = None if value is None else 1e3 * value
    row.update({"lost_at": stage, "lost_by": part, "lost_fraction": fraction})
    return row
