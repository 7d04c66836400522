# SPDX-License-Identifier: Apache-2.0
"""The command line of --add-kernels: adds to an export what cuDNN takes for its convolutions."""
import argparse
import json

import torch

from . import kernels
from .user_code import Mistake


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="colloc_export --add-kernels",
        description="Adds to an export the scratch memory of its convolutions: kept answers, else "
        "by asking cuDNN on the first GPU.",
    )
    parser.add_argument("--add-kernels", metavar="FILE", required=True, help="an export, as JSON")
    parser.add_argument("--gpu", help="without a GPU: the name of the one whose answers are kept")
    parser.add_argument("-o", "--output", metavar="FILE", help="instead of standard output")
    parser.set_defaults(batch=1)
    return parser.parse_args(arguments)


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            description = json.load(file)
    except (OSError, ValueError) as error:
        raise Mistake(f"{path}: {error}") from None
    if not isinstance(description, dict) or "convs" not in description:
        raise Mistake(f"{path} is not an export of a training of PyTorch")
    return description


def answer(options):
    """The export with its member `kernels`; as it was if it convolves nothing."""
    description = _read(options.add_kernels)
    if description["convs"]:
        if torch.cuda.is_available():
            kernels.check_gpu()
            description["kernels"] = kernels.ask(description)
        elif options.gpu:
            description["kernels"] = kernels.recall(description, options.gpu)
        else:
            raise Mistake("no GPU is here: --gpu=NAME says of which one the kept answers serve")
    return json.dumps(description, separators=(",", ":")) + "\n"
