# SPDX-License-Identifier: Apache-2.0
"""The published baseline FakeTensor: peak of live fake tensors in one forward and backward pass."""
import contextlib
import time

import torch

from .environment import Cpu, Fake
from .task import call, default_loss
from .tracker import Storages, Tracker, tensors_in


def _peak(task, batch, environment):
    with environment.active():
        storages = Storages()
        model = environment.model(task.make_model).train()
        inputs, target = environment.batch(task.make_batch, batch)
        for tensor in [*model.parameters(), *model.buffers(), *tensors_in((inputs, target))]:
            storages.add(tensor, "param")
        autocast = (
            torch.autocast("cpu", dtype=torch.bfloat16)
            if task.precision == "amp"
            else contextlib.nullcontext()
        )
        with Tracker(storages, lambda *_: None):
            with autocast:
                loss, _ = (task.loss or default_loss)(call(model, inputs), target)
            loss.backward()
        storages.collect()
        storages.close()
        return storages.peak_bytes()


def fake_peak(task, batch):
    """The result of `--fake`. If the model does not run on fake tensors, it is a line through the
    peaks on the CPU at batch 2 and 4.
    """
    warnings, started, method = [], time.monotonic(), "fake"
    try:
        peak = _peak(task, batch, Fake())
    except Exception as error:
        reason = (str(error).strip().splitlines() or [""])[0][:200]
        warnings.append(f"does not run on fake tensors ({type(error).__name__}: {reason})")
        method = "cpu"
        low, high = (_peak(task, n, Cpu()) for n in (2, 4))
        peak = low + (high - low) * (batch - 2) // 2
    return {
        "colloc_faketensor": 1,
        "model": task.name,
        "framework": {"name": "pytorch", "version": torch.__version__},
        "batch": batch,
        "method": method,
        "peak_bytes": peak,
        "seconds": round(time.monotonic() - started, 3),
        "warnings": warnings,
    }
