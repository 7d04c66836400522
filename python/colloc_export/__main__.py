# SPDX-License-Identifier: Apache-2.0
"""The command line of the exporter: of PyTorch, of JAX (--jax), of kernels (--add-kernels)."""
import contextlib
import importlib
import sys
import warnings

from . import need_torch
from .compiled_step import need_jax
from .user_code import Mistake


def main():
    is_jax = "--jax" in sys.argv[1:]
    (need_jax if is_jax else need_torch)()
    adds = any(word.startswith("--add-kernels") for word in sys.argv[1:])
    name = ".compiled_step" if is_jax else ".kernels_command" if adds else ".pytorch_command"
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
