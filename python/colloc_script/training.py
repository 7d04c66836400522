# SPDX-License-Identifier: Apache-2.0
"""Watches the training loop: models, optimizers, precision, backward passes, and its end.

The run ends when every optimizer that holds tensors of the GPU has stepped twice. A loop that
updates its weights by hand, without an optimizer, ends at its third forward pass after a backward
pass. A script that makes no optimizer and no backward pass is inference: its result is what its
forward passes take. One that trains on the CPU is refused after some steps.
"""
import collections
import contextlib
import functools
import importlib
import sys
import time
import weakref

import torch
from torch.nn.parameter import is_lazy

from colloc_export.layers import Layers
from colloc_export.run import _no_profiling, _whole_sequences
from colloc_export.tracker import tensors_in

from .device import is_fake
from .evaluations import Evaluations

STEPS = 2  # the optimizer's states appear at the first step; the second is as all others
STEPS_MOST = 12  # of one optimizer while another has not stepped twice; chosen: five critics' steps

# Inference is taken for certain after this many passes and seconds. Chosen: a check of a network
# before its training has fewer; a script that ends before is inference, too.
PASSES_OF_INFERENCE = 50
SECONDS_OF_INFERENCE = 10

# A training on the CPU is certain after STEPS_MOST steps, or after these and this long.
STEPS_ON_HOST, SECONDS_ON_HOST = 2, 10  # chosen: a step that takes seconds is no preparation

ON_CPU = "the script trains on the CPU: its optimizer has no tensor on a GPU"

Event = collections.namedtuple("Event", "tick name")


