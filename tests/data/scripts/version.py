# SPDX-License-Identifier: Apache-2.0
"""Chooses its code by the version of CUDA."""
import torch

assert int(torch.version.cuda.split(".")[0]) >= 12
weight = torch.zeros(1000, requires_grad=True, device="cuda")
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(3):
    (weight**2).sum().backward()
    optimizer.step()
