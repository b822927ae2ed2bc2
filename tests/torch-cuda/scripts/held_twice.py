# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Loads weights by torch.load, NumPy, a mapping and pinned memory, and keeps them beside their copies on the GPU."""

import json
import tempfile

import numpy
import torch

N = {"load": 1 << 20, "numpy": 3 << 18, "mmap": 5 << 18, "pinned": 7 << 18}  # floats

file = tempfile.NamedTemporaryFile(suffix=".pt")
torch.save(torch.ones(N["load"]), file.name)
raw = tempfile.NamedTemporaryFile()
numpy.full(N["mmap"], 2, dtype=numpy.float32).tofile(raw.name)

sources = {
    "load": torch.load(file.name, weights_only=True),
    "numpy": torch.from_numpy(numpy.full(N["numpy"], 3, dtype=numpy.float32)),
    "mmap": torch.from_file(raw.name, shared=False, size=N["mmap"]),
    "pinned": torch.full((N["pinned"],), 4.0).pin_memory(),
}
copies = {name: source.to("cuda") for name, source in sources.items()}
last = torch.empty(1 << 24, device="cuda")  # the peak
print(json.dumps({name: 4 * n for name, n in N.items()}))