class Training:
    """What the loop does, by ticks of the clock.

    device: the pretended GPU
    on_end: called once, when enough was seen; does not return
    on_refusal: called once, with the reason, when there is nothing to see; does not return
    """

    def __init__(self, device, on_end, on_refusal):
        self.device, self._on_end, self._on_refusal = device, on_end, on_refusal
        self._begun_s = time.monotonic()
        self.passes = 0  # forward passes of whole networks on the GPU
        self._rows_of_recurrent = (
            None  # samples in the batch of the last layer that takes time first
        )
        self.events = []  # forward, loss, backward, optimizer, step
        self.layers = []  # rows of each network's first forward pass
        self._counted = set()  # ids of the parameters in them: a network may be part of another one
        self.roots = weakref.WeakSet()
        self._root_list = []
        self.optimizers = []  # weak references, in the order in which they were made
        self.steps = collections.defaultdict(list)  # ticks at which steps ended, by optimizer
        self._inner = set()  # ids of those that step in another one's step: their steps are its own
        self.backwards = 0
        self.steps_on_host = 0
        self.backward_ends = []
        self.batch = self._input = None
        self.batch_of_pass = None  # of the last forward pass, also of an evaluation
        self.sequence_length = None
        self.loader_batch = None
        self.seen = {
            "autocast": None,
            "compiled": False,
            "checkpointing": False,
            "ddp": 0,
            "fsdp": 0,
            "zero": None,
            "processes": 0,
            "inference": False,
        }
        self._evaluations = Evaluations()
        self._depth = 0
        self._in_step = False

    def event(self, name):
        self.events.append(Event(self.device.storages.bound(), name))

    # ---- networks ----

    def call_module(self, call, module, args, kwargs):
        """Runs a module's forward pass; outermost ones are the networks."""
        if self._depth or not self._is_network(module):
            if self._depth and _takes_time_first(module) and args and is_fake(args[0]):
                self._rows_of_recurrent = args[0].shape[1]
            return call(module, *args, **kwargs)
        self.passes += 1
        result = self._evaluations.call(
            lambda: self._call_network(call, module, args, kwargs), module, args, kwargs
        )
        is_long = time.monotonic() - self._begun_s > SECONDS_OF_INFERENCE
        if is_long and self.passes >= PASSES_OF_INFERENCE and self.is_inference():
            self._on_end(self)
        return result

    def _call_network(self, call, module, args, kwargs):
        self._depth += 1
        try:
            self._before_forward(module, args, kwargs)
            with self._layers_of(module), _whole_sequences():
                result = call(module, *args, **kwargs)
            self.event("loss")
            self._correct_batch()
            return result
        finally:
            self._depth -= 1

    @staticmethod
    def _is_network(module):
        return any(map(is_fake, module.parameters()))

    def _before_forward(self, module, args, kwargs):
        self.event("forward")
        if self._ends_by_hand():
            self._on_end(self)
        if not any(module is one for one in self._root_list):
            self._root_list.append(module)
        inputs = [t for t in tensors_in((args, kwargs)) if t.dim() > 0]
        self.batch_of_pass = inputs[0].shape[0] if inputs else None
        if torch.is_grad_enabled():
            self._note_batch(inputs)

    def _note_batch(self, inputs):
        if not inputs:
            return
        shape = inputs[0].shape
        self._rows_of_recurrent, self._input = None, inputs[0]
        if self.batch is None or (self.loader_batch and self.batch != self.loader_batch):
            self.batch = self.loader_batch if self.loader_batch in shape[:2] else shape[0]
        if inputs[0].dtype == torch.int64 and inputs[0].dim() == 2 and self.batch in shape:
            self.sequence_length = shape[1] if shape[0] == self.batch else shape[0]

    def note_recurrent(self, input, *rest):
        """A recurrent kernel, whose input has the time first."""
        self._rows_of_recurrent = input.shape[1]
        self.device.operations.note_recurrent(input, *rest)

    def _correct_batch(self):
        """Where time comes first in the input, too, the batch is its second size."""
        rows, first = self._rows_of_recurrent, self._input
        if rows is None or first is None or self.loader_batch in first.shape[:2]:
            return
        if first.dim() > 1 and first.shape[1] == rows != first.shape[0] == self.batch:
            self.batch = rows
            if first.dtype == torch.int64 and first.dim() == 2:
                self.sequence_length = first.shape[0]

    @contextlib.contextmanager
    def _layers_of(self, module):
        """Describes the layers during the first forward pass of a network that is trained."""
        if module in self.roots or not torch.is_grad_enabled():
            yield
            return
        self.roots.add(module)
        layers = Layers(module, self._counted)
        self.device.operations.on_multiply_adds = layers.multiply_adds
        with layers:
            yield
        self.device.operations.on_multiply_adds = lambda count: None
        self.layers.extend(layers.rows)

    def networks(self):
        is_inference = self.seen["inference"]
        return [one for one in self._root_list if is_inference or one in self.roots]

    def is_inference(self):
        """Whether there were forward passes, and nothing of a training."""
        return bool(self.passes and not self.backwards and not self.living_optimizers())

    # ---- steps ----

    def backward(self, run):
        """Runs a backward pass. One within another (reentrant checkpointing) is a part of it."""
        if self.device.is_backward:
            run()
            return
        self.backwards += 1
        self.event("backward")
        self._depth += 1  # checkpointed parts run forward again: they are no networks
        self.device.is_backward = True
        try:
            run()
        finally:
            self._depth -= 1
            self.device.is_backward = False
        self.backward_ends.append(self.device.storages.bound())

    def add_optimizer(self, optimizer):
        self.optimizers.append(weakref.ref(optimizer))

    def living_optimizers(self):
        found = [reference() for reference in self.optimizers]
        return [one for one in found if one is not None and _holds_fakes(one)]

    def step(self, optimizer, run):
        """Runs an optimizer's step, and ends the run after the last one that is needed."""
        if self._in_step:
            self._inner.add(id(optimizer))
            return run()
        _move_parameters(optimizer)
        if not _holds_fakes(optimizer):
            self.steps_on_host += 1
            if not self.device.storages.intervals and self._is_training_on_host():
                self._on_refusal(ON_CPU)
            return run()
        self.event("optimizer")
        self._in_step = True
        try:
            with _no_profiling():
                result = run()
        finally:
            self._in_step = False
        self.event("step")
        self.steps[id(optimizer)].append(self.device.storages.clock)
        self.optimizer = optimizer
        if self._has_stepped_enough(optimizer):
            self._on_end(self)
        return result

    def _is_training_on_host(self):
        is_long = time.monotonic() - self._begun_s > SECONDS_ON_HOST
        return self.steps_on_host >= (STEPS_ON_HOST if is_long else STEPS_MOST)

    def _has_stepped_enough(self, optimizer):
        if len(self.steps[id(optimizer)]) >= STEPS_MOST:
            return True
        own = [one for one in self.living_optimizers() if id(one) not in self._inner]
        return all(len(self.steps[id(one)]) >= STEPS for one in own)

    def _ends_by_hand(self):
        return not self.living_optimizers() and len(self.hand_steps()) > STEPS

    def hand_steps(self):
        """Ticks of the first forward pass after each backward pass."""
        starts = [event.tick for event in self.events if event.name == "forward"]
        firsts = [next((s for s in starts if s >= end), None) for end in self.backward_ends]
        return sorted({tick for tick in firsts if tick is not None})

    def main_steps(self):
        """(optimizer, ticks at which iterations end): of the optimizer with the fewest steps.

        Among several with as many it is the one that steps last, at the end of the loop's body.
        """
        if self.seen["inference"]:
            return None, [event.tick for event in self.events if event.name == "loss"]
        stepped = [one for one in self.living_optimizers() if len(self.steps[id(one)]) >= STEPS]
        if not stepped:
            return None, self.hand_steps()[1:]
        main = min(stepped, key=lambda one: (len(self.steps[id(one)]), -self.steps[id(one)][-1]))
        return main, self.steps[id(main)]

    def counts(self):
        """What was seen so far, as a line for people."""
        steps = sum(map(len, self.steps.values()))
        if not self.device.storages.intervals:
            return "nothing is on the GPU yet" + (
                ": it trains on the CPU" * bool(self.steps_on_host)
            )
        text = (
            f"{_count(self.passes, 'forward pass', 'es')}, "
            f"{_count(self.backwards, 'backward pass', 'es')}, {_count(steps, 'optimizer step')}"
        )
        return text + (": inference?" if self.is_inference() else "")

    def progress(self):
        """Why the run's end is no result."""
        if any(self.steps.values()):
            return "the script ended after one step of its optimizer; two are needed"
        if self.steps_on_host:
            return ON_CPU
        if not self.device.storages.intervals:
            return "the script ended, and put nothing on the GPU"
        if self.backwards:
            return "the script ended without a step of an optimizer on the GPU"
        return "the script ended without training: no backward pass, no step of an optimizer"


