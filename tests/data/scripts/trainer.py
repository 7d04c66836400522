# SPDX-License-Identifier: Apache-2.0
"""A class that runs the loop and keeps no output, an average of the weights, checkpointing."""
import copy

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(32, 256), nn.Linear(256, 1000)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(256, 256), nn.Tanh()) for _ in range(4))

    def forward(self, x, labels):
        x = self.first(x)
        for block in self.blocks:
            x = checkpoint(block, x)
        logits = self.last(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Trainer:
    def __init__(self, model, data):
        self.model, self.data = model.to("cuda"), data
        self.average = copy.deepcopy(self.model)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 0.9**step)
        self.lost = torch.tensor(0.0, device="cuda")

    def compute_loss(self, batch):
        outputs = self.model(**{name: value.cuda() for name, value in batch.items()})
        return outputs["loss"]

    def train(self):
        for batch in self.data:
            self.model.zero_grad()
            loss = self.compute_loss(batch)
            loss.backward()
            self.lost += loss.detach()
            self.optimizer.step()
            self.schedule.step()
            with torch.no_grad():
                for mean, now in zip(self.average.parameters(), self.model.parameters()):
                    mean.mul_(0.99).add_(now, alpha=0.01)


rows = [{"x": torch.randn(32), "labels": torch.tensor(i % 10)} for i in range(64)]
Trainer(
    Net(), torch.utils.data.DataLoader(rows, batch_size=16, shuffle=True, drop_last=True)
).train()
