#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A language model trained with one way to save memory, for tests/gpu/script_trial.py.

    tests/gpu/savers.py WAY

WAY: plain, accumulation, checkpointing, checkpointing-reentrant, bf16, fp16, compile, lora, sgd,
fused, eight-bit (bitsandbytes), offload (saved tensors go to the host), channels-last (ResNet-50).
savers.list names them all.
"""
import contextlib
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

WORDS, WIDTH, HEADS, LENGTH, LAYERS, BATCH = 16384, 1024, 16, 512, 8, 16


class Adapted(nn.Module):
    """A linear layer that stays as it is, and a product of low rank that is trained."""

    def __init__(self, linear, rank=16):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.down = nn.Linear(linear.in_features, rank, bias=False)
        self.up = nn.Linear(rank, linear.out_features, bias=False)

    def forward(self, x):
        return self.linear(x) + self.up(self.down(x))


class Block(nn.Module):
    def __init__(self, wrap):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.attend = wrap(nn.Linear(WIDTH, 3 * WIDTH))
        self.project = wrap(nn.Linear(WIDTH, WIDTH))
        self.up, self.down = wrap(nn.Linear(WIDTH, 4 * WIDTH)), wrap(nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        batch, length, _ = x.shape
        parts = self.attend(self.norms[0](x)).split(WIDTH, dim=2)
        q, k, v = (p.view(batch, length, HEADS, -1).transpose(1, 2) for p in parts)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


class Language(nn.Module):
    def __init__(self, way):
        super().__init__()
        wrap = Adapted if way == "lora" else (lambda linear: linear)
        self.way = way
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block(wrap) for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        if way == "lora":
            for part in (self.words, self.places, self.head):
                part.requires_grad_(False)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(LENGTH, device=tokens.device))
        if self.way == "checkpointing-reentrant":
            x.requires_grad_()
        for block in self.blocks:
            if self.way.startswith("checkpointing"):
                x = checkpoint(block, x, use_reentrant=self.way.endswith("reentrant"))
            else:
                x = block(x)
        return self.head(x)


def optimizer_for(way, parameters):
    if way == "sgd":
        return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9)
    if way == "eight-bit":
        import bitsandbytes

        return bitsandbytes.optim.AdamW8bit(parameters, lr=1e-4)
    return torch.optim.AdamW(parameters, lr=1e-4, fused=way == "fused")


def model_and_data(way):
    if way == "channels-last":
        import torchvision

        model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
        images = torch.randn(64, 3, 224, 224, device="cuda")
        return (
            model,
            images.to(memory_format=torch.channels_last),
            torch.randint(0, 1000, (64,), device="cuda"),
        )
    model = Language(way).cuda()
    data = torch.randint(0, WORDS, (BATCH, LENGTH + 1), device="cuda")
    return model, data[:, :-1].contiguous(), data[:, 1:].contiguous()


def main():
    way = sys.argv[1]
    model, x, y = model_and_data(way)
    optimizer = optimizer_for(way, [p for p in model.parameters() if p.requires_grad])
    scaler = torch.amp.GradScaler("cuda", enabled=way == "fp16")
    types = {"bf16": torch.bfloat16, "fp16": torch.float16}
    context = torch.autocast("cuda", types.get(way, torch.bfloat16), enabled=way in types)
    saved = torch.autograd.graph.save_on_cpu if way == "offload" else contextlib.nullcontext
    parts = 4 if way == "accumulation" else 1
    if way == "compile":
        model = torch.compile(model)
    for _ in range(8):
        for part in range(parts):
            inputs, targets = x.chunk(parts)[part], y.chunk(parts)[part]
            with context, saved():
                scores = model(inputs)
                loss = F.cross_entropy(scores.flatten(0, -2), targets.flatten()) / parts
            scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)


if __name__ == "__main__":
    main()
