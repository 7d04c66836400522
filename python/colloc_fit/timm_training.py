# SPDX-License-Identifier: Apache-2.0
"""What timm's train.py has in a training beside the model and plain momentum.

    TRIES    cuDNN tries kernels: `torch.backends.cudnn.benchmark = True`
    DECAY    weights decay: SGD by `foreach` adds each weight to its gradient, in new tensors that
             live until the step's end (torch/optim/sgd.py). Biases and the weights of norms do not
             decay (timm/optim/_param_groups.py)
    LOADER   PrefetchLoader makes batches on the GPU ahead (timm/data/loader.py)

`as_timm_trains` adds the first two to an export that was made without them.
"""
import math

TRIES, DECAY, LOADER = "tries", "decay", "loader"
# What PrefetchLoader has on the GPU beside the batch of the step, when it makes another one: two
# batches in 32 bit and one as bytes.
LOADER_BYTES = 2 * 4 + 1  # for each element of a batch
VECTOR_MAX_BYTES = 16384  # chosen: a larger gradient is that of a weight that decays
TEMPORARY, GRADIENT = "temp", "grad"


def loader_mib(description, batch):
    elements = math.prod(description["inputs"][0]["shape"])
    return batch * elements * LOADER_BYTES / (1 << 20)


def _move_clock(description, later):
    """Gives every tick the value of later(tick)."""
    for tensor in description["tensors"]:
        tensor[2:4] = [tick if tick < 0 else later(tick) for tick in tensor[2:4]]
    for member in ("convs", "matmuls"):
        for one in description.get(member, []):
            one["tick"] = later(one["tick"])
    for phases in description["phases"]:
        phases.update({name: later(tick) for name, tick in phases.items()})
    description["ticks"] = later(description["ticks"])


def _decay_in_step(description, iteration):
    """Adds the tensors of one optimizer's step: one for each gradient, from the step's begin to its
    end."""
    temporary, gradient = map(description["classes"].index, (TEMPORARY, GRADIENT))
    phases = description["phases"][iteration]
    begin, end = phases["optimizer"], phases["zero_grad"]
    sizes = [
        tensor[:2]
        for tensor in description["tensors"]
        if tensor[4] == gradient
        and tensor[0] > VECTOR_MAX_BYTES
        and tensor[2] < begin
        and not 0 <= tensor[3] < begin
    ]
    n = len(sizes)
    _move_clock(description, lambda tick: tick + (2 * n if tick >= end else n * (tick >= begin)))
    phases["optimizer"] = begin
    description["tensors"] += [
        [*size, begin + i, end + n + i, temporary] for i, size in enumerate(sizes)
    ]
    description["tensors"].sort(key=lambda tensor: tensor[2])


def as_timm_trains(description, ways):
    """Changes an export of plain momentum to that of a training with these ways."""
    if DECAY in ways:
        for iteration in range(len(description["phases"])):
            _decay_in_step(description, iteration)
    if TRIES in ways:
        description["flags"]["cudnn_benchmark"] = True
    return description
