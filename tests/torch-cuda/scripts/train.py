# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""A training loop:  train.py sgd|adam

Every tensor of the model is a multiple of 512 bytes and smaller than 1 MiB, so that the allocator's blocks are as large as
the tensors and sums over elements can be held against sums over blocks. Kernels do nothing on the simulation, so the
losses mean nothing. Convolutions are PyTorch's own, because there is no cuDNN to choose an algorithm.
"""

import sys
from typing import Dict

import torch
from torch import nn

from figures import device_bytes, optimizer_tensors, tell

STEPS = 3
BATCH = 128


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(4, 128, 3, padding=1)
        self.norm = nn.LayerNorm(256)
        self.body = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256), nn.Dropout(0.5))
        self.head = nn.Linear(256, 128)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.convolution(images).relu().mean(dim=1).flatten(1)
        return self.head(self.body(self.norm(x)))


def roles(model: nn.Module, optimizer: torch.optim.Optimizer) -> Dict[str, int]:
    return {
        "parameter": device_bytes(model.parameters()),
        "gradient": device_bytes(p.grad for p in model.parameters() if p.grad is not None),
        "optimizer": device_bytes(optimizer_tensors(optimizer)),
    }


def main() -> None:
    torch.manual_seed(1)
    torch.backends.cudnn.enabled = False
    torch.cuda.init()
    tell("start", parameter=0, gradient=0, optimizer=0)
    model = Net().to("cuda")
    optimizer: torch.optim.Optimizer
    if sys.argv[1] == "adam":
        optimizer = torch.optim.Adam(model.parameters())
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    tell("model", **roles(model, optimizer))
    for step in range(STEPS):
        images = torch.randn(BATCH, 4, 16, 16).to("cuda")
        labels = torch.zeros(BATCH * 2, dtype=torch.long).pin_memory().to("cuda", non_blocking=True)[:BATCH]
        inputs = device_bytes([images, labels])
        optimizer.zero_grad()
        tell(f"{step} input", **roles(model, optimizer), input=inputs)
        before = torch.cuda.memory_allocated()
        with torch.cuda.nvtx.range(f"forward {step}"):
            output = model(images)
        activations = torch.cuda.memory_allocated() - before
        # The first use of cuBLAS takes a workspace besides.
        known = {"activation": activations} if step > 0 else {}
        tell(f"{step} forward", **roles(model, optimizer), input=inputs, **known)
        loss = nn.functional.cross_entropy(output, labels)
        loss.backward()
        del loss, output
        tell(f"{step} backward", **roles(model, optimizer), input=inputs, activation=0)
        optimizer.step()
        tell(f"{step} step", **roles(model, optimizer), input=inputs, activation=0)
        del images, labels
        tell(f"{step} end", **roles(model, optimizer), input=0, activation=0)
    del model, optimizer
    tell("freed")
    torch.cuda.empty_cache()
    tell("empty")


main()
