# SPDX-License-Identifier: Apache-2.0
"""torch.cuda and its like, on a machine that has no GPU.

The GPU that appears to be there is an H200 with nothing on it. What a script asks of it gets a
plausible answer; what it sets has no effect.
"""
import contextlib
import sys
import types

import torch

from .device import GPU, is_fake
from .fake_tensor import without_device
from .stand_ins import Context, always, nothing

NAME = "NVIDIA H200"
CAPABILITY = (9, 0)
MULTIPROCESSORS = 132
TOTAL_BYTES = 141 * 1000**3
VERSION = "13.0"  # of CUDA, where this PyTorch was built without it

PROPERTIES = types.SimpleNamespace(
    name=NAME,
    major=CAPABILITY[0],
    minor=CAPABILITY[1],
    total_memory=TOTAL_BYTES,
    multi_processor_count=MULTIPROCESSORS,
    warp_size=32,
    is_integrated=False,
    is_multi_gpu_board=False,
    gcnArchName="",
    uuid="GPU-0",
)


class _Stream(Context):
    """A stream or an event: everything happens at once."""

    cuda_stream = 0
    device = GPU
    device_index = 0
    stream_id = 0

    def __eq__(self, other):
        return isinstance(other, _Stream)

    def __hash__(self):
        return 0

    def query(self):
        return True

    def elapsed_time(self, _):
        return 1.0

    def record_event(self, event=None):
        return event or _Stream()

    synchronize = record = wait = wait_event = wait_stream = nothing


class _Device(Context):
    """torch.cuda.device and torch.cuda.stream."""

    idx = prev_idx = 0


class _Generator(torch._C.Generator):
    """A random number generator of the CPU, whatever device is asked for."""

    def __new__(cls, device="cpu"):
        return super().__new__(cls, device="cpu")


class _Zeros(dict):
    """Statistics that are all zero."""

    def __missing__(self, key):
        return 0


def _answers(device):
    live = lambda *_, **__: sum(  # noqa: E731
        interval.bytes for interval in device.storages.living()
    )
    state = lambda *_, **__: torch.zeros(16, dtype=torch.uint8)  # noqa: E731
    answers = {
        "is_available": always(True),
        "is_initialized": always(True),
        "device_count": always(1),
        "current_device": always(0),
        "get_device_name": always(NAME),
        "get_device_capability": always(CAPABILITY),
        "get_device_properties": always(PROPERTIES),
        "get_arch_list": always(["sm_90"]),
        "is_bf16_supported": always(True),
        "is_current_stream_capturing": always(False),
        "can_device_access_peer": always(False),
        "mem_get_info": lambda *_: (TOTAL_BYTES - live(), TOTAL_BYTES),
        "memory_stats": always(_Zeros()),
        "memory_summary": always(""),
        "memory_snapshot": always([]),
        "utilization": always(0),
        "initial_seed": always(0),
        "get_rng_state": state,
        "get_rng_state_all": lambda: [state()],
        "current_stream": always(_Stream()),
        "default_stream": always(_Stream()),
        "Stream": _Stream,
        "ExternalStream": _Stream,
        "Event": _Stream,
        "stream": _Device,
        "device": _Device,
        "device_of": _Device,
        "_DeviceGuard": _Device,
    }
    for name in (
        "memory_allocated",
        "max_memory_allocated",
        "memory_reserved",
        "max_memory_reserved",
        "memory_cached",
        "max_memory_cached",
    ):
        answers[name] = live
    for name in (
        "_lazy_init",
        "init",
        "set_device",
        "set_stream",
        "synchronize",
        "empty_cache",
        "ipc_collect",
        "reset_peak_memory_stats",
        "reset_max_memory_allocated",
        "reset_max_memory_cached",
        "reset_accumulated_memory_stats",
        "set_per_process_memory_fraction",
        "set_sync_debug_mode",
        "manual_seed",
        "manual_seed_all",
        "seed",
        "seed_all",
        "set_rng_state",
        "set_rng_state_all",
    ):
        answers[name] = nothing
    return answers


def _patch_random():
    """Seeds reach the CPU's generator alone."""
    torch.random.fork_rng = lambda *_, **__: contextlib.nullcontext()
    torch.Generator = _Generator


def _patch_constructors():
    for name in ("tensor", "as_tensor", "asarray", "scalar_tensor", "sparse_coo_tensor"):
        if hasattr(torch, name):
            setattr(torch, name, without_device(getattr(torch, name)))
    torch.Tensor.new_tensor = without_device(torch.Tensor.new_tensor)
    for name in "Float Double Half BFloat16 Long Int Short Byte Char Bool".split():
        if hasattr(torch, f"{name}Tensor"):
            setattr(torch.cuda, f"{name}Tensor", _Legacy(getattr(torch, f"{name}Tensor")))
    torch.Tensor.type = _type_method(torch.Tensor.type)


class _Legacy:
    """torch.cuda.FloatTensor and its like, which make tensors and name a type."""

    def __init__(self, kind):
        self.kind, self.dtype = kind, kind.dtype

    def __call__(self, *args):
        return self.kind(*args).cuda()


def _type_method(plain):
    """Tensor.type, which also copies to CUDA."""

    def of_type(self, dtype=None, *rest, **options):
        if isinstance(dtype, str) and dtype.startswith("torch.cuda."):
            dtype = getattr(torch.cuda, dtype.split(".")[-1])
        if isinstance(dtype, _Legacy):
            return self.to(GPU, dtype.dtype)
        if dtype is None and is_fake(self):
            return plain(self).replace("torch.", "torch.cuda.", 1)
        return plain(self, dtype, *rest, **options) if dtype is not None else plain(self)

    return of_type


def _patch_accelerator():
    accelerator = getattr(torch, "accelerator", None)
    answers = {
        "is_available": always(True),
        "device_count": always(1),
        "current_accelerator": always(torch.device("cuda")),
        "current_device_index": always(0),
        "current_device_idx": always(0),
        "current_stream": always(_Stream()),
    }
    for name in ("set_device_index", "set_device_idx", "set_stream", "synchronize", "empty_cache"):
        answers[name] = nothing
    for name, answer in answers.items():
        if hasattr(accelerator, name):
            setattr(accelerator, name, answer)


def _patch_files():
    """Nothing is written of tensors without data; what is read lands on the CPU."""
    load = torch.load

    def onto_host(*args, **kwargs):
        kwargs["map_location"] = "cpu"
        return load(args[0], *args[2:], **kwargs)

    torch.load = onto_host
    torch.save = nothing


def patch(device):
    """Makes CUDA appear. device: the pretended GPU (device.Device)."""
    for name, answer in _answers(device).items():
        setattr(torch.cuda, name, answer)
    for part in ("random", "memory", "streams"):
        module = sys.modules.get(f"torch.cuda.{part}")
        for name, answer in _answers(device).items():
            if hasattr(module, name):
                setattr(module, name, answer)
    torch.cuda._initialized = True
    if hasattr(torch.cuda, "nvtx"):
        for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
            setattr(torch.cuda.nvtx, name, nothing)
        torch.cuda.nvtx.range = Context
    torch.backends.cuda.is_built = always(True)
    torch.version.cuda = torch.version.cuda or VERSION
    _patch_random()
    _patch_constructors()
    _patch_accelerator()
    _patch_files()
