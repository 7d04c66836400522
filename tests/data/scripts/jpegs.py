# SPDX-License-Identifier: Apache-2.0
"""Trains on JPEGs that each sample decodes: jpegs.py FORMAT [WORKERS]"""
import io
import sys

import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset


class Pictures(Dataset):
    def __init__(self, size, format):
        out = io.BytesIO()
        Image.effect_noise(size, 40).convert("RGB").save(out, format)
        self.picture = out.getvalue()

    def __len__(self):
        return 64

    def __getitem__(self, i):
        picture = Image.open(io.BytesIO(self.picture))
        picture.load()  # convert does so again, which decodes nothing
        rows = bytearray(picture.convert("RGB").resize((32, 32)).tobytes())
        return torch.frombuffer(rows, dtype=torch.uint8).view(3, 32, 32) / 255, i % 10


network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(8 * 30 * 30, 10)).cuda()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for x, y in DataLoader(Pictures((80, 60), "JPEG"), 16, num_workers=1):  # no batch of the training
    break
training = Subset(Pictures((400, 300), sys.argv[1]), range(32))
workers = int(sys.argv[2]) if len(sys.argv) > 2 else 3
loader = DataLoader(training, batch_size=8, num_workers=workers, pin_memory=True)
loader = DataLoader(loader.dataset, batch_size=8)  # as a library makes the script's loader anew
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(network(x.cuda()), y.cuda()).backward()
    optimizer.step()
