# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""PyTorch's own figures, each set at a mark.

`tell` prints one line of JSON and sets a mark of the same name, so that the trace has a snapshot at that very moment:
nothing is allocated on the device between the two.
"""

import ctypes
import json
import sys
from typing import Any, Iterable

import torch

_jmassif = ctypes.PyDLL("libjmassif.so")


def device_bytes(tensors: Iterable[torch.Tensor]) -> int:
    """What the tensors hold on the device: elements, each storage once."""
    storages = {
        t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors if t.is_cuda and t.numel() > 0
    }
    return sum(storages.values())


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> Iterable[torch.Tensor]:
    for state in optimizer.state.values():
        yield from (value for value in state.values() if isinstance(value, torch.Tensor))


def tell(mark: str, **figures: Any) -> None:
    """Prints the allocator's figures, and those that the caller has reckoned."""
    statistics = torch.cuda.memory_stats()
    line = {
        "mark": mark,
        "allocated": torch.cuda.memory_allocated(),
        "reserved": torch.cuda.memory_reserved(),
        "retries": statistics.get("num_alloc_retries", 0),
        "ooms": statistics.get("num_ooms", 0),
        **figures,
    }
    print(json.dumps(line))
    sys.stdout.flush()
    _jmassif.jmassif_mark(mark.encode())
