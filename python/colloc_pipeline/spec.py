# SPDX-License-Identifier: Apache-2.0
"""A pipeline as its JSON file says, checked.

    {"name": "serving", "requests": 400, "rate": 50,
     "stages": [{"name": "decode", "program": ["serving.py", "decode"], "batch": 8, "processes": 2},
                {"name": "infer", "program": ["serving.py", "infer"], "device": "gpu",
                 "after": ["decode"], "batch": 16, "wait_ms": 5, "queue": 64}]}

A stage without `after` comes first. One with several gets the items of all of them, merged by their
request. The edges must not form a cycle.
"""

import json
import os
import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Set


class SpecError(Exception):
    """A mistake in a pipeline, and its place."""


@dataclass
class Stage:
    """A stage: how its processes are started, and what they get."""

    name: str
    program: List[str]
    device: str = "host"  # or "gpu"
    after: List[str] = field(default_factory=list)
    batch: int = 1  # items that a process gets at a time, at most
    wait_ms: float = 0.0  # for how long a batch waits to be full
    queue: int = 64  # items that wait before the stage, at most: those before it stop then
    processes: int = 1
    cpus: int = 0  # that its processes may use; 0: all
    pretend_ms: float = 1.0  # with --pretend: time for a batch, and for each of its items
    pretend_item_ms: float = 0.0


@dataclass
class Pipeline:
    """A pipeline: its stages, and the requests that go through them."""

    name: str
    folder: str  # of the file: programs are relative to it
    stages: List[Stage]
    requests: int = 200
    rate: Optional[float] = None  # arrivals each second, at random; None: in_flight at a time
    in_flight: int = 8
    warmup: int = 10  # requests before the measurement

    def first(self) -> List[Stage]:
        """The stages that requests enter."""
        return [stage for stage in self.stages if not stage.after]

    def followers(self, name: str) -> List[Stage]:
        """The stages that get the items of this one."""
        return [stage for stage in self.stages if name in stage.after]

    def last(self) -> List[Stage]:
        """The stages after which a request is done."""
        return [stage for stage in self.stages if not self.followers(stage.name)]


STAGE_LIMITS = {
    "batch": (1, 4096),
    "wait_ms": (0, 60000),
    "queue": (1, 100000),
    "processes": (1, 64),
    "cpus": (0, 1024),
    "pretend_ms": (0, 60000),
    "pretend_item_ms": (0, 60000),
}
PIPELINE_LIMITS = {
    "requests": (1, 10000000),
    "rate": (0.001, 1000000),  # chosen: one request in 1000 s, or more
    "in_flight": (1, 100000),
    "warmup": (0, 1000000),
}
WHOLE = {"batch", "queue", "processes", "cpus", "requests", "in_flight", "warmup"}
NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$")


def check_name(value: Any, where: str) -> str:
    """A name that can be part of a file's name."""
    if not isinstance(value, str) or not NAME.match(value):
        raise SpecError(f"{where}: name: letters, digits, '_', '.' and '-', at most 40")
    return value


def read_numbers(source: Dict[str, Any], limits: Dict[str, Any], where: str) -> Dict[str, Any]:
    """The numbers of an object, within their limits."""
    found = {}
    for key, (least, most) in limits.items():
        if key not in source:
            continue
        value = source[key]
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not least <= value <= most or (key in WHOLE and value != int(value)):
            kind = "a whole number" if key in WHOLE else "a number"
            raise SpecError(f"{where}: {key}: {kind} from {least} to {most}")
        found[key] = int(value) if key in WHOLE else float(value)
    return found


def check_keys(source: Any, known: Set[str], where: str) -> None:
    """Refuses a value that is no object or has an unknown key."""
    if not isinstance(source, dict):
        raise SpecError(f"{where}: not an object")
    for key in source:
        if key not in known:
            raise SpecError(f"{where}: {key}: there is no such key ({', '.join(sorted(known))})")


def read_texts(value: Any, where: str) -> List[str]:
    """A list of texts."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise SpecError(f"{where}: a list of texts")
    return value


def read_stage(source: Any, where: str) -> Stage:
    """One stage."""
    check_keys(source, {"name", "program", "device", "after", *STAGE_LIMITS}, where)
    name = check_name(source.get("name"), where)
    where = f"{where} ({name})"
    program = read_texts(source.get("program", []), f"{where}: program")
    if not program:
        raise SpecError(f"{where}: program: the words of a command; it is required")
    device = source.get("device", "host")
    if device not in ("host", "gpu"):
        raise SpecError(f"{where}: device: host or gpu")
    after = read_texts(source.get("after", []), f"{where}: after")
    return Stage(name, program, device, after, **read_numbers(source, STAGE_LIMITS, where))


def check_edges(stages: List[Stage], where: str) -> None:
    """Each name is one stage's, and each edge comes once from another stage, without a cycle."""
    names = [stage.name for stage in stages]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"{where}: two stages are named {name}")
    for stage in stages:
        for before in stage.after:
            if before not in names:
                raise SpecError(f"{where}: {stage.name}: after: there is no stage {before}")
            if stage.after.count(before) > 1:
                raise SpecError(f"{where}: {stage.name}: after: {before} is there twice")
    done: Set[str] = set()
    while len(done) < len(stages):
        ready = [s.name for s in stages if s.name not in done and set(s.after) <= done]
        if not ready:
            left = ", ".join(sorted(set(names) - done))
            raise SpecError(f"{where}: stages wait for each other: {left}")
        done.update(ready)


def parse_pipeline(text: str, path: str, folder: Optional[str] = None) -> Pipeline:
    """The pipeline of a text; `path` is for faults."""
    try:
        source = json.loads(text)
    except ValueError as error:
        raise SpecError(f"{path}: not JSON: {error}") from None
    check_keys(source, {"name", "stages", *PIPELINE_LIMITS}, path)
    name = check_name(source.get("name"), path)
    stages = source.get("stages")
    if not isinstance(stages, list) or not 1 <= len(stages) <= 100:
        raise SpecError(f"{path}: stages: a list of 1 to 100 objects")
    read = [read_stage(each, f"{path}: stage {i + 1}") for i, each in enumerate(stages)]
    check_edges(read, path)
    numbers = read_numbers(source, PIPELINE_LIMITS, path)
    return Pipeline(name, folder or os.path.dirname(os.path.abspath(path)), read, **numbers)


def find_warnings(pipeline: Pipeline, n_cpus: int) -> List[str]:
    """What of a pipeline cannot be had with this number of CPUs."""
    return [
        f"{pipeline.name}: {stage.name}: cpus is {stage.cpus}, but only {n_cpus} can be used here: "
        "the stage gets these"
        for stage in pipeline.stages
        if stage.cpus > n_cpus
    ]


def read_pipeline(path: str) -> Pipeline:
    """The pipeline of a file."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(1 << 20)
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: {error}") from None
    return parse_pipeline(text, path)
