# SPDX-License-Identifier: Apache-2.0
"""Errors that a real GPU may not give, and one that it gives: assert, lookup, graph, packed, name.
"""
import sys

import torch
from torch import nn

network = nn.Linear(16, 16).cuda()
inputs = torch.randn(8, 4, 16, device="cuda")
how = sys.argv[1]
if how == "assert":
    assert (network(inputs) * 0 == 0).all(), "not finite"
elif how == "lookup":
    print(["one"][int(network(inputs).argmax())])
elif how == "graph":
    torch.cuda.CUDAGraph()
elif how == "packed":
    nn.utils.rnn.pack_padded_sequence(inputs, torch.tensor([8, 5, 2, 1]))
else:
    print(sys.missing if inputs.sum().item() else "")
