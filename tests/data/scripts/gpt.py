# SPDX-License-Identifier: Apache-2.0
"""A small transformer in the style of nanoGPT: tied weights, groups of parameters, torch.compile,
checkpoints, an evaluation of the loss before the first step.
"""
import argparse
import contextlib
import inspect
import os

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--compile", action="store_true")
options = parser.parse_args()
VOCABULARY, WIDTH, HEADS, LENGTH = 512, 64, 4, 128


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attend, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )
        mask = torch.tril(torch.ones(LENGTH, LENGTH)).view(1, 1, LENGTH, LENGTH)
        self.register_buffer("mask", mask)

    def forward(self, x):
        batch, length, width = x.size()
        q, k, v = self.attend(self.norm(x)).split(width, dim=2)
        q, k, v = (t.view(batch, length, HEADS, width // HEADS).transpose(1, 2) for t in (q, k, v))
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) * (1.0 / k.size(-1) ** 0.5)
            scores = scores.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf"))
            y = F.dropout(F.softmax(scores, dim=-1), 0.1, self.training) @ v
        x = x + self.project(y.transpose(1, 2).contiguous().view(batch, length, width))
        return x + self.mlp(self.norm_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.words.weight = self.head.weight

    def forward(self, tokens, targets=None):
        places = torch.arange(0, tokens.size(1), dtype=torch.long, device=tokens.device)
        x = self.words(tokens) + self.places(places)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        if targets is None:
            return logits, None
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss


def get_batch():
    data = torch.randint(0, VOCABULARY, (options.batch_size, LENGTH + 1))
    x, y = data[:, :-1].contiguous(), data[:, 1:].contiguous()
    return tuple(t.pin_memory().to("cuda", non_blocking=True) for t in (x, y))


bf16 = torch.cuda.is_available() and torch.cuda.is_bf16_supported()
context = torch.amp.autocast("cuda", torch.bfloat16 if bf16 else torch.float16)
scaler = torch.cuda.amp.GradScaler(enabled=not bf16)
model = GPT()
model.to("cuda")
decayed = [p for p in model.parameters() if p.dim() >= 2]
other = [p for p in model.parameters() if p.dim() < 2]
groups = [{"params": decayed, "weight_decay": 0.1}, {"params": other, "weight_decay": 0.0}]
extra = {"fused": True} if "fused" in inspect.signature(torch.optim.AdamW).parameters else {}
optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), **extra)
if options.compile and hasattr(torch, "compile"):
    model = torch.compile(model)
x, y = get_batch()
for iteration in range(100):
    if iteration % 50 == 0:
        model.eval()
        with torch.no_grad(), contextlib.suppress(StopIteration):
            losses = torch.zeros(2)
            for k in range(2):
                with context:
                    logits, loss = model(*get_batch())
                losses[k] = loss.item()
        model.train()
        os.makedirs("out", exist_ok=True)
        torch.save({"model": model.state_dict(), "loss": losses.mean()}, "out/checkpoint.pt")
    with context:
        logits, loss = model(x, y)
    x, y = get_batch()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
