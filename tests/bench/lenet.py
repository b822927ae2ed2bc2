# SPDX-License-Identifier: GPL-2.0-or-later
"""LeNet trained on random images of CIFAR-10's shape on the CPU: the standard workload of the benchmarks and tests.

    lenet.py [STEPS]

Deterministic: fixed seed, one thread. Prints the loss of every step.
"""
import sys

import torch
from torch import nn

BATCH = 128


class LeNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.classifier(self.features(x))
        return scores


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    torch.manual_seed(1)
    torch.set_num_threads(1)
    net = LeNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for step in range(steps):
        images = torch.randn(BATCH, 3, 32, 32)
        labels = torch.randint(0, 10, (BATCH,))
        optimizer.zero_grad()
        loss = criterion(net(images), labels)
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.6f}", flush=True)


if __name__ == "__main__":
    main()
