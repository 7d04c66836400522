# SPDX-License-Identifier: Apache-2.0
"""Needs a package that is not there."""
import torch

import colloc_no_such_package

print(torch.__version__, colloc_no_such_package)
