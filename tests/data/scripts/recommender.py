# SPDX-License-Identifier: Apache-2.0
"""Embedding tables and a small network over their products, as recommenders have it.

With the word `sparse` the tables' gradients are sparse tensors.
"""
import sys

import torch
from torch import nn


SPARSE = "sparse" in sys.argv


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(10000, 16, mode="sum", sparse=SPARSE) for _ in range(4)
        )
        self.bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, 16))
        self.top = nn.Sequential(nn.Linear(16 + 10, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, dense, indices, offsets):
        x = self.bottom(dense)
        rows = [x] + [table(i, o) for table, i, o in zip(self.tables, indices, offsets)]
        features = torch.stack(rows, 1)
        products = torch.bmm(features, features.transpose(1, 2))
        left, right = torch.tril_indices(5, 5, offset=-1)
        return self.top(torch.cat([x, products[:, left, right]], 1)).squeeze(1)


model = Recommender().cuda()
optimizer = (torch.optim.SGD if SPARSE else torch.optim.Adagrad)(model.parameters(), lr=0.01)
criterion = nn.BCEWithLogitsLoss()
for step in range(5):
    dense = torch.rand(128, 13).cuda()
    indices = [torch.randint(0, 10000, (777,)).cuda() for _ in range(4)]
    offsets = [torch.arange(0, 768, 6).cuda() for _ in range(4)]
    loss = criterion(model(dense, indices, offsets), torch.rand(128).round().cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
