#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains one of the models of the collocation studies, and prints how long each epoch took.

    workloads/train.py MODEL [--epochs N] [--steps N] [--batch N] [--side N --classes N]
                       [--data FOLDER] [--device cuda|cpu]

MODEL is small, medium, large, a name in models.py, timm/NAME or torchvision/NAME. An epoch is
--steps batches of synthetic data that stay on the device. With --data it is all data of the folder:

    small           CIFAR-10 as its authors pack it
    medium, large   a folder per class of images
    encoder, decoder
                    text files
    recommender     Criteo's click logs

The output is for `colloc bench`: a JSON object per line, for an epoch

    {"event": "epoch", "epoch": 2, "seconds": 12.3456, "samples": 25600,
     "from": 1700000000.12, "to": 1700000012.47}
"""
import argparse
import contextlib
import dataclasses
import json
import os
import sys
import time

import torch
from models import SIZES, TRAININGS, Images, Stepper, training_of

WARM_UP_STEPS = 3  # compile, choose algorithms, fill the allocator


def say(**what):
    print(json.dumps(what), flush=True)


def synthetic_epochs(data, steps, device):
    batch = [tensor.to(device) for tensor in data.synthetic()]
    while True:
        yield (batch for _ in range(steps))


def real_epochs(data, folder, device):
    from loaders import open_data

    batches = open_data(data, folder)
    while True:
        yield ([tensor.to(device, non_blocking=True) for tensor in batch] for batch in batches)


def hold(gib, device):
    """Allocates in pieces of 1 GiB, as a framework's allocator grows."""
    whole, rest = divmod(gib, 1)
    return [
        torch.empty(int(part * 2**30), dtype=torch.uint8, device=device)
        for part in (*[1] * int(whole), rest)
        if part
    ]


def finish(device):
    if device == "cuda":
        torch.cuda.synchronize()


def train(stepper, epochs, count, device):
    for number, batches in zip(range(1, count + 1), epochs):
        began, since, samples = time.time(), time.monotonic(), 0
        for batch in batches:
            stepper.step(batch)
            samples += len(batch[0])
        finish(device)
        say(
            event="epoch",
            epoch=number,
            seconds=round(time.monotonic() - since, 4),
            samples=samples,
            **{"from": began, "to": time.time()},
        )


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--side", type=int, help="of the images")
    parser.add_argument("--classes", type=int, help="of the images")
    parser.add_argument(
        "--ballast-gib",
        type=float,
        default=0,
        help="GPU memory that is held and not used, to stand for a larger model",
    )
    parser.add_argument("--data")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    options = parser.parse_args()
    for name in ("epochs", "steps", "batch", "side", "classes"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            parser.error(f"--{name} must be 1 or more")
    try:
        training_of(options.model)
    except KeyError:
        parser.error(
            f"no model '{options.model}'; there are {', '.join([*SIZES, *TRAININGS])}, timm/NAME "
            "and torchvision/NAME"
        )
    if (options.side or options.classes) and not isinstance(
        training_of(options.model).data, Images
    ):
        parser.error(f"--side and --classes are for images, {options.model} has none")
    return options


def wait_for_the_others():
    """Reads the pipe by which `colloc bench` lets the trainings of a group begin together: until
    all are ready. Without it there is nothing to wait for."""
    number = os.environ.get("COLLOC_BENCH_START_FD", "")
    if number:
        with contextlib.suppress(ValueError, OSError):
            os.read(int(number), 1)


def shaped(data, options):
    """The data with the shapes of the options."""
    asked = {
        name: getattr(options, name)
        for name in ("batch", "side", "classes")
        if getattr(options, name)
    }
    return dataclasses.replace(data, **asked)


def main():
    options = arguments()
    say(event="begin", at=time.time(), model=SIZES.get(options.model, options.model))
    training = training_of(options.model)
    training.data = shaped(training.data, options)
    stepper = Stepper(training, options.device)
    warm_up = next(synthetic_epochs(training.data, WARM_UP_STEPS, options.device))
    for batch in warm_up:
        stepper.step(batch)
    finish(options.device)
    ballast = hold(options.ballast_gib, options.device)
    say(event="ready", at=time.time(), ballast_gib=sum(map(len, ballast)) / 2**30)
    wait_for_the_others()
    if options.data:
        epochs = real_epochs(training.data, options.data, options.device)
    else:
        epochs = synthetic_epochs(training.data, options.steps, options.device)
    train(stepper, epochs, options.epochs, options.device)
    reserved = torch.cuda.max_memory_reserved() / 2**20 if options.device == "cuda" else None
    say(event="end", at=time.time(), reserved_mib=reserved)


if __name__ == "__main__":
    sys.exit(main())
