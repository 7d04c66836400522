# SPDX-License-Identifier: Apache-2.0
"""The trainings of the collocation studies: their names, and one training step of each.

resnet18      ResNet-18 in CIFAR form, 32x32, batch 128
resnet26      ResNet-26, 32x32, batch 128
resnet50      ResNet-50, 64x64, batch 128
resnet152     ResNet-152, 224x224, batch 32
efficientnet  EfficientNetV2-S, 64x64, batch 128
cait          CaiT-XXS24, 224x224, batch 32
heavy         ResNet-50, 224x224, batch 128
digits        two convolutions, 28x28, batch 64
decoder       GPT-2 small, 512 tokens, batch 8
encoder       BERT base, 128 tokens, batch 32
recommender   DLRM-like: 26 embedding tables, small MLPs, batch 4096
recommender29 the same with tables of 29 GB
bert_large    BERT large, 512 tokens, batch 8; bert_base: batch 32
gpt2_large    GPT-2 large, 512 tokens, batch 8
xlnet_large   XLNet large, 512 tokens, batch 8; xlnet_base likewise

The collocation paper (EuroMLSys 2024) names resnet26, resnet50 and resnet152 "small", "medium" and
"large". Precision is PyTorch's default fp32 (convolutions in TF32). The optimizer is SGD with
momentum, AdamW for the transformers.
"""
import contextlib
import importlib.util
import sys
from dataclasses import dataclass
from typing import Callable

import torch
from torch import nn

SIZES = {"small": "resnet26", "medium": "resnet50", "large": "resnet152"}


@dataclass
class Images:
    """Batches of images and class numbers."""

    batch: int
    side: int
    classes: int
    channels: int = 3

    def synthetic(self):
        return torch.randn(self.batch, self.channels, self.side, self.side), torch.randint(
            0, self.classes, (self.batch,)
        )


@dataclass
class Tokens:
    """Batches of token sequences, each its own target."""

    batch: int
    length: int
    vocabulary: int

    def synthetic(self):
        words = torch.randint(0, self.vocabulary, (self.batch, self.length))
        return words, words


@dataclass
class Clicks:
    """Batches of (13 numbers, 26 categories) and whether there was a click, as in Criteo's logs."""

    batch: int
    rows: int

    def synthetic(self):
        return (
            torch.randn(self.batch, 13),
            torch.randint(0, self.rows, (self.batch, 26)),
            torch.rand(self.batch).round(),
        )


@dataclass
class Training:
    data: object
    build: Callable  # of the data: their shapes are the model's
    optimizer: Callable
    loss: Callable  # of the model's output and the last tensor of a batch
    library: str = ""  # that `build` needs beside PyTorch


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def sgd_for_sparse(model):
    return torch.optim.SGD(model.parameters(), lr=0.01)


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-4)


def by_torchvision(name, data):
    def build(data):
        import torchvision

        return getattr(torchvision.models, name)(num_classes=data.classes)

    return Training(data, build, sgd, nn.functional.cross_entropy, "torchvision")


def by_timm(name, data, is_for_one_size=False):
    def build(data):
        import timm

        size = {"img_size": data.side} if is_for_one_size else {}
        return timm.create_model(name, num_classes=data.classes, **size)

    return Training(data, build, sgd, nn.functional.cross_entropy, "timm")


def cifar_resnet18(data):
    """ResNet-18 as for CIFAR: without the early reduction."""
    import torchvision

    model = torchvision.models.resnet18(num_classes=data.classes)
    model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    model.maxpool = nn.Identity()
    return model


def digits(data):
    return nn.Sequential(
        nn.Conv2d(1, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.25),
        nn.Flatten(),
        nn.Linear(9216, 128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, data.classes),
    )


def gpt2(data):
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config())


def bert(data):
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(BertConfig())


def bert_large(data):
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(
        BertConfig(
            hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096
        )
    )


def gpt2_large(data):
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(n_embd=1280, n_layer=36, n_head=20))


def xlnet(width, layers, heads):
    def build(data):
        from transformers import XLNetConfig, XLNetLMHeadModel

        return XLNetLMHeadModel(
            XLNetConfig(d_model=width, n_layer=layers, n_head=heads, d_inner=4 * width)
        )

    return build


def language_loss(output, words):
    """Cross-entropy of each word with the output at its place.

    A real training shifts the words by one, which costs the same.
    """
    return nn.functional.cross_entropy(output.logits.flatten(0, 1), words.flatten())


