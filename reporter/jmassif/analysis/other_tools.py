# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures that other tools would have shown of the same run, with the memory that each does not include.

A reader who has looked at htop, jtop, nvidia-smi, massif or PyTorch's counters has a figure in mind that the ledger does not
have. Here each is worked out of what the trace has: of the kernel's and the driver's figures as last sampled, of the
ledger's exact ones. Only tools that apply are listed.
"""

from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.analysis.aggregate import aggregate
from jmassif.analysis.moments import Moment
from jmassif.analysis.system import figure_at, samples_of
from jmassif.model.records import DEVICE_KINDS, TENSOR, AccountType
from jmassif.model.run import Profile
from jmassif.model.run_info import is_pytorch
from jmassif.units import size

_MASSIF_KINDS = ("heap", "heap-overhead")
# Owners of device memory that a framework's allocator has handed out, and of all that it has reserved.
ALLOCATED_OWNERS = (TENSOR, "workspace")
RESERVED_OWNERS = ALLOCATED_OWNERS + ("cache",)


class Shown(NamedTuple):
    """A tool's figure at a moment."""

    tool: str
    figure: str  # as the tool calls it
    bytes: int
    sampled_at: Optional[int]  # when it was sampled, where that was not at the moment itself
    leaves_out: str


def nearest(times: Sequence[int], time: int) -> int:
    """The index of the time that is nearest, the first of several."""
    return min(range(len(times)), key=lambda place: abs(times[place] - time))


class Series(NamedTuple):
    """A figure over time, as sampled: at each time, so many bytes."""

    tool: str
    figure: str
    leaves_out: str
    times: List[int]
    values: List[int]


class _Sampled(NamedTuple):
    tool: str
    figure: str
    leaves_out: str
    names: Tuple[str, ...]  # the kernel's or the driver's: the first less the others
    is_of: Callable[[Profile], bool] = lambda profile: True


def is_board(profile: Profile) -> bool:
    return not profile.is_discrete and ("board" in profile.manifest or has_device(profile))


def has_device(profile: Profile) -> bool:
    return any(type_.kind in DEVICE_KINDS for type_ in profile.accounts.types)


_USED = ("mem-total", "mem-free", "buffers", "cached", "slab-reclaimable")
_SAMPLED = (
    _Sampled("htop", "RES", "device memory", ("process-resident",)),
    _Sampled("htop", "VIRT", "counts addresses, not memory in use", ("process-virtual",)),
    _Sampled("jtop, tegrastats", "RAM", "owners, and files in memory", _USED, is_board),
    _Sampled("jtop", "GPU shared", "what is in no NvMap buffer", ("nvmap-used",)),
    _Sampled("nvidia-smi", "memory used", "owners, and host memory", ("device-total", "device-free")),
)


def ram_in_use(profile: Profile, time: int) -> Optional[int]:
    """RAM in use, as jtop and tegrastats show it; None where the kernel's figures are not on record."""
    return figure_at(profile, time, _USED)


def sampled_series(profile: Profile) -> List[Series]:
    """The kernel's and the driver's figures, at each sample.

    The driver's are on record whenever they were read; the kernel's are read at each snapshot, and on record when they changed.
    """
    found = []
    snapshots = [snapshot.time for snapshot in profile.snapshots]
    for row in _SAMPLED:
        of_driver = row.names[0].startswith("device-")
        times, values = samples_of(profile, row.names, () if of_driver else snapshots)
        if times and row.is_of(profile):
            # A program without a device has no device memory to mention.
            left_out = row.leaves_out if has_device(profile) or row.figure != "RES" else "owners"
            found.append(Series(row.tool, row.figure, left_out, times, values))
    return found


class Counted(NamedTuple):
    """A figure of the ledger: the types of accounts that a tool counts."""

    tool: str
    figure: str
    leaves_out: str
    types: List[AccountType]


def counted(profile: Profile) -> List[Counted]:
    types = profile.accounts.types
    heap = [type_ for type_ in types if type_.kind in _MASSIF_KINDS]
    not_heap = "what is mapped, device memory" if has_device(profile) else "what is mapped"
    found = [Counted("massif", "heap", not_heap, heap)] if heap else []
    allocated, reserved = (
        [type_ for type_ in types if type_.kind in DEVICE_KINDS and type_.owner in owners]
        for owners in (ALLOCATED_OWNERS, RESERVED_OWNERS)
    )
    if len(reserved) > len(allocated):
        tool, prefix = ("torch.cuda", "memory_") if is_pytorch(profile) else ("its allocator", "")
        found.append(Counted(tool, f"{prefix}allocated", "its cache, libraries, the context", allocated))
        found.append(Counted(tool, f"{prefix}reserved", "libraries, the context", reserved))
    return found


def _profilers(profile: Profile, time: int) -> str:
    """How much of what the kernel has of the process is the profiler's, where that was sampled."""
    if "resident" not in profile.system:
        return ""
    times = profile.system["resident"][0]
    sampled = times[nearest(times, time)]
    part, whole = profile.system_at("resident-valgrind", sampled) or 0, profile.system_at("resident", sampled) or 0
    return f"; here {size(max(0, whole - part))} are the program's own, the rest the profiler's"


def others(profile: Profile, chosen: Moment) -> List[Shown]:
    """The figures of tools that apply."""
    found = []
    for series in sampled_series(profile):
        place = nearest(series.times, chosen.time)
        time = series.times[place]
        text = series.leaves_out
        if series.figure == "RES":
            text += _profilers(profile, time)
        found.append(
            Shown(series.tool, series.figure, series.values[place], None if time == chosen.time else time, text)
        )
    types = profile.accounts.types
    usages = aggregate(profile, chosen.composition, profile.accounts.type_numbers.__getitem__)
    for row in counted(profile):
        value = sum(usage.bytes for number, usage in usages.items() if types[number] in row.types)
        found.append(Shown(row.tool, row.figure, value, None, row.leaves_out))
    return found
