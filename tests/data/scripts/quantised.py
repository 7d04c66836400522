# SPDX-License-Identifier: Apache-2.0
"""A frozen layer of quantised weights below one that is trained by an optimizer of 8 bit."""
import os
import sys

import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "libraries"))
import bitsandbytes as bnb  # noqa: E402

if sys.argv[1] == "4bit":
    frozen = bnb.nn.Linear4bit(512, 768, bias=False, compute_dtype=torch.bfloat16)
else:
    frozen = bnb.nn.Linear8bitLt(512, 768, bias=False, has_fp16_weights=sys.argv[1] == "plain")
network = nn.Sequential(nn.Linear(300, 512), frozen, nn.Linear(768, 10)).cuda()
optimizer = bnb.optim.AdamW8bit([p for p in network.parameters() if p.requires_grad])
for _ in range(3):
    network(torch.randn(32, 300).cuda()).float().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
