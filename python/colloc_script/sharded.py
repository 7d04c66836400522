# SPDX-License-Identifier: Apache-2.0
"""One rank of a model that FSDP divides: `fully_shard` and FullyShardedDataParallel.

Each unit, a module that the script shards or that its policy names, holds 1/N of its weights,
gradients and states. As in torch/distributed/fsdp (_fully_shard/_fsdp_collectives.py and
_fsdp_param_group.py of PyTorch 2.6):

    forward     all-gather into one buffer, copied out to the whole weights. The weights go after
                the unit's forward pass, but the outermost unit's; the buffer with the next unit's
    backward    all-gather again, and that of the unit before begins already: its buffer. The whole
                gradients of a unit are copied into one buffer, which is reduced to the rank's part
                and stays until the next one

FullyShardedDataParallel gathers without a copy (flat_param.py).

A weight that autograd keeps for the backward pass is kept as the name of its unit, and gathered
again when it is needed.
"""
import contextlib
import inspect

import torch

from colloc_export.tracker import storage_of

from .device import GPU
from .ending import CannotFollow
from .trees import mapped


class _Run:
    """What the units of a process share."""

    def __init__(self):
        self.order = []  # of the units in the forward pass
        self.depth = 0
        self.gathered = {}  # (unit, index of the weight) by the storage of a whole weight
        self.forward_buffer = self.next_buffer = self.reduced = None
        self.next_unit = None
        self.ends_later = False

    def end_backward(self):
        self.reduced = self.next_buffer = self.next_unit = None
        self.ends_later = False


