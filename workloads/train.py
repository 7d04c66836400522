#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains one of the models of the collocation studies, and prints how long each epoch took.

    workloads/train.py MODEL [--epochs N] [--steps N] [--batch N] [--side N --classes N]
                       [--data FOLDER] [--device cuda|cpu] [--processes N] [--report-steps]

MODEL is small, medium, large, a name in models.py, timm/NAME or torchvision/NAME. An epoch is
--steps batches of synthetic data that stay on the device. With --data it is all data of the folder,
or --steps batches drawn from it at random:

    small           CIFAR-10 as its authors pack it
    medium, large   a folder per class of images
    encoder, decoder
                    text files
    recommender     Criteo's click logs

With --processes=N the model is trained by N processes on N GPUs, by DistributedDataParallel; the
batch is that of one of them, and the first one prints the samples of all.

The output is for `colloc bench`: a JSON object per line, for an epoch

    {"event": "epoch", "epoch": 2, "seconds": 12.3456, "samples": 25600,
     "from": 1700000000.12, "to": 1700000012.47}
"""
import argparse
import contextlib
import ctypes
import dataclasses
import json
import os
import shutil
import signal
import sys
import tempfile
import time

import torch
from models import SIZES, TRAININGS, Images, Stepper, training_of

WARM_UP_STEPS = 3  # compile, choose algorithms, fill the allocator
SYNTHETIC_STEPS = 200  # of an epoch
PR_SET_PDEATHSIG = 1  # prctl(2)


def say(**what):
    if os.environ.get("RANK", "0") == "0":
        print(json.dumps(what), flush=True)


def synthetic_epochs(data, steps, device):
    batch = [tensor.to(device) for tensor in data.synthetic()]
    while True:
        yield (batch for _ in range(steps))


def real_epochs(data, options, device):
    from loaders import LOADERS, open_data

    batches = open_data(data, options.data, options.steps, options.loaders or LOADERS)
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


def step_reporter(wanted):
    """What is called after each step: colloc_step of the preloaded library, or nothing."""
    report = getattr(ctypes.CDLL(None), "colloc_step", None) if wanted else None
    if not report:
        return lambda: None
    report.argtypes = [ctypes.c_long]
    return lambda: report(1)


def train(stepper, epochs, count, device, report):
    for number, batches in zip(range(1, count + 1), epochs):
        began, since, samples = time.time(), time.monotonic(), 0
        for batch in batches:
            stepper.step(batch)
            report()
            samples += len(batch[0]) * int(os.environ.get("WORLD_SIZE", "1"))
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
    parser.add_argument("--steps", type=int, help="of an epoch (200, or all of --data)")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--side", type=int, help="of the images")
    parser.add_argument("--classes", type=int, help="of the images")
    parser.add_argument(
        "--ballast-gib",
        type=float,
        default=0,
        help="GPU memory that is held and not used, to stand for a larger model",
    )
    parser.add_argument("--data", metavar="FOLDER")
    parser.add_argument("--loaders", type=int, help="processes that decode images of --data (4)")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--report-steps", action="store_true",
                        help="to colloc (docs/steps.md), which otherwise finds them")  # fmt: skip
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    options = parser.parse_args()
    for name in ("epochs", "steps", "batch", "side", "classes", "loaders", "processes"):
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


def end_at_once(*error):
    """Without the clean-up of NCCL, which may wait for a rank that waits for this one."""
    sys.__excepthook__(*error)
    sys.stderr.flush()
    os._exit(1)


def end_with(ranks):
    """Waits for the ranks. When one fails the others end, as with torchrun: they would wait for it
    in their next step. Returns whether one failed."""
    failed = False
    while ranks:
        ended, status = os.wait()
        ranks.remove(ended)
        if status and not failed:
            failed = True
            for rank in ranks:
                os.kill(rank, signal.SIGKILL)
    return failed


def split_into_ranks(count):
    """Forks `count` ranks, before CUDA is used. This process ends with them, and they end if it is
    killed. Returns in each of them where they meet: colloc gives a task of several GPUs a port of
    its own; without it a file."""
    folder = tempfile.mkdtemp(prefix="ranks-")
    ranks, parent = [], os.getpid()
    for rank in range(count):
        child = os.fork()
        if child == 0:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
            os.environ.update({"RANK": str(rank), "WORLD_SIZE": str(count)})
            sys.excepthook = end_at_once
            return "env://" if "MASTER_PORT" in os.environ else f"file://{folder}/store"
        ranks.append(child)
    failed = end_with(ranks)
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit("a process of this training failed" if failed else 0)


def meet(place, device):
    rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if device == "cuda":
        torch.cuda.set_device(rank)
    backend = "nccl" if device == "cuda" else "gloo"
    torch.distributed.init_process_group(backend, init_method=place, rank=rank, world_size=count)


def train_together(stepper, device):
    """Connects this rank with the others: each step's gradients are averaged over all."""
    stepper.model = torch.nn.parallel.DistributedDataParallel(
        stepper.model,
        device_ids=[torch.cuda.current_device()] if device == "cuda" else None,
        static_graph=True,  # some models have parameters that are not used
    )


def main():
    options = arguments()
    if options.processes > 1:
        meet(split_into_ranks(options.processes), options.device)
    say(event="begin", at=time.time(), model=SIZES.get(options.model, options.model))
    training = training_of(options.model)
    training.data = shaped(training.data, options)
    stepper = Stepper(training, options.device)
    if options.processes > 1:
        train_together(stepper, options.device)
    warm_up = next(synthetic_epochs(training.data, WARM_UP_STEPS, options.device))
    for batch in warm_up:
        stepper.step(batch)
    finish(options.device)
    ballast = hold(options.ballast_gib, options.device)
    say(event="ready", at=time.time(), ballast_gib=sum(map(len, ballast)) / 2**30)
    wait_for_the_others()
    if options.data:
        epochs = real_epochs(training.data, options, options.device)
    else:
        steps = options.steps or SYNTHETIC_STEPS
        epochs = synthetic_epochs(training.data, steps, options.device)
    report = step_reporter(options.report_steps)
    train(stepper, epochs, options.epochs, options.device, report)
    reserved = torch.cuda.max_memory_reserved() / 2**20 if options.device == "cuda" else None
    say(event="end", at=time.time(), reserved_mib=reserved)


if __name__ == "__main__":
    sys.exit(main())
