# SPDX-License-Identifier: Apache-2.0
"""summary.csv: what the journal says of each group (measured.py), and the samples of its GPU.

Each value of a sample counts for itself: an empty field is unknown and changes no mean. Unknown
values are empty fields.
"""

from typing import Dict, List, NamedTuple, Optional

from colloc_bench.columns import Columns, cell, open_columns
from colloc_bench.journal_read import MEASURED_MAX, read_journal
from colloc_bench.measured import MeasuredGroup
from colloc_bench.text import Fault, strerror, write_atomic

# The columns of a sample, as `colloc record` names them.
ACTIVITIES = (
    "smact",
    "smocc",
    "dram_active",
    "gract",
    "power_w",
    "mem_used_mib",
    "pcie_rx_mib_per_s",
    "pcie_tx_mib_per_s",
)
HEADER = (
    "group,repeat,mix,sharing,tasks,failed,total_s,epoch_s,samples_per_s,"
    f"{','.join(ACTIVITIES)},energy_j,joule_per_sample,mem_peak_mib\n"
)


class Usage(NamedTuple):
    """Means of the GPU over the time of the group, and the peak of its memory."""

    means: Dict[str, Optional[float]]
    peak_mib: Optional[float]


def sample_value(columns: Columns, name: str, least: float) -> Optional[float]:
    """A number of a sample; None: it is not known, or is none."""
    try:
        return columns.number_at(columns.find(name), least, MEASURED_MAX)
    except Fault:
        return None


def read_usage(path: str, group: MeasuredGroup) -> Usage:
    """What the samples say. Of a file that cannot be read to its end the lines before count;
    without a file all is unknown."""
    values: Dict[str, List[float]] = {name: [] for name in ACTIVITIES}
    peak: List[float] = []
    whole, measured = group.whole(), group.span()
    try:
        columns = open_columns(path)
        for _ in columns.rows():
            time_s = sample_value(columns, "time_s", 0)
            if time_s is None or not whole.has(group.began_s + time_s):
                continue
            for name in ACTIVITIES:
                value = sample_value(columns, name, -MEASURED_MAX)
                if value is None:
                    continue
                if name == "mem_used_mib":
                    peak.append(value)
                if measured.has(group.began_s + time_s):
                    values[name].append(value)
    except Fault:
        pass
    means = {name: sum(each) / len(each) if each else None for name, each in values.items()}
    return Usage(means, max(peak, default=None))


def shown(value: Optional[float]) -> str:
    """A number; "": it is not known."""
    return "" if value is None else f"{value:.6g}"


def summary_line(folder: str, group: MeasuredGroup) -> str:
    """The line of a group."""
    usage = read_usage(f"{folder}/looks/{group.number}-{group.repeat}.csv", group)
    rate, power_w = group.samples_per_s(), usage.means["power_w"]
    joule = power_w / rate if power_w is not None and rate else None
    cells = [cell(group.name), str(group.repeat), cell(group.mix), group.sharing]
    cells += [str(group.n_tasks), str(group.failed), f"{group.total_s:.6g}"]
    cells += map(shown, (group.epoch_s(), rate, *usage.means.values()))
    cells += [f"{group.energy_j:.6g}", shown(joule), shown(usage.peak_mib)]
    return ",".join(cells) + "\n"


def write_summary(folder: str) -> None:
    """Writes summary.csv. Raises Fault."""
    lines = [summary_line(folder, group) for group in read_journal(folder)]
    path = f"{folder}/summary.csv"
    try:
        write_atomic(path, HEADER + "".join(lines))
    except OSError as error:
        raise Fault(f"{path}: {strerror(error)}") from None
