# SPDX-License-Identifier: GPL-2.0-or-later
"""A range of a run: what was held at its end minus what was held at its beginning, and what was allocated and freed in between.

A place is a stack, a kind and an owner; roles of tensors may change in a range, so they are no part of it. All figures are exact
from snapshot to snapshot. The totals of what was allocated are recorded at snapshots alone: where an end is a peak between two of
them, those of the snapshot before it stand in.
"""

from bisect import bisect_right
from typing import Callable, Dict, Iterable, List, NamedTuple, Tuple

from jmassif.analysis.moments import Moment, SelectionError, select
from jmassif.model.records import side_of
from jmassif.model.run import Profile


class Change(NamedTuple):
    """Bytes, or blocks."""

    before: int = 0  # held at the first moment
    after: int = 0  # held at the second
    new: int = 0  # held at the second beyond what the same place held at the first
    gone: int = 0  # the opposite
    allocated: int = 0  # in between, whatever became of it
    freed: int = 0

    def plus(self, other: "Change") -> "Change":
        return Change(*(mine + more for mine, more in zip(self, other)))


NO_CHANGE = Change()


def _change(before: int, after: int, allocated: int) -> Change:
    # A part that a cache takes back comes to it without being allocated.
    allocated = max(allocated, after - before, 0)
    return Change(before, after, max(0, after - before), max(0, before - after), allocated, before + allocated - after)


class PlaceChange(NamedTuple):
    bytes: Change
    blocks: Change
    temporaries: int  # blocks that were freed in between before their thread allocated anything else


class Range(NamedTuple):
    first: Moment
    second: Moment
    places: Dict[int, PlaceChange]  # by the first account of each place that held or allocated anything
    is_exact: bool  # what was allocated is known at both ends

    def values(self, value: str) -> Dict[int, int]:
        """A figure, by its name in RANGE_VALUES, of each account."""
        if value == "temporaries":
            found = {account: change.temporaries for account, change in self.places.items()}
        else:
            figure, unit = value.split("-")
            found = {account: getattr(getattr(change, unit), figure) for account, change in self.places.items()}
        return {account: number for account, number in found.items() if number}

    @property
    def new(self) -> Moment:
        """The part of the second moment that was not held at the first."""
        held = {place: (change.bytes.new, change.blocks.new) for place, change in self.places.items()}
        composition = {place: row for place, row in held.items() if any(row)}
        return Moment(
            f"{self.second.name}, of what is new since {self.first.name}", self.second.time, composition, None
        )


# ---- its ends ----------------------------------------------------------------------------------


def _settled(profile: Profile, moment: Moment) -> Moment:
    """The moment as a snapshot, where it is one: a peak may be."""
    if moment.snapshot is None:
        for index, snapshot in enumerate(profile.snapshots):
            if snapshot.time == moment.time and profile.composition(index) == moment.composition:
                return moment._replace(snapshot=index)
    return moment


def _order(moment: Moment) -> Tuple[int, int]:
    # A peak comes between the snapshots before its time and those of that time.
    return moment.time, -1 if moment.snapshot is None else moment.snapshot


def moments_of(profile: Profile, begin: str, end: str) -> Tuple[Moment, Moment]:
    """The two moments, in their order. Raises SelectionError."""
    if not profile.snapshots:
        raise SelectionError("the trace has no complete snapshot, so no range")
    first, second = _settled(profile, select(profile, begin)), _settled(profile, select(profile, end))
    if first.snapshot is not None and first.snapshot == second.snapshot:
        number = profile.snapshots[first.snapshot].id
        raise SelectionError(f'a range from "{begin}" to "{end}" is empty: both are snapshot {number}')
    if _order(first) >= _order(second):
        raise SelectionError(
            f'a range from "{begin}" to "{end}" goes backwards: {first.name} is not before {second.name}'
        )
    return first, second


def _snapshot_by(profile: Profile, moment: Moment) -> int:
    """The index of the last snapshot that is no later; -1: there is none."""
    if moment.snapshot is not None:
        return moment.snapshot
    return bisect_right([snapshot.time for snapshot in profile.snapshots], moment.time) - 1


# ---- the range ---------------------------------------------------------------------------------


def between(profile: Profile, begin: str, end: str) -> Range:
    """From one moment to another, as moments.select takes them. Raises SelectionError."""
    return range_of(profile, *moments_of(profile, begin, end))


def range_of(profile: Profile, first: Moment, second: Moment) -> Range:
    """From a moment to a later one. Their compositions may be parts of what was held, and a snapshot of -1 is before the first."""
    begin = profile.lifetime_at(_snapshot_by(profile, first))
    end = profile.lifetime_at(_snapshot_by(profile, second))
    nothing = (0, 0)
    known: Dict[Tuple[int, str, str], int] = {}
    sums: Dict[int, List[int]] = {}
    for account, (node, kind, owner) in enumerate(profile.accounts):
        if side_of(kind) is None:
            continue
        is_block = kind != "heap-overhead"
        before, after = first.composition.get(account, nothing), second.composition.get(account, nothing)
        row = (
            before[0],
            after[0],
            end.bytes[account] - begin.bytes[account],
            before[1] * is_block,
            after[1] * is_block,
            (end.blocks[account] - begin.blocks[account]) * is_block,
            (end.temporaries[account] - begin.temporaries[account]) * is_block,
        )
        if any(row):
            place = known.setdefault((node, kind, owner), account)
            sums[place] = [mine + more for mine, more in zip(sums[place], row)] if place in sums else list(row)
    places = {place: PlaceChange(_change(*row[:3]), _change(*row[3:6]), max(0, row[6])) for place, row in sums.items()}
    is_exact = first.snapshot is not None and second.snapshot is not None
    return Range(first, second, places, is_exact)


# ---- by name -----------------------------------------------------------------------------------


class RangeRow(NamedTuple):
    """The sum of places under one name."""

    name: str
    host: Change = NO_CHANGE  # bytes
    device: Change = NO_CHANGE
    blocks: Change = NO_CHANGE  # of both
    temporaries: int = 0

    @property
    def both(self) -> Change:
        return self.host.plus(self.device)

    def plus(self, other: "RangeRow") -> "RangeRow":
        return RangeRow(
            self.name,
            self.host.plus(other.host),
            self.device.plus(other.device),
            self.blocks.plus(other.blocks),
            self.temporaries + other.temporaries,
        )


def _rank(row: RangeRow) -> Tuple[int, int, int, str]:
    change = row.both
    return -change.new, -change.gone, -change.allocated, row.name


def rows_of(profile: Profile, found: Range, name_of: Callable[[int], str]) -> List[RangeRow]:
    """A row a name that `name_of` gives to accounts: the largest growth first, then the largest loss."""
    rows = []
    for account, change in found.places.items():
        row = RangeRow(name_of(account), blocks=change.blocks, temporaries=change.temporaries)
        is_host = side_of(profile.accounts[account].kind) == "host"
        rows.append(row._replace(host=change.bytes) if is_host else row._replace(device=change.bytes))
    return joined(rows)


def joined(rows: Iterable[RangeRow]) -> List[RangeRow]:
    """Those of one name as one."""
    sums: Dict[str, RangeRow] = {}
    for row in rows:
        sums[row.name] = sums[row.name].plus(row) if row.name in sums else row
    return sorted(sums.values(), key=_rank)


def total_of(rows: Iterable[RangeRow], name: str = "total") -> RangeRow:
    total = RangeRow(name)
    for row in rows:
        total = total.plus(row)
    return total
