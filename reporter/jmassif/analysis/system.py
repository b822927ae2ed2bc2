# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine that a run drew on: its figures, its pools with their capacities, resident pages and the libraries they are of."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from itertools import compress
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.analysis.aggregate import Usage
from jmassif.analysis.moments import Moment
from jmassif.attribution.names import Names
from jmassif.model.records import LiveBytesByAccount, Pages, side_of
from jmassif.model.run import Profile


# ---- machine ----
# The machine around the program, from the kernel's figures in the trace (docs/trace-format.md, "The machine").


class Figure(NamedTuple):
    """Bytes; None where unknown."""

    label: str
    first: Optional[int]
    chosen: Optional[int]
    last: Optional[int]
    worst: int  # the least of what is free, the most of what is used
    worst_at: int  # time
    wants_much: bool  # it is something to have left


class History(NamedTuple):
    """A figure over time: from each time on, so many bytes."""

    label: str
    wants_much: bool
    is_of_process: bool  # of the recorded process alone
    times: List[int]  # when it changed
    values: List[int]

    @property
    def worst(self) -> int:
        """The least of what is free, the most of what is used."""
        return (min if self.wants_much else max)(self.values)


# Label, figures of the kernel (the first less the others), and History's wants_much and is_of_process.
_ROWS: Tuple[Tuple[str, Tuple[str, ...], bool, bool], ...] = (
    ("available", ("mem-available",), True, False),
    ("largest free block", ("largest-free",), True, False),
    ("free in blocks of that size", ("free-in-largest",), True, False),
    ("swap in use", ("swap-total", "swap-free"), False, False),
    ("CMA free", ("cma-free",), True, False),
    ("NvMap in use", ("nvmap-used",), False, False),
    ("left of the control group's limit", ("cgroup-limit", "cgroup-used"), True, False),
    ("page cache (Cached)", ("cached",), False, False),
    ("this process, with profiler", ("process-resident",), False, True),
    ("swapped out of it", ("process-swapped",), False, True),
)


def figure_at(profile: Profile, time: int, names: Sequence[str]) -> Optional[int]:
    """The first of the kernel's figures less the others; None where one is not known."""
    known = [n for n in (profile.system_at(name, time) for name in names) if n is not None]
    return max(0, known[0] - sum(known[1:])) if len(known) == len(names) else None


def samples_of(profile: Profile, names: Sequence[str], also_at: Iterable[int] = ()) -> Tuple[List[int], List[int]]:
    """The same over time: times and values, wherever one changed, and at `also_at`."""
    times = {time for name in names if name in profile.system for time in profile.system[name][0]}.union(also_at)
    points = [(t, value) for t in sorted(times) for value in [figure_at(profile, t, names)] if value is not None]
    return [time for time, _ in points], [value for _, value in points]


def histories(profile: Profile) -> List[History]:
    """The figures that the machine has. Those that stay 0, such as swap where there is none, are left out."""
    found = []
    for label, names, wants_much, is_of_process in _ROWS:
        times, values = samples_of(profile, names)
        if any(values):
            found.append(History(label, wants_much, is_of_process, times, values))
    return found


def machine(profile: Profile, time: int) -> List[Figure]:
    """The figures that the machine has, at the start, at `time`, at the end, and when they were worst."""
    figures = []
    for history in histories(profile):
        times, values, worst = history.times, history.values, history.worst
        place = bisect_right(times, time)
        chosen = values[place - 1] if place else None
        at = times[values.index(worst)]
        figures.append(Figure(history.label, values[0], chosen, values[-1], worst, at, history.wants_much))
    return figures


# A source, a figure that only it has, and a figure that has to be missing, or "".
_SOURCES = (
    ("/proc/meminfo", "mem-total", ""),
    ("/proc/buddyinfo", "largest-free", ""),
    ("/proc/self/status", "process-resident", ""),
    ("/proc/self/smaps", "resident", ""),
    ("/sys/kernel/debug/nvmap", "nvmap-used", "nvmap-free"),
    ("the control group", "cgroup-limit", ""),
    ("cuMemGetInfo", "device-free", ""),
)


def sources(profile: Profile) -> List[str]:
    """Sources of the machine's figures."""
    known = profile.system
    return [source for source, figure, missing in _SOURCES if figure in known and missing not in known]


def total_memory(profile: Profile) -> Optional[int]:
    times = profile.system.get("mem-total")
    return times[1][-1] if times else profile.number("mem-total-bytes")


# ---- pools ----

# From this share of its capacity on, a pool is the story whoever fills it.
NEARLY_FULL = 0.9
# As much may a device's total differ from the machine's where they are the same chips.
_SAME_CHIPS = 0.1


class Pool(NamedTuple):
    """Bytes."""

    key: str  # "machine", "gpu" or "cgroup", the control group's limit
    sides: Tuple[str, ...]  # memory spaces that lie in it
    capacity: int
    used: Optional[int]  # by everything, the profiler too, at the most; None: unknown

    def inside(self, usage: Usage) -> int:
        """The part of the usage that lies in the pool."""
        return sum(usage.on(side) for side in self.sides)

    def share(self, n_bytes: int) -> float:
        return n_bytes / self.capacity if self.capacity else 0.0

    @property
    def fullness(self) -> float:
        return 0.0 if self.used is None else self.share(self.used)


