# SPDX-License-Identifier: Apache-2.0
"""Trains one network: Adam at 1e-3, batches of 128, cross-entropy, at most 600 epochs.

Training stops early when the validation loss has not fallen for 30 epochs; the weights of the best
epoch are kept. The same rows, plan and seed give the same weights on the same machine and PyTorch.
"""

import copy
import dataclasses
import time

import torch
from torch import nn

from colloc_memnet import examples, weights
from colloc_memnet.network import Network

EPOCHS_MAX, PATIENCE, BATCH = 600, 30, 128
# An epoch has at least the number of the thesis's training rows of MLPs, so that patience means as
# many steps for a small data set.
EPOCH_ROWS = 2100
LEARNING_RATE = 1e-3  # as Adam's authors propose (Kingma and Ba, 2015)


@dataclasses.dataclass
class Progress:
    plan: str
    epoch: int = 0
    best_epoch: int = 0
    training_loss: float = 0.0
    validation_loss: float = 0.0
    best_loss: float = 0.0
    took_s: float = 0.0

    def is_best(self):
        return self.epoch == 1 or self.validation_loss < self.best_loss

    def may_continue(self, epochs_max):
        return self.epoch < epochs_max and self.epoch - self.best_epoch < PATIENCE

    def end_epoch(self, training_loss, validation_loss, network, best):
        """Returns the best epoch's weights. `best`: of the best one before; None: there is none."""
        self.epoch += 1
        self.training_loss = training_loss
        self.validation_loss = validation_loss
        if not self.is_best():
            return best
        self.best_loss, self.best_epoch = self.validation_loss, self.epoch
        return copy.deepcopy(network.state_dict())


class Batch:
    """Examples as tensors."""

    def __init__(self, rows):
        self.values = torch.stack([torch.from_numpy(row.values) for row in rows])
        self.sequences = [torch.from_numpy(row.tokens) for row in rows]
        self.labels = torch.tensor([row.label for row in rows])

    def loss(self, network):
        logits = network(self.values, self.sequences)
        return nn.functional.cross_entropy(logits, self.labels)


def train_epoch(network, optimizer, rows, generator):
    """Passes over all rows, each time in another order. Returns the mean loss of a row."""
    network.train()
    total, seen = 0.0, 0
    while seen < EPOCH_ROWS:
        order = torch.randperm(len(rows), generator=generator).tolist()
        for start in range(0, len(order) - 1, BATCH):  # a batch norm needs two rows
            batch = Batch([rows[i] for i in order[start : start + BATCH]])
            loss = batch.loss(network)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch.labels)
            seen += len(batch.labels)
    return total / seen


def validation_loss(network, batches):
    network.eval()
    with torch.no_grad():
        losses = [(batch.loss(network).item(), len(batch.labels)) for batch in batches]
    return sum(loss * n for loss, n in losses) / sum(n for _, n in losses)


def fit(network, parts, generator, epochs_max, on_epoch, progress):
    """Trains to the end and leaves the best epoch's weights in the network."""
    training, validation = parts
    batches = [Batch(validation[i : i + BATCH]) for i in range(0, len(validation), BATCH)]
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    best, began = None, time.monotonic()
    while best is None or progress.may_continue(epochs_max):
        training_loss = train_epoch(network, optimizer, training, generator)
        best = progress.end_epoch(training_loss, validation_loss(network, batches), network, best)
        progress.took_s = time.monotonic() - began
        on_epoch(progress)
    network.load_state_dict(best)


def train(feed, plan, seed, epochs_max, on_epoch):
    """Trains the network of a plan.

    feed:       feed.Feed
    epochs_max: None: EPOCHS_MAX
    on_epoch:   called with a Progress after each epoch

    Returns (text of weights, number of classes). Raises examples.NoData without enough rows, and
    ValueError for memory beyond the largest number of classes.
    """
    rows = examples.rows_of(feed, plan, "training")
    classes = examples.count_classes(rows, plan)
    scaling = examples.make_scaling(rows, plan)
    parts = [
        examples.make_examples(examples.rows_of(feed, plan, part), plan, scaling, classes)
        for part in ("training", "validation")
    ]
    if not parts[1]:
        raise examples.NoData(f"no validation rows of kind {plan.family}")
    torch.manual_seed(seed)
    network = Network(plan, classes)
    generator = torch.Generator().manual_seed(seed)
    fit(network, parts, generator, epochs_max or EPOCHS_MAX, on_epoch, Progress(plan.name))
    return weights.format_network(plan, seed, scaling, classes, network.numbers()), classes
