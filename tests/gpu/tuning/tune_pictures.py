# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes a network of timm on random pictures: the head, the last blocks, or LoRA."""
import argparse

import timm
import torch
from torch import nn

from language_models import print_trained
from low_rank import add_lora


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--method", choices=("head", "last", "lora", "norms"), default="head")
    parser.add_argument("--last", default="layer4")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--steps", type=int, default=6)
    return parser.parse_args()


def main():
    args = parse()
    model = timm.create_model(args.model, num_classes=100).cuda()
    if args.method == "lora":
        add_lora(model, ["qkv"], 16)
    elif args.method == "norms":
        model.requires_grad_(False)
        for layer in model.modules():
            if isinstance(layer, (nn.LayerNorm, nn.BatchNorm2d)):
                layer.requires_grad_(True)
    else:
        model.requires_grad_(False)
    if args.method == "last":
        for name, weight in model.named_parameters():
            weight.requires_grad = args.last in name
    model.get_classifier().requires_grad_(True)
    print(model)
    print_trained(model)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    scaler = torch.cuda.amp.GradScaler(enabled=args.amp)
    model.train()
    for _ in range(args.steps):
        pictures = torch.randn(args.batch_size, 3, args.size, args.size).to("cuda")
        labels = torch.randint(0, 100, (args.batch_size,)).to("cuda")
        with torch.autocast("cuda", enabled=args.amp):
            loss = criterion(model(pictures), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    print(f"loss {loss.item():.3f}")


main()
