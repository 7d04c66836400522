# SPDX-License-Identifier: Apache-2.0
"""One rank of a training by DeepSpeed's ZeRO: what its optimizers allocate. P: trained weights.

As in DeepSpeed 0.19, runtime/zero: stage_1_and_2.py, stage3.py, partitioned_param_coordinator.py.

    stages 1, 2  the weights lie in one flat tensor for each group. A rank has 1/N of them in 32
                 bit, and the states of these. A backward pass has a bucket of reduce_bucket_size
                 elements (two with overlap_comm), into which gradients move: at once in stage 2,
                 at the end of the last backward pass before a step in stage 1. What the rank
                 updates is copied out, P/N. The step makes a flat copy of it, and one in 32 bit
    stage 3      a rank has 1/N of each weight, of the gradients, and of the weights in 32 bit. A
                 layer's weights are gathered for its forward and its backward pass, and stay in
                 between where stage3_max_reuse_distance reaches. The bucket is always there. The
                 step goes through groups of sub_group_size elements
    offload      weights in 32 bit, states and the copied gradients are in the host's memory

Stage 0 is taken for stage 1 of one process without a bucket. Not seen: weights below
stage3_param_persistence_threshold, which stay whole; norms of gradients.
"""
import collections
import contextlib

import torch

from . import sharded
from .device import GPU
from .ending import theirs
from .training import moved

HOST = "meta"  # tensors that are in the host's memory need no data


