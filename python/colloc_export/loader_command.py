# SPDX-License-Identifier: Apache-2.0
"""Measures the rate of a training's data loading on this machine.

    python3 -m colloc_export --loader mine.py:make_loader --seconds 10

A training whose GPU computes more samples a second than its loader provides waits for data: its SM
activity falls by the ratio of both rates. `--loader-rate` of `colloc estimate` and `colloc submit`
takes the rate (docs/estimate.md). A busy machine gives a lower one, as it does to the training.
"""
import argparse
import json
import time

from .user_code import Mistake, function_of


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="python3 -m colloc_export --loader",
        description="How many samples a second a loader provides on this machine.",
    )
    parser.add_argument(
        "--loader",
        required=True,
        metavar="SOURCE",
        help="MODULE:FUNCTION or FILE.py:FUNCTION that returns the DataLoader, or another iterable "
        "of batches",
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="of the measurement")
    parser.add_argument("-o", "--output", metavar="FILE", help="default: standard output")
    options = parser.parse_args(arguments)
    options.batch = 1  # that of the loader counts
    if not options.seconds > 0:
        parser.error("--seconds must be positive")
    return options


def samples_of(batch):
    """The number of samples in a batch: the first dimension of its first tensor or array."""
    if getattr(batch, "shape", None):
        return int(batch.shape[0])
    if isinstance(batch, dict):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        counts = (samples_of(part) for part in batch)
        return next((count for count in counts if count), 0)
    return 0


def made_before(loader):
    """Batches that may lie ready before the first is asked for: they say nothing of the rate."""
    workers = getattr(loader, "num_workers", 0) or 0
    return workers * (getattr(loader, "prefetch_factor", None) or 2) if workers else 0


def measure(loader, seconds, clock=time.monotonic):
    """Samples, and the seconds that they took, over as many epochs as `seconds` have room for.

    loader: iterable of batches, iterated again when it ends
    Raises Mistake for a loader without batches, or whose batches hold no tensors.
    """
    left_out = made_before(loader) + 1
    samples, begin, now = 0, None, None
    while begin is None or now - begin < seconds:
        n = 0
        for batch in loader:
            n += 1
            count, now = samples_of(batch), clock()
            if not count:
                raise Mistake("the batches of the loader hold no tensor with a first dimension")
            if begin is not None:
                samples += count
            elif left_out > 1:
                left_out -= 1
            else:
                begin = now
            if begin is not None and samples and now - begin >= seconds:
                break
        if n == 0:
            raise Mistake("the loader has no batches")
    return samples, now - begin


def answer(options):
    loader = function_of(options.loader)()
    samples, took = measure(loader, options.seconds)
    rate = samples / took
    return (
        json.dumps(
            {
                "loader_rate": round(rate, 2),
                "samples": samples,
                "seconds": round(took, 3),
                "workers": getattr(loader, "num_workers", None),
                "option": f"--loader-rate={rate:.4g}",
            },
            indent=1,
        )
        + "\n"
    )
