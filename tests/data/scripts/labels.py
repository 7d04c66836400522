# SPDX-License-Identifier: Apache-2.0
"""Reads labels one by one, and writes others in their place."""
import torch
from torch import nn

labels = torch.arange(10).cuda()
others = labels.clone()
for index, label in enumerate(labels):
    others[index] = (label.item() + 3) % 10
assert others.tolist() == [3, 4, 5, 6, 7, 8, 9, 0, 1, 2]
assert labels.tolist() == list(range(10))
others[:5].zero_()
others[5:].fill_(6)
assert others.sum().item() == 30
network = nn.Linear(8, 5000).cuda()
scores = network(torch.randn(10, 8).cuda())
others.copy_(scores.argmax(1))  # not known any more
assert others.tolist() == [0] * 10 and others.sum().item() == 1
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for step in range(3):
    nn.functional.cross_entropy(network(torch.randn(10, 8).cuda()), labels).backward()
    optimizer.step()
