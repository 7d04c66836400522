# SPDX-License-Identifier: Apache-2.0
"""Computes gradients and never uses them."""
import torch

model = torch.nn.Linear(10, 10).cuda()
optimizer = torch.optim.Adam(model.parameters())
model(torch.randn(8, 10).cuda()).sum().backward()
