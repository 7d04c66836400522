# SPDX-License-Identifier: Apache-2.0
"""Real data for the trainings of models.py, read from a folder in their usual format."""
import glob
import os

import torch
from models import Clicks, Images, Tokens
from torch.utils.data import DataLoader, Dataset, IterableDataset

LOADERS = 4


def images(data, folder):
    from torchvision import datasets, transforms

    to_tensor = [
        transforms.ToTensor(),
        transforms.Normalize((0.5,) * data.channels, (0.5,) * data.channels),
    ]
    if os.path.isdir(os.path.join(folder, "cifar-10-batches-py")):
        found = datasets.CIFAR10(
            folder, transform=transforms.Compose([transforms.Resize(data.side), *to_tensor])
        )
    else:
        found = datasets.ImageFolder(
            folder, transforms.Compose([transforms.RandomResizedCrop(data.side), *to_tensor])
        )
    return DataLoader(
        found,
        data.batch,
        shuffle=True,
        num_workers=LOADERS,
        pin_memory=True,
        drop_last=True,
        persistent_workers=True,
    )


class Text(Dataset):
    """The bytes of all text files, cut into sequences: a byte is a token."""

    def __init__(self, folder, length):
        paths = sorted(glob.glob(os.path.join(folder, "**", "*.txt"), recursive=True))
        if not paths:
            raise SystemExit(f"no *.txt in {folder}")
        text = b"".join(open(path, "rb").read() for path in paths)
        count = len(text) // length
        if count == 0:
            raise SystemExit(
                f"the text in {folder} is shorter than one sequence of {length} tokens"
            )
        self.sequences = torch.frombuffer(
            bytearray(text[: count * length]), dtype=torch.uint8
        ).view(count, length)

    def __len__(self):
        return len(self.sequences)

    def __getitem__(self, i):
        words = self.sequences[i].long()
        return words, words


class ClickLog(IterableDataset):
    """Criteo's lines: label, 13 numbers and 26 categories in hexadecimal, separated by tabs.

    Any field may be empty.
    """

    def __init__(self, folder, rows):
        self.paths = sorted(
            path for path in glob.glob(os.path.join(folder, "*")) if os.path.isfile(path)
        )
        if not self.paths:
            raise SystemExit(f"no files in {folder}")
        self.rows = rows

    def __iter__(self):
        for path in self.paths:
            with open(path, encoding="ascii", errors="replace") as file:
                for number, line in enumerate(file, 1):
                    fields = line.rstrip("\n").split("\t")
                    if len(fields) != 40:
                        raise SystemExit(
                            f"{path}:{number}: {len(fields)} fields, a click log has 40"
                        )
                    dense = (
                        torch.tensor([float(field or 0) for field in fields[1:14]])
                        .clamp(min=0)
                        .log1p()
                    )
                    sparse = torch.tensor(
                        [int(field or "0", 16) % self.rows for field in fields[14:]]
                    )
                    yield dense, sparse, torch.tensor(float(fields[0]))


def open_data(data, folder):
    """Batches of the folder's data, once through it per epoch."""
    if isinstance(data, Images):
        return images(data, folder)
    if isinstance(data, Tokens):
        return DataLoader(Text(folder, data.length), data.batch, shuffle=True, drop_last=True)
    assert isinstance(data, Clicks)
    return DataLoader(ClickLog(folder, data.rows), data.batch, drop_last=True)
