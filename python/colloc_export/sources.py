# SPDX-License-Identifier: Apache-2.0
"""Makes the model and its batches that the command line names."""
import importlib
import os
from dataclasses import dataclass

import torch

from .user_code import Mistake, load


@dataclass
class Input:
    """--input 3x224x224, --input 512:int64:30522 (values below 30522), --input NAME=128:int64."""

    name: str
    shape: tuple
    dtype: torch.dtype
    below: int

    @classmethod
    def parse(cls, text):
        name, _, rest = text.rpartition("=")
        shape, dtype, below = [*rest.split(":"), "", ""][:3]
        try:
            sizes = tuple(int(size) for size in shape.split("x") if size)
            kind = getattr(torch, dtype or "float32")
            return cls(name, sizes, kind, int(below or 1000))
        except (ValueError, AttributeError):
            raise Mistake(
                f"--input {text}: expected sizes without the batch, as 3x224x224 or 512:int64:30522"
            ) from None

    def batch(self, n):
        if self.dtype.is_floating_point:
            return torch.randn(n, *self.shape, dtype=self.dtype)
        return torch.randint(0, self.below, (n, *self.shape), dtype=self.dtype)


def _from_transformers(name):
    transformers = importlib.import_module("transformers")
    if hasattr(transformers, name):
        model = getattr(transformers, name)
        return lambda: model(model.config_class())
    if not os.path.exists(name):
        raise Mistake(f"transformers:{name}: neither a model class nor a config.json of one")
    config = transformers.AutoConfig.from_pretrained(name)
    return lambda: getattr(transformers, config.architectures[0])(config)


def maker_of(source):
    """Returns the function that makes the model.

    source: "timm:resnet50", "torchvision:vit_b_16", "transformers:GPT2LMHeadModel",
        "module:function" or "file.py:function"
    """
    library, _, name = source.rpartition(":")
    if not library:
        raise Mistake(
            f"{source}: expected MODULE:FUNCTION, FILE.py:FUNCTION, timm:NAME, "
            "torchvision:NAME or transformers:CLASS"
        )
    try:
        if library == "timm":
            timm = importlib.import_module("timm")
            return lambda: timm.create_model(name, pretrained=False)
        if library == "torchvision":
            make = getattr(importlib.import_module("torchvision.models"), name)
            return lambda: make(weights=None)
        if library == "transformers":
            return _from_transformers(name)
        return getattr(load(library), name)
    except (ImportError, AttributeError, FileNotFoundError) as error:
        raise Mistake(f"{source}: {error}") from None


def batch_maker(inputs, classes, labels):
    """Returns a function from the batch size to a batch.

    inputs: named ones are passed by name
    labels: pass the target to the model too, as transformers' models need it
    """
    if not inputs:
        raise Mistake(
            "say what the model is fed: --input 3x224x224, or --input input_ids=512:int64:30522"
        )

    def make(n):
        values = [one.batch(n) for one in inputs]
        given = (
            {one.name: value for one, value in zip(inputs, values)}
            if inputs[0].name
            else tuple(values)
        )
        if labels:
            return {**given, "labels": values[0].clone()}, None
        return given, torch.randint(0, classes, (n,)) if classes else None

    return make
