# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed's configuration: a dictionary, a file of JSON, or JSON in base64.

Names and defaults are those of deepspeed/runtime/config.py and zero/config.py (0.19). As there, a
member of `zero_optimization`, `fp16` or `bf16` that is "auto" has its default; transformers and
accelerate replace "auto" before. What DeepSpeed refuses is refused here with the same class of
error, as the script's own.

Example: {"zero_optimization": {"stage": 2}, "bf16": {"enabled": true},
"train_micro_batch_size_per_gpu": 8} is stage 2 in 16 bit, with a bucket of 500,000,000 gradients.
"""
import base64
import binascii
import collections
import json
import os
import re

import torch

from .ending import theirs

STAGES = (0, 1, 2, 3)
DEVICES = (None, "none", "cpu", "nvme")

Settings = collections.namedtuple(
    "Settings",
    "stage dtype gradient_dtype batch accumulation bucket buckets contiguous sub_group prefetch "
    "reuse hosts_states hosts_parameters optimizer scheduler",
)

# What is in a string stays; comments go, then a comma before a closing bracket (hjson).
_COMMENTS = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|#[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMAS = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')


def _parse(text, where):
    for extras in (_COMMENTS, _COMMAS):
        text = extras.sub(lambda match: match.group(1) or "", text)
    try:
        value = json.loads(text)
    except ValueError as error:
        raise theirs(
            ValueError(f"DeepSpeed's configuration {where} is not JSON: {error}")
        ) from None
    if not isinstance(value, dict):
        raise theirs(ValueError(f"DeepSpeed's configuration {where} is not an object of JSON"))
    return value


def read(source):
    """The configuration as a dictionary.

    source: a dictionary, the path of a file, or JSON in base64
    """
    if source is None:
        raise theirs(
            AssertionError(
                "DeepSpeed's configuration is missing: give config= or --deepspeed_config"
            )
        )
    if isinstance(source, dict):
        return source
    if hasattr(source, "config") and isinstance(source.config, dict):  # HfDeepSpeedConfig
        return source.config
    path = os.fspath(source) if isinstance(source, os.PathLike) else source
    if isinstance(path, str) and os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            return _parse(file.read(), path)
    try:
        return _parse(base64.urlsafe_b64decode(path).decode(), "in base64")
    except (binascii.Error, UnicodeDecodeError, AttributeError, TypeError, ValueError):
        raise theirs(
            ValueError(
                f"DeepSpeed's configuration {source!r} is no file, no dictionary, and no base64 "
                "of one"
            )
        ) from None


def _part(config, name):
    part = config.get(name)
    if part is None or part == "auto":
        return {}
    if not isinstance(part, dict):
        raise theirs(ValueError(f"DeepSpeed's configuration: {name} is not an object"))
    return part


def _number(part, name, usual, least=0):
    """A whole number, which may be written as 5e8."""
    value = part.get(name, usual)
    if value is None or value == "auto":
        return usual
    try:
        number = int(float(value)) if not isinstance(value, bool) else None
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or number < least:
        raise theirs(ValueError(f"DeepSpeed's configuration: {name} is {value!r}, not a number"))
    return number


def _truth(part, name, usual=False):
    value = part.get(name, usual)
    return usual if value in (None, "auto") else bool(value)


def _device(part, name):
    value = _part(part, name).get("device")
    if value not in DEVICES:
        raise theirs(
            ValueError(
                f"DeepSpeed's configuration: {name}.device is {value!r}, not none, cpu or nvme"
            )
        )
    return value not in (None, "none")


def _dtype(config):
    half = _truth(_part(config, "fp16"), "enabled")
    brain = any(_truth(_part(config, name), "enabled") for name in ("bf16", "bfloat16"))
    if half and brain:
        raise theirs(
            AssertionError("DeepSpeed's configuration: bfloat16 and fp16 modes cannot be both on")
        )
    return torch.float16 if half else torch.bfloat16 if brain else torch.float32


def _gradient_dtype(config, dtype):
    names = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
    name = _part(config, "data_types").get("grad_accum_dtype")
    if name in (None, "auto"):
        return dtype
    if name not in names:
        raise theirs(ValueError(f"DeepSpeed's configuration: grad_accum_dtype is {name!r}"))
    return names[name]


def _batches(config, world):
    """(samples of a forward pass on one GPU, backward passes for one step)."""
    names = "train_batch_size train_micro_batch_size_per_gpu gradient_accumulation_steps".split()
    given = {}
    for name in names:
        value = config.get(name)
        if value is None:
            continue
        if value == "auto":
            raise theirs(
                ValueError(
                    f"DeepSpeed's configuration: {name} is auto, which only transformers and "
                    "accelerate replace"
                )
            )
        given[name] = _number(config, name, 0, least=1)
    whole, micro, passes = (given.get(name) for name in names)
    if whole is None and micro is None:
        raise theirs(
            AssertionError(
                "DeepSpeed's configuration: give train_batch_size or train_micro_batch_size_per_gpu"
            )
        )
    passes = passes or (whole // (micro * world) if whole and micro else 1)
    micro = micro or whole // (world * passes)
    if micro < 1 or passes < 1 or (whole and whole != micro * passes * world):
        raise theirs(
            AssertionError(
                f"DeepSpeed's configuration: train_batch_size is {whole}, not {micro} for a GPU * "
                f"{passes} passes * {world} processes"
            )
        )
    return micro, passes


def settings_of(config, world):
    """What the configuration says.

    world: processes of the training
    """
    zero = config.get("zero_optimization")
    zero = (
        {"stage": 1 if zero else 0}
        if isinstance(zero, bool)
        else _part(config, "zero_optimization")
    )
    stage = _number(zero, "stage", 0)
    if stage not in STAGES:
        raise theirs(
            ValueError(
                f"DeepSpeed's configuration: zero_optimization.stage is {zero['stage']!r}, "
                "not 0, 1, 2 or 3"
            )
        )
    hosts_states = _device(zero, "offload_optimizer") or _truth(zero, "cpu_offload")
    hosts_parameters = _device(zero, "offload_param") or _truth(zero, "cpu_offload_params")
    if hosts_parameters and stage != 3:
        raise theirs(
            AssertionError("DeepSpeed's configuration: offload_param is only for stage 3 of ZeRO")
        )
    dtype = _dtype(config)
    micro, passes = _batches(config, world)
    doubles = _truth(zero, "overlap_comm", stage == 3) and stage < 3
    return Settings(
        stage=stage,
        dtype=dtype,
        gradient_dtype=_gradient_dtype(config, dtype),
        batch=micro,
        accumulation=passes,
        bucket=_number(zero, "reduce_bucket_size", 500_000_000),
        buckets=2 if doubles else 1,
        contiguous=_truth(zero, "contiguous_gradients", True) or hosts_states,
        sub_group=_number(zero, "sub_group_size", 1_000_000_000, least=1),
        prefetch=_number(zero, "stage3_prefetch_bucket_size", 50_000_000),
        reuse=_number(zero, "stage3_max_reuse_distance", 1_000_000_000),
        hosts_states=hosts_states,
        hosts_parameters=hosts_parameters,
        optimizer=_part(config, "optimizer"),
        scheduler=_part(config, "scheduler"),
    )