def _divide_up(value, parts):
    return -(-value // parts)


class _Gather(torch.autograd.Function):
    """From a rank's parts to whole weights; backward, from whole gradients to the rank's parts."""

    @staticmethod
    def forward(ctx, unit, *shards):
        ctx.unit = unit
        ctx.set_materialize_grads(False)
        wholes = unit.allocate()
        frozen = [whole for whole, shard in zip(wholes, shards) if not shard.requires_grad]
        ctx.mark_non_differentiable(*frozen)
        return tuple(wholes)

    @staticmethod
    def backward(ctx, *gradients):
        return (None, *ctx.unit.reduce(gradients))


class Unit:
    """The parameters of a module that are gathered together.

    world: number of parts
    keeps: whether they stay whole after the forward pass; None: those of the outermost unit
    copies: whether an all-gather has a buffer, from which the whole weights are copied
    dtype, reduce_dtype: of the whole weights and of the sums; None: as the parts
    """

    def __init__(self, run, module, world, keeps, copies, dtype, reduce_dtype):
        self.run, self.world, self.keeps, self.copies = run, world, keeps, copies
        self.dtype, self.reduce_dtype = dtype, reduce_dtype
        self.places, self.shapes, self.shards = [], [], []
        self.wholes = self.again = None
        self._shard(module)
        module._colloc_unit = self
        self._forward, module.forward = module.forward, self.forward

    def _shard(self, module):
        """Parameters that are used in several places have one part."""
        known = {}
        for owner in _modules_of(module):
            for name, parameter in list(owner._parameters.items()):
                if parameter is None or hasattr(parameter, "_colloc_unit"):
                    continue
                if id(parameter) not in known:
                    known[id(parameter)] = len(self.shards), parameter
                    self.shapes.append(parameter.shape)
                    self.shards.append(self._part_of(parameter))
                self.places.append((owner, name, known[id(parameter)][0]))
        self.put(self.shards)

    def _part_of(self, parameter):
        rows, *rest = parameter.shape or (1,)
        device = parameter.device if parameter.device.type == "meta" else GPU
        part = torch.empty(
            (_divide_up(rows, self.world), *rest), dtype=parameter.dtype, device=device
        )
        part = torch.nn.Parameter(part, requires_grad=parameter.requires_grad)
        part._colloc_unit = self
        return part

    def put(self, tensors):
        for owner, name, index in self.places:
            owner._parameters[name] = tensors[index]

    def take_back(self):
        """The parameters as the module has them: to_empty(), and to(), make new ones."""
        for owner, name, index in self.places:
            self.shards[index] = owner._parameters[name]

    def _types(self):
        return [
            self.dtype if self.dtype and shard.is_floating_point() else shard.dtype
            for shard in self.shards
        ]

    def elements(self):
        return sum(_divide_up(s.numel(), self.world) * self.world for s in self.shapes)

    def buffer(self, dtype=None):
        """One for all whole weights."""
        return torch.empty(self.elements(), dtype=dtype or self._types()[0], device=GPU)

    def allocate(self):
        return [
            torch.empty(shape, dtype=dtype, device=GPU)
            for shape, dtype in zip(self.shapes, self._types())
        ]

    # ---- forward ----

    def gather(self):
        if self.wholes is not None or not self.shards:
            return
        self.take_back()
        buffer = self.buffer() if self.copies else None
        self.run.forward_buffer = None
        self.wholes = list(_Gather.apply(self, *self.shards))
        self.run.forward_buffer = buffer
        for index, whole in enumerate(self.wholes):
            whole.part_of_rank = self.shards[index]
            self.run.gathered[storage_of(whole)._cdata] = self, index
        self.put(self.wholes)

    def release(self):
        if self.wholes is None:
            return
        for whole in self.wholes:
            self.run.gathered.pop(storage_of(whole)._cdata, None)
        self.put(self.shards)
        self.wholes = None

    def _cast(self, values):
        def cast(tensor):
            is_other = tensor.is_floating_point() and tensor.dtype != self.dtype
            return tensor.to(self.dtype) if is_other else tensor

        return mapped(cast, values) if self.dtype else values

    def forward(self, *args, **kwargs):
        run, is_outermost = self.run, self.run.depth == 0
        if is_outermost:
            run.order = []
        run.order.append(self)
        run.depth += 1
        keeps = is_outermost if self.keeps is None else self.keeps
        try:
            self.gather()
            hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, _unpack)
            with contextlib.nullcontext() if keeps else hooks:
                return self._forward(*self._cast(args), **self._cast(kwargs))
        finally:
            run.depth -= 1
            if not keeps or not torch.is_grad_enabled():
                self.release()
            if is_outermost:
                run.forward_buffer = None

    def _pack(self, tensor):
        unit, index = self.run.gathered.get(storage_of(tensor)._cdata, (None, None))
        if unit is None:
            return tensor
        return unit, index, tensor.shape, tensor.stride(), tensor.storage_offset()

    # ---- backward ----

    def gather_again(self):
        """The whole weights in the backward pass; the gathering of the unit before begins, too."""
        if self.again is None:
            if self.run.next_unit is not self:
                self.run.next_buffer = self.buffer() if self.copies else None
            if not self.copies:
                self.run.next_buffer = None
            self.again = self.allocate()
            self.run.next_buffer, self.run.next_unit = None, None
            self._prefetch()
        return self.again

    def _prefetch(self):
        place = self.run.order.index(self) if self in self.run.order else 0
        before = self.run.order[place - 1] if place else None
        if before and before.shards and before.wholes is None and before.again is None:
            self.run.next_unit, self.run.next_buffer = before, before.buffer()

    def end_gathering(self):
        """The backward pass has done with its whole weights."""
        if not self.run.ends_later:
            torch.autograd.Variable._execution_engine.queue_callback(self.run.end_backward)
            self.run.ends_later = True
        self.again = None
        self.release()

    def reduce(self, gradients):
        """The rank's parts of the gradients."""
        self.end_gathering()
        self.run.reduced = None
        self.run.reduced = self.buffer(self.reduce_dtype)
        return [
            None if gradient is None else torch.empty_like(shard)
            for gradient, shard in zip(gradients, self.shards)
        ]


def _unpack(kept):
    if isinstance(kept, torch.Tensor):
        return kept
    unit, index, shape, stride, offset = kept
    return torch.as_strided(unit.gather_again()[index], shape, stride, offset)


def _modules_of(module):
    """The module and those below it that are of no unit."""
    yield module
    for child in module.children():
        if not hasattr(child, "_colloc_unit"):
            yield from _modules_of(child)


def _type_of(policy, name):
    return getattr(policy, name, None) if policy is not None else None


def _refuse_offload(offload):
    asked = getattr(offload, "offload_params", None)
    if asked or type(offload).__name__ == "CPUOffloadPolicy":
        raise CannotFollow(
            "FSDP with parameters in the host's memory is not followed",
            "give its print(model) instead, with --input, --gpus, --parallel=fsdp and "
            "--offload=parameters",
        )


def fully_shard_of(run, group, note):
    """The function fully_shard."""

    def fully_shard(
        module,
        *_,
        mesh=None,
        reshard_after_forward=None,
        mp_policy=None,
        offload_policy=None,
        **__,
    ):
        _refuse_offload(offload_policy)
        world = mesh.size(mesh.ndim - 1) if mesh is not None else group.world_size
        keeps = None if reshard_after_forward is None else not reshard_after_forward
        note(world)
        for one in module if isinstance(module, (list, tuple)) else [module]:
            Unit(
                run,
                one,
                max(world, 1),
                None if keeps is False else keeps,
                True,
                _type_of(mp_policy, "param_dtype"),
                _type_of(mp_policy, "reduce_dtype"),
            )
            _add_methods(one)
        return module

    return fully_shard


