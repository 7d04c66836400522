# SPDX-License-Identifier: Apache-2.0
"""A language model whose batches have the time first: 35 words of 20 texts."""
import sys

import torch


class Network(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.embedding, self.head = torch.nn.Embedding(100, 32), torch.nn.Linear(32, 100)
        self.layer = layer

    def forward(self, words):
        result = self.layer(self.embedding(words))
        return self.head(result[0] if isinstance(result, tuple) else result)


if sys.argv[1] == "lstm":
    layer = torch.nn.LSTM(32, 32)
else:
    layer = torch.nn.TransformerEncoderLayer(32, 4, batch_first=sys.argv[1] == "batch_first")
network = Network(layer).cuda()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    network(torch.randint(0, 100, (35, 20)).cuda()).sum().backward()
    optimizer.step()
