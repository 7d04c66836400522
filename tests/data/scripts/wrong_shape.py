# SPDX-License-Identifier: Apache-2.0
"""A mistake of the script: the layer is for 12 features, the batch has 10."""
import torch

model = torch.nn.Linear(12, 10).cuda()
model(torch.randn(8, 10).cuda())
