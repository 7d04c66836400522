# SPDX-License-Identifier: Apache-2.0
"""Selections whose size depends on values: labels that are known, scores that are not."""
import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 2, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1, 0.9)
for step in range(5):
    scores = model(torch.randn(2, 3, 32, 32).cuda()).permute(0, 2, 3, 1).reshape(-1, 2)
    truth = (torch.arange(2048) % 64 == 0).long().cuda()
    positive = torch.where(truth > 0)[0]
    assert positive.numel() == 32 and positive.tolist()[1] == 64
    confident = scores[scores[:, 0].sigmoid() > 0.5]
    loss = nn.functional.cross_entropy(scores[positive], truth[positive]) + confident.sum() * 0
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