def _device(profile: Profile) -> Optional[Pool]:
    """A device's memory, from samples of the driver and from failed allocations."""
    looks = [event.figures for event in profile.exhaustions.values() if "device-total" in event.figures]
    totals = [figures["device-total"] for figures in looks]
    used = [figures["device-total"] - figures.get("device-free", 0) for figures in looks]
    if "device-total" in profile.system:
        totals.append(profile.system["device-total"][1][-1])
        used.append(max(samples_of(profile, ("device-total", "device-free"))[1], default=0))
    return Pool("gpu", ("device",), max(totals), max(0, *used)) if totals else None


def pools(profile: Profile) -> List[Pool]:
    """Pools with a known capacity."""
    found = []
    host = ("host",) if profile.is_discrete else ("host", "device")
    machine, device = total_memory(profile), _device(profile)
    is_one = device is not None and machine and abs(device.capacity - machine) <= _SAME_CHIPS * machine
    if device is not None and (profile.is_discrete or not is_one):
        found.append(device)
    if machine:
        used = max(samples_of(profile, ("mem-total", "mem-available"))[1], default=None)
        found.append(Pool("machine", host, machine, used))
    limits = profile.system.get("cgroup-limit", ((), ()))[1]
    if limits and (not machine or limits[-1] < machine):
        used = max(profile.system.get("cgroup-used", ((), ()))[1], default=None)
        found.append(Pool("cgroup", host, limits[-1], used))
    return found


def fullest(found: List[Pool], usage: Usage) -> Optional[Pool]:
    """The pool that is nearly full, if one is, whoever fills it; else that of which the program holds the largest share."""

    def rank(pool: Pool) -> Tuple[float, float]:
        return (pool.fullness if pool.fullness >= NEARLY_FULL else 0.0, pool.share(pool.inside(usage)))

    return max(found, key=rank) if found else None


# ---- mapped memory ----


class Mapped(NamedTuple):
    """All mappings of one kind that one object or data file is, or is to blame for."""

    name: str
    kind: str
    resident: int
    pages: Pages


class Library(NamedTuple):
    name: str
    by_kind: Dict[str, int]  # bytes
    virtual: int  # of its mappings

    @property
    def bytes(self) -> int:
        return sum(n_bytes for kind, n_bytes in self.by_kind.items() if side_of(kind))


def _pages_at(profile: Profile, moment: Moment) -> Dict[int, Pages]:
    """Pages by account. Sizes are recorded at snapshots: a peak has those of the snapshot after it."""
    if not profile.snapshots:
        return {}
    later = bisect_left([snapshot.time for snapshot in profile.snapshots], moment.time)
    return profile.pages(min(later, len(profile.snapshots) - 1) if moment.snapshot is None else moment.snapshot)


def mappings(profile: Profile, names: Names, moment: Moment) -> List[Mapped]:
    """The largest first."""
    pages = _pages_at(profile, moment)
    sums: Dict[Tuple[str, str], List[int]] = defaultdict(lambda: [0, 0, 0, 0])
    copied: Dict[str, int] = defaultdict(int)
    is_sampled = bytearray(profile.accounts.by_type(lambda type_: profile.is_sampled(type_.kind)))
    for account in compress(range(len(is_sampled)), is_sampled):
        if account not in moment.composition and account not in pages:
            continue
        resident, _ = moment.composition.get(account, (0, 0))
        virtual, shared, swapped = pages.get(account, (0, 0, 0))
        row = sums[names.library(account), profile.accounts.kind(account)]
        # If the moments differ, a mapping is at least as large as its resident part.
        for place, n_bytes in enumerate((resident, max(virtual, resident), shared, swapped)):
            row[place] += n_bytes
        if profile.copied_file(account):
            copied[names.library(account)] += resident
    # A file's mapping has one share on record, copies of its pages included; no other process has these.
    for name in [name for name in copied if (name, "file") in sums]:
        of_copies = min(copied[name], sums[name, "file"][2])
        sums[name, "file"][2] -= of_copies
        sums[name, "anon"][2] += of_copies
    found = [Mapped(name, kind, resident, Pages(*rest)) for (name, kind), (resident, *rest) in sums.items()]
    return sorted(found, key=lambda row: (-row.resident, -row.pages.virtual, row.name, row.kind))


def copied_files(profile: Profile, composition: LiveBytesByAccount) -> List[Tuple[str, int]]:
    """Files of data with the bytes that private mappings of them have copied, the largest first."""
    copies: Dict[str, int] = defaultdict(int)
    for account, (n_bytes, _) in composition.items():
        path = profile.copied_file(account) if n_bytes else ""
        if path:
            copies[path] += n_bytes
    return sorted(copies.items(), key=lambda copy: (-copy[1], copy[0]))


def libraries(profile: Profile, names: Names, composition: LiveBytesByAccount, rows: List[Mapped]) -> List[Library]:
    """The memory of each library, the largest first; `rows` are its mappings."""
    virtual: Dict[str, int] = defaultdict(int)
    for row in rows:
        virtual[row.name] += row.pages.virtual
    found: Dict[str, Dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for account, (n_bytes, _) in composition.items():
        found[names.library(account)][profile.accounts.kind(account)] += n_bytes
    table = [Library(name, by_kind, virtual.get(name, 0)) for name, by_kind in found.items()]
    return sorted(table, key=lambda library: (-library.bytes, library.name))
