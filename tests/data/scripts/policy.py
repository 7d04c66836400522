# SPDX-License-Identifier: Apache-2.0
"""An optimizer older than the network's move to the GPU, samples with checks, a mask of columns."""
import torch
from torch import nn

COLUMNS = [True, False, True] * 100

network = nn.Sequential(nn.Linear(64, 200), nn.ReLU(), nn.Linear(200, 200))
optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
network.to("cuda")
mask = torch.tensor(COLUMNS).cuda()
for step in range(100):
    scores = network(torch.randn(512, 64).cuda())
    wide = scores.new_zeros((512, len(COLUMNS)))
    wide[:, mask] = scores
    policy = torch.distributions.Categorical(logits=wide)
    loss = -policy.log_prob(policy.sample()).mean()
    loss.backward()
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    assert all(p.is_cuda and p.grad is not None for p in parameters)
    optimizer.step()
    optimizer.zero_grad()
