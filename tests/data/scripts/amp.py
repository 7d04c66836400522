# SPDX-License-Identifier: Apache-2.0
"""Mixed precision: autocast to fp16, a gradient scaler, clipping, SGD with momentum."""
import math

import torch
from torch import nn

device = "cuda"
torch.cuda.manual_seed_all(1)
torch.backends.cudnn.benchmark = True
model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.LayerNorm(1024), nn.Linear(1024, 10))
model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
scaler = torch.cuda.amp.GradScaler()
criterion = nn.CrossEntropyLoss().to(device)
for step in range(10):
    x = torch.randn(32, 256, device=device)
    y = torch.randint(0, 10, (32,), device=device)
    with torch.cuda.amp.autocast():
        loss = criterion(model(x), y)
    if not math.isfinite(loss.item()) or torch.isnan(loss):
        raise SystemExit("the loss is not finite")
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    schedule.step()
    torch.cuda.synchronize()
