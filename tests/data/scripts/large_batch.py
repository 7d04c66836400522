# SPDX-License-Identifier: Apache-2.0
"""Batches of 5,000 samples: pictures with labels; texts of different lengths with `texts`."""
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

ROWS, BATCH = 20000, 5000


class Samples(Dataset):
    def __init__(self):
        self.reads = 0

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        assert torch.get_num_threads() == 1
        self.reads += 1
        return {"picture": torch.zeros(8), "label": index // 100, "name": "x" * self.length(index)}

    def length(self, index):
        return index % 7 if "texts" in sys.argv else 3


def collate(samples):
    labels = torch.tensor([sample.pop("label") for sample in samples])
    return torch.stack([sample.pop("picture") for sample in samples]), labels


samples = Samples()
network = nn.Linear(8, 200).cuda()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for pictures, labels in DataLoader(samples, batch_size=BATCH, collate_fn=collate):
    print("reads", samples.reads, "labels", labels[:500:100].tolist(), len(labels.unique()))
    nn.functional.cross_entropy(network(pictures.cuda()), labels.cuda()).backward()
    optimizer.step()
