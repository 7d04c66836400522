# SPDX-License-Identifier: Apache-2.0
"""What a followed script allocated, in the exporter's format (docs/export.md).

The clock covers the whole script until the end of the second step; the first of the two iterations
begins with the script. What an iteration leaves to the next one, such as the model's output under a
name of the loop, is seen: a tensor that the first leaves and the second releases has an heir, the
tensor that the second leaves in its place. `holds` lists these pairs, so that the reader can go on
with a third iteration.
"""
import json
import os

import torch

from colloc_export.describe import CLASSES, VERSION
from colloc_export.operations import convs_use_channels_last
from colloc_export.tracker import NEVER, tensors_in
from colloc_export.traffic import rows_of

from .device import is_fake

PHASES = ["input", "forward", "loss", "backward", "optimizer", "zero_grad"]
EVENT_OF_PHASE = {"forward": "forward", "loss": "loss", "backward": "backward"}


def _inner_of(optimizer):
    """Of DeepSpeed's optimizer, and of ZeroRedundancyOptimizer; else itself."""
    return getattr(optimizer, "inner", getattr(optimizer, "optim", optimizer))


def optimizer_name(optimizer):
    """The exporter's word for an optimizer's class."""
    if optimizer is None:
        return "other"
    optimizer = _inner_of(optimizer)
    name = type(optimizer).__name__.lower()
    if name == "sgd" and any(group.get("momentum") for group in optimizer.param_groups):
        return "momentum"
    return name


def _foreach(optimizer):
    """Whether it steps over lists of tensors, which is the default on CUDA since PyTorch 2."""
    group = _inner_of(optimizer).param_groups[0] if optimizer is not None else {}
    is_default = group.get("foreach") is None and not group.get("fused")
    newer = int(torch.__version__.split(".")[0]) >= 2
    return bool(group.get("foreach")) or ("foreach" in group and is_default and newer)


def _mark(training):
    """Finds the kinds of the storages that exist at the end."""
    storages = training.device.storages
    for network in training.networks():
        for kind, tensors in (("param", network.parameters()), ("buffer", network.buffers())):
            for tensor in filter(is_fake, tensors):
                storages.mark(tensor, kind)
    for optimizer in training.living_optimizers():
        for group in optimizer.param_groups:
            for parameter in filter(is_fake, group["params"]):
                storages.mark(parameter, "param")
                if parameter.grad is not None:
                    storages.mark(parameter.grad, "grad")
        masters = getattr(optimizer, "masters", list)()  # of DeepSpeed's
        states = [list(state.values()) for state in optimizer.state.values()]
        for state in filter(is_fake, tensors_in([masters, states])):
            storages.mark(state, "state")


def _phases(training, ends):
    """The first event of each kind in each iteration; where one is missing, the one before."""
    phases, begin = [], 0
    for end in ends:
        phase, tick = {}, begin
        for name in PHASES:
            wanted = {"zero_grad": "step"}.get(name, name)
            ticks = [e.tick for e in training.events if e.name == wanted and begin <= e.tick <= end]
            if name in ("optimizer", "zero_grad"):
                ticks = ticks[-1:]
            tick = max(tick, ticks[0]) if ticks else tick
            phase[name] = tick
        phases.append(phase)
        begin = end
    phases[-1]["end"] = ends[-1]
    return phases


def holds(intervals, start, end):
    """[[tensor, until, heir], ...]: what the last iteration takes over and releases.

    intervals: of all tensors, by first tick
    start, end: ticks of the last iteration
    """
    left = [(i, one) for i, one in enumerate(intervals) if one.first < start <= one.last < end]
    heirs = [
        (i, one) for i, one in enumerate(intervals) if one.first >= start and one.last == NEVER
    ]
    pairs, after = [], 0
    for i, one in left:
        match = next((k for k in range(after, len(heirs)) if heirs[k][1].bytes == one.bytes), None)
        if match is not None:
            pairs.append([i, one.last, heirs[match][0]])
            after = match + 1
    return sorted(pairs, key=lambda pair: pair[1])


def _pair(size):
    return [int(size), 0]


def _layers(training):
    rows = []
    for row in training.layers:
        shape = row["shape"]
        rows.append(
            {
                **row,
                "shape": shape and list(shape[1:]),
                "activations": _pair(row["activations"]),
                "multiply_adds": _pair(row["multiply_adds"]),
            }
        )
    return rows or [_unnamed_layer(training)]


def _unnamed_layer(training):
    """Stands for all weights of a loop that calls no module."""
    weights = _unique(
        [p for one in training.living_optimizers() for g in one.param_groups for p in g["params"]]
        + [p for network in training.networks() for p in network.parameters()]
    )
    count = _count(weights, torch.Tensor.numel)
    return {
        "name": "",
        "type": "Model",
        "depth": 0,
        "leaf": True,
        "shared": False,
        "args": "",
        "shape": None,
        "activations": [0, 0],
        "parameters": count,
        "trainable": count,
        "buffers": 0,
        "multiply_adds": [0, 0],
        "in_place": False,
    }


def _operations(rows, keys, start):
    """Those of the last iteration, with their phase by kernel."""
    return [
        {**row, **{key: _pair(row[key]) for key in keys}} for row in rows if row["tick"] >= start
    ]


def _traffic(calls, start):
    """The operators of the last iteration, as at one batch."""
    last = [call for call in calls if call.tick >= start]
    return rows_of(last, last, lambda size, _: _pair(size))


