# SPDX-License-Identifier: Apache-2.0
"""Cuts a square out of each picture at a random place, by a mask; the layer's sizes come later."""
import sys

import torch

side = int(sys.argv[1]) if len(sys.argv) > 1 else 24
pictures = torch.randn(40, 3, 30, 30).cuda()
corner = torch.randint(0, 7, (40,), device="cuda").view(-1, 1)
line = torch.arange(30, device="cuda").view(1, -1)
inside = (line >= corner) & (line < corner + 24)
mask = inside.view(40, 1, 30, 1) & inside.view(40, 1, 1, 30)
crops = torch.masked_select(pictures, mask).view(40, 3, side, side)
network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(10)).cuda()
network(crops)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    network(crops).sum().backward()
    optimizer.step()
