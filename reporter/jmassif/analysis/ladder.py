# SPDX-License-Identifier: GPL-2.0-or-later
"""The ladder: from the figure that another tool shows of all memory down to the one that the framework prints.

A reader has seen 3.3 GB in jtop and 1.1 GB in torch.cuda.memory_allocated(), and asks where the rest is. Each rung takes a
part away, or adds one that the figure above does not count, so that the figures on the way follow exactly. The ledger's
parts are of the chosen moment, the kernel's figures of the sample nearest to it; a remainder, marked as such, holds what
lies between the two.
"""

from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.analysis.aggregate import UsageRow, ledger
from jmassif.analysis.balance import memory_balance, nearest_to
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


class _Upper(NamedTuple):
    """The rungs above the program."""

    shown: Rung
    known: List[Rung]  # of LESS and PLUS
    remainder: str  # the key of the rung for the rest
    sampled_at: int


def _ladder(
    profile: Profile,
    chosen: Moment,
    rows: List[UsageRow],
    pool: str,
    bytes_of: _Bytes,
    upper_of: Callable[[Profile, Moment], Optional[_Upper]],
) -> Ladder:
    program = sum(bytes_of(row) for row in rows)
    upper = upper_of(profile, chosen)
    rungs = _to_program(upper, program) if upper else []
    rungs.append(Rung("program", SUM, program))
    rungs += _to_tensors(profile, rows, bytes_of) if pool != "host" else _to_own_code(profile, rows, bytes_of)
    sampled_at = upper.sampled_at if upper else None
    return Ladder(pool, chosen.time, sampled_at, rungs, _beside(profile, rows, sampled_at))


def _to_program(upper: _Upper, program: int) -> List[Rung]:
    worth = [rung for rung in upper.known if rung.bytes >= (_LEAST_PART * program if rung.role == PLUS else 1)]
    taken = [rung for rung in worth if rung.role == LESS]
    added = [rung for rung in worth if rung.role == PLUS]
    rest = upper.shown.bytes - program + sum(rung.bytes for rung in added) - sum(rung.bytes for rung in taken)
    remainder = Rung(upper.remainder, LESS if rest >= 0 else PLUS, abs(rest), True)
    return [upper.shown, *taken, remainder, *added]


def _from_jtop(profile: Profile, chosen: Moment) -> Optional[_Upper]:
    near = nearest_to(profile, chosen)
    if near is None:
        return None
    start, snapshot = profile.snapshots[0].time, profile.snapshots[near]
    shown, at_start = ram_in_use(profile, snapshot.time), ram_in_use(profile, start)
    if shown is None or at_start is None:
        return None
    own = (profile.system_at("process-resident", start) or 0) - (profile.system_at("process-files", start) or 0)
    known = [
        Rung("before", LESS, max(0, at_start - own)),
        Rung("files", PLUS, snapshot.by_kind.get("file", 0)),
        Rung("unwritten", PLUS, -memory_balance(profile, near).untouched),
    ]
    return _Upper(Rung("jtop", SHOWN, shown), known, "others", snapshot.time)


def _from_htop(profile: Profile, chosen: Moment) -> Optional[_Upper]:
    near = nearest_to(profile, chosen)
    if near is None:
        return None
    time, made = profile.snapshots[near].time, memory_balance(profile, near)
    known = [Rung("profiler", LESS, made.valgrind), Rung("unwritten", PLUS, -made.untouched)]
    shown = Rung("htop", SHOWN, profile.system_at("process-resident", time) or 0)
    return _Upper(shown, known, "unexplained", time)


def _from_nvidia_smi(profile: Profile, chosen: Moment) -> Optional[_Upper]:
    if "device-free" not in profile.system:
        return None

    def in_use(time: int) -> int:
        return (profile.system_at("device-total", time) or 0) - (profile.system_at("device-free", time) or 0)

    times = profile.system["device-free"][0]
    first, time = times[0], min(times, key=lambda time: abs(time - chosen.time))
    before = in_use(first) - (profile.system_at("device-ledger", first) or 0)
    return _Upper(Rung("nvidia-smi", SHOWN, in_use(time)), [Rung("before", LESS, max(0, before))], "others", time)


def _rung(key: str, role: str, rows: List[UsageRow], bytes_of: _Bytes) -> Rung:
    parts = sorted(((row.name, bytes_of(row)) for row in rows if bytes_of(row)), key=lambda part: (-part[1], part[0]))
    return Rung(key, role, sum(n_bytes for _, n_bytes in parts), parts=parts)


def _to_tensors(profile: Profile, rows: List[UsageRow], bytes_of: _Bytes) -> List[Rung]:
    """From the program to what its framework has handed out on the device; without a framework, to its own code."""
    if not any(row.usage.device_bytes for row in rows if row.name in ALLOCATED_OWNERS):
        return _to_own_code(profile, rows, bytes_of)

    def allocated(row: UsageRow) -> int:
        return row.usage.device_bytes if row.name in ALLOCATED_OWNERS else 0

    def rest(row: UsageRow) -> int:
        return bytes_of(row) - allocated(row)

    steps = _groups(profile, rows, rest)
    return [*steps, _rung("allocated", SHOWN, rows, allocated)]


def _to_own_code(profile: Profile, rows: List[UsageRow], bytes_of: _Bytes) -> List[Rung]:
    *steps, own = _groups(profile, rows, bytes_of, True)
    return [*steps, own._replace(role=SUM, key="own-code")]


def _groups(profile: Profile, rows: List[UsageRow], bytes_of: _Bytes, with_empty_own: bool = False) -> List[Rung]:
    """A rung a group that holds anything, the program's own code last."""
    found = []
    for key, group in (("runtime", "runtime"), ("libraries", "libraries"), ("cache", "cached"), ("other", "other")):
        found.append(
            _rung(key, LESS, [row for row in rows if profile.group_of.get(row.name, "other") == group], bytes_of)
        )
    own = _rung("own", LESS, [row for row in rows if profile.group_of.get(row.name) == "yours"], bytes_of)
    return [rung for rung in found if rung.bytes] + ([own] if own.bytes or with_empty_own else [])


def _beside(profile: Profile, rows: List[UsageRow], sampled_at: Optional[int]) -> Dict[str, int]:
    found = {}
    for key, figure in (("resident", "process-resident"), ("profiler", "resident-valgrind")):
        value = None if sampled_at is None else profile.system_at(figure, sampled_at)
        if value is not None:
            found[key] = value
    if has_device(profile) and any(row.name == "cache" and row.usage.device_bytes for row in rows):
        found["reserved"] = sum(row.usage.device_bytes for row in rows if row.name in RESERVED_OWNERS)
    return found
