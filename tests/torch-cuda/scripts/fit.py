# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Trainings whose memory is to be predicted:  fit.py cnn|lstm|transformer|embedding|accumulation|half BATCH

Prints the most that PyTorch's allocator had handed out and reserved. Kernels do nothing, so what is computed means nothing.
"""

import json
import sys

import torch
from torch import nn
from torch.nn import functional

STEPS = 3


def cnn() -> nn.Module:
    layers = []
    for wide, wider in ((3, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(wide, wider, 3, padding=1), nn.BatchNorm2d(wider), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 12 * 12, 512), nn.ReLU(), nn.Linear(512, 10))


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(256, 384, num_layers=2, batch_first=True)
        self.head = nn.Linear(384, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0][:, -1])


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Linear(256, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x).mean(dim=1))


class Embedding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(200_000, 128)
        self.head = nn.Sequential(nn.Linear(64 * 128, 1024), nn.ReLU(), nn.Linear(1024, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.table(x).flatten(1))


def inputs(name: str, batch: int) -> torch.Tensor:
    if name == "embedding":
        return torch.zeros(batch, 64, dtype=torch.long)
    if name == "lstm":
        return torch.zeros(batch, 50, 256)
    if name == "transformer":
        return torch.zeros(batch, 196, 256)
    return torch.zeros(batch, 3, 96, 96)


def main() -> None:
    name, batch = sys.argv[1], int(sys.argv[2])
    torch.manual_seed(1)
    torch.backends.cudnn.enabled = False
    made = {"lstm": Lstm, "transformer": Transformer, "embedding": Embedding}
    model = made.get(name, cnn)().to("cuda")
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(4 if name == "accumulation" else 1):
            x, labels = inputs(name, batch).to("cuda"), torch.zeros(batch, dtype=torch.long).to("cuda")
            with torch.autocast("cuda", torch.float16, enabled=name == "half"):
                loss = functional.cross_entropy(model(x), labels)
            loss.backward()
        optimizer.step()
    print(json.dumps({"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}))


main()
