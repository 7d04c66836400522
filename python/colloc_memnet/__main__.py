# SPDX-License-Identifier: Apache-2.0
"""Trains and evaluates the networks of the feed on standard input; `colloc memnet` starts it.

usage: python3 -m colloc_memnet train --output=FOLDER --seed=N --jobs=N [--epochs=N]
       python3 -m colloc_memnet eval [--output=FOLDER] [--json]
"""

import argparse
import json
import os
import sys
import time

from colloc_memnet import evaluate, feed

EXIT_USAGE = 2


def fail(text):
    print(f"colloc: {text}", file=sys.stderr)
    return EXIT_USAGE


class Display:
    """Reports on stderr; on a terminal also a line of progress, which it rewrites."""

    def __init__(self, plans):
        self.total, self.done, self.began = len(plans), 0, time.monotonic()
        self.is_live = sys.stderr.isatty()

    def clear(self):
        if self.is_live:
            print("\r\033[K", end="", file=sys.stderr)

    def progress(self, progress, patience, epochs_max):
        """The remaining time is a range, since it depends on when the loss stops falling."""
        if not self.is_live:
            return
        epoch_s = progress.took_s / progress.epoch
        soonest = epoch_s * (patience - progress.epoch + progress.best_epoch)
        latest = epoch_s * (epochs_max - progress.epoch)
        self.clear()
        print(
            f"[{self.done + 1}/{self.total}] {progress.plan}: epoch {progress.epoch}, loss"
            f" {progress.training_loss:.3f}, {progress.validation_loss:.3f} on other rows;"
            f" {soonest:.0f} to {latest:.0f} s left",
            end="",
            file=sys.stderr,
            flush=True,
        )

    def end(self, name, text):
        self.done += 1
        self.clear()
        print(f"[{self.done}/{self.total}] {name}: {text}", file=sys.stderr)


def write_atomically(path, text):
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def train(options, told):
    try:
        from colloc_memnet import pool, training  # these need PyTorch
    except ImportError as missing:
        return fail(
            f"memnet train needs PyTorch and NumPy in this Python ({missing}): install"
            " python3-torch, or name another interpreter with --python"
        )
    os.makedirs(options.output, exist_ok=True)
    display = Display(told.plans)
    epochs_max = options.epochs or training.EPOCHS_MAX
    events = pool.train_all(told, told.plans, options.seed, options.jobs, epochs_max)
    for name, kind, payload in events:
        if kind == "epoch":
            display.progress(payload, training.PATIENCE, epochs_max)
        elif kind == "failed":
            events.close()
            return fail(f"memnet: {name}: {payload}")
        elif kind == "skipped":
            display.end(name, f"skipped: {payload}")
        else:
            text, classes = payload
            write_atomically(os.path.join(options.output, f"{name}.txt"), text)
            took = time.monotonic() - display.began
            display.end(name, f"{classes} classes, trained after {took:.0f} s")
    return 0


def draw(folder):
    """Figures are optional: without matplotlib the files still exist."""
    try:
        from colloc_report import memnet
    except ImportError as missing:
        print(f"colloc: no figures: {missing}; {folder} has the data for them", file=sys.stderr)
    else:
        print(memnet.draw(folder))


def judge(options, told):
    groups = evaluate.evaluate(told)
    if not groups:
        return fail(
            "memnet: nothing to evaluate: no network matches --only, or no row of DATA is"
            " of its kind"
        )
    if options.output:
        from colloc_memnet import tables

        tables.write(told, options.output)
    if options.json:
        print(json.dumps(evaluate.as_json(groups), indent=2))
    else:
        print(evaluate.as_text(groups))
    if options.output:
        draw(options.output)
    return 0


def main():
    parser = argparse.ArgumentParser(prog="colloc_memnet")
    parser.add_argument("action", choices=["train", "eval"])
    parser.add_argument("--output")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    told = feed.read(sys.stdin)
    try:
        return (train if options.action == "train" else judge)(options, told)
    except OSError as error:
        return fail(f"{error.filename}: {error.strerror}")
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
