# SPDX-License-Identifier: Apache-2.0
"""Trains on the CPU without an end."""
import torch

model = torch.nn.Linear(10, 10)
optimizer = torch.optim.Adam(model.parameters())
while True:
    model(torch.randn(8, 10)).sum().backward()
    optimizer.step()
