# SPDX-License-Identifier: Apache-2.0
"""Has one option."""
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
parser.parse_args()
torch.zeros(1).cuda()
