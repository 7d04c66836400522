# SPDX-License-Identifier: Apache-2.0
import torch

from . import functional


class AdamW8bit(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    for name in ("state1", "state2"):
                        state[name] = torch.zeros_like(p, dtype=torch.uint8)
                    for name in ("absmax1", "absmax2"):
                        blocks = -(-p.numel() // 256)
                        state[name] = torch.zeros(blocks, dtype=torch.float32, device=p.device)
                functional.optimizer_update_8bit_blockwise("adam", p.grad, p, state["state1"])
