# SPDX-License-Identifier: GPL-2.0-or-later
"""The balance of all memory: the kernel's figures in use against the ledger, down to what nothing explains.

    board = before + the ledger, owner by owner + untouched + allocators + Valgrind + unaccounted + elsewhere + free

`untouched` takes away what the ledger has and no page stands for; other rows may be negative too. The kernel's figures are those
of a snapshot at which the process's pages were sampled (docs/trace-format.md, "The machine"), and the ledger's are of the same
snapshot, so the sum is exact. On a discrete GPU it is the host's memory.
"""

from collections import defaultdict
from typing import Dict, List, NamedTuple, Optional

from jmassif.analysis.aggregate import Ledger, ledger
from jmassif.analysis.moments import Moment
from jmassif.model.records import side_of
from jmassif.model.run import Profile


# Beyond this share of the process, what is unaccounted deserves a warning; less than this is never worth one.
WARN_ABOVE = 0.05
_LEAST_WARNED_BYTES = 1 << 20

_HEAP_KINDS = ("heap", "heap-overhead")


class MemoryBalance(NamedTuple):
    """Bytes, and the snapshot (index) that they are of."""

    snapshot: int
    board: int  # all memory
    # In use before the program started: the system and other programs.
    before: int
    held: int  # by the ledger, in this memory
    # Allocated and without pages, taken away: never written to, only read, or swapped out. Never positive.
    untouched: int
    allocators: int  # free memory inside the heap's allocators
    valgrind: int  # pages of Valgrind's core and of jmassif
    unaccounted: int  # the remainder of the process's pages
    # In use beyond all that, and not before the start: other programs that have grown, the kernel's own, and what a
    # driver keeps for the process without a call that shows it. Negative where others have shrunk.
    elsewhere: int
    free: int  # what the kernel could still give, if the process's libraries stay in memory
    outside: int  # of what the ledger holds, that is in no page of the process: a driver's buffers
    nvmap: Optional[int]  # what NvMap has come to use since the start; None where the kernel does not say
    share_of_peak: float  # of what the ledger held at its peak

    @property
    def process(self) -> int:
        """All that the process has, with Valgrind."""
        return self.board - self.before - self.elsewhere - self.free

    @property
    def is_off(self) -> bool:
        return abs(self.unaccounted) > max(WARN_ABOVE * self.process, _LEAST_WARNED_BYTES)


def _figures(profile: Profile, time: int) -> Dict[str, int]:
    """The kernel's, at one time; 0 where not on record."""
    return defaultdict(int, {name: profile.system_at(name, time) or 0 for name in profile.system})


def _available(figures: Dict[str, int]) -> int:
    """With the free pages that each processor has at hand, which the kernel itself counts as in use."""
    return figures["mem-available"] + figures["free-per-cpu"]


def sampled(profile: Profile) -> List[int]:
    """Snapshots (indices) with the figures of a balance."""
    if not {"resident", "mem-available", "mem-total", "process-files"} <= profile.system.keys():
        return []
    times = set(profile.system["resident"][0])
    return [index for index, snapshot in enumerate(profile.snapshots) if snapshot.time in times]


def sampled_before(profile: Profile, at: Moment) -> Optional[int]:
    """The time at which the pages of a snapshot were sampled, if that was before it: a mark does not always sample them again."""
    times = profile.system["resident"][0] if "resident" in profile.system else ()
    before = [time for time in times if time <= at.time]
    return before[-1] if before and at.snapshot is not None and before[-1] < at.time else None


def _on(profile: Profile, by_kind: Dict[str, int]) -> int:
    """The bytes of the kinds that lie in the board's memory."""
    sides = ("host",) if profile.is_discrete else ("host", "device")
    return sum(n_bytes for kind, n_bytes in by_kind.items() if side_of(kind) in sides)


# Snapshots of at least this share of the largest one count as full.
_AS_FULL = 0.95


def _as_full(sizes: Dict[int, int]) -> List[int]:
    least = _AS_FULL * max(sizes.values(), default=0)
    return [index for index, size in sizes.items() if size >= least]


def fullest(profile: Profile, time: int) -> Optional[int]:
    """The snapshot nearest to a time, among those with a balance that held most in the largest process.

    A block makes a peak before it is written to.
    """
    held = {index: _on(profile, profile.snapshots[index].by_kind) for index in sampled(profile)}
    process = {index: memory_balance(profile, index).process for index in _as_full(held)}
    full = _as_full(process)
    return min(full, key=lambda index: (abs(profile.snapshots[index].time - time), -held[index])) if full else None


