# SPDX-License-Identifier: Apache-2.0
"""Reads labels one by one, and writes others in their place and to empty tensors."""
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

counts = torch.tensor([3, 2, 4]).cuda()
starts = counts.new_empty(4)
assert starts.sum().item() == 1  # any values
starts.narrow(0, 0, 1).zero_()
torch.cumsum(counts, 0, out=starts.narrow(0, 1, 3))
assert starts.tolist() == [0, 3, 5, 9]
torch.cumsum(others[:4], 0, out=starts)
assert starts.tolist() == [0] * 4 and starts.sum().item() == 1

optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for step in range(3):
    nn.functional.cross_entropy(network(torch.randn(10, 8).cuda()), labels).backward()
    optimizer.step()
