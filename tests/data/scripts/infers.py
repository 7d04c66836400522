# SPDX-License-Identifier: Apache-2.0
"""Runs a network without training it; with a number as argument that many batches."""
import sys

import torch

network = torch.nn.Sequential(torch.nn.Linear(256, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 8))
network.cuda().eval()
with torch.no_grad():
    for batch in range(int(sys.argv[1])):
        network(torch.randn(64, 256).cuda()).argmax(1).cpu()
