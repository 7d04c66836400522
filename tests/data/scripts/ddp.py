# SPDX-License-Identifier: Apache-2.0
"""One rank of a training on two GPUs, as torchrun starts it."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

os.environ.setdefault("RANK", "0")
os.environ.setdefault("WORLD_SIZE", "2")
rank = int(os.environ.get("LOCAL_RANK", 0))
dist.init_process_group(os.environ.get("BACKEND", "nccl"))
torch.cuda.set_device(rank)
model = nn.SyncBatchNorm.convert_sync_batchnorm(
    nn.Sequential(nn.Linear(32, 4096), nn.Linear(4096, 8))
)
model = DDP(model.cuda(rank), device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.randn(256, 32), torch.randint(0, 8, (256,)))
sampler = DistributedSampler(data)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in DataLoader(data, batch_size=16, sampler=sampler):
        loss = nn.functional.cross_entropy(model(x.cuda(rank)), y.cuda(rank))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        dist.barrier()
        if dist.get_rank() == 0:
            print(total.item() / dist.get_world_size())
