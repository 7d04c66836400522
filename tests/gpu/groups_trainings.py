# SPDX-License-Identifier: Apache-2.0
"""A training for groups_trial.py, of one process or, by torchrun, of a rank on each GPU.

    groups_trainings.py KIND --steps=N [--batch=N] [--pace=S] [--stop=FILE] [--pause=FILE]

KIND: ddp-NAME  torchvision's NAME by DistributedDataParallel
      fsdp      a transformer by fully_shard
      tp        the same, its products divided by columns and rows
      NAME      torchvision's NAME in one process

Prints "pid RANK PID", then for each step "step RANK NUMBER SECONDS LOSS", the loss bit for bit; a
single process adds what it sees of its GPU: the UUID, the bus id, and the UUID of NVML's GPU with
that bus id. It ends after N steps, or after the step in which the file of --stop is there: all
ranks in the same step. It rests for S seconds after each step, and while the file of --pause is
there.
"""
import argparse
import ctypes
import os
import sys
import time

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
F = torch.nn.functional
RANK, RANKS = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
WORDS, WIDTH, HEAD, DEPTH = 256, 1024, 64, 12  # of the transformer


def make_deterministic():
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False


class Block(torch.nn.Module):
    """Of any number of heads: a rank of tensor parallelism has a part of them."""

    def __init__(self):
        super().__init__()
        self.before, self.after = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        for name in "qkvo":
            setattr(self, name, torch.nn.Linear(WIDTH, WIDTH))
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def attend(self, x):
        b, t, _ = x.shape
        q, k, v = (f(x).view(b, t, -1, HEAD).transpose(1, 2) for f in (self.q, self.k, self.v))
        seen = (q @ k.transpose(2, 3) * HEAD**-0.5).softmax(3) @ v
        return self.o(seen.transpose(1, 2).reshape(b, t, -1))

    def forward(self, x):
        x = x + self.attend(self.before(x))
        return x + self.down(F.gelu(self.up(self.after(x))))


class Transformer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(DEPTH))
        self.head = torch.nn.Linear(WIDTH, 1000)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


def divide_tensors(blocks):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh = init_device_mesh(DEVICE, (RANKS,))
    for block in blocks:
        plan = {name: ColwiseParallel() for name in ("q", "k", "v", "up")}
        parallelize_module(block, mesh, {**plan, "o": RowwiseParallel(), "down": RowwiseParallel()})


def network_of(kind):
    """The network as its kind divides it, and the shape of one input."""
    if kind in ("fsdp", "tp"):
        network = Transformer().to(DEVICE)
        if kind == "tp":
            divide_tensors(network.blocks)
        else:
            from torch.distributed.fsdp import fully_shard

            for part in [*network.blocks, network]:
                fully_shard(part)
        return network, (WORDS, WIDTH)
    import torchvision

    name = kind[len("ddp-") :] if kind.startswith("ddp-") else kind
    network = getattr(torchvision.models, name)(num_classes=1000).to(DEVICE)
    if kind != name:
        ids = [torch.cuda.current_device()] if DEVICE == "cuda" else None
        network = torch.nn.parallel.DistributedDataParallel(network, device_ids=ids)
    return network, (3, 224, 224)


class Place:
    """What the process sees of its GPU."""

    def __init__(self):
        self.cuda, self.nvml = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvidia-ml.so.1")
        self.nvml.nvmlInit_v2()

    def words(self):
        raw, bus, device = ctypes.create_string_buffer(16), ctypes.create_string_buffer(32), 0
        self.cuda.cuDeviceGetUuid_v2(raw, device)
        self.cuda.cuDeviceGetPCIBusId(bus, 32, device)
        handle, uuid = ctypes.c_void_p(), ctypes.create_string_buffer(96)
        self.nvml.nvmlDeviceGetHandleByPciBusId_v2(bus.value, ctypes.byref(handle))
        self.nvml.nvmlDeviceGetUUID(handle, uuid, 96)
        h = raw.raw.hex()
        own = f"GPU-{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"
        return f" {own} {bus.value.decode()} {uuid.value.decode()}"


def say(line):
    os.write(1, (line + "\n").encode())  # in one piece: the ranks share the file


def is_over(stop):
    """The same answer in all ranks."""
    seen = bool(stop) and os.path.exists(stop)
    if RANKS == 1:
        return seen
    flag = torch.tensor([float(seen)], device=DEVICE)
    torch.distributed.all_reduce(flag)
    return flag.item() > 0


def train(options):
    make_deterministic()
    network, shape = network_of(options.kind)
    optimizer = torch.optim.SGD(network.parameters(), 1e-3, momentum=0.9, foreach=False)
    seed = 1 if options.kind == "tp" else 1 + RANK  # there all ranks have the same batch
    chances = torch.Generator().manual_seed(seed)
    x = torch.randn(options.batch, *shape, generator=chances).to(DEVICE)
    y = torch.randint(0, 1000, (options.batch,), generator=chances).to(DEVICE)
    place = Place() if RANKS == 1 and DEVICE == "cuda" else None
    for number in range(options.steps):
        begin = time.monotonic()
        optimizer.zero_grad()
        loss = F.cross_entropy(network(x), y)
        loss.backward()
        optimizer.step()
        value = loss.item()
        seconds = time.monotonic() - begin
        where = place.words() if place else ""
        say(f"step {RANK} {number} {seconds:.6f} {value.hex()}{where}")
        if is_over(options.stop):
            break
        time.sleep(options.pace)
        while options.pause and os.path.exists(options.pause):
            time.sleep(0.01)


def main(train):
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--pace", type=float, default=0)
    parser.add_argument("--stop", default="")
    parser.add_argument("--pause", default="")
    options = parser.parse_args()
    say(f"pid {RANK} {os.getpid()}")
    if RANKS > 1:
        if DEVICE == "cuda":
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        torch.distributed.init_process_group("nccl" if DEVICE == "cuda" else "gloo")
    train(options)
    say(f"ended {RANK}")
    if RANKS > 1:
        torch.distributed.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main(train))
