# SPDX-License-Identifier: Apache-2.0
"""A ResNet-50 in half precision that never waits for data. Writes when each step ended.

    asking_neighbour.py FILE SECONDS

FILE gets a line with the time after each step. A step is one CUDA graph: launched one by one, the
kernels of two seconds took up to 29 % longer than those of the two before by the host alone.
"""
import sys
import time

import torch
import torchvision

WARM_UP = 3  # steps before the graph is recorded, so that cuDNN's plans and the momenta are there


def trainer():
    """A function that makes one step."""
    model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    pictures = torch.randn(64, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(1000, (64,), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        # A graph must not keep weights that autocast has converted outside of it.
        with torch.autocast("cuda", dtype=torch.bfloat16, cache_enabled=False):
            loss = torch.nn.functional.cross_entropy(model(pictures), labels)
        loss.backward()
        optimizer.step()

    return step


def recorded(step):
    """The step as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def main():
    path, seconds = sys.argv[1], float(sys.argv[2])
    graph, end = recorded(trainer()), time.time() + seconds
    with open(path, "w", buffering=1, encoding="ascii") as file:
        while time.time() < end:
            graph.replay()
            torch.cuda.synchronize()
            file.write(f"{time.time():.5f}\n")


main()
