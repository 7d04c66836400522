#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Under torch.autocast a layer that is not trained, and used several times, keeps a 16-bit copy of its
# weight for each use; one that is trained keeps one copy in all.
#
# Version:  PyTorch 1.13 (Debian 12: python3-torch 1.13.1+dfsg-4, which names itself 1.13.0a0). No GPU
#           is needed: autocast of the CPU caches as that of CUDA does (at/autocast_mode.cpp).
# Expected: freezing a layer never costs memory: there is no gradient and no optimizer state, and
#           autocast caches the casts of weights.
# Seen:     16-bit copies that autograd saves of a 64 x 64 weight that is used 4 times:
#               requires_grad=True    1
#               requires_grad=False   4
#           The cache takes leaves that require a gradient only.
# Meaning:  a frozen layer in a loop (shared blocks, several crops or views in a step, a frozen encoder
#           behind a trained adapter) takes its weight once more for each use. An estimate from the
#           script that is followed (colloc estimate -- python train.py) has the copies; one from a
#           printed module shows each layer once.
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


def count_copies(is_trained, uses):
    layer = nn.Linear(64, 64, bias=False)
    layer.weight.requires_grad = is_trained
    x = torch.randn(2, 64, requires_grad=True)
    copies = {}

    def pack(tensor):
        if tensor.numel() == layer.weight.numel() and tensor.dtype == torch.bfloat16:
            copies[tensor.storage().data_ptr()] = tensor  # kept, so that no address comes again
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for _ in range(uses):
                x = layer(x)
    return len(copies)


print("trained", count_copies(True, 4))
print("frozen", count_copies(False, 4))
END
)
echo "$seen"
[[ $seen == "trained 1
frozen 4" ]] || {
    echo "changed: see above"
    exit 1
}