def _split(total, parts):
    return -(-total // parts)


def _watch(parameter, on_gradient):
    """Calls `on_gradient` when the parameter's gradient was added up. Returns what to keep."""
    node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    node.register_hook(lambda *_: on_gradient(parameter))
    return node


def empty(count, dtype, device=GPU):
    return torch.empty(int(count), dtype=dtype, device=device)


class Optimizer:
    """Stands before the optimizer that updates the rank's part.

    inner: it has parameters during a step alone
    """

    def __init__(self, training, inner, settings, world):
        self._training, self.inner, self.settings, self.world = training, inner, settings, world
        self.device = HOST if settings.hosts_states else GPU
        self._groups = []
        for group in inner.param_groups:
            group["params"] = [moved(one) for one in group["params"]]
            self._groups.append([one for one in group["params"] if one.requires_grad])
        inner.state.clear()
        if not any(self._groups):
            raise theirs(ValueError("DeepSpeed's optimizer has no parameter that is trained"))

    def _begin(self):
        """The inner optimizer gives its parameters away."""
        for group in self.inner.param_groups:
            group["params"] = []
        self._training.optimizers = [
            one for one in self._training.optimizers if one() is not self.inner
        ]
        self._training.add_optimizer(self)

    # ---- what a torch.optim.Optimizer has ----

    @property
    def param_groups(self):
        return [{**g, "params": ps} for g, ps in zip(self.inner.param_groups, self._groups)]

    @property
    def state(self):
        return self.inner.state

    @property
    def defaults(self):
        return self.inner.defaults

    def zero_grad(self, *_, **__):
        for parameter in self._all():
            parameter.grad = None

    def state_dict(self):
        return {}

    def load_state_dict(self, *_, **__):
        pass

    def masters(self):
        """The rank's weights in 32 bit."""
        raise NotImplementedError

    def _all(self):
        return [one for group in self._groups for one in group]

    # ---- the loop ----

    def finish_backward(self, is_last):
        """After a backward pass; is_last: before a step."""

    def step(self, *_, **__):
        self._training.step(self, self._update)

    def _update(self):
        raise NotImplementedError

    def _step_part(self, index, part, gradient):
        """One step of the inner optimizer over a part of the weights in 32 bit."""
        if self.settings.hosts_states:
            return
        part.grad = gradient
        self.inner.param_groups[index]["params"] = [part]
        self.inner.step()
        self.inner.param_groups[index]["params"] = []
        part.grad = None


class FlatOptimizer(Optimizer):
    """Stages 0, 1 and 2."""

    def __init__(self, training, inner, settings, world):
        super().__init__(training, inner, settings, world)
        self.parts, self._flats, self._nodes = [], [], []
        for group in self._groups:
            self._flatten(group)
        self._bucket, self._in_bucket, self._bucketed = None, 0, []
        self._owned = self._summed = None
        self._moves_at_once = settings.stage == 2 or (settings.stage and settings.buckets > 1)
        if settings.hosts_states:
            largest = max(one.numel() for one in self._all())
            self._to_host = empty(largest, settings.dtype)
        self._nodes = [_watch(one, self._on_gradient) for one in self._all()]
        self._begin()

    def _flatten(self, group):
        """Weights become views of one tensor: both exist for a moment."""
        step = 2 * self.world
        size = _split(sum(one.numel() for one in group), step) * step
        flat = empty(size, group[0].dtype if group else self.settings.dtype)
        offset = 0
        for parameter in group:
            parameter.data = flat.narrow(0, offset, parameter.numel()).view(parameter.shape)
            offset += parameter.numel()
        part = empty(size // self.world, torch.float32, self.device)
        part.requires_grad = True
        self._flats.append(flat)
        self.parts.append(part)

    def masters(self):
        return self.parts

    def _owned_size(self):
        return sum(part.numel() for part in self.parts)

    # ---- gradients ----

    def _on_gradient(self, parameter):
        if self._bucket is None and self.settings.stage and self.settings.contiguous:
            self._bucket = [
                empty(self.settings.bucket, self.settings.dtype)
                for _ in range(self.settings.buckets)
            ]
        if self._moves_at_once:
            self._move(parameter)

    def _move(self, parameter):
        """The gradient into the bucket, which is reduced before when it is full."""
        if parameter.grad is None:
            return
        if self._in_bucket + parameter.numel() > self.settings.bucket:
            self._reduce()
        self._in_bucket += parameter.numel()
        is_kept = not self.settings.contiguous or parameter.numel() > self.settings.bucket
        self._bucketed.append((parameter, is_kept))
        if not is_kept:
            parameter.grad = None

    def _reduce(self):
        """The bucket's gradients are summed over the ranks, and this rank's are copied out."""
        if not self._bucketed:
            return
        if not self.settings.contiguous:
            empty(self._in_bucket, self.settings.dtype)
        if self._owned is None and not self.settings.hosts_states:
            self._owned = empty(self._owned_size(), self.settings.dtype)
        for parameter, is_kept in self._bucketed:
            if is_kept:
                parameter.grad = None
        self._bucketed, self._in_bucket = [], 0

    def finish_backward(self, is_last):
        if not self.settings.stage:
            return
        if is_last or self._moves_at_once:
            for parameter in self._all():
                self._move(parameter)
            self._reduce()
        self._bucket = None
        if self._summed is not None:
            self._owned = None  # added to the sum
        elif not is_last:
            self._summed, self._owned = self._owned, None

    # ---- the step ----

    def _update(self):
        if not self.settings.stage:
            self._owned = [one.grad for one in self._all()]
        for index, part in enumerate(self.parts):
            gradient = self._flat_gradient(part)
            if index == len(self.parts) - 1:
                self._owned = self._summed = None
                self.zero_grad()
            self._step_part(index, part, gradient)

    def _flat_gradient(self, part):
        """A flat copy in the weights' type, and one in 32 bit where that is another."""
        if self.settings.hosts_states:
            return None
        flat = empty(part.numel(), self.settings.gradient_dtype)
        return flat.to(torch.float32)


class _Parameters(collections.OrderedDict):
    """A module's parameters. One that is read outside of its layer's forward pass is gathered, as
    by ZeROOrderedDict of parameter_offload.py: a function may use another layer's weight."""

    unit = None

    def __getitem__(self, name):
        if self.unit is not None:
            self.unit.lend()
        return super().__getitem__(name)


class _Run(sharded._Run):
    """What the layers of a model in stage 3 share.

    parts: by the id of a whole parameter, so that one of two layers has one part
    """

    def __init__(self, settings):
        super().__init__()
        self.settings, self.parts = settings, {}
        self.last_order, self.lent, self.ahead = [], [], None
        self.frozen = []  # units of frozen weights that are whole in a backward pass

    def end_backward(self):
        super().end_backward()
        self.release_frozen(None)

    def release_frozen(self, unit):
        """Those behind the unit, whose backward passes have ended; None: all."""
        place = self.order.index(unit) if unit in self.order else -1
        behind = self.order[place + 1 :]
        for one in [one for one in self.frozen if one in behind or unit is None]:
            one.again = None
            one.release()
            self.frozen.remove(one)

    @contextlib.contextmanager
    def lending(self):
        """Weights that a function takes from another layer are given back at the end."""
        self.lent.append([])
        try:
            yield
        finally:
            for unit in self.lent.pop():
                unit.release()

    def pack(self, tensor):
        """As autograd keeps a weight that was lent to a module without weights."""
        unit, _ = self.gathered.get(sharded.storage_of(tensor)._cdata, (None, None))
        return tensor if unit is None or unit.keeps else unit._pack(tensor)

    @contextlib.contextmanager
    def passing(self):
        """The forward pass of the whole model."""
        hooks = torch.autograd.graph.saved_tensors_hooks(self.pack, sharded._unpack)
        self.last_order, self.order = self.order or self.last_order, []
        self.depth += 1  # no unit is the outermost one
        try:
            with self.lending(), hooks:
                yield
        finally:
            self.depth -= 1
            self.ahead = None


class LayerUnit(sharded.Unit):
    """The parameters that a module has itself, in stage 3."""

    def __init__(self, run, module, world):
        self.is_busy = False
        super().__init__(run, module, world, None, False, None, None)

    def _shard(self, module):
        super()._shard(module)
        for owner in {id(owner): owner for owner, _, _ in self.places}.values():
            gathering = _Parameters(owner._parameters)
            owner.__dict__["_parameters"] = gathering
            gathering.unit = self

    def _part_of(self, parameter):
        if id(parameter) in self.run.parts:
            return self.run.parts[id(parameter)][0]
        size = _split(parameter.numel(), self.world)
        part = empty(0 if self.run.settings.hosts_parameters else size, parameter.dtype)
        part = torch.nn.Parameter(part, requires_grad=parameter.requires_grad)
        part._colloc_unit, part._colloc_elements = self, size
        self.run.parts[id(parameter)] = part, parameter
        parameter._colloc_moved = part
        return part

    def put(self, tensors):
        self.is_busy = True
        super().put(tensors)
        self.is_busy = False

    def gather(self):
        self.is_busy = True
        try:
            super().gather()
        finally:
            self.is_busy = False

    def lend(self):
        """Gathers for a function of another module that runs, until that ends."""
        if not self.is_busy and self.wholes is None and self.run.lent:
            self.run.lent[-1].append(self)
            self.gather()

    def _stays(self):
        """Whether the next use, in the backward pass, is near enough (__params_to_release)."""
        is_known = self in self.run.last_order and torch.is_grad_enabled()
        return is_known and 2 * self._behind() < self.run.settings.reuse

    def forward(self, *args, **kwargs):
        run = self.run
        self.keeps = self._stays()
        if run.last_order and not self.keeps:
            run.ahead = None
            run.ahead = empty(min(run.settings.prefetch, self._behind()), run.settings.dtype)
        if self.keeps and self._is_frozen():
            run.frozen.append(self)
        with run.lending():
            return super().forward(*args, **kwargs)

    def _is_frozen(self):
        return not any(one.requires_grad for one in self.shards)

    def _behind(self):
        order = self.run.last_order
        place = order.index(self) + 1 if self in order else len(order)
        return sum(one.elements() for one in order[place:])

    def gather_again(self):
        self.run.release_frozen(self)
        if self.again is None and self._is_frozen():
            self.run.frozen.append(self)
        return super().gather_again()

    def reduce(self, gradients):
        """Into the bucket, and from there to the rank's part: both are always there."""
        self.end_gathering()
        self.run.release_frozen(self)
        return [None] * len(gradients)


class ShardedOptimizer(Optimizer):
    """Stage 3."""

    def __init__(self, training, inner, settings, world, run):
        super().__init__(training, inner, settings, world)
        sizes = [sum(one._colloc_elements for one in group) for group in self._groups]
        device = self.device
        self.parts = []  # (group, weights in 32 bit) of each sub-group
        for index, size in enumerate(sizes):
            for begin in range(0, size, settings.sub_group):
                self._add(index, min(settings.sub_group, size - begin))
        self._bucket = empty(settings.bucket, settings.dtype) if settings.contiguous else None
        self._gradients = empty(sum(sizes), settings.gradient_dtype, device)
        self._begin()

    def masters(self):
        return [part for _, part in self.parts]

    def _add(self, index, size):
        part = empty(size, torch.float32, self.device)
        part.requires_grad = True
        self.parts.append((index, part))

    def _update(self):
        for index, part in self.parts:
            gradient = None
            if not self.settings.hosts_states:
                gradient = empty(part.numel(), self.settings.gradient_dtype).to(torch.float32)
            self._step_part(index, part, gradient)


UNDIVIDED = (torch.nn.MultiheadAttention, torch.nn.RNNBase)  # use their layers' weights themselves


def shard_layers(module, settings, world):
    """Makes a unit of each layer; returns what they share."""
    run = _Run(settings)

    def visit(one):
        if not isinstance(one, UNDIVIDED):
            for child in one.children():
                if not hasattr(child, "_colloc_unit"):
                    visit(child)
        owners = sharded._modules_of(one)
        if any(p is not None for owner in owners for p in owner._parameters.values()):
            LayerUnit(run, one, world)

    visit(module)
    for _, whole in run.parts.values():
        whole.data = torch.empty(0, dtype=whole.dtype, device=whole.device)
    return run


class Engine(torch.nn.Module):
    """What deepspeed.initialize returns first."""

    def __init__(self, module, optimizer, settings, group, run):
        super().__init__()
        self.module, self.optimizer, self._run = module, optimizer, run
        self.settings, self.world_size = settings, max(group.world_size, 1)
        self.global_rank = self.local_rank = group.rank
        self.device = GPU
        self.lr_scheduler = self.training_dataloader = None
        self.micro_steps = self.global_steps = 0
        self._is_last = None  # as the caller says it

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)

    def forward(self, *args, **kwargs):
        with self._run.passing() if self._run is not None else contextlib.nullcontext():
            return self.module(*args, **kwargs)

    def is_gradient_accumulation_boundary(self):
        if self._is_last is not None:
            return self._is_last
        return (self.micro_steps + 1) % self.settings.accumulation == 0

    def set_gradient_accumulation_boundary(self, is_boundary):
        self._is_last = bool(is_boundary)

    def backward(self, loss, *_, retain_graph=False, scale_wrt_gas=True, **__):
        if self.settings.accumulation > 1 and scale_wrt_gas:
            loss = loss / self.settings.accumulation
        loss.float().backward(retain_graph=retain_graph)
        if isinstance(self.optimizer, Optimizer):
            self.optimizer.finish_backward(self.is_gradient_accumulation_boundary())
        return loss

    def step(self, *_, **__):
        if self.is_gradient_accumulation_boundary() and self.optimizer is not None:
            self.optimizer.step()
            self.optimizer.zero_grad()
            if self.lr_scheduler is not None:
                self.lr_scheduler.step()
            self.global_steps += 1
        self.micro_steps += 1

    def no_sync(self):
        return contextlib.nullcontext()

    def allreduce_gradients(self, *_, **__):
        pass

    def train_batch_size(self):
        return self.settings.batch * self.settings.accumulation * self.world_size

    def train_micro_batch_size_per_gpu(self):
        return self.settings.batch

    def gradient_accumulation_steps(self):
        return self.settings.accumulation

    def zero_optimization_stage(self):
        return self.settings.stage

    def zero_optimization(self):
        return self.settings.stage > 0

    def fp16_enabled(self):
        return self.settings.dtype == torch.float16

    def bfloat16_enabled(self):
        return self.settings.dtype == torch.bfloat16

    def get_lr(self):
        return [group["lr"] for group in self.optimizer.param_groups]

    def get_global_grad_norm(self):
        return 1.0

    def save_checkpoint(self, *_, **__):
        return True

    def load_checkpoint(self, *_, **__):
        return None, {}

    save_16bit_model = save_fp16_model = save_checkpoint


def _move_buffers(module):
    for one in module.modules():
        for name, buffer in one._buffers.items():
            if buffer is not None:
                one._buffers[name] = buffer.to(GPU)


def engine_of(training, module, make_optimizer, settings, group, is_divided):
    """The engine of a model.

    make_optimizer: returns the optimizer of the model's parameters, which are on the GPU then; None
        for a model that is not trained
    group: of the processes of the training
    is_divided: whether weights were divided as they were made (zero.Init): the GPU never has all
    """
    world = max(group.world_size, 1)
    training.seen["zero"] = settings.stage
    if settings.dtype != torch.float32:
        module.to(settings.dtype)
    if settings.stage == 3 and is_divided:
        _move_buffers(module)
    else:
        module.to(GPU)
    run = shard_layers(module, settings, world) if settings.stage == 3 else None
    inner = make_optimizer(module)
    optimizer = None
    if inner is not None and run is not None:
        optimizer = ShardedOptimizer(training, inner, settings, world, run)
    elif inner is not None:
        parts = world if settings.stage else 1
        optimizer = FlatOptimizer(training, inner, settings, parts)
    return Engine(module, optimizer, settings, group, run)
