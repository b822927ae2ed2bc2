# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""PyTorch's own record of what its allocator did, for `check_memory_viz.py`:  history.py DIRECTORY

At each mark the snapshot that memory_viz shows is written to DIRECTORY, named by the mark's number.
"""

import json
import pickle
import sys
from pathlib import Path

import torch
from torch import nn

from figures import tell

MIB = 1 << 20


class History:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._n_marks = 0

    def tell(self, mark: str) -> None:
        with (self._directory / f"{self._n_marks}.pickle").open("wb") as file:
            pickle.dump(torch.cuda.memory._snapshot(), file)
        self._n_marks += 1
        tell(mark)


def train(history: History) -> None:
    model = nn.Sequential(nn.Linear(300, 500), nn.ReLU(), nn.Linear(500, 301)).to("cuda")
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(3):
        images = torch.randn(100, 300).to("cuda")
        optimizer.zero_grad()
        loss = model(images).sum()
        history.tell(f"{step} forward")
        loss.backward()
        del loss
        optimizer.step()
        history.tell(f"{step} step")


def exhaust(history: History) -> None:
    """Memory that is cached, is given back, and is not enough."""
    free, _ = torch.cuda.mem_get_info()
    part = free // MIB // 4 * MIB
    kept = torch.empty(part, dtype=torch.uint8, device="cuda")
    torch.empty(part, dtype=torch.uint8, device="cuda")
    history.tell("a part of it cached")
    large = torch.empty(2 * part, dtype=torch.uint8, device="cuda")
    try:
        torch.empty(2 * part, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError:
        history.tell("out of memory")
    del kept, large


def main() -> None:
    torch.manual_seed(1)
    torch.backends.cudnn.enabled = False
    torch.cuda.init()
    torch.cuda.memory._record_memory_history()
    history = History(Path(sys.argv[1]))
    history.tell("start")
    train(history)
    history.tell("trained")
    odd = [torch.empty(n, dtype=torch.uint8, device="cuda") for n in (1, 511, 513, 3 * MIB + 1, 11 * MIB + 7)]
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        odd.append(torch.empty(5 * MIB, dtype=torch.uint8, device="cuda"))
    del odd[::2]
    history.tell("holes")
    exhaust(history)
    del odd
    torch.cuda.empty_cache()
    history.tell("empty")


main()