def _count(tensors, what):
    return sum(what(tensor) for tensor in tensors)


def _elements(parameter):
    """Also of a rank's part that DeepSpeed keeps in the host's memory."""
    return getattr(parameter, "_colloc_elements", parameter.numel())


def _unique(tensors):
    return list({id(tensor): tensor for tensor in tensors}.values())


def _precision(training, parameters):
    if training.seen["autocast"]:
        return "amp"
    halves = {torch.float16: "fp16", torch.bfloat16: "bf16"}
    kinds = [halves.get(parameter.dtype) for parameter in parameters]
    return max(set(kinds), key=kinds.count) or "fp32" if kinds else "fp32"


def _tries_kernels(training):
    """Whether cuDNN tries all its kernels for each convolution (cudnn.benchmark)."""
    return bool(torch.backends.cudnn.benchmark and training.device.operations.convs)


def _seen(training, optimizer, precision, start):
    """The properties of the loop, for people."""
    backwards = sum(1 for e in training.events if e.name == "backward" and e.tick >= start)
    steppers = max(1, len([s for s in training.steps.values() if s]))
    return {
        "batch": training.batch,
        "optimizer": None if training.seen["inference"] else optimizer_name(optimizer),
        "optimizers": 0 if training.seen["inference"] else steppers,
        "precision": precision,
        "autocast": training.seen["autocast"],
        "accumulation": 0 if training.seen["inference"] else max(1, backwards // steppers),
        "checkpointing": training.seen["checkpointing"],
        "compiled": training.seen["compiled"],
        "ddp": training.seen["ddp"],
        "fsdp": training.seen["fsdp"],
        "zero": training.seen["zero"],
        "cudnn_benchmark": _tries_kernels(training),
        "inference": training.seen["inference"],
    }


def describe(training):
    """The description, as a dictionary for json.dump."""
    storages, operations = training.device.storages, training.device.operations
    _mark(training)
    optimizer, ends = training.main_steps()
    ends = ends[-2:] if len(ends) >= 2 else [0] + ends
    start, ticks = ends[0], storages.bound()
    storages.close()
    intervals = sorted((o for o in storages.intervals if o.bytes), key=lambda one: one.first)
    parameters = _unique(
        [p for n in training.networks() for p in n.parameters()]
        + [p for one in training.living_optimizers() for g in one.param_groups for p in g["params"]]
    )
    buffers = _unique(b for n in training.networks() for b in n.buffers())
    layers, precision = _layers(training), _precision(training, parameters)
    bytes_of = lambda tensor: tensor.numel() * tensor.element_size()  # noqa: E731
    return {
        "colloc_export": VERSION,
        "model": " + ".join(type(n).__name__ for n in training.networks())[:200],
        "framework": {"name": "pytorch", "version": torch.__version__},
        "method": "script",
        "batch": int(training.batch or 1),
        "batches": [int(training.batch or 1)],
        "every_batch": False,
        "sequence_length": training.sequence_length,
        "optimizer": {
            "name": optimizer_name(optimizer),
            "foreach": _foreach(optimizer),
            "fused": bool(optimizer and optimizer.param_groups[0].get("fused")),
        },
        "precision": precision,
        "loss": "own",
        "inputs": [],
        "layers": layers,
        "parameters": _count(parameters, _elements),
        "trainable": _count([p for p in parameters if p.requires_grad], _elements),
        "parameter_bytes": _count(parameters, bytes_of),
        "buffer_bytes": _count(buffers, bytes_of),
        "multiply_adds": _pair(sum(row["multiply_adds"][0] for row in layers)),
        "activations": _pair(sum(row["activations"][0] for row in layers if row["leaf"])),
        "iterations": 2,
        "ticks": ticks,
        "phases": _phases(training, ends),
        "classes": CLASSES,
        "tensors": [
            [*_pair(one.bytes), one.first, one.last, CLASSES.index(one.kind)] for one in intervals
        ],
        "holds": holds(intervals, start, ticks),
        "convs": _operations(operations.convs, ["batch"], start),
        "matmuls": _operations(operations.matmuls, ["m", "n", "k", "count"], start),
        "operators": _traffic(operations.traffic.calls, start),
        "flags": {
            "frozen": _count([p for p in parameters if not p.requires_grad], torch.Tensor.numel),
            "attention": "sdpa" if operations.attention else "none",
            "checkpointing": False,
            "compiled": training.seen["compiled"],
            "cudnn_benchmark": _tries_kernels(training),
            "cudnn_enabled": bool(torch.backends.cudnn.enabled),
            "cudnn_deterministic": bool(torch.backends.cudnn.deterministic),
            "cudnn_allow_tf32": bool(torch.backends.cudnn.allow_tf32),
            "channels_last": any(convs_use_channels_last(p) for p in parameters),
            "recurrent": any(
                isinstance(m, torch.nn.RNNBase) for n in training.networks() for m in n.modules()
            ),
            "emulated_autocast": training.seen["autocast"] is not None,
            "nccl_processes": training.seen["processes"],
        },
        "loader": training.loading.describe(),
        "warnings": list(training.device.notes),
        "seen": _seen(training, optimizer, precision, start),
    }


def write(training, folder):
    """Leaves the description in the file `result` of the run's folder, whole or not at all."""
    path = os.path.join(folder, "result")
    with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
        json.dump(describe(training), file, separators=(",", ":"))
    os.replace(f"{path}.{os.getpid()}", path)
