# SPDX-License-Identifier: Apache-2.0
"""What the stages that use PyTorch share: the device, and what it has used."""

import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
HALF = torch.float16 if DEVICE.type == "cuda" else torch.float32


def synchronize():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def resources():
    """For run_stage: what the stage took of the GPU."""
    if DEVICE.type != "cuda":
        return {}
    return {"gpu_memory_mib": torch.cuda.max_memory_reserved() / 2**20}
