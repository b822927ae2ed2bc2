# SPDX-License-Identifier: GPL-2.0-or-later
"""The ladder: from the figure that another tool shows of all memory down to the one that the framework prints.

A reader has seen 3.3 GB in jtop and 1.1 GB in torch.cuda.memory_allocated(), and asks where the rest is. Each rung takes a
part away, or adds one that the figure above does not count, so that the figures on the way follow exactly. The ledger's
parts are of the chosen moment, the kernel's figures of the sample nearest to it; a remainder, marked as such, holds what
lies between the two.
"""

from collections import defaultdict
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.analysis.aggregate import UsageRow, ledger
from jmassif.analysis.balance import balance_at, is_peak, unused_besides
from jmassif.analysis.moments import Moment
from jmassif.analysis.other_tools import ALLOCATED_OWNERS, RESERVED_OWNERS, has_device, is_board, ram_in_use
from jmassif.model.run import Profile


# The roles of rungs: a figure of another tool, a sum of the ledger, a part to take away, a part to add.
SHOWN, SUM, LESS, PLUS = "shown", "sum", "less", "plus"

# A part that the figure above leaves out has a rung of its own from this share of the program on; a smaller one is left
# to the remainder.
_LEAST_PART = 0.02


class Rung(NamedTuple):
    """A row of the ladder."""

    key: str  # what it is: "jtop", "cache"
    role: str  # SHOWN, SUM, LESS or PLUS
    bytes: int  # never negative
    is_about: bool = False  # a remainder
    parts: Sequence[Tuple[str, int]] = ()  # owners and their bytes, the largest first

    @property
    def signed(self) -> int:
        """Bytes, negative where they are taken away."""
        return -self.bytes if self.role == LESS else self.bytes


class Ladder(NamedTuple):
    """Rungs from the top figure to the bottom one. Each figure is the one before it, less and plus the parts in between."""

    pool: str  # "device" or "host" where a discrete GPU has memory of its own, else ""
    time: int  # of the ledger's moment
    sampled_at: Optional[int]  # when the top figure was sampled; None: no tool's is known, and the program is the top
    rungs: List[Rung]
    beside: Dict[str, int]  # bytes of figures that a reader may know as well: "resident", "profiler", "reserved"


_Bytes = Callable[[UsageRow], int]
_Upper = Tuple[Optional[int], List[Rung]]  # when the figure at the top was sampled, and the rungs above the program


def ladders(profile: Profile, chosen: Moment, rows: Optional[List[UsageRow]] = None) -> List[Ladder]:
    """One ladder; two with a discrete GPU that is used, the device's first; none where no memory is on record.

    `rows`: the moment's owners, where they are known without its composition.
    """
    if rows is None:
        rows = ledger(profile, chosen.composition).owners
    device = sum(row.usage.device_bytes for row in rows)
    if not any(row.bytes for row in rows):
        return []
    if profile.is_discrete and device:
        return [
            _ladder(profile, chosen, rows, "device", lambda row: row.usage.device_bytes, _from_nvidia_smi),
            _ladder(profile, chosen, rows, "host", lambda row: row.usage.host_bytes, _from_htop),
        ]
    top = _from_jtop if is_board(profile) and device else _from_htop
    return [_ladder(profile, chosen, rows, "", lambda row: row.bytes, top)]


def _ladder(
    profile: Profile,
    chosen: Moment,
    rows: List[UsageRow],
    pool: str,
    bytes_of: _Bytes,
    upper: Callable[[Profile, Moment, int], _Upper],
) -> Ladder:
    program = sum(bytes_of(row) for row in rows)
    sampled_at, above = upper(profile, chosen, program)
    rungs = [*above, Rung("program", SUM, program), *_below(profile, rows, pool, bytes_of)]
    return Ladder(pool, chosen.time, sampled_at, rungs, _beside(profile, rows, sampled_at))


def _above(shown: Rung, known: List[Rung], remainder: str, program: int) -> List[Rung]:
    """From a tool's figure to the program, by rungs that are known; the rest is a rung of its own."""
    worth = [rung for rung in known if rung.bytes >= (_LEAST_PART * program if rung.role == PLUS else 1)]
    rest = shown.bytes - program + sum(rung.signed for rung in worth)
    taken = [rung for rung in worth if rung.role == LESS]
    added = [rung for rung in worth if rung.role == PLUS]
    return [shown, *taken, Rung(remainder, LESS if rest >= 0 else PLUS, abs(rest), True), *added]


