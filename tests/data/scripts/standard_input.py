# SPDX-License-Identifier: Apache-2.0
"""Asks the user."""
import torch

rate = float(input("learning rate? "))
print(torch.__version__, rate)
