# SPDX-License-Identifier: Apache-2.0
"""What is checked before anything runs: PyTorch and the libraries that colloc's trainings need, the
profilers and the environments that a table names. Without them every group would fail, one after
the other."""

import shutil
from typing import List, Optional

from colloc_bench.conda import check_environment
from colloc_bench.experiment import Experiment
from colloc_bench.machine import Machine
from colloc_bench.text import Fault, run_program

IMPORT_LIMIT_S = 300.0  # PyTorch from a cold network disk takes minutes
SAID_MAX = 255  # bytes: the name of a library


def check_profilers(experiment: Experiment, machine: Machine, by_daemon: bool) -> None:
    """Are the profilers here that the table's Listeners name?"""
    for group in experiment.groups:
        for task in group.tasks:
            program = machine.profilers[task.profiler][0] if task.profiler else None
            if not program or (not by_daemon and shutil.which(program)):
                continue
            why = (
                "is not supported with --daemon"
                if by_daemon
                else ": there is no such program on PATH"
            )
            space = " " if by_daemon else ""
            raise Fault(f"line {task.line} of the table: the listener {program}{space}{why}")


def check_environments(experiment: Experiment, conda: Optional[str]) -> None:
    """Are the environments here that the scripts' conda.yaml name?"""
    last = None
    for group in experiment.groups:
        for task in group.tasks:
            if not task.environment or task.environment == last or not conda:
                continue
            try:
                check_environment(conda, task.environment)
            except Fault as fault:
                raise Fault(f"line {task.line} of the table: {fault}") from None
            last = task.environment


def own_trainings(experiment: Experiment) -> List[str]:
    """The names of colloc's trainings, each once."""
    tasks = [task for group in experiment.groups for task in group.tasks if not task.is_script]
    return list(dict.fromkeys(task.argv[2] for task in tasks))


def check_torch(python: str) -> None:
    """If PyTorch is missing, one message before the first run says so."""
    try:
        done = run_program([python, "-c", "import torch"], IMPORT_LIMIT_S)
        why = done.text.rpartition("\n")[2][:200] if done.status else None
    except Fault as fault:
        why = "no such program" if str(fault).endswith("no such program") else str(fault)
    if why is not None:
        raise Fault(
            f"{python} cannot import torch ({why}): colloc's trainings need PyTorch; give another "
            "interpreter with --python=PROGRAM or other trainings with --workloads=FOLDER"
        )


def check_libraries(python: str, workloads: str, trainings: List[str]) -> None:
    """models.py, which is beside train.py, says which libraries a training needs beside PyTorch.
    What else goes wrong there, the run will show."""
    try:
        done = run_program([python, f"{workloads}/models.py", *trainings], IMPORT_LIMIT_S)
    except Fault:
        return
    said = done.text[:SAID_MAX]
    if done.status == 1 and said and "\n" not in said:
        raise Fault(
            f"{python} lacks {said}, which trainings of this experiment need: install it for that "
            "interpreter, or give another one with --python=PROGRAM"
        )


def check_all(
    experiment: Experiment,
    machine: Machine,
    conda: Optional[str],
    python: str,
    installed: Optional[str],
    by_daemon: bool,
) -> None:
    """Raises Fault. installed: the folder of colloc's trainings; None: they are another's."""
    check_profilers(experiment, machine, by_daemon)
    check_environments(experiment, conda)
    trainings = own_trainings(experiment)
    if installed and trainings:
        check_torch(python)
        check_libraries(python, installed, trainings)
