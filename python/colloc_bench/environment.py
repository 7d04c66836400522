# SPDX-License-Identifier: Apache-2.0
"""Records the software that a bench ran with, so that its results can be reproduced.

FOLDER/environment has pip.txt (the packages of the interpreter, as `pip freeze` prints them; pip
need not be installed), conda.txt (where conda is) and driver.txt (driver and GPUs). A program that
is not there, or fails, is left out. A file with another text stays; the new text goes to pip-2.txt,
pip-3.txt, ...
"""

import os
from typing import List

from colloc_bench.machine import Machine
from colloc_bench.text import Fault, encode, run_program, strerror, write_atomic

FILES_MAX = 1000
LIST_PACKAGES = """import sys
from importlib.metadata import distributions
print('python==' + sys.version.split()[0])
found = {f"{each.metadata['Name']}=={each.version}" for each in distributions()}
print('\\n'.join(sorted(found, key=str.lower)))
"""


def has_text(path: str, text: str) -> bool:
    """Has the file this text?"""
    try:
        with open(path, "rb") as file:
            return file.read() == encode(text)
    except OSError:
        return False


def write_once(folder: str, name: str, text: str) -> None:
    """Writes NAME.txt, or the next free NAME-N.txt. Raises Fault."""
    path = f"{folder}/{name}.txt"
    for number in range(2, FILES_MAX + 1):
        if has_text(path, text):
            return
        if not os.path.exists(path):
            break
        path = f"{folder}/{name}-{number}.txt"
    try:
        write_atomic(path, text)
    except OSError as error:
        raise Fault(f"{path}: {strerror(error)}") from None


def record_output(folder: str, name: str, words: List[str]) -> None:
    """Stores the output of a program, if it succeeds."""
    try:
        done = run_program(words)
    except Fault:
        return
    if done.status == 0 and done.text:
        write_once(folder, name, done.text)


def driver_text(machine: Machine) -> str:
    """driver.txt."""
    lines = [f"driver=={machine.driver}\n"]
    for gpu in machine.gpus or []:
        kind = f"{gpu.name} MIG {gpu.profile}" if gpu.profile else gpu.name
        memory = "" if gpu.mem_total_mib is None else f", {gpu.mem_total_mib:.0f} MiB"
        lines.append(f"GPU {gpu.index}: {kind} ({gpu.uuid}){memory}\n")
    return "".join(lines)


def record_environment(results: str, python: str, machine: Machine) -> None:
    """Writes what is known into RESULTS/environment. Raises Fault."""
    folder = f"{results}/environment"
    try:
        os.makedirs(folder, 0o755, exist_ok=True)
    except OSError as error:
        raise Fault(f"{folder}: {strerror(error)}") from None
    record_output(folder, "pip", [python, "-c", LIST_PACKAGES])
    record_output(folder, "conda", ["conda", "list"])
    if machine.gpus is not None:
        write_once(folder, "driver", driver_text(machine))
