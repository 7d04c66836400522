# SPDX-License-Identifier: Apache-2.0
"""Command lines of trainings. They are lists of words: no text of a table reaches a shell."""

import re
from dataclasses import dataclass
from typing import List, Optional

NAME = re.compile(r"[A-Za-z0-9_/-]+")


@dataclass
class Defaults:
    """Values for what a table lacks.

    base: folder of a radT table's files; None: the current one, and colloc's train.py stands in for
        a file that is not there.
    gpu: replaces the table's; None: does not.
    conda: the program that runs a radT table's scripts in their environments; None: none.
    """

    python: str
    workloads: str  # the folder of train.py
    current: Optional[str]
    base: Optional[str] = None
    conda: Optional[str] = None
    gpu: Optional[str] = None
    epochs: int = 2
    steps: int = 200


def training_command(defaults: Defaults, name: str, **options: int) -> List[str]:
    """The command of colloc's train.py. An option that is 0 has train.py's default."""
    argv = [defaults.python, f"{defaults.workloads}/train.py", name]
    for option in ("epochs", "steps", "batch", "side", "classes"):
        if options.get(option):
            argv += [f"--{option}", str(options[option])]
    return argv


def split_words(text: str) -> List[str]:
    """The words of a text between blanks and line ends."""
    return re.findall(r"[^ \t\r\n]+", text)
