# SPDX-License-Identifier: GPL-2.0-or-later
"""What memory there is, and the words that traces and reports have for it: kinds, groups, roles, peaks."""

from array import array
from typing import Optional

HOST_KINDS = ("heap", "heap-overhead", "stack", "anon", "file", "pinned", "driver-host")
DEVICE_KINDS = ("device", "array", "managed", "pool", "vmm", "driver")
# Of these the resident pages count, which the recorder samples. Stacks too, where --stacks did not measure them.
PAGE_KINDS = ("anon", "file", "stack")
# What GPU drivers commit below the CUDA API.
DRIVER_KINDS = ("driver", "driver-host")
# Of these the trace has handles in the place of addresses.
HANDLE_KINDS = ("array", "vmm", "driver")
LISTED_KINDS = ("imported",)  # never part of a sum
KINDS = HOST_KINDS + DEVICE_KINDS + LISTED_KINDS
GROUPS = ("yours", "cached", "libraries", "runtime")
# In the place of a group: of owners whose group the trace does not tell.
OTHER = "other"
PEAKS = ("total", "host", "device")
# The peak of what was allocated: of everything but sampled pages. Only a trace with pages has it.
ALLOCATED = "allocated"
# What tensors are for in training, in the order in which reports list them. An owner rule may name further ones.
ROLES = ("parameter", "gradient", "optimizer", "activation", "input", "temporary", "other")
# The owner whose accounts have roles.
TENSOR = "tensor"
TIME_UNITS = ("ms", "i", "B")


def side_of(kind: str) -> Optional[str]:
    """ "host", "device", or None for kinds that are only listed."""
    return "host" if kind in HOST_KINDS else "device" if kind in DEVICE_KINDS else None


def counted_blocks(kind: str, blocks: int) -> int:
    """How many of an account's blocks count in a sum: a heap block's overhead is no block of its own."""
    return 0 if kind == "heap-overhead" else blocks
