# SPDX-License-Identifier: Apache-2.0
"""The exporter's command line for PyTorch.

    python3 -m colloc_export mymodule:make_model --input 3x224x224 --batch 32 --optimizer adam \\
        --precision amp -o task.json
"""
import argparse
import json

from .describe import export
from .faketensor import fake_peak
from .kernels import ask, check_gpu
from .sources import Input, batch_maker, maker_of
from .summary import text_of
from .task import OPTIMIZERS, Task


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="python3 -m colloc_export",
        description="What a PyTorch training task will allocate, found without a GPU.",
        epilog="colloc estimate --export FILE.json --batch N reads the output; docs/export.md "
        "describes it. A training step of JAX: python3 -m colloc_export --jax --help.",
    )
    parser.add_argument(
        "source",
        help="MODULE:FUNCTION or FILE.py:FUNCTION that returns the model (or the model and a "
        "function from batch size to (inputs, target)); timm:NAME, torchvision:NAME, "
        "transformers:CLASS",
    )
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]SIZES[:DTYPE[:BELOW]]",
        help="what one sample looks like: 3x224x224, input_ids=512:int64:30522; may be repeated",
    )
    parser.add_argument(
        "--classes",
        type=int,
        default=1000,
        help="of the target; 0: no target, the mean of the output is the loss",
    )
    parser.add_argument(
        "--labels",
        action="store_true",
        help="pass labels like the first input; the model returns its loss",
    )
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--optimizer", choices=sorted(OPTIMIZERS), default="adam")
    parser.add_argument(
        "--precision", choices=["fp32", "amp"], default="fp32", help="amp is autocast to bfloat16"
    )
    parser.add_argument(
        "--sequence", type=int, metavar="TOKENS", help="sequence length, to be noted"
    )
    parser.add_argument(
        "--keeps-output",
        choices=["yes", "no"],
        help="whether the training loop holds the model's output until the next forward pass, as "
        "after output = model(x); transformers' Trainer does not; default: no for "
        "transformers:CLASS, otherwise yes",
    )
    parser.add_argument("--name", help="of the model, for people")
    parser.add_argument("-o", "--output", metavar="FILE", help="instead of standard output")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--text", action="store_true", help="a table like torchinfo's instead of JSON"
    )
    what.add_argument(
        "--kernels",
        action="store_true",
        help="in the JSON: the scratch memory that cuDNN takes at this batch, asked on a GPU "
        "of this machine; needs its memory for one convolution at a time",
    )
    what.add_argument(
        "--fake",
        action="store_true",
        help="only the peak of live fake tensors over forward and backward",
    )
    parser.add_argument(
        "--with-fake", action="store_true", help="in the JSON: the answer of --fake as well"
    )
    return parser.parse_args(arguments)


def keeps_output(options):
    """As the option says, else as the loops usually do that run models of this library."""
    if options.keeps_output:
        return options.keeps_output == "yes"
    return not options.source.startswith("transformers:")


def task_of(options):
    make_model = maker_of(options.source)
    inputs = [Input.parse(text) for text in options.input]
    if inputs:
        make_batch = batch_maker(inputs, options.classes, options.labels)
    else:
        made = make_model()
        if not isinstance(made, tuple):
            batch_maker([], 0, False)
        make_batch, both = made[1], make_model
        make_model = lambda: both()[0]  # noqa: E731
    return Task(
        make_model,
        make_batch,
        optimizer=options.optimizer,
        precision=options.precision,
        name=options.name or options.source,
        sequence_length=options.sequence,
        keeps_output=keeps_output(options),
    )


def answer(options):
    """The text that the command line asks for."""
    task = task_of(options)
    if options.fake:
        return json.dumps(fake_peak(task, options.batch), indent=2) + "\n"
    if options.kernels:
        check_gpu()
    description = export(task, options.batch)
    if options.with_fake:
        figure = fake_peak(task, options.batch)
        description["faketensor"] = {key: figure[key] for key in ("batch", "method", "peak_bytes")}
    if options.kernels:
        description["kernels"] = ask(description)
    if options.text:
        return text_of(description)
    return json.dumps(description, separators=(",", ":")) + "\n"
