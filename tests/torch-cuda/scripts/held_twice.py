# SPDX-License-Identifier: GPL-2.0-or-later
# mypy: ignore-errors
"""Loads weights by torch.load, NumPy, a mapping and pinned memory, keeps them beside their copies on the GPU, and ends one
pair after the other."""

import os
import tempfile

os.environ.update(UCX_MEM_MMAP_HOOK_MODE="none", UCX_MEM_EVENTS="no")  # else UCX, which PyTorch loads, patches mmap

import numpy
import torch
from figures import tell

N = {"load": 1 << 20, "numpy": 3 << 18, "mmap": 5 << 18, "pinned": 7 << 18}  # floats
held = {name: 4 * n for name, n in N.items()}

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
tell("loaded", held=held)

del sources["numpy"], held["numpy"]
tell("source freed", held=held)
del copies["load"], held["load"]  # back to the allocator's cache
tell("copy freed", held=held)
sources["mmap"] += 1
del held["mmap"]
tell("source changed", held=held)
other = torch.zeros(N["pinned"])
copies["pinned"].copy_(other)
held["other"] = held.pop("pinned")
tell("copy overwritten", held=held)
del other, held["other"]
tell("other source freed", held=held)
