#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# print(model) hides three quarters of the weights of an attention layer: nn.MultiheadAttention shows
# its output layer alone, and no argument from which the rest follows.
#
# Version:  PyTorch 1.13 (Debian 12: python3-torch 1.13.1+dfsg-4, which names itself 1.13.0a0). No GPU.
# Expected: the weights that a printed module names add up to those that it has; what is left out are
#           parameters that a module holds itself, such as position embeddings.
# Seen:     MultiheadAttention(
#             (out_proj): NonDynamicallyQuantizableLinear(in_features=64, out_features=64, bias=True)
#           )
#           4,160 weights are printed, 16,640 are there: in_proj_weight (3 E x E) and in_proj_bias (3 E)
#           are raw parameters of the module.
# Meaning:  the printed layers of a transformer encoder of width E, with 4 E in its feed-forward part,
#           add up to a quarter less than it has. colloc derives the packed weights from
#           the output layer (src/model/repr.c, packed_attention).
set -euo pipefail

python=${PYTHON:-/usr/bin/python3}
"$python" -c 'import torch' 2>/dev/null || {
    echo "skipped: needs PyTorch: apt install python3-torch (Debian 12), or PYTHON=..."
    exit 77
}
"$python" - <<'END'
import re
import sys

import torch

layer = torch.nn.MultiheadAttention(64, 4)
text, held = str(layer), sum(p.numel() for p in layer.parameters())
sizes = re.findall(r"in_features=(\d+), out_features=(\d+), bias=True", text)
printed = sum((int(i) + 1) * int(o) for i, o in sizes)
print(f"PyTorch {torch.__version__}: {printed} weights are printed, {held} are there")
if (printed, held) != (4160, 16640) or "embed_dim" in text:
    sys.exit(f"changed:\n{text}")
END
