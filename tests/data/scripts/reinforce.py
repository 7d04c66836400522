# SPDX-License-Identifier: Apache-2.0
"""A policy that plays an environment on the CPU, and learns after each episode."""
import numpy
import torch
from torch import nn
from torch.distributions import Categorical

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
policy = nn.Sequential(nn.Linear(4, 128), nn.Dropout(0.6), nn.ReLU(), nn.Linear(128, 2)).to(device)
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
random = numpy.random.default_rng(1)
for episode in range(20):
    logs, rewards, state = [], [], random.random(4)
    for _ in range(10):
        given = torch.from_numpy(state).float().unsqueeze(0).to(device)
        choice = Categorical(logits=policy(given), validate_args=False)
        action = choice.sample()
        logs.append(choice.log_prob(action))
        rewards.append(float(action.item() + action.cpu().numpy()[0]))
        state = random.random(4)
    returns = torch.tensor(rewards, device=device)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = torch.cat([-log * value for log, value in zip(logs, returns)]).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
