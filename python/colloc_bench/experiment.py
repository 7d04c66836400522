# SPDX-License-Identifier: Apache-2.0
"""Tables of experiments: which trainings run together, and how they share the GPU.

Two forms are read; the columns say which. colloc's has a line per group: `mix`
("resnet26:400*2+small": two trainings with 400 steps per epoch, and one), `sharing` ("serial",
"streams", "mps" or a MIG profile; one for all tasks, or one for each: "4g.40gb/1g.10gb"), and
optionally `gpu`, `epochs`, `steps`, `batch`, `threads` (percentage of the SMs of each MPS client).
radT's has a line per task (radt.py).

Groups are named by mix and sharing; the name is the key of a group's results in the journal, so it
must not change between two calls of bench.
"""

import re
from dataclasses import dataclass, field
from typing import Dict, List, Optional

from colloc_bench.columns import Columns, open_columns
from colloc_bench.group import Group, Sharing, Task, is_shared_by, parse_sharing
from colloc_bench.radt import read_radt
from colloc_bench.sweep import is_sweep, sweep_table
from colloc_bench.text import Fault, parse_integer
from colloc_bench.training import NAME, Defaults, training_command

TASKS_MAX = 64  # of a group
# Chosen: larger values are mistakes.
EPOCHS_MAX, STEPS_MAX, BATCH_MAX = 10_000, 10_000_000, 1_000_000
GPU_SIZE = 64  # bytes of a list of GPUs
PERCENTAGE = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")


@dataclass
class Experiment:
    """The groups of a table."""

    groups: List[Group] = field(default_factory=list)
    is_radt: bool = False


class Reader:
    """Reads the lines of colloc's form."""

    names = ("mix", "sharing", "gpu", "epochs", "steps", "batch", "threads")

    def __init__(self, columns: Columns, defaults: Defaults):
        self.columns, self.defaults = columns, defaults
        self.at: Dict[str, Optional[int]] = {name: columns.find(name) for name in self.names}

    def _get(self, name: str) -> Optional[str]:
        return self.columns.get(self.at[name])

    def _integer(self, name: str, most: int, otherwise: int) -> int:
        value = self.columns.number_at(self.at[name], 1, most)
        if value is None:
            return otherwise
        if value != int(value):
            raise self.columns.wrong(f"{name} is {value:g}: it must be a whole number")
        return int(value)

    def read_group(self) -> Group:
        """The group of the current line."""
        group = Group(line=self.columns.number)
        self._read_gpu(group)
        self._read_mix(group)
        self._read_sharing(group)
        self._read_threads(group)
        return group

    def _read_gpu(self, group: Group) -> None:
        group.gpu = self.defaults.gpu or self._get("gpu") or "0"
        if len(group.gpu) >= GPU_SIZE:
            raise self.columns.wrong(f"'{group.gpu}' is not the index of a GPU")

    def _read_mix(self, group: Group) -> None:
        epochs = self._integer("epochs", EPOCHS_MAX, self.defaults.epochs)
        steps = self._integer("steps", STEPS_MAX, self.defaults.steps)
        batch = self._integer("batch", BATCH_MAX, 0)
        text = self._get("mix")
        if text is None:
            raise self.columns.wrong("no mix")
        group.mix = text
        for part in text.split("+"):
            self._add_part(group, part, epochs, steps, batch)

    def _add_part(self, group: Group, part: str, epochs: int, steps: int, batch: int) -> None:
        """Adds the tasks of "resnet26:400*2"."""
        wrong = self.columns.wrong
        part, star, count_text = part.partition("*")
        count = parse_integer(count_text, 1, TASKS_MAX) if star else 1
        if count is None:
            raise wrong(f"'{part}*{count_text}': a task's count is 1 to {TASKS_MAX}")
        name, colon, steps_text = part.partition(":")
        given = parse_integer(steps_text, 1, STEPS_MAX) if colon else steps
        if given is None:
            raise wrong(f"'{name}:{steps_text}': steps must be a whole number, at least 1")
        if not NAME.fullmatch(name):
            raise wrong(f"'{name}' is not the name of a training")
        if len(group.tasks) + count > TASKS_MAX:
            raise wrong(f"more than {TASKS_MAX} tasks together")
        argv = training_command(self.defaults, name, epochs=epochs, steps=given, batch=batch)
        group.tasks += [Task(name=name, argv=list(argv)) for _ in range(count)]

    def _read_sharing(self, group: Group) -> None:
        """One way of sharing for all tasks, or one for each."""
        wrong, text = self.columns.wrong, self._get("sharing")
        if text is None:
            raise wrong("no sharing: serial, streams, mps or a MIG profile")
        ways = [parse_sharing(part) for part in text.split("/")]
        if None in ways:
            raise wrong(
                "sharing is serial, streams, mps or a MIG profile such as 2g.20gb, not "
                f"'{text[:80]}'"
            )
        is_serial = any(way and way[0] is Sharing.SERIAL for way in ways[: len(group.tasks)])
        if len(ways) not in (1, len(group.tasks)) or (len(ways) > 1 and is_serial):
            raise wrong(
                f"'{text[:80]}': one way of sharing, or one for each of {len(group.tasks)} tasks "
                "(not serial)"
            )
        for i, task in enumerate(group.tasks):
            way = ways[i if len(ways) > 1 else 0]
            assert way
            task.sharing, task.profile = way

    def _read_threads(self, group: Group) -> None:
        """One percentage for all, or one for each task: "30/70"."""
        wrong, text = self.columns.wrong, self._get("threads")
        if text is None:
            return
        if not is_shared_by(group, Sharing.MPS):
            raise wrong("threads are for clients of MPS only")
        parts = text.split("/")
        for part, task in zip(parts, group.tasks):
            match = PERCENTAGE.fullmatch(part)
            if not match or not 1 <= int(match[1]) <= 100:
                raise wrong(f"threads are per cent, 1 to 100, not '{text}'")
            task.threads = int(match[1])
        if len(parts) not in (1, len(group.tasks)):
            raise wrong(
                f"'{text}': one share of threads, or one for each of {len(group.tasks)} tasks"
            )
        if len(parts) == 1:
            for task in group.tasks:
                task.threads = group.tasks[0].threads


def name_groups(groups: List[Group]) -> None:
    """A table may have the same mix and sharing twice, with other steps or threads."""
    taken = set()
    for group in groups:
        group.name = f"{group.mix} {group.sharing}"
        if group.name in taken:
            group.name += f" (line {group.line})"
        taken.add(group.name)


def read_experiment(path: str, defaults: Defaults) -> Experiment:
    """Reads a table, or a YAML specification of radT (sweep.py). Raises Fault."""
    columns = Columns(sweep_table(path), path) if is_sweep(path) else open_columns(path)
    is_own_form = columns.find("mix") is not None
    if not is_own_form and columns.find("Workload") is None:
        raise Fault(
            f"{columns.name}: neither a column 'mix' (colloc's form) nor 'Workload' (radT's)"
        )
    if is_own_form and defaults.conda:
        raise Fault(
            f"{columns.name}: --conda is for the scripts of radT's tables: --python names the "
            "interpreter of colloc's trainings"
        )
    if is_own_form:
        reader = Reader(columns, defaults)
        groups = [reader.read_group() for _ in columns.rows()]
    else:
        groups = read_radt(columns, defaults, TASKS_MAX)
    if not groups:
        raise Fault(f"{columns.name}: the table has no experiments")
    name_groups(groups)
    return Experiment(groups, not is_own_form)
