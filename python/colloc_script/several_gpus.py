# SPDX-License-Identifier: Apache-2.0
"""One rank of a training on several GPUs: torch.distributed without its peers.

Collective operations return at once, and leave tensors as they are. DistributedDataParallel holds
the buckets in which it sums gradients: a copy of them, unless they are views of the buckets.
"""
import contextlib
import importlib
import math
import os
import sys
import types

import torch

from . import after_import, deepspeed_library, sharded
from .device import GPU
from .stand_ins import nothing

BUCKET_BYTES = 25 << 20  # DistributedDataParallel's default


class _Work:
    """A collective operation that has ended."""

    def wait(self, *_, **__):
        return True

    def is_completed(self):
        return True

    def get_future(self):
        return types.SimpleNamespace(
            wait=nothing, then=lambda function: function, done=lambda: True
        )


def _number(name, usual):
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else usual


class _Group:
    """The process group, of which this process is one rank."""

    def __init__(self, training):
        self._training = training
        self.is_initialized, self.backend = False, "nccl"
        self.world_size, self.rank = 1, 0

    def init(self, backend=None, *_, world_size=-1, rank=-1, **__):
        self.is_initialized = True
        asked = str(backend or "nccl").lower()  # also "cpu:gloo,cuda:nccl"
        self.backend = "nccl" if "nccl" in asked else asked
        self.world_size = world_size if world_size > 0 else _number("WORLD_SIZE", 1)
        self.rank = rank if rank >= 0 else _number("RANK", 0)
        if self.world_size > 1:
            self.note_nccl()

    def note_nccl(self):
        """Gradients are exchanged: by NCCL, unless the script names another library alone."""
        if self.backend == "nccl":
            self._training.seen["processes"] = max(self.world_size, 1)

    def destroy(self, *_, **__):
        self.is_initialized = False

    def gather(self, outputs, tensor=None, *_, **__):
        for output in outputs if isinstance(tensor, torch.Tensor) else ():
            output.copy_(tensor)
        return _Work()

    def gather_objects(self, outputs, value=None, *_, **__):
        outputs[:] = [value] * len(outputs)


def _patch_distributed(group):
    distributed = torch.distributed
    answers = {
        "is_available": lambda: True,
        "is_nccl_available": lambda: True,
        "is_initialized": lambda: group.is_initialized,
        "init_process_group": group.init,
        "destroy_process_group": group.destroy,
        "get_rank": lambda *_: group.rank,
        "get_world_size": lambda *_: group.world_size,
        "get_backend": lambda *_: group.backend,
        "new_group": nothing,
        "barrier": nothing,
        "monitored_barrier": nothing,
        "all_gather": group.gather,
        "all_gather_object": group.gather_objects,
        "broadcast_object_list": nothing,
    }
    for name in ("all_reduce", "broadcast", "reduce", "send", "recv", "isend", "irecv"):
        answers[name] = lambda *_, **__: _Work()
    for name in ("all_gather_into_tensor", "reduce_scatter", "reduce_scatter_tensor", "scatter"):
        answers[name] = lambda *_, **__: _Work()
    for name, answer in answers.items():
        setattr(distributed, name, answer)


def _data_parallel(training, group):
    class DistributedDataParallel(torch.nn.Module):
        """The model, and the buckets of its gradients."""

        def __init__(self, module, *_, gradient_as_bucket_view=False, bucket_cap_mb=None, **__):
            super().__init__()
            self.module = module
            self.device, self.require_backward_grad_sync = GPU, True
            training.seen["ddp"] = max(group.world_size, 1)
            group.note_nccl()
            size = sum(p.numel() * p.element_size() for p in module.parameters() if p.requires_grad)
            cap = (bucket_cap_mb or BUCKET_BYTES >> 20) << 20
            sizes = [] if gradient_as_bucket_view else [cap] * (size // cap) + [size % cap]
            self._buckets = [torch.empty(n, dtype=torch.uint8, device=GPU) for n in sizes if n]

        def forward(self, *args, **kwargs):
            return self.module(*args, **kwargs)

        def no_sync(self):
            return contextlib.nullcontext()

        def join(self, *_, **__):
            return contextlib.nullcontext()

        def register_comm_hook(self, *_, **__):
            training.device.note("a communication hook of DistributedDataParallel is left out")

        def _set_static_graph(self):
            pass

    return DistributedDataParallel


def _patch_data_parallel(training, group):
    kind = _data_parallel(training, group)
    torch.nn.parallel.DistributedDataParallel = kind
    torch.nn.parallel.distributed.DistributedDataParallel = kind

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    torch.nn.DataParallel.forward = forward


class _Mesh:
    """The GPUs of a training as a grid, of which this process is the first."""

    def __init__(self, shape, names):
        self.shape, self.mesh_dim_names, self.ndim = tuple(shape), names, len(shape)

    def size(self, dim=None):
        return math.prod(self.shape) if dim is None else self.shape[dim]

    def __getitem__(self, names):
        wanted = [names] if isinstance(names, str) else list(names)
        return _Mesh([self.shape[self.mesh_dim_names.index(name)] for name in wanted], wanted)

    def get_group(self, *_):
        return None

    def get_local_rank(self, *_):
        return 0

    def get_rank(self):
        return 0


def _make_mesh(_, shape, *, mesh_dim_names=None, **__):
    return _Mesh(shape, list(mesh_dim_names) if mesh_dim_names else None)


def _patch_fsdp(training, group):
    """fully_shard is in torch.distributed.fsdp, and before PyTorch 2.6 in _composable.fsdp."""

    def note(world):
        training.seen["fsdp"] = world
        group.note_nccl()

    run = sharded._Run()
    fully_shard = sharded.fully_shard_of(run, group, note)

    def patch_module():
        fsdp = sys.modules["torch.distributed.fsdp"]
        wrapper = sharded._Wrapper(run, group, note)
        sharded.patch_wrapper(fsdp.FullyShardedDataParallel, wrapper)
        if hasattr(fsdp, "fully_shard"):
            fsdp.fully_shard = fully_shard

    def patch_composable():
        sys.modules["torch.distributed._composable.fsdp"].fully_shard = fully_shard

    def patch_mesh():
        sys.modules["torch.distributed.device_mesh"].init_device_mesh = _make_mesh

    after_import.call(
        {
            "torch.distributed.fsdp": patch_module,
            "torch.distributed._composable.fsdp": patch_composable,
            "torch.distributed.device_mesh": patch_mesh,
        }
    )


def patch(training):
    """Replaces torch.distributed and its modules, for the whole process."""
    importlib.import_module("torch.distributed")
    importlib.import_module("torch.nn.parallel.distributed")

    group = _Group(training)
    _patch_distributed(group)
    _patch_data_parallel(training, group)
    _patch_fsdp(training, group)
    deepspeed_library.find()
    importlib.import_module("colloc_script.deepspeed_members").follow(training, group)
    deepspeed_library.patch_installed()
