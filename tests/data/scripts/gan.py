# SPDX-License-Identifier: Apache-2.0
"""Two networks and two optimizers; the critic steps twice as often."""
import torch
from torch import nn

device = torch.device("cuda:0")
generator = nn.Sequential(
    nn.ConvTranspose2d(16, 32, 4, 1, 0), nn.BatchNorm2d(32), nn.ReLU(True),
    nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh(),
).to(device)  # fmt: skip
critic = nn.Sequential(nn.Conv2d(3, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 1, 4)).to(device)
of_generator = torch.optim.Adam(generator.parameters(), betas=(0.5, 0.999))
of_critic = torch.optim.Adam(critic.parameters(), betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
fixed = torch.randn(8, 16, 1, 1, device=device)
for epoch in range(5):
    for _ in range(2):
        critic.zero_grad()
        real = torch.randn(8, 3, 8, 8).to(device)
        label = torch.full((8,), 1.0, device=device)
        loss = criterion(critic(real).view(-1), label)
        loss.backward()
        fake = generator(torch.randn(8, 16, 1, 1, device=device))
        label.fill_(0)
        loss_of_fake = criterion(critic(fake.detach()).view(-1), label)
        loss_of_fake.backward()
        of_critic.step()
    generator.zero_grad()
    label.fill_(1)
    loss = criterion(critic(fake).view(-1), label)
    loss.backward()
    of_generator.step()
    print("%.4f" % loss.item(), label.sum().item())
