# SPDX-License-Identifier: Apache-2.0
"""Gradients of four micro-batches are added up; autocast to bfloat16; outputs stay in a list."""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 64)).to("cuda:0")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(100):
    outputs = []
    for micro in range(4):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            outputs.append(model(torch.randn(16, 64).cuda()))
            loss = outputs[-1].float().pow(2).mean() / 4
        loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
