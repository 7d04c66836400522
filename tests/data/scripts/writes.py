# SPDX-License-Identifier: Apache-2.0
"""Lets its network write a text, letter by letter, before it trains."""
import torch
from torch import nn

LONGEST = 64


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters, self.scores, self.lengths = nn.Embedding(60, 32), nn.Linear(32, 60), []

    def forward(self, text):
        self.lengths.append(text.shape[1])
        return self.scores(self.letters(text)), text.shape[0]


def write(network):
    text = torch.zeros((3, 16), dtype=torch.int64).cuda()
    with torch.no_grad():
        for _ in range(100):
            seen = text[:, -LONGEST:]
            scores, rows = network(seen)
            assert scores.shape == (3, seen.shape[1], 60) and rows == 3
            text = torch.cat((text, scores[:, -1:].argmax(2)), 1)


network = Network().cuda()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for step in range(100):
    write(network)
    print("lengths", network.lengths)
    network.lengths.clear()
    network(torch.zeros((3, LONGEST), dtype=torch.int64).cuda())[0].sum().backward()
    optimizer.step()
