# SPDX-License-Identifier: Apache-2.0
"""A ResNet-50 in half precision that never waits for data. Writes when each step ended.

    asking_neighbour.py FILE SECONDS

FILE gets a line with the time after each step.
"""
import sys
import time

import torch
import torchvision


def main():
    path, seconds = sys.argv[1], float(sys.argv[2])
    model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    pictures = torch.randn(64, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(1000, (64,), device="cuda")
    end = time.time() + seconds
    with open(path, "w", buffering=1, encoding="ascii") as file:
        while time.time() < end:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(model(pictures), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            torch.cuda.synchronize()
            file.write(f"{time.time():.5f}\n")


main()
