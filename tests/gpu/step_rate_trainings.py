#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The trainings of step_rate_trial.py, each in a process that trains when it is asked to.

    tests/gpu/step_rate_trainings.py NAME DEVICE

NAME is one of TRAININGS, or WORKLOADS:MODEL: a model of WORKLOADS/models.py, on one batch that
stays on the GPU; each step is waited for.

It prints "ready {...}" after its first steps. A line "run SECONDS" on its input makes it train for
this time; then it prints "steps {...}": the ends of its steps, and its breaks (evaluations), in
seconds of CLOCK_MONOTONIC. DEVICE "cpu" is a dry run: it reports its steps by colloc_step where the
preloaded library is there.
"""
import ctypes
import json
import sys
import time

PRINT_EVERY = 10  # steps: the loss is read, as for a progress bar
DEVICE = "cuda"


def scaled(on_gpu, dry):
    return on_gpu if DEVICE == "cuda" else dry


def batches(make):
    """Batches on the host, in pinned memory as a loader leaves them, copied step by step."""
    held = [tuple(make() for make in make) for _ in range(4)]
    if DEVICE == "cuda":
        held = [tuple(tensor.pin_memory() for tensor in batch) for batch in held]
    index = 0
    while True:
        yield tuple(tensor.to(DEVICE, non_blocking=True) for tensor in held[index % len(held)])
        index += 1


def images(batch, size, classes):
    import torch

    return batches(
        [
            lambda: torch.randn(batch, 3, size, size),
            lambda: torch.randint(0, classes, (batch,)),
        ]
    )


def supervised(model, source, optimizer, loss_of, precision=None):
    """A function that makes one step."""
    import torch

    scaler = torch.amp.GradScaler() if precision == "float16" else None
    kind = getattr(torch, precision) if precision else None
    count = [0]

    def step():
        batch = next(source)
        optimizer.zero_grad(set_to_none=True)
        if kind:
            with torch.autocast(DEVICE, kind):
                loss = loss_of(model, batch)
        else:
            loss = loss_of(model, batch)
        if scaler:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()
        count[0] += 1
        if count[0] % PRINT_EVERY == 0:
            loss.item()

    return step


def classified(model, batch):
    import torch

    return torch.nn.functional.cross_entropy(model(batch[0]), batch[1])


def resnet():
    import torch
    import torchvision

    model = torchvision.models.resnet50().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    return supervised(model, images(48, 224, 1000), optimizer, classified)


def vit_half():
    import torch
    import torchvision

    model = torchvision.models.vit_b_16().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    return supervised(model, images(32, 224, 1000), optimizer, classified, "float16")


def gpt2():
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config()).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    source = batches([lambda: torch.randint(0, 50257, (8, 512))])
    return supervised(
        model, source, optimizer, lambda m, batch: m(batch[0], labels=batch[0]).loss, "bfloat16"
    )


def lstm():
    """Sequences of a random length for each batch."""
    import random

    import torch

    width, words = scaled(1024, 32), 5000
    model = torch.nn.ModuleDict(
        {
            "in": torch.nn.Embedding(words, width),
            "lstm": torch.nn.LSTM(width, width, 2, batch_first=True),
            "out": torch.nn.Linear(width, words),
        }
    ).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    lengths = random.Random(3)

    def source():
        for (tokens,) in batches([lambda: torch.randint(0, words, (32, 129))]):
            yield tokens[:, : lengths.randrange(33, 130)]

    def loss_of(m, tokens):
        out, _ = m["lstm"](m["in"](tokens[:, :-1]))
        return torch.nn.functional.cross_entropy(
            m["out"](out).flatten(0, 1), tokens[:, 1:].flatten()
        )

    return supervised(model, source(), optimizer, loss_of)


def gan():
    """A discriminator and a generator, one step of each for a batch."""
    import torch

    nn, size = torch.nn, scaled(64, 8)

    def down(a, b):
        return [nn.Conv2d(a, b, 4, 2, 1), nn.BatchNorm2d(b), nn.LeakyReLU(0.2)]

    def up(a, b):
        return [nn.ConvTranspose2d(a, b, 4, 2, 1), nn.BatchNorm2d(b), nn.ReLU()]

    judge = nn.Sequential(
        *down(3, size), *down(size, 2 * size), *down(2 * size, 4 * size), nn.Conv2d(4 * size, 1, 8)
    ).to(DEVICE)
    maker = nn.Sequential(
        nn.ConvTranspose2d(100, 4 * size, 8),
        *up(4 * size, 2 * size),
        *up(2 * size, size),
        nn.ConvTranspose2d(size, 3, 4, 2, 1),
        nn.Tanh(),
    ).to(DEVICE)
    one = torch.optim.Adam(judge.parameters(), 2e-4)
    two = torch.optim.Adam(maker.parameters(), 2e-4)
    entropy = nn.functional.binary_cross_entropy_with_logits
    source = images(scaled(128, 4), 64, 10)

    def step():
        real, _ = next(source)
        fake = maker(torch.randn(real.shape[0], 100, 1, 1, device=DEVICE))
        one.zero_grad(set_to_none=True)
        good, bad = judge(real), judge(fake.detach())
        loss = entropy(good, torch.ones_like(good)) + entropy(bad, torch.zeros_like(bad))
        loss.backward()
        one.step()
        two.zero_grad(set_to_none=True)
        said = judge(fake)
        entropy(said, torch.ones_like(said)).backward()
        two.step()

    return step


def detection():
    import torch
    import torchvision

    model = torchvision.models.detection.fasterrcnn_resnet50_fpn(
        weights=None, weights_backbone=None
    ).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), 0.001, momentum=0.9)
    source = images(2, 400, 10)

    def targets():
        corner = torch.rand(5, 2) * 200
        boxes = torch.cat([corner, corner + 20 + torch.rand(5, 2) * 150], 1)
        return {"boxes": boxes.to(DEVICE), "labels": torch.randint(1, 90, (5,)).to(DEVICE)}

    def loss_of(m, batch):
        return sum(m(list(batch[0]), [targets(), targets()]).values())

    return supervised(model, source, optimizer, loss_of)


def recommender():
    """26 embedding tables with sparse gradients, and two perceptrons."""
    import torch

    nn, rows, width = torch.nn, scaled(200000, 1000), 64
    tables = nn.ModuleList(nn.EmbeddingBag(rows, width, sparse=True, mode="sum") for _ in range(26))
    below = nn.Sequential(nn.Linear(13, 256), nn.ReLU(), nn.Linear(256, width), nn.ReLU())
    above = nn.Sequential(nn.Linear(27 * width, 512), nn.ReLU(), nn.Linear(512, 1))
    model = nn.ModuleList([tables, below, above]).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    size = scaled(2048, 64)
    source = batches(
        [
            lambda: torch.randn(size, 13),
            lambda: torch.randint(0, rows, (26, size, 4)),
            lambda: torch.randint(0, 2, (size, 1)).float(),
        ]
    )

    def loss_of(m, batch):
        found = [table(batch[1][i]) for i, table in enumerate(m[0])]
        out = m[2](torch.cat([m[1](batch[0]), *found], 1))
        return nn.functional.binary_cross_entropy_with_logits(out, batch[2])

    return supervised(model, source, optimizer, loss_of)


def small_network():
    import torch

    nn, layers, width = torch.nn, [], 3
    for out in (64, 64, 128, 128, 256, 256):
        layers += [nn.Conv2d(width, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU()]
        width = out
        if out != 256:
            layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10)).to(
        DEVICE
    )


def accumulate():
    """Four batches for each step of the optimizer."""
    import torch

    model = small_network()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    source = images(scaled(64, 2), 64, 10)

    def step():
        optimizer.zero_grad(set_to_none=True)
        for _ in range(4):
            (classified(model, next(source)) / 4).backward()
        optimizer.step()

    return step


def evaluation():
    """After each 150 steps an evaluation of 60 batches."""
    import torch

    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    source = images(scaled(128, 2), 64, 10)
    train = supervised(model, source, optimizer, classified)
    count = [0]

    def step():
        pause = None
        if count[0] and count[0] % 150 == 0:
            begin = time.monotonic()
            model.eval()
            right = 0
            with torch.no_grad():
                for _ in range(60):
                    batch = next(source)
                    right += (model(batch[0]).argmax(1) == batch[1]).sum().item()
            model.train()
            pause = (begin, time.monotonic())
        count[0] += 1
        train()
        return pause

    return step


def compiled():
    import torch

    layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, dropout=0.0, batch_first=True)
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 256), torch.nn.TransformerEncoder(layer, 3), torch.nn.Linear(256, 10)
    ).to(DEVICE)
    if hasattr(torch, "compile"):
        model = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    source = batches(
        [
            lambda: torch.randn(scaled(32, 2), 128, 64),
            lambda: torch.randint(0, 10, (scaled(32, 2),)),
        ]
    )
    return supervised(
        model,
        source,
        optimizer,
        lambda m, batch: torch.nn.functional.cross_entropy(m(batch[0]).mean(1), batch[1]),
    )


def graph():
    """The whole step is one CUDA graph; the batch is copied before it."""
    import torch

    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    source = images(scaled(64, 2), 64, 10)
    if DEVICE == "cpu":
        return supervised(model, source, optimizer, classified)
    static = next(source)

    def train():
        optimizer.zero_grad(set_to_none=True)
        loss = classified(model, static)
        loss.backward()
        optimizer.step()
        return loss

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            train()
    torch.cuda.current_stream().wait_stream(stream)
    recorded = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(recorded):
        loss = train()
    count = [0]

    def step():
        for place, value in zip(static, next(source)):
            place.copy_(value, non_blocking=True)
        recorded.replay()
        count[0] += 1
        if count[0] % PRINT_EVERY == 0:
            loss.item()

    return step


def jax_network():
    import jax
    import numpy

    if DEVICE == "cuda" and jax.default_backend() != "gpu":
        raise RuntimeError(f"JAX uses {jax.default_backend()}")
    numbers = numpy.random.default_rng(1)
    sizes = [3 * 32 * 32, 2048, 2048, 2048, 10]
    weights = [numbers.normal(0, 0.02, (a, b)).astype("float32") for a, b in zip(sizes, sizes[1:])]
    held = [
        (numbers.normal(size=(256, sizes[0])).astype("float32"), numbers.integers(0, 10, 256))
        for _ in range(4)
    ]

    def loss_of(parameters, x, y):
        for w in parameters[:-1]:
            x = jax.nn.relu(x @ w)
        return -jax.nn.log_softmax(x @ parameters[-1])[jax.numpy.arange(len(y)), y].mean()

    @jax.jit
    def update(parameters, x, y):
        loss, slopes = jax.value_and_grad(loss_of)(parameters, x, y)
        return [w - 0.01 * s for w, s in zip(parameters, slopes)], loss

    state = [[jax.numpy.asarray(w) for w in weights], 0]

    def step():
        state[0], loss = update(state[0], *held[state[1] % 4])
        state[1] += 1
        if state[1] % PRINT_EVERY == 0:
            float(loss)

    return step


TRAININGS = {
    "resnet": resnet,
    "vit_half": vit_half,
    "gpt2": gpt2,
    "lstm": lstm,
    "gan": gan,
    "detection": detection,
    "recommender": recommender,
    "accumulate": accumulate,
    "evaluation": evaluation,
    "compile": compiled,
    "graph": graph,
    "jax": jax_network,
}


def of_workloads(folder, model):
    sys.path.insert(0, folder)
    import models
    import torch

    step = models.make_step(model, DEVICE)

    def whole():
        step()
        if DEVICE == "cuda":
            torch.cuda.synchronize()

    return whole


def make_step(name):
    folder, is_of_workloads, model = name.rpartition(":")
    return of_workloads(folder, model) if is_of_workloads else TRAININGS[name]()


def finish(name):
    """Waits for the GPU, so that one training leaves nothing to the next one's time."""
    if name != "jax" and DEVICE == "cuda":
        import torch

        torch.cuda.synchronize()


def reporter():
    """What reports a step in a dry run."""
    function = getattr(ctypes.CDLL(None), "colloc_step", None)
    return (lambda: function(ctypes.c_long(1))) if function and DEVICE == "cpu" else lambda: None


def train(step, seconds, report):
    ends, breaks = [], []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pause = step()
        report()
        ends.append(time.monotonic())
        if pause:
            breaks.append(pause)
    return ends, breaks


def main(name, device):
    global DEVICE
    DEVICE = device
    begin = time.monotonic()
    if name != "jax":
        import torch

        torch.set_num_threads(1)
        torch.backends.cuda.matmul.allow_tf32 = True
    step = make_step(name)
    for _ in range(3):
        step()
    finish(name)
    print("ready", json.dumps({"seconds": round(time.monotonic() - begin, 2)}), flush=True)
    report = reporter()
    for line in sys.stdin:
        ends, breaks = train(step, float(line.split()[1]), report)
        finish(name)
        print("steps", json.dumps({"ends": ends, "breaks": breaks}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 3 or not (":" in sys.argv[1] or sys.argv[1] in TRAININGS):
        sys.exit(__doc__)
    main(*sys.argv[1:])
