# SPDX-License-Identifier: Apache-2.0
"""Trains configurations for a few steps each, for a supervisor. They exchange JSON lines by pipes.

In:   {"row": ..., "limit_bytes": ..., "observed": ...} for each run, and "go" after each of the two
      events below; the worker ends when the pipe is closed
Out:  when the run is observed, {"event": "steady"} and {"event": "measure"} at the begin and the
      end of the time that the supervisor measures; then {"event": "result", ...}
"""
import contextlib
import gc
import json
import os
import signal
import time

import torch

from colloc_export.layers import Layers
from colloc_export.task import call, default_loss
from .names import model_key
from .plan import task_of

MIB = 1 << 20
STEPS_BESIDE_OTHERS, STEPS_ALONE_MIN, SECONDS_ALONE = 3, 6, 1.5


class Line:
    """The pipe pair to the supervisor."""

    def __init__(self, out, back):
        self.out, self.back = out, os.fdopen(back)

    def say(self, **message):
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self.out, data) :]

    def hear(self):
        """The next message; None at the end."""
        text = self.back.readline()
        return json.loads(text) if text else None


def skip_random_initialisation():
    """Leaves weights uninitialised on the CPU, once per process.

    They are drawn on the GPU after the move: drawing 10^9 numbers on a CPU takes longer than the
    run.
    """
    for name in ("normal_", "uniform_", "erfinv_", "trunc_normal_"):
        original = getattr(torch.Tensor, name, None)
        if original:
            setattr(torch.Tensor, name, _unless_large(original))


def _unless_large(original):
    def method(self, *args, **kwargs):
        return (
            self
            if self.device.type == "cpu" and self.numel() > 10_000
            else original(self, *args, **kwargs)
        )

    return method


