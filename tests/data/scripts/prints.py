# SPDX-License-Identifier: Apache-2.0
"""Prints a gigabyte (or as many MiB as its argument says), and does not train."""
import sys

import torch

for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1024):
    sys.stdout.write("x" * (1 << 20))
print(torch.__version__)
