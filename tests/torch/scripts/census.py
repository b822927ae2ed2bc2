# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""The script's own books, for the tests to hold the recorder's against: which bytes were made under which tag.

A tag names the line of source that ends in the comment `# tag`. Bytes are those of the storages, as PyTorch reckons them.
"""

import ctypes
import json
import os
import weakref
from typing import Dict, List, Tuple

import torch

_library = ctypes.CDLL(os.environ["CENSUS_LIBRARY"])
_made: List[Tuple[str, int, "weakref.ref[torch.Tensor]"]] = []
_total: Dict[str, int] = {}


def made(tag: str, tensor: torch.Tensor) -> torch.Tensor:
    """Notes a tensor that has a storage of its own."""
    n_bytes = tensor.storage().nbytes()
    assert n_bytes == tensor.numel() * tensor.element_size()
    _made.append((tag, n_bytes, weakref.ref(tensor)))
    _total[tag] = _total.get(tag, 0) + n_bytes
    return tensor


def mark(name: str) -> None:
    """Sets a mark, and prints what is alive: by tag, and all that was ever made."""
    alive: Dict[str, int] = {}
    for tag, n_bytes, tensor in _made:
        if tensor() is not None:
            alive[tag] = alive.get(tag, 0) + n_bytes
    print(json.dumps({"mark": name, "alive": alive, "total": _total}), flush=True)
    _library.jmassif_mark(name.encode())
