# SPDX-License-Identifier: Apache-2.0
"""A detector's second stage trains on 32 of 4000 candidates, which it draws; a metric is read.

torchvision's nms compares the best candidates level by level; so does this script.
"""
import torch
from torch import nn

FEATURES, CANDIDATES, DRAWN, ANCHORS = 256, 4000, 32, 100_000

scores = nn.Linear(FEATURES, 1).cuda()
head = nn.Sequential(nn.Linear(FEATURES, 1000), nn.ReLU(), nn.Linear(1000, 91)).cuda()
optimizer = torch.optim.SGD([*scores.parameters(), *head.parameters()], lr=0.1)
for step in range(100):
    candidates = torch.randn(CANDIDATES, FEATURES).cuda()
    levels = torch.cat(
        [torch.full((ANCHORS,), level, dtype=torch.int64, device="cuda") for level in range(2)]
    )
    best = scores(candidates)[:, 0].topk(1000)[1]
    for level in torch.unique(levels[best]):
        print("level", level.item())
    matches = (scores(candidates)[:, 0] * 3).long()
    good = torch.where(matches >= 1)[0]
    order = torch.randperm(good.numel(), device=good.device)[:DRAWN]
    is_drawn = torch.zeros_like(matches, dtype=torch.uint8)
    is_drawn[good[order]] = 1
    chosen = torch.where(is_drawn)[0]
    classes = head(candidates[chosen])
    loss = nn.functional.cross_entropy(classes, matches[chosen].clamp(0, 90))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    with torch.inference_mode():
        print((classes.argmax(1) == 1).sum().item(), len(chosen))
