# SPDX-License-Identifier: Apache-2.0
"""radT's tables (github.com/Resource-Aware-Data-systems-RAD/radt). A row is a task; the rows of one
workload are a group, wherever they stand in the table. Three kinds of rows:

    File is in the current folder, or --base is given:  the script runs in its own folder
    File is not there, Params has a --model:            colloc's train.py runs that model
    neither:                                            refused

As in radT, Params are separated by blanks and never seen by a shell, and "nan" is what pandas
writes for an empty field.
"""

import os
import re
from typing import Dict, List, Optional, Tuple

from colloc_bench.columns import Columns
from colloc_bench.conda import conda_command, environment_name
from colloc_bench.group import Group, Sharing, Task, parse_sharing
from colloc_bench.listeners import ListenerError, parse_listeners
from colloc_bench.radt_params import Params
from colloc_bench.text import Fault
from colloc_bench.training import Defaults, split_words

GPUS_SIZE = 64  # bytes of a list of GPUs
REQUIRED = ("Experiment", "Workload", "Devices", "Collocation", "File", "Params")
COLUMNS = (*REQUIRED, "Status", "Listeners")
INDEX = re.compile(r"[0-9]+")


def add_gpu(gpus: str, index: str) -> Optional[str]:
    """The comma-separated list with one more GPU, unless it has it; None: the list is full."""
    if index in gpus.split(","):
        return gpus
    return f"{gpus},{index}".lstrip(",") if len(gpus) + 1 + len(index) < GPUS_SIZE else None


class Reader:
    """Reads the rows of a table."""

    def __init__(self, columns: Columns, defaults: Defaults):
        self.columns, self.defaults = columns, defaults
        self.at = {name: columns.find(name) for name in COLUMNS}
        for name in REQUIRED:
            if self.at[name] is None:
                raise Fault(f"{columns.name}: no column '{name}'")
        self.groups: Dict[Tuple[str, str], Group] = {}

    def _get(self, name: str) -> Optional[str]:
        text = self.columns.get(self.at[name])
        return None if text == "nan" else text

    def read_row(self, tasks_max: int) -> None:
        """Adds the task of the current row to its group."""
        number, workload = self._get("Experiment"), self._get("Workload")
        if workload is None:
            raise self.columns.wrong("no Workload")
        line = self.columns.number
        key = (number or "", workload)
        group = self.groups.setdefault(key, Group(key=key, line=line, is_finished=True))
        group.is_finished &= "FINISHED" in (self._get("Status") or "")
        if len(group.tasks) == tasks_max:
            raise self.columns.wrong(f"more than {tasks_max} tasks together")
        task = Task(line=line)
        group.tasks.append(task)
        self._read_collocation(task)
        self._read_listeners(task)
        self._read_command(task)
        self._read_devices(group, task)

    def _read_collocation(self, task: Task) -> None:
        text = self._get("Collocation")
        if text is None:
            return
        way = parse_sharing(text)
        if way is None or way[0] is Sharing.SERIAL:
            raise self.columns.wrong(f"Collocation is -, MPS or a MIG profile, not '{text[:40]}'")
        task.sharing, task.profile = way

    def _read_listeners(self, task: Task) -> None:
        try:
            task.profiler, task.lists_host_memory = parse_listeners(self._get("Listeners") or "")
        except ListenerError as error:
            raise self.columns.wrong(str(error)) from None

    def _path_of(self, script: str) -> str:
        """The path of a script, absolute if the current folder is known."""
        current, base = self.defaults.current, self.defaults.base
        path = f"{base}/{script}" if base and not script.startswith("/") else script
        return f"{current}/{path}" if current and not path.startswith("/") else path

    def _read_command(self, task: Task) -> None:
        script = self._get("File")
        if script is None:
            raise self.columns.wrong("no File")
        if script.endswith("/"):
            raise self.columns.wrong(f"File is a folder: '{script[:60]}'")
        params = Params(self._get("Params") or "")
        path = self._path_of(script)
        task.name = params.name_of(script)
        if self.defaults.base or os.path.exists(path):
            self._set_script(task, path, params)
        else:
            self._set_translation(task, script, params)

    def _set_script(self, task: Task, path: str, params: Params) -> None:
        """The user's script, with the arguments as given."""
        task.is_script = True
        task.argv = [self.defaults.python, path, *split_words(params.text)]
        folder, slash, _ = path.rpartition("/")
        task.folder = (folder or "/") if slash else None
        if not self.defaults.conda:
            return
        try:
            task.environment = environment_name(task.folder)
        except Fault as fault:
            raise self.columns.wrong(str(fault)) from None
        task.argv = conda_command(self.defaults.conda, task.environment) + task.argv

    def _set_translation(self, task: Task, script: str, params: Params) -> None:
        """colloc's train.py in place of a script that is not there."""
        if not params.model:
            raise self.columns.wrong(
                f"'{script[:80]}' is not in this folder, and Params has no --model that colloc "
                "could train: --base=FOLDER runs the script that File names"
            )
        if params.has_bad_batch:
            raise self.columns.wrong("--batch-size in Params is no whole number")
        task.argv = params.translate(self.defaults)

    def _read_devices(self, group: Group, task: Task) -> None:
        """ "0+1" is both GPUs for this task. --gpu replaces all."""
        given = self.defaults.gpu or self._get("Devices") or "0"
        for index in given.split("+"):
            if not INDEX.fullmatch(index):
                raise self.columns.wrong(
                    f"Devices is the index of a GPU, or several as in 0+1, not '{given[:40]}'"
                )
            own, all_gpus = add_gpu(task.gpus, index), add_gpu(group.gpu, index)
            if own is None or all_gpus is None:
                raise self.columns.wrong("too many GPUs")
            task.gpus, group.gpu = own, all_gpus
        if task.sharing is Sharing.MIG and "," in task.gpus:
            raise self.columns.wrong(
                f"Devices is '{given[:40]}': a task on MIG instances of several GPUs is not "
                "supported"
            )


def mix_of(group: Group) -> str:
    """ "resnet26*2+resnet50"."""
    runs: List[Tuple[str, int]] = []
    for task in group.tasks:
        if runs and runs[-1][0] == task.name:
            runs[-1] = (task.name, runs[-1][1] + 1)
        else:
            runs.append((task.name, 1))
    return "+".join(f"{name}*{n}" if n > 1 else name for name, n in runs)


def read_radt(columns: Columns, defaults: Defaults, tasks_max: int) -> List[Group]:
    """The groups of a table. Raises Fault."""
    reader = Reader(columns, defaults)
    for _ in columns.rows():
        reader.read_row(tasks_max)
    groups = list(reader.groups.values())
    for group in groups:
        group.mix = mix_of(group)
    return groups
