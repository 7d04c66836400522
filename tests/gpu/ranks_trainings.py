# SPDX-License-Identifier: Apache-2.0
"""A training for ranks_trial.py, started by torchrun with a rank on each GPU.

    ranks_trainings.py KIND --steps=N [--batch=N] [--pace=S] [--stop=FILE] [--pause=FILE]

KIND: experts   layers by DistributedDataParallel around a layer of experts: each rank has its own
                one, tokens go there and back by all_to_all
      pipeline  each rank has a part of the layers; activations and their gradients go from rank to
                rank by send and receive, losses are gathered, and the learning rate is scattered
      graph     the step of a DistributedDataParallel in one CUDA graph
      ddp       the same without a graph

Prints what groups_trainings.py prints, and ends as it does. Without a GPU it runs by gloo, and
`graph` as `ddp`.
"""
import os
import sys
import time

import torch
import torch.distributed as dist

import groups_trainings as g

TOKENS, WIDTH, DEPTH, PARTS = 128, g.WIDTH, 4, 4  # PARTS: of a batch in the pipeline
WARM_UP = 11  # steps before a capture, as PyTorch asks of DistributedDataParallel
F = torch.nn.functional


class Exchange(torch.autograd.Function):
    """The first half of each rank's tokens goes to rank 0, and so on; gradients go back."""

    @staticmethod
    def forward(_, tokens):
        return exchange(tokens)

    @staticmethod
    def backward(_, gradients):
        return exchange(gradients)


def exchange(tokens):
    got = torch.empty_like(tokens)
    dist.all_to_all_single(got, tokens.contiguous())
    return got


def blocks(n):
    return torch.nn.Sequential(*[g.Block() for _ in range(n)]).to(g.DEVICE)


def divided(network):
    ids = [torch.cuda.current_device()] if g.DEVICE == "cuda" else None
    return torch.nn.parallel.DistributedDataParallel(network, device_ids=ids)


def optimizer_of(*networks):
    parameters = [p for network in networks for p in network.parameters()]
    return torch.optim.SGD(parameters, 1e-3, momentum=0.9)


def batch_of(size, seed):
    chances = torch.Generator().manual_seed(seed)
    x = torch.randn(size, TOKENS, WIDTH, generator=chances).to(g.DEVICE)
    return x, torch.randn(size, TOKENS, WIDTH, generator=chances).to(g.DEVICE)


def experts(size):
    """Returns a function that makes a step and returns its loss."""
    before, after = divided(blocks(DEPTH // 2)), divided(blocks(DEPTH // 2))
    torch.manual_seed(1 + g.RANK)  # the expert of this rank
    expert = blocks(1)
    optimizer = optimizer_of(before, expert, after)
    x, y = batch_of(size, 1 + g.RANK)

    def step():
        optimizer.zero_grad()
        tokens = before(x)
        loss = F.mse_loss(after(tokens + Exchange.apply(expert(Exchange.apply(tokens)))), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def pipeline(size):
    part = blocks(DEPTH // g.RANKS)
    optimizer = optimizer_of(part)
    is_first, is_last = g.RANK == 0, g.RANK == g.RANKS - 1
    x, y = batch_of(size, 1)
    like = torch.empty_like(x.chunk(PARTS)[0])

    def receive(rank):
        got = torch.empty_like(like)
        dist.recv(got, rank)
        return got

    def forward(i):
        source = x.chunk(PARTS)[i] if is_first else receive(g.RANK - 1).requires_grad_()
        result = part(source)
        if not is_last:
            dist.send(result.detach().contiguous(), g.RANK + 1)
        return source, result

    def backward(i, source, result):
        if is_last:
            loss = F.mse_loss(result, y.chunk(PARTS)[i])
            loss.backward()
        else:
            loss = torch.zeros((), device=g.DEVICE)
            result.backward(receive(g.RANK + 1))
        if not is_first:
            dist.send(source.grad.contiguous(), g.RANK - 1)
        return loss.detach()

    def agree_rate(loss):
        """The first rank chooses the learning rate by what all have."""
        everyones = [torch.zeros_like(loss) for _ in range(g.RANKS)] if is_first else None
        dist.gather(loss, everyones)
        rate = torch.zeros((), device=g.DEVICE)
        rates = [1e-3 / (1 + sum(everyones)) for _ in range(g.RANKS)] if is_first else None
        dist.scatter(rate, rates)
        for group in optimizer.param_groups:
            group["lr"] = rate.item()

    def step():
        optimizer.zero_grad()
        passed = [forward(i) for i in range(PARTS)]
        loss = sum(backward(i, *pair) for i, pair in enumerate(passed))
        agree_rate(loss)
        optimizer.step()
        return loss.item()

    return step


def ddp_step(size):
    network = divided(blocks(DEPTH))
    optimizer = optimizer_of(network)
    x, y = batch_of(size, 1 + g.RANK)

    def compute():
        loss = F.mse_loss(network(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return optimizer, compute


def ddp(size):
    optimizer, compute = ddp_step(size)

    def step():
        optimizer.zero_grad()
        return compute().item()

    return step


def graph(size):
    if g.DEVICE != "cuda":
        return ddp(size)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        optimizer, compute = ddp_step(size)
        for _ in range(WARM_UP):
            optimizer.zero_grad()
            compute()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    optimizer.zero_grad()
    made = torch.cuda.CUDAGraph()
    with torch.cuda.graph(made, stream=side, capture_error_mode="thread_local"):
        loss = compute()

    def step():
        made.replay()
        return loss.item()

    return step


KINDS = {"experts": experts, "pipeline": pipeline, "graph": graph, "ddp": ddp}


def train(options):
    g.make_deterministic()
    step = KINDS[options.kind](options.batch)
    for number in range(options.steps):
        begin = time.monotonic()
        value = step()
        g.say(f"step {g.RANK} {number} {time.monotonic() - begin:.4f} {value.hex()}")
        if g.is_over(options.stop):
            break
        time.sleep(options.pace)
        while options.pause and os.path.exists(options.pause):
            time.sleep(0.01)


if __name__ == "__main__":
    sys.exit(g.main(train))
