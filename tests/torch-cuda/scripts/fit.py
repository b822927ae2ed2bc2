# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Trainings whose memory is to be predicted:  fit.py NAME BATCH [cpu | FRACTION [SETTINGS]...]

NAME: cnn, lstm, transformer, embedding, accumulation or half; lengths, batches or lifetimes fragment the cache. FRACTION of
the device's memory may be used (0: all). With SETTINGS the training runs in a forked process for each, under these settings
of PyTorch's allocator. Prints the most that the allocator had handed out and reserved, and what it has reserved at the end; on
the CPU, the most that was resident. On the simulation kernels do nothing, so what is computed means nothing.
"""

import json
import os
import random
import resource
import sys
from typing import Iterator, Tuple

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


def inputs(name: str, batch: int, length: int) -> torch.Tensor:
    if name == "embedding":
        return torch.zeros(batch, 64, dtype=torch.long)
    if name == "lstm":
        return torch.zeros(batch, 50, 256)
    if name in ("transformer", "lengths"):
        return torch.zeros(batch, length, 256)
    return torch.zeros(batch, 3, 96, 96)


def shapes(name: str, batch: int) -> Iterator[Tuple[int, int]]:
    """Batch and sequence length of each step."""
    if name == "lengths":
        lengths = random.Random(1)
        yield from ((batch, lengths.randrange(16, 400)) for _ in range(12))
    elif name == "batches":
        up = [batch * n for n in (1, 2, 3, 5, 8, 13, 21)]
        yield from ((n, 0) for n in up + up[::-1])
    else:
        yield from [(batch, 196)] * STEPS


def lifetimes(batch: int) -> None:
    """Tensors of 1 to 90 MiB between tensors of some KiB: few of each live for long."""
    chance, live = random.Random(2), []
    for step in range(400):
        n_bytes = chance.choice((3000, 200_000, 3 << 20, 11 << 20, 40 << 20, 90 << 20))
        live.append(
            (step + chance.choice((1, 3, 9, 60)), torch.empty(batch * n_bytes + step, dtype=torch.uint8, device="cuda"))
        )
        live = [each for each in live if each[0] > step]


def train(name: str, batch: int, device: str) -> None:
    torch.manual_seed(1)
    torch.backends.cudnn.enabled = False
    made = {"lstm": Lstm, "transformer": Transformer, "lengths": Transformer, "embedding": Embedding}
    model = made.get(name, cnn)().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for size, length in shapes(name, batch):
        optimizer.zero_grad()
        for _ in range(4 if name == "accumulation" else 1):
            x, labels = inputs(name, size, length).to(device), torch.zeros(size, dtype=torch.long).to(device)
            with torch.autocast(device, torch.float16 if device == "cuda" else torch.bfloat16, enabled=name == "half"):
                loss = functional.cross_entropy(model(x), labels)
            loss.backward()
        optimizer.step()


def run(name: str, batch: int, fraction: float) -> None:
    if fraction:
        torch.cuda.set_per_process_memory_fraction(fraction)
    lifetimes(batch) if name == "lifetimes" else train(name, batch, "cuda")
    figures = {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}
    figures.update(last=torch.cuda.memory_reserved(), total=torch.cuda.mem_get_info()[1])
    print(json.dumps(figures), flush=True)


def main() -> None:
    name, batch = sys.argv[1], int(sys.argv[2])
    if sys.argv[3:] == ["cpu"]:
        train(name, batch, "cpu")
        print(json.dumps({"resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
        return
    fraction = float((sys.argv[3:] or ["0"])[0])
    if not sys.argv[4:]:
        run(name, batch, fraction)
    for settings in sys.argv[4:]:
        # The allocator reads them with the first use of CUDA.
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = settings
        child = os.fork()
        if not child:
            run(name, batch, fraction)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


main()
