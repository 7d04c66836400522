# SPDX-License-Identifier: Apache-2.0
"""The lines of `colloc record -o` (CSV) as points: means over a period.

The names are those of `GET /v1/tasks/ID/series`: the command's part of memory, SM activity and
power, and, of GPUs that it has to itself, occupancy, bandwidth and PCIe traffic.
"""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, List, Optional, Tuple

from colloc.tracking.bridge import Point

PREFIX = "system/colloc_"
Row = Dict[str, str]

# Column -> metric of a GPU: the command's part; of the whole GPU.
PARTS = {"command_mem_mib": "mem_used_mib", "command_smact": "smact"}
WHOLE = {
    "smocc": "smocc",
    "dram_active": "dram_active",
    "pcie_tx_mib_per_s": "pcie_tx_mib_s",
    "pcie_rx_mib_per_s": "pcie_rx_mib_s",
}
# Column that grows -> metric that is its rate.
HOST_RATES = {
    "command_cpu_s": "cpu_cores",
    "command_disk_read_mib": "disk_read_mib_s",
    "command_disk_written_mib": "disk_write_mib_s",
}


def number(row: Row, column: str) -> Optional[float]:
    """The value of a column; None: unknown."""
    text = row.get(column, "")
    return float(text) if text else None


class Means:
    """Means by name, and rates of columns that grow."""

    def __init__(self) -> None:
        self.sums: Dict[str, Tuple[float, int]] = {}
        self.grown: Dict[str, Tuple[float, float]] = {}  # column -> time and value at the last rate
        self.now: Dict[str, Tuple[float, float]] = {}

    def add(self, name: str, value: Optional[float]) -> None:
        """A value; None is ignored."""
        if value is not None:
            total, count = self.sums.get(name, (0.0, 0))
            self.sums[name] = (total + value, count + 1)

    def grow(self, name: str, time_s: float, value: Optional[float]) -> None:
        """A value that only grows; its rate is sent."""
        if value is not None:
            self.grown.setdefault(name, (time_s, value))
            self.now[name] = (time_s, value)

    def take(self) -> Dict[str, float]:
        """The means and rates since the last call."""
        values = {name: total / count for name, (total, count) in self.sums.items()}
        for name, (time_s, value) in self.now.items():
            began_s, began = self.grown[name]
            if time_s > began_s:
                values[name] = (value - began) / (time_s - began_s)
                self.grown[name] = (time_s, value)
        self.sums = {}
        return values


def add_row(means: Means, row: Row, is_first_gpu: bool) -> None:
    """Adds a line of one GPU."""
    time_s = float(row["time_s"])
    if is_first_gpu:
        means.add(PREFIX + "host_mem_mib", number(row, "command_host_mem_mib"))
        for column, metric in HOST_RATES.items():
            means.grow(PREFIX + metric, time_s, number(row, column))
    gpu = f"{PREFIX}gpu_{row['gpu']}_"
    if row["command_processes"] == "0":
        return
    for column, metric in PARTS.items():
        means.add(gpu + metric, number(row, column))
    means.grow(gpu + "power_w", time_s, number(row, "command_energy_j"))
    for column, metric in WHOLE.items() if row["other_processes"] == "0" else ():
        means.add(gpu + metric, number(row, column))


def read_points(lines: Iterable[str], period_s: float, began_s: float) -> Iterator[List[Point]]:
    """The points of each period; the last one is of what is left.

    lines: the header, then a line for each sample of each GPU; may block.
    began_s: when time_s was 0, in seconds since 1970.
    """
    rows = iter(lines)
    header = next(rows, "").rstrip("\n").split(",")
    means, first_gpu, time_s, due_s = Means(), None, 0.0, period_s

    def take() -> List[Point]:
        found = means.take()
        return [Point(name, found[name], began_s + time_s, int(time_s)) for name in found]

    for line in rows:
        row = dict(zip(header, line.rstrip("\n").split(",")))
        first_gpu = first_gpu or row["uuid"]
        if row["uuid"] == first_gpu and float(row["time_s"]) >= due_s:
            yield take()
            due_s = float(row["time_s"]) + period_s
        time_s = float(row["time_s"])
        add_row(means, row, row["uuid"] == first_gpu)
    yield take()
