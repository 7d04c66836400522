# SPDX-License-Identifier: Apache-2.0
"""Runs a task for a few iterations at one batch size without a GPU. Records its allocations."""
import contextlib
import gc
import sys
from unittest import mock

import torch
from torch._subclasses import FakeTensor

from .cuda_rules import cuda_rules
from .layers import Layers
from .operations import Operations, convs_use_channels_last
from .recurrent import flatten
from .scratch import scratch_of
from .task import call, default_loss
from .tracker import Storages, Tracker, tensors_in

ITERATIONS = 2


class _Quiet:
    """Replaces the profiler's record_function, whose operators early fake tensors do not have."""

    def __init__(self, *_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@contextlib.contextmanager
def _no_profiling():
    original = torch.autograd.profiler.record_function
    torch.autograd.profiler.record_function = _Quiet
    try:
        yield
    finally:
        torch.autograd.profiler.record_function = original


@contextlib.contextmanager
def _no_collection():
    """Collects reference cycles only between phases: all runs free tensors at the same ticks."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@contextlib.contextmanager
def _numbers_of_the_optimizer():
    """Optimizers read their step count, which a fake tensor does not hold."""
    original = torch.Tensor.item
    torch.Tensor.item = lambda tensor: 1.0 if tensor.numel() == 1 else original(tensor)
    try:
        yield
    finally:
        torch.Tensor.item = original


def _unless_fake(function, answer):
    """A function that returns `answer` when its first argument is a fake tensor."""

    def wrapped(*args, **kwargs):
        named = next(
            (name for name in ("padding_mask", "position_ids") if not args and name in kwargs), None
        )
        rest = {name: value for name, value in kwargs.items() if name != named}
        first = kwargs.get(named, args[0] if args else None)
        return (
            answer(function, first, *args[1:], **rest)
            if isinstance(first, FakeTensor)
            else function(*args, **kwargs)
        )

    return wrapped


@contextlib.contextmanager
def _whole_sequences():
    """Takes sequences as whole, as those of this package's batches are.

    transformers reads values to see whether sequences are packed or padded. It takes fake tensors
    for a trace without values, and then makes masks that a GPU run does not have.
    """
    masks = sys.modules.get("transformers.masking_utils")
    answers = {
        "find_packed_sequence_indices": lambda function, positions: None,
        "_ignore_causal_mask_sdpa": lambda function, mask, *args, **kwargs: function(
            None, *args, **kwargs
        ),
        "_ignore_bidirectional_mask_sdpa": lambda function, mask, *args, **kwargs: function(
            None, *args, **kwargs
        ),
    }
    with contextlib.ExitStack() as stack:
        for name, answer in answers.items():
            if hasattr(masks, name):
                stack.enter_context(
                    mock.patch.object(masks, name, _unless_fake(getattr(masks, name), answer))
                )
        yield


def _autocast(precision):
    return (
        torch.autocast("cpu", dtype=torch.bfloat16)
        if precision == "amp"
        else contextlib.nullcontext()
    )


def _named(inputs):
    pairs = (
        inputs.items()
        if isinstance(inputs, dict)
        else ((f"input{i}", value) for i, value in enumerate(inputs))
    )
    return [(name, value) for name, value in pairs if isinstance(value, torch.Tensor)]


def _tensors_of_output(output):
    return tensors_in(dict(output) if hasattr(output, "keys") else output)


class Run:
    """One run at one batch size; its attributes hold the result."""

    def __init__(self, task, batch, environment):
        self.task, self.batch, self.environment = task, batch, environment
        self.storages, self.operations = Storages(), Operations()
        self.phases = []
        self.loss_kind = None
        with cuda_rules(
            self.operations.note_attention, self.operations.note_recurrent
        ), _no_profiling(), _no_collection():
            self._run()

    def _phase(self, name):
        gc.collect()
        self.operations.phase = name
        self.phases[-1][name] = self.storages.bound()

    def _register_model(self, model):
        for module in model.modules():
            self._register(module.parameters(recurse=False), "param")
            self._register(module.buffers(recurse=False), "buffer")
            if isinstance(module, torch.nn.RNNBase):
                self._register(flatten(module), "param")

    def _register(self, tensors, kind):
        for tensor in tensors:
            self.storages.add(tensor, kind)

    def _mark(self, tensors, kind):
        for tensor in tensors:
            self.storages.mark(tensor, kind)

    def _run(self):
        model = self.environment.model(self.task.make_model).train()
        optimizer = self.task.make_optimizer(model)
        group = optimizer.param_groups[0]
        self.optimizer = {"foreach": bool(group.get("foreach")), "fused": bool(group.get("fused"))}
        self._register_model(model)
        self.layers = Layers(model)
        self.operations.on_multiply_adds = self.layers.multiply_adds
        inputs = target = self._output = self._loss = None
        for iteration in range(ITERATIONS):
            self.phases.append({})
            self.operations.clear()
            self._phase("input")
            batch = self.environment.batch(self.task.make_batch, self.batch)
            self._register(tensors_in(batch), "input")
            inputs, target = batch  # the last batch goes now, not before
            del batch
            with Tracker(self.storages, self.operations, scratch_of):
                self._iterate(model, optimizer, inputs, target, iteration)
        self.inputs = {
            name: (list(tensor.shape), str(tensor.dtype)[6:]) for name, tensor in _named(inputs)
        }
        self.phases[-1]["end"] = self.storages.bound()
        self.storages.close()
        self._output = self._loss = None
        self._describe(model)

    def _iterate(self, model, optimizer, inputs, target, iteration):
        self._phase("forward")
        with self.layers if iteration == 0 else contextlib.nullcontext(), _autocast(
            self.task.precision
        ), _whole_sequences():
            self._output = output = call(model, inputs)  # the last one goes now
            self._phase("loss")
            self._loss, self.loss_kind = (self.task.loss or default_loss)(output, target)
        if not self.task.keeps_output:
            self._output = output = None
        self._phase("backward")
        for interval in self.storages.living():
            if interval.kind == "temp" and interval.first >= self.phases[-1]["forward"]:
                interval.kind = "saved"
        kept = [] if output is None else _tensors_of_output(output)
        self._mark(kept + [self._loss], "output")
        self._loss.backward()
        self._phase("optimizer")
        self._mark([p.grad for p in model.parameters() if p.grad is not None], "grad")
        with _numbers_of_the_optimizer():
            optimizer.step()
        for state in tensors_in([list(state.values()) for state in optimizer.state.values()]):
            self.storages.mark(state, "state" if state.dim() or self.optimizer["fused"] else "host")
        self._phase("zero_grad")
        optimizer.zero_grad(set_to_none=True)

    def _describe(self, model):
        parameters = list(model.parameters())
        self.parameters = sum(p.numel() for p in parameters)
        self.trainable = sum(p.numel() for p in parameters if p.requires_grad)
        self.parameter_bytes = sum(p.numel() * p.element_size() for p in parameters)
        self.buffer_bytes = sum(b.numel() * b.element_size() for b in model.buffers())
        self.channels_last = any(convs_use_channels_last(p) for p in parameters)
        self.recurrent = any(isinstance(m, torch.nn.RNNBase) for m in model.modules())
        self.attention = "sdpa" if self.operations.attention else "none"

    @property
    def tensors(self):
        """Those on the device: the optimizer's step counts stay on the host."""
        left_out = ("host", "joined")
        return [one for one in self.storages.intervals if one.kind not in left_out]

    def outline(self):
        """The properties of a run that must be the same at two batch sizes."""
        return [(i.first, i.last, i.kind) for i in self.tensors], [
            row["name"] for row in self.layers.rows
        ]
