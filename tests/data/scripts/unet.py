# SPDX-License-Identifier: Apache-2.0
"""Skip connections, a loss of two parts, validation before the first step, RMSprop. With the word
benchmark cuDNN tries its kernels."""
import sys

import torch
import torch.nn.functional as F
from torch import nn


class Double(nn.Sequential):
    def __init__(self, before, after):
        super().__init__(
            nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU(True)
        )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Double(3, 16), Double(16, 32)
        self.up, self.last = nn.ConvTranspose2d(32, 16, 2, 2), Double(32, 16)
        self.out = nn.Conv2d(16, 2, 1)

    def forward(self, x):
        first = self.first(x)
        second = self.second(F.max_pool2d(first, 2))
        return self.out(self.last(torch.cat([first, self.up(second)], 1)))


def dice(probability, truth):
    return 1 - 2 * (probability * truth).sum() / (probability.sum() + truth.sum() + 1e-6)


torch.backends.cudnn.benchmark = "benchmark" in sys.argv
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = UNet().to(device=device, memory_format=torch.channels_last)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-5, momentum=0.9, foreach=True)
for epoch in range(3):
    model.eval()
    with torch.no_grad():
        masks = model(torch.zeros(2, 3, 32, 32, device=device)).argmax(1).cpu().numpy()
        assert masks.shape == (2, 32, 32)
    model.train()
    for _ in range(2):
        images = torch.rand(4, 3, 32, 32).to(
            device, torch.float32, memory_format=torch.channels_last
        )
        truth = torch.randint(0, 2, (4, 32, 32)).to(device=device, dtype=torch.long)
        predicted = model(images)
        loss = F.cross_entropy(predicted, truth)
        loss += dice(F.softmax(predicted, 1), F.one_hot(truth, 2).permute(0, 3, 1, 2).float())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