METHODS = (
    "set_requires_gradient_sync set_is_last_backward set_reshard_after_backward "
    "set_modules_to_forward_prefetch set_modules_to_backward_prefetch set_all_reduce_hook "
    "set_post_optim_event set_unshard_in_backward set_reduce_scatter_divide_factor reshard unshard"
).split()


def _add_methods(module):
    for name in METHODS:
        if not hasattr(module, name):
            setattr(module, name, lambda *_, **__: None)


# ---- FullyShardedDataParallel ----


def _wants(policy, module, size):
    """Whether the policy makes the module a unit. `size`: of its parameters that are in none."""
    classes = getattr(policy, "_module_classes", None)
    if classes is not None:
        return isinstance(module, tuple(classes))
    if not callable(policy):
        raise CannotFollow(
            f"the policy {type(policy).__name__} of FSDP is not known",
            "give its print(model) instead, with --input, --gpus and --parallel=fsdp",
        )
    names = inspect.signature(policy).parameters
    name = "unwrapped_params" if "unwrapped_params" in names else "nonwrapped_numel"
    return policy(module=module, recurse=False, **{name: size})


def _size_of(module):
    """Elements of the parameters of the module that are in no unit."""
    return sum(
        parameter.numel()
        for owner in _modules_of(module)
        for parameter in owner._parameters.values()
        if parameter is not None
    )


class _Wrapper:
    """The methods of FullyShardedDataParallel."""

    def __init__(self, run, group, note):
        self.run, self.group, self.note = run, group, note

    def _shard_below(self, module, policy, make):
        for child in module.children():
            if hasattr(child, "_colloc_unit"):
                continue
            self._shard_below(child, policy, make)
            if _wants(policy, child, _size_of(child)):
                make(child)

    def init(self, wrapper, module, strategy=None, offload=None, policy=None, precision=None, **_):
        _refuse_offload(offload)
        torch.nn.Module.__init__(wrapper)
        wrapper._fsdp_wrapped_module = module
        name = getattr(strategy, "name", "FULL_SHARD")
        world = 1 if name == "NO_SHARD" else max(self.group.world_size, 1)
        keeps = True if name in ("SHARD_GRAD_OP", "NO_SHARD", "_HYBRID_SHARD_ZERO2") else None
        self.note(world)

        def make(one):
            Unit(
                self.run,
                one,
                world,
                keeps,
                False,
                _type_of(precision, "param_dtype"),
                _type_of(precision, "reduce_dtype"),
            )

        for buffered in module.modules():
            for key, buffer in list(buffered._buffers.items()):
                if buffer is not None and buffer.device.type == "cpu":
                    buffered._buffers[key] = buffer.to(GPU)
        if policy is not None:
            self._shard_below(module, policy, make)
        make(module)


def patch_wrapper(kind, wrapper):
    """Replaces the methods of the class FullyShardedDataParallel."""

    def init(
        self,
        module,
        process_group=None,
        sharding_strategy=None,
        cpu_offload=None,
        auto_wrap_policy=None,
        backward_prefetch=None,
        mixed_precision=None,
        **_,
    ):
        wrapper.init(
            self,
            module,
            strategy=sharding_strategy,
            offload=cpu_offload,
            policy=auto_wrap_policy,
            precision=mixed_precision,
        )

    def get(self, name):
        try:
            return torch.nn.Module.__getattr__(self, name)
        except AttributeError:
            return getattr(torch.nn.Module.__getattr__(self, "_fsdp_wrapped_module"), name)

    kind.__init__ = init
    kind.__getattr__ = get
    kind.forward = lambda self, *args, **kwargs: self._fsdp_wrapped_module(*args, **kwargs)
    kind.module = property(lambda self: self._fsdp_wrapped_module)
    kind.no_sync = lambda self: contextlib.nullcontext()
    kind.summon_full_params = staticmethod(lambda *_, **__: contextlib.nullcontext())
    kind.clip_grad_norm_ = lambda self, most, norm_type=2.0: torch.nn.utils.clip_grad_norm_(
        self.parameters(), most, norm_type
    )
    for name in ("named_parameters", "named_buffers", "_apply", "apply", "state_dict", "train"):
        setattr(kind, name, getattr(torch.nn.Module, name))
