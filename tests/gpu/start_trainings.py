#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One of eleven short trainings: tests/gpu/start_trainings.py KIND[,KIND...] STEPS

The second argument is the number of steps, so that a training beside others takes longer instead of
doing less. Each kind has another shape: images, masks, two optimizers, characters, a recurrent
network, embeddings, recomputed activations; and `small`, whose kernels take much less time than
their launches, as in most trainings of an array of settings; `middle`, where they take about as
long; `fed`, which is `middle` that waits for each batch as if it came from a shared storage; and
`even`, which waits equally long for each: many of these may fall in step with each other, and then
leave the GPU idle together (docs/measured/start.md).

Beside its loss it prints a line of JSON, by which start_trial.py says where the time went: when it
began, when its parameters were on the GPU and when it ended, the steps that it had made at each
second, the seconds in which it waited for batches and for the GPU and computed on a processor, and
when its steps ended, in one second of eight.
"""
import json
import random
import resource
import sys
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

DEVICE = "cuda"
BATCH_S = 0.027  # in the mean; chosen: `fed` computes for about a tenth of its time
SECONDS = 8  # chosen: a training notes the ends of its steps in one of each 8 seconds


def convolution(channels, width):
    return nn.Sequential(nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())


def cnn():
    net = nn.Sequential(
        convolution(3, 64),
        convolution(64, 128),
        nn.MaxPool2d(2),
        convolution(128, 256),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(256, 100),
    ).to(DEVICE)
    x = torch.randn(128, 3, 64, 64, device=DEVICE)
    y = torch.randint(100, (128,), device=DEVICE)
    return net.parameters(), lambda: nn.functional.cross_entropy(net(x), y)


def segmentation():
    down, up = convolution(3, 64), convolution(64, 64)
    net = nn.Sequential(down, nn.MaxPool2d(2), up, nn.Upsample(scale_factor=2), nn.Conv2d(64, 8, 1))
    net = net.to(DEVICE)
    x = torch.randn(32, 3, 192, 192, device=DEVICE)
    y = torch.randint(8, (32, 192, 192), device=DEVICE)
    return net.parameters(), lambda: nn.functional.cross_entropy(net(x), y)


def gan():
    made = nn.Sequential(
        nn.ConvTranspose2d(64, 256, 8),
        nn.ReLU(),
        nn.ConvTranspose2d(256, 64, 4, 4),
        nn.ReLU(),
        nn.Conv2d(64, 3, 3, padding=1),
    ).to(DEVICE)
    judge = nn.Sequential(
        convolution(3, 128),
        nn.MaxPool2d(4),
        convolution(128, 256),
        nn.Flatten(),
        nn.Linear(256 * 64, 1),
    ).to(DEVICE)
    real = torch.randn(96, 3, 32, 32, device=DEVICE)

    def loss():
        fake = made(torch.randn(96, 64, 1, 1, device=DEVICE))
        return judge(fake).mean() - judge(real).mean() + judge(fake).square().mean()

    return [*made.parameters(), *judge.parameters()], loss


def characters():
    layer = nn.TransformerEncoderLayer(384, 6, 1536, dropout=0.0, batch_first=True)
    net = nn.Sequential(nn.Embedding(96, 384), nn.TransformerEncoder(layer, 6), nn.Linear(384, 96))
    net = net.to(DEVICE)
    x = torch.randint(96, (48, 256), device=DEVICE)
    return net.parameters(), lambda: nn.functional.cross_entropy(net(x).flatten(0, 1), x.flatten())


def lstm():
    net, head = nn.LSTM(128, 512, 2, batch_first=True).to(DEVICE), nn.Linear(512, 64).to(DEVICE)
    x = torch.randn(128, 96, 128, device=DEVICE)
    y = torch.randint(64, (128,), device=DEVICE)
    return [*net.parameters(), *head.parameters()], lambda: nn.functional.cross_entropy(
        head(net(x)[0][:, -1]), y
    )


def recommender():
    tables = nn.EmbeddingBag(2_000_000, 64, mode="sum").to(DEVICE)
    net = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 1)).to(DEVICE)
    rows = torch.randint(2_000_000, (16384, 26), device=DEVICE)
    y = torch.rand(16384, 1, device=DEVICE)
    return [*tables.parameters(), *net.parameters()], lambda: nn.functional.mse_loss(
        net(tables(rows)), y
    )


def checkpointed():
    blocks = nn.ModuleList(
        nn.Sequential(nn.Linear(2048, 8192), nn.GELU(), nn.Linear(8192, 2048)) for _ in range(6)
    ).to(DEVICE)
    x = torch.randn(2048, 2048, device=DEVICE)

    def loss():
        y = x
        for block in blocks:
            y = y + checkpoint(block, y, use_reentrant=False)
        return y.square().mean()

    return blocks.parameters(), loss


def layers(width, samples):
    sizes = [width] * 8
    hidden = [nn.Sequential(nn.Linear(a, b), nn.ReLU()) for a, b in zip(sizes, sizes[1:])]
    net = nn.Sequential(*hidden, nn.Linear(width, 10)).to(DEVICE)
    x = torch.randn(samples, width, device=DEVICE)
    y = torch.randint(10, (samples,), device=DEVICE)
    return net.parameters(), lambda: nn.functional.cross_entropy(net(x), y)


def small():
    return layers(256, 512)


def middle():
    return layers(1024, 1024)


class Waits:
    """Waits for a batch before each step, and for the step before. Between its steps it uses
    neither the GPU nor a processor."""

    def __init__(self, compute, batch_s):
        self.compute, self.batch_s = compute, batch_s
        self.step_has_ended = torch.cuda.Event(blocking=True)
        self.gpu_s = self.batches_s = 0.0
        self.ends = []

    def __call__(self):
        self.step_has_ended.record()
        began = time.monotonic()
        self.step_has_ended.synchronize()
        wanted, clock = time.monotonic(), time.time()
        time.sleep(self.batch_s())
        self.gpu_s += wanted - began
        self.batches_s += time.monotonic() - wanted
        if int(clock) % SECONDS == 0:
            self.ends.append(clock)
        return self.compute()


def even():
    parameters, compute = middle()
    return parameters, Waits(compute, lambda: BATCH_S)


def fed():
    parameters, compute = middle()
    return parameters, Waits(compute, lambda: random.uniform(BATCH_S / 2, 3 * BATCH_S / 2))


KINDS = {
    "cnn": cnn,
    "segmentation": segmentation,
    "gan": gan,
    "characters": characters,
    "lstm": lstm,
    "recommender": recommender,
    "checkpointed": checkpointed,
    "small": small,
    "middle": middle,
    "even": even,
    "fed": fed,
}


class Progress:
    """How many steps were made at each second of the clock, and what they waited for."""

    def __init__(self):
        self.began, self.marks, self.made = time.time(), [], 0

    def note(self, steps):
        second = int(time.time())
        if not self.marks or self.marks[-1][0] != second:
            self.marks.append([second, steps])
        self.made = steps

    def to_dict(self, computes, loss):
        used = resource.getrusage(resource.RUSAGE_SELF)
        waits = {}
        if isinstance(loss, Waits):
            waits = {"batches_s": loss.batches_s, "gpu_s": loss.gpu_s, "ends": loss.ends}
        return {
            "began": self.began,
            "computes": computes,
            "ended": time.time(),
            "steps": [*self.marks, [time.time(), self.made]],
            "processor_s": used.ru_utime + used.ru_stime,
            "switched_out": used.ru_nivcsw,
            **waits,
        }


def train(kind, steps):
    progress = Progress()
    parameters, loss = KINDS[kind]()
    optimizer = torch.optim.AdamW(parameters, 1e-4)
    began, computes = time.monotonic(), time.time()
    for step in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        progress.note(step + 1)
    value = value.item()  # waits for the GPU
    peak = torch.cuda.max_memory_allocated() >> 20
    print(f"{kind} {steps} steps {time.monotonic() - began:.2f} s loss {value:.5f} {peak} MiB")
    print(json.dumps(progress.to_dict(computes, loss)))


def main():
    for kind in sys.argv[1].split(","):
        train(kind, int(sys.argv[2]))


if __name__ == "__main__":
    main()
