# SPDX-License-Identifier: Apache-2.0
"""Programs that import PyTorch and start the script in other processes. Does not import PyTorch."""
import os

PROGRAMS = ("torchrun", "accelerate", "deepspeed")
MODULES = (
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate.commands.launch",
    "accelerate.commands.accelerate_cli",
    "deepspeed.launcher.runner",
    "deepspeed.launcher.launch",
)
WITH_A_VALUE = ("-W", "-X", "--check-hash-based-pycs")  # options of Python


def is_launcher(words):
    """Is it a launcher's process? An argument of a script that has a launcher's name says nothing:
    train.py --method accelerate.

    words: of the process's command line; the first is Python
    """
    rest = iter(words[1:])
    for word in rest:
        if word == "-m":
            return next(rest, "") in MODULES
        if word.startswith("-m"):
            return word[2:] in MODULES
        if word in WITH_A_VALUE:
            next(rest, "")
        elif word == "-c" or not word.startswith("-"):
            return os.path.basename(word) in PROGRAMS
    return False
