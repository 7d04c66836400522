"""The trainings of our collocation measurements, on synthetic data: what each is called, and one training step of it.

small        ResNet-18 in CIFAR form, 32x32, batch 128          large        ResNet-152, 224x224, batch 32
medium       ResNet-50, 64x64, batch 128                         decoder      GPT-2 small, 512 tokens, batch 8
recommender  DLRM-like: 26 embedding tables, small MLPs          encoder      BERT base, 128 tokens, batch 32

fp32 as PyTorch does it by default (convolutions in TF32), SGD with momentum, AdamW for the transformers.
"""
import torch
from torch import nn


def vision(name, side, batch, classes):
    import torchvision

    model = getattr(torchvision.models, name)(num_classes=classes)
    if side == 32:  # as CIFAR variants have it: no early reduction
        model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
        model.maxpool = nn.Identity()
    images, labels = torch.randn(batch, 3, side, side), torch.randint(0, classes, (batch,))
    return model, (images,), lambda output, target: nn.functional.cross_entropy(output, target), labels


def decoder(batch, tokens):
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config())
    words = torch.randint(0, 50257, (batch, tokens))
    return model, (words,), lambda output, target: output.loss, words


def encoder(batch, tokens):
    from transformers import BertConfig, BertForMaskedLM

    model = BertForMaskedLM(BertConfig())
    words = torch.randint(0, 30522, (batch, tokens))
    return model, (words,), lambda output, target: output.loss, words


class Recommender(nn.Module):
    def __init__(self, tables=26, rows=1_000_000, width=64):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum", sparse=True) for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, width), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(width * (tables + 1), 512), nn.ReLU(), nn.Linear(512, 1))

    def forward(self, dense, sparse):
        looked_up = [table(sparse[:, i : i + 1]) for i, table in enumerate(self.tables)]
        return self.top(torch.cat([self.bottom(dense), *looked_up], dim=1)).squeeze(1)


def recommender(batch):
    dense, sparse = torch.randn(batch, 13), torch.randint(0, 1_000_000, (batch, 26))
    return Recommender(), (dense, sparse), nn.functional.binary_cross_entropy_with_logits, torch.rand(batch).round()


MODELS = {
    "small": lambda: vision("resnet18", 32, 128, 10),
    "medium": lambda: vision("resnet50", 64, 128, 1000),
    "large": lambda: vision("resnet152", 224, 32, 1000),
    "decoder": lambda: decoder(8, 512),
    "encoder": lambda: encoder(32, 128),
    "recommender": lambda: recommender(4096),
}


def make_step(name):
    """Builds the model on the GPU. Returns a function that makes one training step."""
    with torch.device("cuda"):
        model, inputs, loss_of, target = MODELS[name]()
    model.train()
    is_transformer, is_sparse = name in ("decoder", "encoder"), name == "recommender"
    if is_transformer:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0 if is_sparse else 0.9)

    def step():
        optimizer.zero_grad()
        output = model(*inputs, labels=target) if is_transformer else model(*inputs)
        loss_of(output, target).backward()
        optimizer.step()

    return step