def memory_balance(profile: Profile, snapshot: int) -> MemoryBalance:
    """The balance of a snapshot that `sampled` lists."""
    by_kind = profile.snapshots[snapshot].by_kind
    start, now = (_figures(profile, profile.snapshots[index].time) for index in (0, snapshot))
    held = _on(profile, by_kind)
    heap = sum(by_kind.get(kind, 0) for kind in _HEAP_KINDS)
    pages = sum(n_bytes for kind, n_bytes in by_kind.items() if profile.is_sampled(kind))
    in_mappings = now["blocks-in-mappings"]  # blocks that the recorder has found to lie in mappings of the process
    # Blocks of custom allocators are of the heap's kind and lie elsewhere.
    from_malloc = heap - now["custom-blocks"]
    # Memory that a driver has committed and the process has mapped is among its pages.
    outside = held - from_malloc - pages - in_mappings - now["resident-devices"]
    in_blocks = min(now["resident-blocks"], in_mappings)
    without_pages = now["heap-untouched"] + in_mappings - in_blocks
    allocators = now["resident-heap"] - from_malloc + now["heap-untouched"]
    # Small blocks are not sampled one by one: pages that are missing in all have not been written to.
    without_pages += max(0, -allocators)
    explained = ("resident-heap", "resident-valgrind", "resident-devices")
    unaccounted = now["resident"] - sum(now[part] for part in explained) - in_blocks - pages
    # The kernel counts pages of files as available, for it could drop them; those of the libraries in use had better stay.
    free = max(0, _available(now) - now["process-files"])
    before = now["mem-total"] - _available(start) - (start["process-resident"] - start["process-files"])
    peak = profile.peaks.get("host" if profile.is_discrete else "total")
    top = max(peak.host if profile.is_discrete else peak.host + peak.device, held) if peak else held
    return MemoryBalance(
        snapshot=snapshot,
        board=now["mem-total"],
        before=before,
        held=held,
        untouched=-without_pages,
        allocators=max(0, allocators),
        valgrind=now["resident-valgrind"],
        unaccounted=unaccounted,
        elsewhere=now["mem-total"] - free - before - now["resident"] - outside,
        free=free,
        outside=max(0, outside),
        nvmap=now["nvmap-used"] - start["nvmap-used"] if "nvmap-used" in profile.system else None,
        share_of_peak=held / top if top else 1.0,
    )


def balance_at(profile: Profile, chosen: Moment) -> Optional[MemoryBalance]:
    """The balance for a moment."""
    near = nearest_sampled(profile, chosen.snapshot, chosen.time)
    return None if near is None else memory_balance(profile, near)


def is_peak(profile: Profile, time: int) -> bool:
    return any(peak.time == time for peak in profile.peaks.values())


def nearest_sampled(profile: Profile, snapshot: Optional[int], time: int) -> Optional[int]:
    """The nearest snapshot that has a balance; for a peak a large one."""
    if snapshot is None or is_peak(profile, time):
        return fullest(profile, time)
    found = sampled(profile)
    return min(found, key=lambda index: abs(profile.snapshots[index].time - time)) if found else None


def unused_besides(profile: Profile, made: MemoryBalance, program: int) -> int:
    """Free memory inside malloc when the ledger held `program`: together they are no more than the kernel ever saw resident.

    Blocks allocated since the sample of pages may lie in what was free then.
    """
    highest = max(profile.system.get("process-highest", ((), ()))[1], default=0)
    if not highest:
        return made.allocators
    return min(made.allocators, max(0, highest - made.valgrind - made.untouched - (program - made.outside)))


def ledger_of_balance(profile: Profile, made: MemoryBalance) -> Ledger:
    """The owners of the memory that it counts."""
    composition = profile.composition(made.snapshot)
    if profile.is_discrete:
        accounts = profile.accounts
        composition = {id_: held for id_, held in composition.items() if side_of(accounts[id_].kind) != "device"}
    return ledger(profile, composition)


class DeviceBalance(NamedTuple):
    """A discrete GPU's memory, in bytes, when the recorder looked at it. `board` is the sum of the four after it."""

    time: int
    board: int
    before: int  # in use when it was first looked at, beyond the ledger: other programs, and contexts
    held: int  # by the ledger
    unaccounted: int  # in use beyond both; negative where others have given back
    free: int


def device_balance(profile: Profile) -> Optional[DeviceBalance]:
    """The sample of the GPU at which the ledger held most; None without samples."""
    if "device-free" not in profile.system:
        return None

    times = profile.system["device-free"][0]
    first = _figures(profile, times[0])
    before = first["device-total"] - first["device-free"] - first["device-ledger"]
    time = max(times, key=lambda time: profile.system_at("device-ledger", time) or 0)
    now = _figures(profile, time)
    board, free, held = now["device-total"], now["device-free"], now["device-ledger"]
    return DeviceBalance(time, board, before, held, board - free - before - held, free)
