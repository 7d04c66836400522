# SPDX-License-Identifier: Apache-2.0
"""The command line of the exporter: of PyTorch, of JAX (--jax), of kernels (--add-kernels), and of
the rate of a loader (--loader)."""
import contextlib
import importlib
import sys
import warnings

from . import need_torch
from .compiled_step import need_jax
from .user_code import Mistake


def main():
    commands = {
        "--jax": (".compiled_step", need_jax),
        "--add-kernels": (".kernels_command", need_torch),
        "--loader": (".loader_command", lambda: None),
    }
    words = [word.split("=")[0] for word in sys.argv[1:]]
    chosen = next((word for word in words if word in commands), None)
    name, need = commands.get(chosen, (".pytorch_command", need_torch))
    need()
    command = importlib.import_module(name, __package__)
    options = command.parse(sys.argv[1:])
    warnings.simplefilter("ignore")
    if options.batch < 1:
        sys.exit("colloc_export: --batch must be at least 1")
    try:
        with contextlib.redirect_stdout(
            sys.stderr
        ):  # output of the user's model must not mix with the JSON
            text = command.answer(options)
    except Mistake as mistake:
        sys.exit(f"colloc_export: {mistake}")
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        sys.stdout.write(text)


main()
