# SPDX-License-Identifier: Apache-2.0
"""The GPU memory that a training of a `torch.nn.Module` will need, without a GPU.

`colloc_export` runs a copy of the module on tensors that have shapes and no data; the program
`colloc` estimates from what was allocated.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from typing import Any, Dict, Optional


def run_colloc(program: str, path: str, gpu: Optional[str]) -> Dict[str, Any]:
    """What `colloc estimate --json` prints of an export. Raises ValueError with its message."""
    command = [program, "estimate", "--json", f"--export={path}"]
    if gpu is not None:
        command.append(f"--gpu={gpu}")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr.strip() or f"{program} ended with status {done.returncode}")
    return json.loads(done.stdout)


def estimate(
    module: Any,
    inputs: Any,
    target: Any = None,
    *,
    batch: Optional[int] = None,
    gpu: Optional[str] = None,
    program: str = "colloc",
    **training: Any,
) -> Dict[str, Any]:
    """Estimates the GPU memory of training a module.

    module: a torch.nn.Module on any device; it is copied, and stays as it is.
    inputs, target: an example batch of any size: a tensor, a tuple of tensors, or, for keyword
        arguments of the module, a dictionary. Without a target the module returns its loss, or the
        mean of its output is taken.
    batch: how many samples a batch of the training has; None: as many as the example.
    gpu: a kind such as H100, L40S or RTX-3090, or as nvidia-smi names it; None: A100.
    program: the command line of colloc, as a path or a name on PATH.
    training: loss (a function of output and target), optimizer (sgd, momentum, adam, the default,
        or adamw), precision (fp32, the default, or amp).

    Returns the object of `colloc estimate --json`: `reserve_mib` is what to submit with, and
    `warnings` are sentences for people. Raises ImportError without PyTorch, FileNotFoundError
    without the program, ValueError or TypeError for arguments that cannot be, and what the module
    raises when it runs neither on fake tensors nor on the CPU.
    """
    from colloc_export import export
    from colloc_export.module import batch_of, task_of_module

    task = task_of_module(module, inputs, target, **training)
    size = batch_of((inputs, target)) if batch is None else batch
    if size < 1:
        raise ValueError(f"batch={size}: must be at least 1")
    with tempfile.TemporaryDirectory(prefix="colloc-estimate-") as folder:
        path = os.path.join(folder, "export.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(export(task, size), file)
        return run_colloc(program, path, gpu)
