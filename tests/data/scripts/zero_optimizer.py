# SPDX-License-Identifier: Apache-2.0
"""One rank of a training on two GPUs whose optimizer's states are divided."""
import os

import torch
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer

os.environ.update(RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="29500")
torch.distributed.init_process_group("nccl")
model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 1024)).cuda()
model = nn.parallel.DistributedDataParallel(model, device_ids=[0])
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-4)
for _ in range(4):
    loss = model(torch.randn(16, 512).cuda()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
