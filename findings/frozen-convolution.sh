#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A convolution whose weight is not trained keeps its input for the backward pass all the same; a
# linear layer does not.
#
# Version:  PyTorch 1.13 (Debian 12: python3-torch 1.13.1+dfsg-4, which names itself 1.13.0a0). No GPU
#           is needed. arXiv:2404.12406 reports the same of later versions.
# Expected: the input is needed for the gradient of the weight alone, so a frozen layer keeps only its
#           weight, whatever its type: freezing the convolutions between trained layers frees their
#           maps.
# Seen:     tensors that autograd saves, with requires_grad=False for the layer's weights and True for
#           its input:
#               Linear            the weight
#               Conv2d            the input and the weight
#               ConvTranspose2d   the input and the weight
#               BatchNorm2d       the input, also in eval mode
# Meaning:  a convolutional network with frozen layers behind a trained one (an adapter, a prompt)
#           needs as much memory for maps as one that is trained whole. colloc estimates so
#           (src/estimator/physics/trained_part.c).
set -euo pipefail

python=${PYTHON:-/usr/bin/python3}
version=$("$python" -c 'import torch; print(torch.__version__)' 2>/dev/null) || {
    echo "skipped: needs PyTorch: apt install python3-torch (Debian 12), or PYTHON=..."
    exit 77
}
echo "PyTorch $version"
seen=$("$python" - <<'END'
import torch
from torch import nn


def keeps_input(layer, shape):
    x = torch.randn(shape, requires_grad=True)
    for parameter in layer.parameters():
        parameter.requires_grad = False
    found = []

    def pack(tensor):
        found.append(tensor.data_ptr() == x.data_ptr())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        layer(x)
    return any(found)


image = (2, 3, 9, 9)
for name, layer, shape in (
    ("Linear", nn.Linear(8, 8), (4, 5, 8)),
    ("Conv2d", nn.Conv2d(3, 8, 3), image),
    ("ConvTranspose2d", nn.ConvTranspose2d(3, 8, 3), image),
    ("BatchNorm2d", nn.BatchNorm2d(3).eval(), image),
):
    print(name, "keeps its input" if keeps_input(layer, shape) else "does not")
END
)
echo "$seen"
[[ $seen == "Linear does not
Conv2d keeps its input
ConvTranspose2d keeps its input
BatchNorm2d keeps its input" ]] || {
    echo "changed: see above"
    exit 1
}
