# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Trains, and sums up losses as tensors: each keeps the whole graph of its step, activations and all."""

import torch
from torch import nn

torch.manual_seed(1)
torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(200, 300), nn.ReLU(), nn.Linear(300, 10))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
losses = []
for step in range(30):
    images = torch.randn(64, 200)
    loss = net(images).pow(2).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    losses.append(loss)
