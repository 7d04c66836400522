# SPDX-License-Identifier: Apache-2.0
"""Combines runs at two batch sizes into a description for every batch size (docs/export.md)."""
import contextlib
import gc

import torch

from .environment import Cpu, Fake
from .run import ITERATIONS, Run
from .scratch import Stepped, line
from .traffic import rows_of

VERSION = 1
CLASSES = ["param", "buffer", "input", "output", "saved", "temp", "grad", "state"]
CPU_BATCHES = (2, 4)


class NotLinear(Exception):
    """The runs at two batch sizes do not have the same operations and tensors."""


class Pairs:
    """Sizes at two batch sizes as [fixed, per sample]."""

    def __init__(self, low, high, batch=None):
        self.low, self.high, self.batch = low, high, batch or low

    def __call__(self, low, high):
        slope, rest = divmod(high - low, self.high - self.low)
        fixed = low - slope * self.low
        if rest or slope < 0 or fixed < 0:
            raise NotLinear(
                f"a size goes from {low} to {high} as the batch goes from {self.low} to {self.high}"
            )
        return [fixed, slope]

    def scratch(self, low, high):
        """Scratch memory that grows in steps: exact at the requested batch, close at others."""
        if isinstance(low, Stepped) and isinstance(high, Stepped):
            return line(low, high, self.low, self.batch)
        try:
            return self(low, high)
        except NotLinear:
            slope = max(0, min((high - low) // (self.high - self.low), low // self.low))
            return [low - slope * self.low, slope]


class AtOneBatch:
    """Every size is fixed."""

    def __call__(self, low, high):
        return [low, 0]

    def scratch(self, low, high):
        return [int(low), 0]


def _shape_without_batch(low, high):
    if low is None or high is None or len(low) != len(high):
        return low and low[1:]
    varying = [i for i, (a, b) in enumerate(zip(low, high)) if a != b]
    return [size for i, size in enumerate(low) if i not in varying[:1]] if varying else low[1:]


def _layer(pairs, low, high):
    row = dict(low)
    row["shape"] = _shape_without_batch(low["shape"], high["shape"])
    for key in ("activations", "multiply_adds"):
        row[key] = pairs(low[key], high[key])
    return row


def _sum_of(rows, key):
    return [sum(row[key][i] for row in rows) for i in (0, 1)]


def _operation(pairs, low, high, keys):
    return {**low, **{key: pairs(low[key], high[key]) for key in keys}}


def _tensors(pairs, low, high):
    rows = []
    for a, b in zip(low.tensors, high.tensors):
        size = (pairs.scratch if a.is_scratch else pairs)(a.bytes, b.bytes)
        if any(size):
            rows.append([*size, a.first, a.last, CLASSES.index(a.kind)])
    return rows


def _inputs(inputs):
    return [
        {"name": name, "shape": shape[1:], "dtype": dtype}
        for name, (shape, dtype) in inputs.items()
    ]


def _flags(run):
    return {
        "frozen": run.parameters - run.trainable,
        "attention": run.attention,
        "checkpointing": False,
        "compiled": False,
        "channels_last": run.channels_last,
        "recurrent": run.recurrent,
        "emulated_autocast": run.task.precision == "amp",
    }


def _describe(task, batch, low, high, pairs, method, warnings):
    layers = [_layer(pairs, a, b) for a, b in zip(low.layers.rows, high.layers.rows)]
    linear = isinstance(pairs, Pairs)
    optimizer = task.optimizer if isinstance(task.optimizer, str) else "other"
    return {
        "colloc_export": VERSION,
        "model": task.name,
        "framework": {"name": "pytorch", "version": torch.__version__},
        "method": method,
        "batch": batch,
        "batches": [low.batch, high.batch] if linear else [low.batch],
        "every_batch": linear,
        "sequence_length": task.sequence_length,
        "optimizer": {"name": optimizer, **low.optimizer},
        "precision": task.precision,
        "loss": low.loss_kind,
        "keeps_output": task.keeps_output,
        "inputs": _inputs(low.inputs),
        "layers": layers,
        "parameters": low.parameters,
        "trainable": low.trainable,
        "parameter_bytes": low.parameter_bytes,
        "buffer_bytes": low.buffer_bytes,
        "multiply_adds": _sum_of(layers, "multiply_adds"),
        "activations": _sum_of([row for row in layers if row["leaf"]], "activations"),
        "iterations": ITERATIONS,
        "ticks": low.storages.clock,
        "phases": low.phases,
        "classes": CLASSES,
        "tensors": _tensors(pairs, low, high),
        "convs": [
            _operation(pairs, a, b, ["batch"])
            for a, b in zip(low.operations.convs, high.operations.convs)
        ],
        "matmuls": [
            _operation(pairs, a, b, ["m", "n", "k", "count"])
            for a, b in zip(low.operations.matmuls, high.operations.matmuls)
        ],
        "operators": rows_of(
            low.operations.traffic.calls, high.operations.traffic.calls, pairs.scratch
        ),
        "flags": _flags(low),
        "warnings": warnings,
    }


@contextlib.contextmanager
def _only_new_objects_collected():
    """The garbage collector leaves out the objects of before, as those of imported modules:
    looking at them takes most of an export's time."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _runs(task, environment, batches):
    with environment.active(), _only_new_objects_collected():
        return [Run(task, batch, environment) for batch in batches]


def _run_somewhere(task, batches, warnings):
    try:
        return "fake", _runs(task, Fake(), batches)
    except Exception as error:
        reason = str(error).strip().split("\n")[0][:200]
        warnings.append(
            f"does not run on fake tensors ({type(error).__name__}: {reason}); "
            "ran on the CPU at batch 2 and 4 instead"
        )
    return "cpu", _runs(task, Cpu(), CPU_BATCHES)


def export(task, batch, at_one_batch=False):
    """What the task allocates, as a dictionary for json.dump.

    at_one_batch: for this batch only, from one run of the task, which takes half the time
    """
    warnings = []
    low = max(batch, 2)  # one sample runs through other kernels than several do
    at_one_batch = at_one_batch and low == batch
    method, runs = _run_somewhere(task, [low] if at_one_batch else [low, 2 * low], warnings)
    low, high = runs[0], runs[-1]
    if low is high:
        return _describe(task, batch, low, low, AtOneBatch(), method, warnings)
    try:
        if low.outline() != high.outline():
            raise NotLinear(
                f"the runs at batch {low.batch} and {high.batch} do not allocate in the same order"
            )
        return _describe(
            task, batch, low, high, Pairs(low.batch, high.batch, batch), method, warnings
        )
    except NotLinear as reason:
        warnings.append(f"valid for batch {low.batch} only: {reason}")
        return _describe(task, low.batch, low, low, AtOneBatch(), method, warnings)
