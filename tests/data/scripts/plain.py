# SPDX-License-Identifier: Apache-2.0
"""A plain loop: a small CNN, Adam, a data loader with workers; the optimizer is made first."""
import torch
import torch.nn.functional as F
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Flatten(),
    nn.Linear(16 * 32 * 32, 10),
)
optimizer = torch.optim.Adam(model.parameters())
model = model.to(device)
images, labels = torch.randn(1000, 3, 32, 32), torch.randint(0, 10, (1000,))
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(images, labels), batch_size=64, num_workers=4, pin_memory=True
)
for epoch in range(2):
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device)
        optimizer.zero_grad(set_to_none=True)
        output = model(x)
        loss = F.cross_entropy(output, y)
        loss.backward()
        optimizer.step()
        right = (output.argmax(1) == y).sum().item()
        print(f"loss {loss:.3f} {loss.item()} {right} {torch.cuda.max_memory_allocated()}")
