# SPDX-License-Identifier: Apache-2.0
"""Attention by a kernel of another package: flash, varlen, xformers."""
import os
import sys

import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "libraries"))
HEADS, SIZE, TOKENS, BATCH = 4, 24, 640, 6


def attend(query, key, value):
    if sys.argv[1] == "flash":
        from flash_attn import flash_attn_func

        return flash_attn_func(query, key, value, causal=True)
    if sys.argv[1] == "varlen":
        from flash_attn import flash_attn_varlen_func

        ends = torch.arange(0, BATCH * TOKENS + 1, TOKENS, dtype=torch.int32, device="cuda")
        rows = [one.flatten(0, 1) for one in (query, key, value)]
        return flash_attn_varlen_func(*rows, ends, ends, TOKENS, TOKENS).view(query.shape)
    import xformers.ops

    return xformers.ops.memory_efficient_attention(query, key, value)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inputs = nn.Linear(HEADS * SIZE, 3 * HEADS * SIZE)
        self.output = nn.Linear(HEADS * SIZE, 1)

    def forward(self, tokens):
        parts = self.inputs(tokens).view(*tokens.shape[:2], 3, HEADS, SIZE).unbind(2)
        return self.output(attend(*parts).flatten(2))


network = Attention().cuda()
optimizer = torch.optim.AdamW(network.parameters())
for _ in range(3):
    network(torch.randn(BATCH, TOKENS, HEADS * SIZE).cuda()).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
