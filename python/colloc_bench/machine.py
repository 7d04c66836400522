# SPDX-License-Identifier: Apache-2.0
"""What this machine has for a bench: GPUs and MIG instances, as `colloc` found them in NVML, and
the devices that each task of a group gets.

Devices are named by UUID, since CUDA's indices differ from nvidia-smi's.
"""

import json
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Set

from colloc_bench.group import Group, Sharing, Task

DEVICES_SIZE = 8 * 96  # bytes of a task's list of UUIDs


class NotHere(Exception):
    """Why a group cannot run on this machine."""


@dataclass(frozen=True)
class Gpu:
    """A GPU or a MIG instance (src/gpu/gpu.h). why_not: "": a task can be placed on it."""

    index: str
    name: str
    uuid: str
    profile: str  # of a MIG instance; "" for a whole GPU
    card: str  # the index of the whole GPU
    why_not: str
    mem_total_mib: Optional[float]


@dataclass
class Machine:
    """gpus: None: there is no driver, or no GPU. profilers: the command line of each of radT's
    listeners that is one, in which "%s" stands for the output (src/exec/profiler.c)."""

    driver: str = ""
    gpus: Optional[List[Gpu]] = None
    profilers: Dict[str, List[str]] = field(default_factory=dict)

    def find(self, index: str) -> Gpu:
        """The GPU with this index. Raises NotHere."""
        for gpu in self.gpus or []:
            if gpu.index == index:
                return gpu
        raise NotHere(f"this machine has no GPU {index}")

    def instances(self, card: str, profile: str) -> List[Gpu]:
        """The MIG instances of a card that a task can have."""
        return [
            gpu
            for gpu in self.gpus or []
            if gpu.profile == profile and gpu.card == card and not gpu.why_not
        ]


def read_machine(text: str) -> Machine:
    """What `colloc` passes as JSON (src/cli/bench_machine.c)."""
    read = json.loads(text)
    gpus = read.get("gpus")
    return Machine(
        driver=read.get("driver", ""),
        gpus=None if gpus is None else [Gpu(**gpu) for gpu in gpus],
        profilers=read["profilers"],
    )


def choose_gpus(machine: Machine, indices: str) -> str:
    """The UUIDs of whole GPUs, comma-separated. Raises NotHere."""
    uuids: List[str] = []
    for index in filter(None, indices.split(",")):
        gpu = machine.find(index)
        if gpu.why_not:
            raise NotHere(f"GPU {gpu.index}: {gpu.why_not}")
        uuids.append(gpu.uuid)
        if len(",".join(uuids)) >= DEVICES_SIZE:
            raise NotHere(f"too many GPUs for one task: {indices}")
    return ",".join(uuids)


def choose_instance(machine: Machine, group: Group, task: Task, taken: Set[str]) -> str:
    """The UUID of a MIG instance that no other task of the group has. Raises NotHere."""
    card = group.gpus_of(task)
    machine.find(card)
    instances = machine.instances(card, task.profile)
    for gpu in instances:
        if gpu.uuid not in taken:
            taken.add(gpu.uuid)
            return gpu.uuid
    needed = sum(
        group.gpus_of(other) == card and other.profile == task.profile for other in group.tasks
    )
    raise NotHere(
        f"GPU {card} has {len(instances)} instance{'' if len(instances) == 1 else 's'} of "
        f"{task.profile}, the group needs {needed} (`colloc mig` creates them)"
    )


def choose_devices(machine: Machine, group: Group) -> Optional[List[str]]:
    """CUDA_VISIBLE_DEVICES of each task; None: they keep that of colloc, since it is not known
    which GPUs there are. Raises NotHere."""
    if machine.gpus is None:
        return None
    taken: Set[str] = set()
    return [
        choose_instance(machine, group, task, taken)
        if task.sharing is Sharing.MIG
        else choose_gpus(machine, group.gpus_of(task))
        for task in group.tasks
    ]


def mps_devices(machine: Machine, group: Group) -> str:
    """The UUIDs of the GPUs of the group's MPS clients, comma-separated."""
    listed: Set[str] = set()
    for task in group.tasks:
        if task.sharing is Sharing.MPS:
            listed.update(group.gpus_of(task).split(","))
    return ",".join(
        gpu.uuid for gpu in machine.gpus or [] if gpu.index in listed or gpu.uuid in listed
    )
