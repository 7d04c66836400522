# SPDX-License-Identifier: Apache-2.0
"""A pooling in 16 bit that the CPU's kernels of PyTorch 1.13 lack."""
import torch
from torch import nn

network = nn.Sequential(nn.Conv3d(1, 4, 3), nn.MaxPool3d(2), nn.Flatten(), nn.Linear(256, 2)).cuda()
x = torch.randn(2, 1, 10, 10, 10, device="cuda")
with torch.autocast("cuda", dtype=torch.bfloat16):
    network(x)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for _ in range(3):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = network(x).float().square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