class Recommender(nn.Module):
    def __init__(self, tables=26, rows=1_000_000, width=64):
        super().__init__()
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(rows, width, mode="sum", sparse=True) for _ in range(tables)
        )
        self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, width), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(width * (tables + 1), 512), nn.ReLU(), nn.Linear(512, 1))

    def forward(self, dense, sparse):
        looked_up = [table(sparse[:, i : i + 1]) for i, table in enumerate(self.tables)]
        return self.top(torch.cat([self.bottom(dense), *looked_up], dim=1)).squeeze(1)


def recommender(data):
    return Recommender(rows=data.rows)


def by_clicks(data):
    loss = nn.functional.binary_cross_entropy_with_logits
    return Training(data, recommender, sgd_for_sparse, loss)


TRAININGS = {
    "resnet18": Training(
        Images(128, 32, 10), cifar_resnet18, sgd, nn.functional.cross_entropy, "torchvision"
    ),
    "resnet26": by_timm("resnet26", Images(128, 32, 10)),
    "resnet50": by_torchvision("resnet50", Images(128, 64, 1000)),
    "efficientnet": by_torchvision("efficientnet_v2_s", Images(128, 64, 1000)),
    "resnet152": by_torchvision("resnet152", Images(32, 224, 1000)),
    "cait": by_timm("cait_xxs24_224", Images(32, 224, 1000), is_for_one_size=True),
    "recommender": by_clicks(Clicks(4096, 1_000_000)),
    "recommender29": by_clicks(Clicks(4096, 4_200_000)),
    "decoder": Training(Tokens(8, 512, 50257), gpt2, adamw, language_loss),
    "encoder": Training(Tokens(32, 128, 30522), bert, adamw, language_loss),
    "bert_base": Training(Tokens(32, 512, 30522), bert, adamw, language_loss),
    "bert_large": Training(Tokens(8, 512, 30522), bert_large, adamw, language_loss),
    "gpt2_large": Training(Tokens(8, 512, 50257), gpt2_large, adamw, language_loss),
    "xlnet_base": Training(Tokens(8, 512, 32000), xlnet(768, 12, 12), adamw, language_loss),
    "xlnet_large": Training(Tokens(8, 512, 32000), xlnet(1024, 24, 16), adamw, language_loss),
    "digits": Training(Images(64, 28, 10, channels=1), digits, sgd, nn.functional.cross_entropy),
    "heavy": by_torchvision("resnet50", Images(128, 224, 1000)),
}


def training_of(name):
    """The training of a name.

    "timm/NAME" and "torchvision/NAME" are any of their classifiers, on images of 224x224 in batches
    of 32. Raises KeyError for an unknown name.
    """
    library, _, model = name.partition("/")
    if model:
        return {"timm": by_timm, "torchvision": by_torchvision}[library](
            model, Images(32, 224, 1000)
        )
    return TRAININGS[SIZES.get(name, name)]


def make_step(name, device="cuda"):
    """Builds the model and one synthetic batch on the device.

    Returns a function that makes one training step.
    """
    training = training_of(name)
    stepper = Stepper(training, device)
    batch = [tensor.to(device) for tensor in training.data.synthetic()]
    return lambda: stepper.step(batch)


def building_on(device):
    """Context that draws weights on the device, much faster than moving them (not in PyTorch 1)."""
    return torch.device(device) if hasattr(torch.device, "__enter__") else contextlib.nullcontext()


class Stepper:
    """A model with its optimizer; `step` trains on one batch, which must be on the device."""

    def __init__(self, training, device):
        with building_on(device):
            model = training.build(training.data)
        self.model = model.to(device).train()
        self.optimizer = training.optimizer(self.model)
        self.loss = training.loss

    def step(self, batch):
        *inputs, target = batch
        self.optimizer.zero_grad()
        self.loss(self.model(*inputs), target).backward()
        self.optimizer.step()


def missing_libraries(names):
    """The libraries that these trainings need and this interpreter lacks."""
    libraries = set()
    for name in names:
        with contextlib.suppress(KeyError):
            libraries.add(training_of(name).library)
    return sorted(one for one in libraries if one and importlib.util.find_spec(one) is None)


if __name__ == "__main__":  # models.py NAME...: for `colloc bench`, before it runs anything
    missing = missing_libraries(sys.argv[1:])
    print(", ".join(missing), end="")
    sys.exit(1 if missing else 0)
