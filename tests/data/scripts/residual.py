# SPDX-License-Identifier: Apache-2.0
"""Two residual blocks: the gradient of a map is the sum of two."""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


network = nn.Sequential(nn.Linear(32, 512), Block(512), Block(512), nn.Linear(512, 8)).cuda()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for _ in range(3):
    loss = network(torch.randn(64, 32, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
