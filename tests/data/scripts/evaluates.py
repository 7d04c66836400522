# SPDX-License-Identifier: Apache-2.0
"""Evaluates its network many times before it trains, and between two steps."""
import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.passes = nn.Sequential(nn.Linear(64, 777), nn.Linear(777, 10)), 0

    def forward(self, x, scale=1.0):
        self.passes += 1
        return {"scores": self.layers(x) * scale, "scale": scale}


def evaluate(network, scale):
    with torch.no_grad():
        for _ in range(100):
            scores = network(torch.randn(32, 64).cuda(), scale)["scores"]
            assert scores.shape == (32, 10) and scores.is_cuda and not scores.requires_grad


network = Network().cuda()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for step in range(100):
    evaluate(network, 1.0)
    evaluate(network, 2.0)
    network(torch.randn(32, 64).cuda())["scores"].sum().backward()
    print("passes", network.passes)
    optimizer.step()
