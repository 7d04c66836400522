# SPDX-License-Identifier: Apache-2.0
"""What DeepSpeed's modules have for a script that is followed: by the module's name.

`of("deepspeed")["initialize"]` makes the engine of zero.py from a configuration as zero_config.py
reads it. `follow` says first for which training.
"""
import logging
import os
import types

import torch
import torch.utils.checkpoint

from . import deepspeed_library, zero, zero_config
from .ending import CannotFollow, theirs
from .stand_ins import Context, nothing


class _Followed:
    training = group = None
    is_divided = False  # weights are divided as they are made


def follow(training, group):
    _Followed.training, _Followed.group = training, group


# ---- optimizers ----


class _Fused(torch.optim.Optimizer):
    """One kernel steps over all tensors, in place.

    STATES: tensors of a parameter's size that it keeps, in 32 bit
    """

    STATES: tuple = ("exp_avg", "exp_avg_sq")

    def __init__(self, params, lr=1e-3, **options):
        super().__init__(params, {"lr": lr, **options})

    @torch.no_grad()
    def step(self, closure=None, **_):
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and not self.state[parameter]:
                    self.state[parameter] = {
                        name: torch.zeros_like(parameter, dtype=torch.float32)
                        for name in self.STATES
                    }
        return loss


class FusedAdam(_Fused):
    pass


class DeepSpeedCPUAdam(_Fused):
    pass


class FusedLamb(_Fused):
    pass


class FusedLion(_Fused):
    STATES = ("exp_avg",)


class DeepSpeedCPULion(FusedLion):
    pass


class DummyOptim:
    """accelerate's stand-in for the optimizer of the configuration."""


def _optimizer_of_config(part, hosts_states):
    """Returns a function of parameters that makes the optimizer that the configuration names."""
    name, options = str(part.get("type", "")), dict(part.get("params") or {})
    for key, value in options.items():
        if value == "auto":
            raise theirs(
                ValueError(
                    f"DeepSpeed's configuration: optimizer.params.{key} is auto, which only "
                    "transformers and accelerate replace"
                )
            )
    kinds = {"lamb": FusedLamb, "lion": DeepSpeedCPULion if hosts_states else FusedLion}
    kind = kinds.get(name.lower())
    if name.lower() in ("adam", "adamw"):
        in_torch, mode = options.pop("torch_adam", False), options.pop("adam_w_mode", True)
        options.pop("fp32_optimizer_states", None)
        if in_torch:
            is_w = name.lower() == "adamw" or mode
            kind = torch.optim.AdamW if is_w else torch.optim.Adam
        else:
            kind = DeepSpeedCPUAdam if hosts_states else FusedAdam
    if kind is None and ("onebit" in name.lower() or name.lower() in ("zerooneadam", "muon")):
        raise CannotFollow(
            f"DeepSpeed's optimizer {name} is not imitated",
            "give the print(model) instead, with --gpus, --parallel and --optimizer",
        )
    kind = kind or getattr(torch.optim, name, None)
    if kind is None:
        raise theirs(AttributeError(f"module 'torch.optim' has no attribute {name!r}"))
    return lambda parameters: kind(parameters, **options)


def _optimizer_maker(optimizer, parameters, settings):
    """A function of the model on the GPU that returns its optimizer, or None."""

    def make(module):
        given = list(parameters) if parameters is not None else list(module.parameters())
        if isinstance(optimizer, torch.optim.Optimizer):
            return optimizer
        if callable(optimizer):
            return optimizer(given)
        if settings.optimizer.get("type"):
            return _optimizer_of_config(settings.optimizer, settings.hosts_states)(
                [zero.moved(one) if isinstance(one, torch.Tensor) else one for one in given]
            )
        return None

    return make


class _Schedule:
    """A learning rate takes no memory."""

    def __init__(self, optimizer=None, *_, **__):
        self.optimizer = optimizer

    def step(self, *_, **__):
        pass

    def get_lr(self):
        return self.get_last_lr()

    def get_last_lr(self):
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self):
        return {}

    def load_state_dict(self, *_):
        pass


SCHEDULES = {
    name: type(name, (_Schedule,), {})
    for name in ("LRRangeTest", "OneCycle", "WarmupLR", "WarmupDecayLR", "WarmupCosineLR")
}


def _schedule_of(given, part, optimizer):
    """The schedule of the learning rate: the caller's, or the one that the configuration names.

    given: a schedule, or a function of the optimizer within DeepSpeed's that makes one; None: none
    part: `scheduler` of the configuration
    """
    if callable(given) and not hasattr(given, "step"):
        return given(optimizer.inner if isinstance(optimizer, zero.Optimizer) else optimizer)
    name = part.get("type")
    if given is not None or not name:
        return given
    if name not in SCHEDULES and not hasattr(torch.optim.lr_scheduler, str(name)):
        raise theirs(
            AssertionError(f"DeepSpeed's configuration: scheduler.type is {name!r}, not known")
        )
    return SCHEDULES.get(name, _Schedule)(optimizer)


# ---- the functions of the package ----


