# SPDX-License-Identifier: Apache-2.0
"""A graph and a part for training that are drawn at random."""
import torch
from torch import nn

NODES, EDGES = 200_000, 1_000_000

edges = torch.randint(0, NODES, (2, EDGES)).cuda()
kept = edges[:, edges[0] != edges[1]]
assert kept.shape[1] > 0.9 * EDGES
part = (torch.rand(NODES) < 0.3).cuda()
assert 0.2 * NODES < part.sum().item() < 0.4 * NODES
network = nn.Linear(8, 4).cuda()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for step in range(3):
    sums = torch.zeros(NODES, 8).cuda().index_add(0, kept[1], torch.randn(NODES, 8).cuda()[kept[0]])
    network(sums)[part].sum().backward()
    optimizer.step()