def _count(number, name, plural="s"):
    return f"{number:,} {name}{'' if number == 1 else plural}"


def _takes_time_first(module):
    """Whether a layer's input has the time before the samples."""
    kinds = (torch.nn.MultiheadAttention, torch.nn.TransformerEncoderLayer)
    if isinstance(module, torch.nn.TransformerEncoderLayer):
        module = module.self_attn
    return isinstance(module, kinds) and not module.batch_first


def _holds_fakes(optimizer):
    groups = getattr(optimizer, "param_groups", [])
    return any(is_fake(p) for group in groups for p in group["params"])


def moved(parameter):
    """What became of a parameter that module.cuda() replaced."""
    while getattr(parameter, "_colloc_moved", None) is not None:
        parameter = parameter._colloc_moved
    return parameter


def _move_parameters(optimizer):
    """Follows parameters to the GPU that the optimizer was given before."""
    for group in optimizer.param_groups:
        for i, parameter in enumerate(group["params"]):
            there = moved(parameter)
            if there is not parameter:
                group["params"][i] = there
                if parameter in optimizer.state:
                    optimizer.state[there] = optimizer.state.pop(parameter)


# ---- hooks ----


def _patch_lazy_modules():
    """A layer whose sizes its first input tells moves to the GPU when it has them."""
    mixin = torch.nn.modules.lazy.LazyModuleMixin
    infer = mixin._infer_parameters

    @functools.wraps(infer)
    def inferred(self, module, *inputs):
        infer(self, module, *inputs)
        for function in module.__dict__.pop("_colloc_moves", []):
            module._apply(function)

    mixin._infer_parameters = inferred


def _applied(module, function, recurse=True):
    """nn.Module._apply; a parameter that moves is replaced, and shared ones stay shared."""
    for child in module.children() if recurse else ():
        child._apply(function)
    for name, parameter in module._parameters.items():
        if parameter is None:
            continue
        if is_lazy(parameter):
            module._colloc_moves = [*getattr(module, "_colloc_moves", []), function]
            continue
        with torch.no_grad():
            result = function(parameter)
            gradient = None if parameter.grad is None else function(parameter.grad)
        if result is parameter:
            continue
        there = moved(parameter)
        if there is parameter or there.dtype != result.dtype or is_fake(there) != is_fake(result):
            there = torch.nn.Parameter(result, parameter.requires_grad)
            parameter._colloc_moved = there
        if gradient is not None:
            there.grad = gradient
        module._parameters[name] = there
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = function(buffer)
    return module


def _patch_modules(training):
    call = torch.nn.Module.__call__

    @functools.wraps(call)
    def called(module, *args, **kwargs):
        return training.call_module(call, module, args, kwargs)

    @functools.wraps(_applied)
    def applied(module, *args, **kwargs):
        result = _applied(module, *args, **kwargs)
        for optimizer in filter(None, (reference() for reference in training.optimizers)):
            _move_parameters(optimizer)  # it may be older than the move
        return result

    torch.nn.Module.__call__ = called
    torch.nn.Module._apply = applied


