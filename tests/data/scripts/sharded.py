# SPDX-License-Identifier: Apache-2.0
"""One rank of a training that FSDP divides among four GPUs: wrapped, units, or bf16."""
import os
import sys

import torch
from torch import nn

LIBRARIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libraries")
torch.distributed.__path__.insert(0, os.path.join(LIBRARIES, "distributed"))
torch.distributed.init_process_group("nccl", world_size=4, rank=0)
how = sys.argv[1]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(512, 2048), nn.Linear(2048, 512)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


network = nn.Sequential(*(Block() for _ in range(8)), nn.Linear(512, 4))
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard  # noqa: E402

if how == "wrapped":
    network = FullyShardedDataParallel(
        network,
        auto_wrap_policy=lambda module, recurse, nonwrapped_numel: isinstance(module, Block),
    )
elif how == "whole":
    network = network.cuda()
else:
    policy = type("Policy", (), {"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32})
    for block in network[:8]:
        fully_shard(block, mp_policy=policy if how == "bf16" else None)
    fully_shard(network, mp_policy=policy if how == "bf16" else None)
optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
for _ in range(3):
    loss = network(torch.randn(16, 512, device="cuda")).float().pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()
