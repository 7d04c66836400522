# SPDX-License-Identifier: Apache-2.0
"""Real data for the trainings of models.py, read from a folder in their usual format.

    loaders.py IMAGES SIDE LOADERS SECONDS
        reads a folder of images for that long, without a training, and prints the rate:
        {"samples_per_s": 812.5}
"""
import glob
import itertools
import json
import os
import sys
import tempfile
import time

import torch
from models import Clicks, Images, Tokens
from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler

LOADERS = 4  # processes that decode images
PICTURES, SIDE = 32, 224  # of decode_rate: they are read again and again; pixels of the crop


def order_of(found, batch, steps):
    """Options of DataLoader: an epoch is all data, or `steps` batches drawn from it at random."""
    if steps is None:
        return {"shuffle": True}
    return {"sampler": RandomSampler(found, replacement=True, num_samples=steps * batch)}


def images(data, folder, steps, loaders):
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
        **order_of(found, data.batch, steps),
        num_workers=loaders,
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


class Repeated:
    """`steps` batches of a log, in its order. The log begins again at its end."""

    def __init__(self, batches, steps):
        self.batches, self.steps = batches, steps

    def endless(self):
        count = 0
        while True:
            before = count
            for batch in self.batches:
                count += 1
                yield batch
            if count == before:
                raise SystemExit("the click log is shorter than one batch")

    def __iter__(self):
        return itertools.islice(self.endless(), self.steps)


def open_data(data, folder, steps=None, loaders=LOADERS):
    """Batches of the folder's data: once through it per epoch, or `steps` of them."""
    if isinstance(data, Images):
        return images(data, folder, steps, loaders)
    if isinstance(data, Tokens):
        text = Text(folder, data.length)
        return DataLoader(text, data.batch, **order_of(text, data.batch, steps), drop_last=True)
    assert isinstance(data, Clicks)
    log = DataLoader(ClickLog(folder, data.rows), data.batch, drop_last=True)
    return log if steps is None else Repeated(log, steps)


def measured_rate(folder, side, loaders, seconds):
    """Images per second, once each loader has given its first batch."""
    batch = 32
    batches = iter(open_data(Images(batch, side, 1000), folder, 10**6, loaders))
    for _ in range(loaders):
        next(batches)
    began, count = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        next(batches)
        count += batch
    return count / (time.monotonic() - began)


def decode_rate(processes, seconds):
    """Pictures of ImageNet's size that this host decodes a second.

    processes: of the loader; 0: as many as this process may use processors
    """
    import pictures

    with tempfile.TemporaryDirectory(prefix="colloc-pictures-") as folder:
        pictures.write_folder(folder, PICTURES, **pictures.IMAGENET)
        return measured_rate(folder, SIDE, processes or len(os.sched_getaffinity(0)), seconds)


def main():
    folder, side, loaders, seconds = sys.argv[1:]
    rate = measured_rate(folder, int(side), int(loaders), float(seconds))
    print(json.dumps({"samples_per_s": rate}))


if __name__ == "__main__":
    main()
