# SPDX-License-Identifier: Apache-2.0
"""Deletes the folder that it is given, writes another, then trains."""
import os
import shutil
import sys

import torch

shutil.rmtree(sys.argv[1])
assert not os.path.exists(sys.argv[1])
os.makedirs(sys.argv[1] + ".new")
with open(sys.argv[1] + ".new/file", "w", encoding="utf-8") as file:
    file.write("x" * 100000)
model = torch.nn.Linear(1000, 1000).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    model(torch.randn(8, 1000).cuda()).sum().backward()
    optimizer.step()
