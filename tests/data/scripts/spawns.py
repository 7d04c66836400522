# SPDX-License-Identifier: Apache-2.0
"""Starts processes that would outlive it, in its own session and in another."""
import subprocess
import sys

import torch

subprocess.Popen(["sleep", sys.argv[1]])
subprocess.Popen(["sleep", sys.argv[1]], start_new_session=True)
model = torch.nn.Linear(1000, 1000).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(10):
    model(torch.randn(8, 1000).cuda()).sum().backward()
    optimizer.step()
