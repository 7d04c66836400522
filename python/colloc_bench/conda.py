# SPDX-License-Identifier: Apache-2.0
"""Runs trainings in conda environments by `conda run`, which also sets the variables that an
environment's activation sets. colloc creates no environment: that downloads packages for minutes,
and is a separate command (`conda env create -f conda.yaml`)."""

import shutil
from typing import List, Optional

from colloc_bench.text import Fault, read_bytes, run_program
from colloc_bench.yaml_text import YamlError, compose, member, scalar

TEXT_MAX = 1 << 20


def find_conda() -> Optional[str]:
    """The program on PATH that runs commands in environments; None: there is none."""
    return next(filter(shutil.which, ("conda", "mamba", "micromamba")), None)


def environment_name(folder: Optional[str]) -> str:
    """The environment that the conda.yaml in a script's folder names. Raises Fault."""
    path = f"{folder}/conda.yaml" if folder else "conda.yaml"
    try:
        data = read_bytes(path, TEXT_MAX)
    except Fault as fault:
        raise Fault(f"--conda needs a conda.yaml beside the script: {fault}") from None
    try:
        name = scalar(member(compose(data), "name"))
    except YamlError:
        name = None
    if not name or name.startswith("-"):
        raise Fault(f"{path}: it names no environment: add a line 'name: NAME'")
    return name


def conda_command(program: str, name: str) -> List[str]:
    """What runs a command in an environment. conda stores the output until the end without that
    option; the others have no such option."""
    own = ["--no-capture-output"] if program == "conda" else []
    return [program, "run", *own, "-n", name]


def check_environment(program: str, name: str) -> None:
    """Raises Fault if there is no such environment, or the program does not answer."""
    done = run_program([program, "env", "list"])
    if done.status != 0:
        raise Fault(f"{program} env list: exit status {done.status}: {done.text[:200]}")
    if name not in (line.split()[0] for line in done.text.split("\n") if line.split()):
        raise Fault(
            f"{program} has no environment '{name[:60]}': create it with `{program} env create -f "
            "conda.yaml`"
        )
