# SPDX-License-Identifier: Apache-2.0
"""A ResNet-50 in half precision that never waits for data. Writes when each step ended.

    asking_neighbour.py FILE SECONDS

FILE gets a line with the time of the first step, and at the end all times, as JSON.
"""
import json
import os
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
    times, end = [], time.time() + seconds
    while time.time() < end:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(pictures), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        times.append(round(time.time(), 5))
        if len(times) == 1:
            with open(path + ".begun", "w", encoding="ascii") as file:
                file.write(f"{times[0]}\n")
    with open(path + ".part", "w", encoding="ascii") as file:
        json.dump(times, file)
    os.replace(path + ".part", path)


main()