def initialize(
    args=None,
    model=None,
    optimizer=None,
    model_parameters=None,
    training_data=None,
    lr_scheduler=None,
    *_,
    collate_fn=None,
    config=None,
    config_params=None,
    **__,
):
    """deepspeed.initialize: engine, optimizer, data loader and schedule."""
    if model is None:
        raise theirs(AssertionError("deepspeed.initialize requires a model"))
    training, group = _Followed.training, _Followed.group
    init_distributed()
    sources = (config, config_params, getattr(args, "deepspeed_config", None))
    source = next((one for one in sources if one is not None), None)
    settings = zero_config.settings_of(zero_config.read(source), max(group.world_size, 1))
    if deepspeed_library.FINDER.is_used:
        training.device.note(
            "DeepSpeed is not installed here: it is imitated as of "
            f"{deepspeed_library.VERSION}, and was not compared with a GPU"
        )
    if type(optimizer).__name__ == "DummyOptim":
        model_parameters, optimizer = model_parameters or optimizer.params, None
    make = _optimizer_maker(optimizer, model_parameters, settings)
    engine = zero.engine_of(training, model, make, settings, group, _Followed.is_divided)
    group.note_nccl()
    engine.lr_scheduler = _schedule_of(lr_scheduler, settings.scheduler, engine.optimizer)
    if training_data is not None:
        engine.training_dataloader = torch.utils.data.DataLoader(
            training_data, settings.batch, shuffle=True, collate_fn=collate_fn
        )
    return engine, engine.optimizer, engine.training_dataloader, engine.lr_scheduler


def init_distributed(dist_backend=None, *_, **__):
    """Without a launcher's environment there is one process, as DeepSpeed finds out by MPI."""
    for name, value in (("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "1")):
        os.environ.setdefault(name, value)
    if not _Followed.group.is_initialized:
        _Followed.group.init(dist_backend)


def add_config_arguments(parser):
    group = parser.add_argument_group("DeepSpeed", "DeepSpeed configurations")
    group.add_argument("--deepspeed", default=False, action="store_true")
    group.add_argument("--deepspeed_config", default=None, type=str)
    return parser


def init_inference(*_, **__):
    raise CannotFollow(
        "deepspeed.init_inference replaces layers by its own kernels", "give --memory instead"
    )


class PipelineModule:
    def __init__(self, *_, **__):
        raise CannotFollow(
            "DeepSpeed's PipelineModule divides the model into stages, and one process is followed",
            "give its print(model) instead, with --input, --gpus and --parallel=pp",
        )


class _Init(Context):
    """Weights are made whole in the host's memory here, and divided by `initialize`."""

    def __init__(self, *_, enabled=True, **__):
        _Followed.is_divided = _Followed.is_divided or enabled


def _checkpoint(function, *args):
    return torch.utils.checkpoint.checkpoint(function, *args)


def _accelerator():
    return types.SimpleNamespace(
        device_name=lambda index=None: "cuda" if index is None else f"cuda:{index}",
        current_device_name=lambda: "cuda:0",
        communication_backend_name=lambda: "nccl",
        is_available=lambda: True,
        device_count=torch.cuda.device_count,
        current_device=torch.cuda.current_device,
        set_device=nothing,
        empty_cache=nothing,
        synchronize=nothing,
        manual_seed_all=nothing,
        memory_allocated=lambda *_: 0,
        max_memory_allocated=lambda *_: 0,
        is_bf16_supported=lambda: True,
        is_fp16_supported=lambda: True,
        random=lambda: torch.random,
    )


def _of_distributed(name):
    return getattr(torch.distributed, name)


def of(name):
    """The members of a module, by name."""
    zero_members = {
        "Init": _Init,
        "GatheredParameters": Context,
        "register_external_parameter": nothing,
        "unregister_external_parameter": nothing,
    }
    return {
        "deepspeed": {
            "initialize": initialize,
            "init_distributed": init_distributed,
            "init_inference": init_inference,
            "add_config_arguments": add_config_arguments,
            "DeepSpeedEngine": zero.Engine,
            "PipelineModule": PipelineModule,
        },
        "deepspeed.zero": zero_members,
        "deepspeed.comm": {"init_distributed": init_distributed, "__getattr__": _of_distributed},
        "deepspeed.accelerator": {"get_accelerator": _accelerator},
        "deepspeed.checkpointing": {
            "checkpoint": _checkpoint,
            "configure": nothing,
            "is_configured": lambda: True,
            "reset": nothing,
        },
        "deepspeed.ops.adam": {"FusedAdam": FusedAdam, "DeepSpeedCPUAdam": DeepSpeedCPUAdam},
        "deepspeed.ops.lamb": {"FusedLamb": FusedLamb},
        "deepspeed.ops.lion": {"FusedLion": FusedLion, "DeepSpeedCPULion": DeepSpeedCPULion},
        "deepspeed.pipe": {"PipelineModule": PipelineModule},
        "deepspeed.runtime.lr_schedules": {
            **SCHEDULES,
            "VALID_LR_SCHEDULES": list(SCHEDULES),
        },
        "deepspeed.runtime.zero.partition_parameters": {
            **zero_members,
            "ZeroParamStatus": types.SimpleNamespace(AVAILABLE=1, NOT_AVAILABLE=2, INFLIGHT=3),
        },
        "deepspeed.utils.logging": {"logger": logging.getLogger("DeepSpeed")},
        "deepspeed.utils": {
            "logger": logging.getLogger("DeepSpeed"),
            "log_dist": nothing,
            "set_z3_leaf_modules": nothing,
            "safe_get_full_grad": nothing,
        },
    }.get(name, {})
