# SPDX-License-Identifier: Apache-2.0
"""A training task as the exporter runs it: a model, its batches, its loss, its optimizer."""
from dataclasses import dataclass
from typing import Callable, Optional

import torch

OPTIMIZERS = {
    "sgd": lambda parameters, **options: torch.optim.SGD(parameters, lr=0.01, **options),
    "momentum": lambda parameters, **options: torch.optim.SGD(
        parameters, lr=0.01, momentum=0.9, **options
    ),
    "adam": lambda parameters, **options: torch.optim.Adam(parameters, lr=1e-3, **options),
    "adamw": lambda parameters, **options: torch.optim.AdamW(parameters, lr=1e-3, **options),
}


def foreach_is_the_default():
    """On a GPU, since PyTorch 2.0."""
    return int(torch.__version__.split(".")[0]) >= 2


@dataclass
class Task:
    """A training task.

    make_batch(n): returns (inputs, target) on the CPU; inputs are positional arguments as a tuple
        or keyword arguments as a dictionary
    keeps_output: whether a name of the loop holds the model's output until the next forward pass,
        as after `output = model(x)`; a function that returns only the loss releases it before the
        backward pass
    """

    make_model: Callable
    make_batch: Callable
    loss: Optional[Callable] = None
    optimizer: str = "adam"
    precision: str = "fp32"
    name: str = "model"
    sequence_length: Optional[int] = None
    keeps_output: bool = True

    def make_optimizer(self, model):
        trainable = [p for p in model.parameters() if p.requires_grad]
        if callable(self.optimizer):
            return self.optimizer(trainable)
        return OPTIMIZERS[self.optimizer](trainable, foreach=foreach_is_the_default())


def call(model, inputs):
    return model(**inputs) if isinstance(inputs, dict) else model(*inputs)


def as_values(output):
    """What a model returned, where it is a plain object a dictionary of its attributes."""
    if isinstance(output, (torch.Tensor, dict)) or hasattr(output, "__iter__"):
        return output
    names = getattr(output, "__slots__", None) or vars(output)
    return {name: getattr(output, name, None) for name in names}


def first_tensor(output):
    """Logits, or the first value that a model returned."""
    if isinstance(output, torch.Tensor):
        return output
    output = as_values(output)
    for key in ("logits", "out", "prediction_logits", "last_hidden_state"):
        if isinstance(output, dict) and key in output:
            return output[key]
    values = output.values() if isinstance(output, dict) else output
    return first_tensor(next(v for v in values if v is not None))


def default_loss(output, target):
    """The loss of a training without an explicit one.

    The model's own when it returned one; cross-entropy when the target has classes; otherwise the
    mean of the output.
    """
    output = as_values(output)
    if isinstance(output, dict) and output.get("loss") is not None:
        return output["loss"], "own"
    logits = first_tensor(output)
    if target is None:
        return logits.float().mean(), "mean"
    if target.is_floating_point():
        return torch.nn.functional.mse_loss(logits.float(), target), "mse"
    if logits.dim() > 2 and target.dim() == logits.dim() - 1 and logits.shape[:-1] == target.shape:
        logits, target = logits.flatten(0, -2), target.flatten()
    return torch.nn.functional.cross_entropy(logits, target), "cross_entropy"