def _wrap_step(kind, training):
    step = kind.step
    if getattr(step, "_colloc", False):
        return

    @functools.wraps(step)
    def stepped(optimizer, *args, **kwargs):
        return training.step(optimizer, lambda: step(optimizer, *args, **kwargs))

    stepped._colloc = True
    kind.step = stepped


def _patch_optimizers(training):
    initialize = torch.optim.Optimizer.__init__

    @functools.wraps(initialize)
    def initialized(optimizer, *args, **kwargs):
        initialize(optimizer, *args, **kwargs)
        _wrap_step(type(optimizer), training)
        training.add_optimizer(optimizer)

    torch.optim.Optimizer.__init__ = initialized
    for name in ("torch.utils._foreach_utils", "torch.optim.optimizer"):
        holder = sys.modules.get(name)
        kinds = getattr(holder, "_foreach_supported_types", None)
        if isinstance(kinds, list) and torch._subclasses.FakeTensor not in kinds:
            kinds.append(torch._subclasses.FakeTensor)


def _patch_backward(training):
    backward = torch.autograd.backward

    @functools.wraps(backward)
    def run(*args, **kwargs):
        training.backward(lambda: backward(*args, **kwargs))

    torch.autograd.backward = run


def _patch_autocast(training):
    """Autocast of CUDA is that of the CPU, with CUDA's lists (cuda_rules.py)."""
    kind = torch.amp.autocast_mode.autocast
    initialize = kind.__init__

    def initialized(self, device_type="cuda", dtype=None, enabled=True, cache_enabled=None):
        on_gpu = device_type == "cuda"
        wanted = dtype or (torch.float16 if on_gpu else torch.bfloat16)
        initialize(self, "cpu", torch.bfloat16, bool(enabled), cache_enabled)
        self.fast_dtype, self._enabled = _type_for_host(wanted), bool(enabled)
        if enabled and on_gpu:
            training.seen["autocast"] = str(wanted)[6:]

    kind.__init__ = initialized

    class CudaAutocast(kind):
        def __init__(self, enabled=True, dtype=None, cache_enabled=True):
            super().__init__("cuda", dtype, enabled, cache_enabled)

    for holder in (torch.cuda.amp, torch.cuda.amp.autocast_mode):
        holder.autocast = CudaAutocast
    enabled, dtype = _autocast_state()
    torch.is_autocast_enabled = lambda *_: enabled()
    torch.get_autocast_gpu_dtype = dtype
    if hasattr(torch, "get_autocast_dtype"):
        torch.get_autocast_dtype = lambda *_: dtype()


def _type_for_host(dtype):
    """Autocast's type; early versions know only bfloat16 on the CPU, which is as large."""
    before = torch.get_autocast_cpu_dtype()
    try:
        torch.set_autocast_cpu_dtype(dtype)
        return dtype
    except RuntimeError:
        return torch.bfloat16
    finally:
        torch.set_autocast_cpu_dtype(before)


def _autocast_state():
    """Functions that return whether autocast is on, and its type."""
    try:
        is_enabled, dtype = torch.is_autocast_enabled, torch.get_autocast_dtype
        is_enabled("cpu")
        return lambda: is_enabled("cpu"), lambda: dtype("cpu")
    except (TypeError, AttributeError):
        return torch.is_autocast_cpu_enabled, torch.get_autocast_cpu_dtype


def _patch_savers(training):
    """torch.compile runs the model as it is; checkpointing is noted."""
    if hasattr(torch, "compile"):

        def uncompiled(model=None, *_, **__):
            training.seen["compiled"] = True
            return model if model is not None else (lambda function: function)

        torch.compile = uncompiled
        torch.nn.Module.compile = lambda self, *_, **__: uncompiled(self) and None
    checkpoint = torch.utils.checkpoint.checkpoint

    @functools.wraps(checkpoint)
    def noted(*args, **kwargs):
        training.seen["checkpointing"] = True
        return checkpoint(*args, **kwargs)

    torch.utils.checkpoint.checkpoint = noted


def patch(training):
    """Puts the hooks in place, for the whole process."""
    importlib.import_module("torch.utils.checkpoint")

    _patch_modules(training)
    _patch_lazy_modules()
    _patch_optimizers(training)
    _patch_backward(training)
    _patch_autocast(training)
    _patch_savers(training)
