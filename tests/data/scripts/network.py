# SPDX-License-Identifier: Apache-2.0
"""Wants the network."""
import socket

import torch

print(torch.__version__)
socket.create_connection(("192.0.2.1", 80), timeout=5)
