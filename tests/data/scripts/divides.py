# SPDX-License-Identifier: Apache-2.0
"""A model that is divided among GPUs in a way that is not followed: in the host's memory."""
import os
import sys
import types

import torch

LIBRARIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libraries")
sys.path.insert(0, LIBRARIES)
torch.distributed.__path__.insert(0, os.path.join(LIBRARIES, "distributed"))
torch.distributed.init_process_group("nccl", world_size=2, rank=0)
network = torch.nn.Linear(64, 64).cuda()
from torch.distributed.fsdp import FullyShardedDataParallel  # noqa: E402

to_host = types.SimpleNamespace(offload_params=True)
network = FullyShardedDataParallel(network, cpu_offload=to_host)
