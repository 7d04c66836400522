# SPDX-License-Identifier: Apache-2.0
"""A recurrent language model whose weights are updated without an optimizer."""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.rnn = nn.Embedding(1000, 64), nn.LSTM(64, 64, 2, dropout=0.2)
        self.decoder = nn.Linear(64, 1000)

    def forward(self, tokens, hidden):
        output, hidden = self.rnn(self.encoder(tokens), hidden)
        return torch.log_softmax(self.decoder(output), dim=-1).view(-1, 1000), hidden


device = torch.device("cuda")
data = torch.randint(0, 1000, (700, 20)).to(device)
model = Model().to(device)
hidden = tuple(next(model.parameters()).new_zeros(2, 20, 64) for _ in range(2))
for i in range(0, data.size(0) - 1, 35):
    tokens, targets = data[i : i + 35], data[i + 1 : i + 36].reshape(-1)
    model.zero_grad()
    hidden = tuple(state.detach() for state in hidden)
    output, hidden = model(tokens, hidden)
    nn.functional.nll_loss(output[: targets.numel()], targets).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    for parameter in model.parameters():
        parameter.data.add_(parameter.grad, alpha=-20)