def _draw_weights(model):
    """In place, so that no memory is allocated."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.02)


def _place(model, device):
    """Moves the model as `model.to(device)` does, block by block, without copying large parameters.

    Their values are drawn on the device. Copying gigabytes of uninitialised memory would take the
    host's memory, and longer than the run.
    """
    large = {id(parameter) for parameter in model.parameters() if parameter.numel() > 10_000}

    def there(tensor):
        return (
            torch.empty_like(tensor, device=device)
            if id(tensor) in large and tensor.device.type != device
            else tensor.to(device)
        )

    model._apply(there)


class Training:
    """The loop of a typical training script. It is built on the CPU; `place` moves it."""

    def __init__(self, row, device):
        self.task, self.device, self.batch = task_of(row), device, row["batch"]
        self.model = self.task.make_model()
        if hasattr(self.model, "config"):
            self.model.config.use_cache = False
        self.source = self.task.make_batch(self.batch)
        self.inputs = self.target = self.output = self.loss = None

    def place(self):
        """Moves the model to the device. Returns the training."""
        _place(self.model.train(), self.device)
        _draw_weights(self.model)
        options = {} if self.device == "cuda" else {"foreach": False}
        self.optimizer = self._optimizer(options)
        self.layers = Layers(self.model)
        return self

    def _optimizer(self, options):
        kinds = {
            "sgd": (torch.optim.SGD, {}),
            "momentum": (torch.optim.SGD, {"momentum": 0.9}),
            "adam": (torch.optim.Adam, {}),
            "adamw": (torch.optim.AdamW, {}),
        }
        kind, own = kinds[self.task.optimizer]
        trainable = [p for p in self.model.parameters() if p.requires_grad]
        return kind(trainable, lr=1e-4, **own, **options)

    def _to_device(self, value):
        if isinstance(value, torch.Tensor):
            return value.to(self.device)
        if isinstance(value, (list, tuple)):
            return type(value)(self._to_device(item) for item in value)
        return (
            {key: self._to_device(item) for key, item in value.items()}
            if isinstance(value, dict)
            else value
        )

    def forward(self, first=False):
        self.inputs, self.target = self._to_device(self.source)
        autocast = (
            torch.autocast(self.device, dtype=torch.bfloat16)
            if self.task.precision == "amp"
            else contextlib.nullcontext()
        )
        with self.layers if first else contextlib.nullcontext(), autocast:
            self.output = call(self.model, self.inputs)
            self.loss, _ = (self.task.loss or default_loss)(self.output, self.target)

    def update(self):
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def step(self, first=False):
        self.forward(first)
        self.loss.backward()
        self.update()

    def finish(self):
        if self.device == "cuda":
            torch.cuda.synchronize()


def _memory():
    if not torch.cuda.is_initialized():
        return {}
    stats = torch.cuda.memory_stats()
    peak = {
        key: stats.get(f"{name}.all.peak", 0) / MIB
        for key, name in (
            ("allocated_mib", "allocated_bytes"),
            ("reserved_mib", "reserved_bytes"),
            ("active_mib", "active_bytes"),
            ("requested_mib", "requested_bytes"),
            ("inactive_mib", "inactive_split_bytes"),
        )
    }
    return {
        **peak,
        "reserved_end_mib": stats.get("reserved_bytes.all.current", 0) / MIB,
        "segments": stats.get("segment.all.peak", 0),
        "alloc_retries": stats.get("num_alloc_retries", 0),
    }


def _layers_of(training):
    """Rows of the layers.

    name, type, depth, leaf, shared, arguments, shape, activations, parameters, trainable,
    multiply-adds, in place
    """
    keys = (
        "name",
        "type",
        "depth",
        "leaf",
        "shared",
        "args",
        "shape",
        "activations",
        "parameters",
        "trainable",
        "in_place",
    )
    return {
        "keys": keys,
        "batch": training.batch,
        "rows": [[row[key] for key in keys] for row in training.layers.rows],
        "parameters": sum(p.numel() for p in training.model.parameters()),
        "trainable": sum(p.numel() for p in training.model.parameters() if p.requires_grad),
        "parameter_bytes": sum(p.numel() * p.element_size() for p in training.model.parameters()),
        "buffer_bytes": sum(b.numel() * b.element_size() for b in training.model.buffers()),
    }


def _timed_steps(training, alone):
    times, started = [], time.monotonic()
    least = STEPS_ALONE_MIN if alone else STEPS_BESIDE_OTHERS - 2
    while len(times) < least or (alone and time.monotonic() - started < SECONDS_ALONE):
        before = time.monotonic()
        training.step()
        training.finish()
        times.append(time.monotonic() - before)
    return sorted(times)


def _train(order, device, line, writer, result):
    row, limit_bytes = order["row"], order["limit_bytes"]
    if device == "cuda":
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, limit_bytes / total))
    result["stage"], started = "build", time.monotonic()
    training = Training(row, device).place()
    result["stage"], result["build_s"] = "first step", round(time.monotonic() - started, 3)
    training.step(first=True)
    training.finish()
    writer.layers(model_key(row), _layers_of(training))
    result["stage"] = "steps"
    training.step()
    training.finish()
    if row["alone"]:
        line.say(event="steady")
        line.hear()
    times = _timed_steps(training, row["alone"])
    result["steps"] = 2 + len(times)
    result["step_ms"] = 1000 * times[len(times) // 2]
    result["step_ms_min"] = 1000 * times[0]
    if order["observed"]:
        line.say(event="measure")
        line.hear()
    result["stage"] = "done"


def _is_out_of_memory(error):
    return (
        isinstance(error, getattr(torch.cuda, "OutOfMemoryError", MemoryError))
        or "out of memory" in str(error).lower()
    )


def _attempt(order, device, line, writer):
    result, status, started = {"stage": "start"}, "ok", time.monotonic()
    torch.manual_seed(1)
    try:
        _train(order, device, line, writer, result)
    except Exception as error:
        status = "oom" if _is_out_of_memory(error) else "error"
        result["error"] = f"{type(error).__name__}: {error}"[:300]
    result.update(
        _memory() if device == "cuda" else {}, seconds=round(time.monotonic() - started, 3)
    )
    return {"status": status, **result}


def reset_allocator():
    """Makes the allocator as in a new process: no cached blocks, no workspaces, no peaks.

    Returns the MiB that remain.
    """
    gc.collect()
    if not torch.cuda.is_initialized():
        return 0
    with contextlib.suppress(AttributeError):
        torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()
    return torch.cuda.memory_reserved() / MIB


def work(device, out, back, seconds, writer):
    """Makes runs until the pipe is closed, then ends the process.

    writer: writes the models' layers
    """
    line = Line(out, back)
    torch.set_num_threads(1)
    runs = 0
    while True:
        order = line.hear()
        if order is None:
            os._exit(0)
        left_over = reset_allocator()
        signal.alarm(seconds)
        result = _attempt(order, device, line, writer)
        signal.alarm(0)
        line.say(event="result", runs_before=runs, left_over_mib=left_over, **result)
        runs += 1