def _from_jtop(profile: Profile, chosen: Moment, program: int) -> _Upper:
    made = balance_at(profile, chosen)
    if made is None:
        return None, []
    start, snapshot = profile.snapshots[0].time, profile.snapshots[made.snapshot]
    shown, at_start = ram_in_use(profile, snapshot.time), ram_in_use(profile, start)
    if shown is None or at_start is None:
        return None, []
    own = (profile.system_at("process-resident", start) or 0) - (profile.system_at("process-files", start) or 0)
    known = [
        Rung("before", LESS, max(0, at_start - own)),
        Rung("unused", LESS, made.allocators),
        Rung("files", PLUS, snapshot.by_kind.get("file", 0)),
        Rung("unwritten", PLUS, -made.untouched),
    ]
    return snapshot.time, _above(Rung("jtop", SHOWN, shown), known, "others", program)


def _from_htop(profile: Profile, chosen: Moment, program: int) -> _Upper:
    made = balance_at(profile, chosen)
    if made is None:
        return None, []
    time = profile.snapshots[made.snapshot].time
    unused, unwritten = unused_besides(profile, made, program), -made.untouched
    shown = Rung("htop", SHOWN, profile.system_at("process-resident", time) or 0)
    highest = _highest_between(profile, *sorted((time, chosen.time))) if is_peak(profile, chosen.time) else 0
    in_pages = highest - made.valgrind - unused
    if shown.bytes < highest and in_pages <= (1 + _LEAST_PART) * program:
        shown = Rung("highest", SHOWN, highest)
        unwritten = min(unwritten, max(0, program - in_pages))
    known = [
        Rung("profiler", LESS, made.valgrind),
        Rung("unused", LESS, unused),
        Rung("unwritten", PLUS, unwritten),
    ]
    return time, _above(shown, known, "unexplained", program)


def _highest_between(profile: Profile, begin: int, end: int) -> int:
    """The kernel's VmHWM where it grew between the samples of pages around two times, else 0.

    A block makes a peak before it is written to, and is often freed before the next sample.
    """
    times = profile.system["resident"][0]
    before = max((time for time in times if time <= begin), default=begin)
    after = min((time for time in times if time > end), default=max(times))
    highest = profile.system_at("process-highest", after) or 0
    return highest if highest > (profile.system_at("process-highest", before) or 0) else 0


def _from_nvidia_smi(profile: Profile, chosen: Moment, program: int) -> _Upper:
    if "device-free" not in profile.system:
        return None, []

    def in_use(time: int) -> int:
        return (profile.system_at("device-total", time) or 0) - (profile.system_at("device-free", time) or 0)

    times = profile.system["device-free"][0]
    first, time = times[0], min(times, key=lambda time: abs(time - chosen.time))
    before = in_use(first) - (profile.system_at("device-ledger", first) or 0)
    known = [Rung("before", LESS, max(0, before))]
    return time, _above(Rung("nvidia-smi", SHOWN, in_use(time)), known, "others", program)


def _rung(key: str, role: str, rows: List[UsageRow], bytes_of: _Bytes) -> Rung:
    parts = sorted(((row.name, bytes_of(row)) for row in rows if bytes_of(row)), key=lambda part: (-part[1], part[0]))
    return Rung(key, role, sum(n_bytes for _, n_bytes in parts), parts=parts)


_GROUPS = (
    ("runtime", "runtime"),
    ("libraries", "libraries"),
    ("cache", "cached"),
    ("other", "other"),
    ("own", "yours"),
)


def _below(profile: Profile, rows: List[UsageRow], pool: str, bytes_of: _Bytes) -> List[Rung]:
    """From the program to what its framework has handed out on the device; without a framework, to its own code."""
    has_tensors = pool != "host" and any(row.usage.device_bytes for row in rows if row.name in ALLOCATED_OWNERS)

    def allocated(row: UsageRow) -> int:
        return row.usage.device_bytes if has_tensors and row.name in ALLOCATED_OWNERS else 0

    def rest(row: UsageRow) -> int:
        return bytes_of(row) - allocated(row)

    members: Dict[str, List[UsageRow]] = defaultdict(list)
    for row in rows:
        members[profile.group_of.get(row.name, "other")].append(row)
    *groups, own = (_rung(key, LESS, members[group], rest) for key, group in _GROUPS)
    steps = [rung for rung in groups if rung.bytes]
    if not has_tensors:
        return [*steps, own._replace(role=SUM, key="own-code")]
    return [*steps, *([own] if own.bytes else []), _rung("allocated", SHOWN, rows, allocated)]


def _beside(profile: Profile, rows: List[UsageRow], sampled_at: Optional[int]) -> Dict[str, int]:
    found = {}
    for key, figure in (("resident", "process-resident"), ("profiler", "resident-valgrind")):
        value = None if sampled_at is None else profile.system_at(figure, sampled_at)
        if value is not None:
            found[key] = value
    reserved = {row.name: row.usage.device_bytes for row in rows if row.name in RESERVED_OWNERS}
    if has_device(profile) and reserved.get("cache") and any(map(reserved.get, ALLOCATED_OWNERS)):
        found["reserved"] = sum(reserved.values())
    return found
