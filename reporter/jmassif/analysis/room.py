# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory that a board has for a program, and what a program needs besides its caching allocator. Sizes are bytes."""

from typing import Dict, List, NamedTuple, Optional

from jmassif.analysis.allocator_steps import FitError
from jmassif.analysis.blocks import heap_steps
from jmassif.model.records import DEVICE_KINDS, PAGE_KINDS
from jmassif.model.run import Profile


def space_of(run: Profile, is_dry: bool = False) -> str:
    """The memory that has to fit: a name of a peak."""
    return "total" if is_dry or not run.is_discrete else "device" if any(run.timeline.device) else "host"


def _large_at_peak(run: Profile, space: str) -> int:
    """The most that large blocks of the heap held in the millisecond of the peak."""
    held, most, peak = 0, 0, run.peaks[space].time
    for time, n_bytes in heap_steps(run):
        if time > peak:
            break
        held += n_bytes
        most = held if time < peak else max(most, held)
    return most


def rest_of(run: Profile, reserved: int, space: str, is_host: bool = False) -> int:
    """Memory of the program at its peak, without the allocator's. `is_host`: without the heap's large blocks, which may have had a
    peak of their own before.
    """
    if space not in run.peaks:
        return 0
    return max(0, run.peaks[space].bytes - (_large_at_peak(run, space) if is_host else reserved))


def pages_of(run: Profile, space: str) -> int:
    """Resident pages at the peak: sampled, and different in each run of a program."""
    held = run.peak_composition(space) if space in run.peaks else {}
    return sum(n_bytes for account, (n_bytes, _) in held.items() if run.accounts.kind(account) in PAGE_KINDS)


def unused_of(run: Profile) -> int:
    """Free memory inside malloc, which is in no peak: what was resident beyond it in some sample, without the recorder's."""
    samples = zip(*run.system.get("process-resident", ((), ())))
    most = max((n - (run.system_at("resident-valgrind", time) or 0) for time, n in samples), default=0)
    return max(0, most - run.peaks["host"].bytes) if "host" in run.peaks else 0


# Owners that are there before the program does anything, of CUDA and the JetPack.
_STARTUP_OWNERS = ("context", "module", "cudart", "slack", "cudnn", "cublas", "cufft", "cusparse", "cusolver", "curand")


class StartupCost(NamedTuple):
    owner: str
    recorded: int  # bytes in the run
    replaced: int  # likewise, in the trace that stands for another release or board


def _startup(run: Profile, space: str) -> Dict[str, int]:
    """Bytes at the peak by owner."""
    found = dict.fromkeys(_STARTUP_OWNERS, 0)
    for account, (n_bytes, _) in run.peak_composition(space).items() if space in run.peaks else ():
        owner = run.accounts.owner(account)
        if owner in found and (space == "total" or run.accounts.kind(account) in DEVICE_KINDS):
            found[owner] += n_bytes
    return found


def startup_costs(run: Profile, other: Optional[Profile], space: str) -> List[StartupCost]:
    """Raises FitError."""
    before, after = _startup(run, space), _startup(other or run, space)
    if other and not any(after.values()):
        raise FitError("the trace of another start-up has no context, no module and no library of CUDA")
    rows = [StartupCost(owner, before[owner], after[owner]) for owner in before if before[owner] or after[owner]]
    return sorted(rows, key=lambda row: (-abs(row.replaced - row.recorded), row.owner))


class Room(NamedTuple):
    """Memory that a program can have on a board."""

    available: int
    others: Optional[int]  # in use by the rest of the system; None: not measured, and not taken away
    is_measured: bool  # on this board; else `others` was measured on another


def _first(run: Profile, figure: str) -> Optional[int]:
    values = run.system.get(figure, ((), ()))[1]
    return values[0] if values else None


def room_of(run: Profile, board: Optional[int], is_dry: bool = False) -> Room:
    """`is_dry`: other programs of a machine that is no board do not count. Raises FitError."""
    if space_of(run) == "device":
        total, free, held = (_first(run, figure) for figure in ("device-total", "device-free", "device-ledger"))
        free = None if free is None else free + (held or 0)
    else:
        total, free = _first(run, "mem-total"), _first(run, "mem-available")
        first = run.snapshots[0] if run.snapshots else None
        free = None if free is None else free + (first.host + first.device if first else 0)
    is_unlike = is_dry and run.is_discrete
    if total is None or free is None or is_unlike:
        if board is None:
            raise FitError("the trace does not say how much memory there was: name it with --board=SIZE")
        return Room(board, None, False)
    free = min(free, total)
    if board is None:
        return Room(free, total - free, True)
    return Room(max(0, board - (total - free)), total - free, False)
