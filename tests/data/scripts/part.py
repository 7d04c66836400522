# SPDX-License-Identifier: Apache-2.0
"""A network that is run as a part of another one, and by itself, as in Lightning's GAN."""
import torch
from torch import nn


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator = nn.Linear(16, 64)
        self.discriminator = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 1))

    def forward(self, noise):
        return self.generator(noise)


pair = Pair().cuda()
optimizer = torch.optim.Adam(pair.parameters())
for _ in range(4):
    optimizer.zero_grad()
    pair.discriminator(pair(torch.randn(32, 16).cuda())).mean().backward()
    optimizer.step()
