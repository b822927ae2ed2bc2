# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""A script that keeps a tensor of every step: in the end a fraction of what `import torch` holds."""

import torch
from torch import nn

torch.manual_seed(1)
torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(200, 300), nn.ReLU(), nn.Linear(300, 10))
optimizer = torch.optim.Adam(net.parameters())
history = []
for step in range(30):
    images = torch.randn(64, 200)
    scores = net(images)
    loss = scores.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(images * loss.item())  # leak
