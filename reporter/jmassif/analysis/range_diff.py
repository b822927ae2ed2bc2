# SPDX-License-Identifier: GPL-2.0-or-later
"""A range: memory held at its end minus memory held at its beginning, and memory allocated and freed in between.

A place is a stack, a kind and an owner; roles of tensors may change in a range, so they are no part of it. All figures are exact
from snapshot to snapshot. The totals of allocations are recorded at snapshots alone: where an end is a peak between two of
them, those of the snapshot before it stand in.
"""

from typing import Callable, Dict, List, NamedTuple, Tuple

from jmassif.analysis.moments import Moment, SelectionError, select, snapshot_by
from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.model.records import Account, side_of
from jmassif.model.run import Profile


class Change(NamedTuple):
    """Bytes, or blocks."""

    before: int = 0  # held at the first moment
    after: int = 0  # held at the second
    new: int = 0  # held at the second beyond what the same place held at the first
    gone: int = 0  # the opposite
    allocated: int = 0  # in between, whatever became of it
    freed: int = 0

    def __add__(self, other: "Change") -> "Change":  # type: ignore[override]
        return Change(*(mine + more for mine, more in zip(self, other)))


NO_CHANGE = Change()


def _change(before: int, after: int, allocated: int) -> Change:
    # A part that a cache takes back comes to it without being allocated.
    allocated = max(allocated, after - before, 0)
    return Change(before, after, max(0, after - before), max(0, before - after), allocated, before + allocated - after)


class RangeRow(NamedTuple):
    """A place, or the sum of places under one name."""

    name: str  # "" of a place
    host: Change = NO_CHANGE  # bytes
    device: Change = NO_CHANGE
    blocks: Change = NO_CHANGE  # of both
    temporaries: int = 0  # blocks that were freed in between before their thread allocated anything else

    def on(self, space: str) -> Change:
        """Bytes on "host" or "device", of both with ""."""
        return self.host + self.device if not space else self.host if space == "host" else self.device

    def __add__(self, other: "RangeRow") -> "RangeRow":  # type: ignore[override]
        host, device, blocks = self.host + other.host, self.device + other.device, self.blocks + other.blocks
        return RangeRow(self.name, host, device, blocks, self.temporaries + other.temporaries)


class Range(NamedTuple):
    names: Names
    first: Moment
    second: Moment
    places: Dict[int, RangeRow]  # by the first account of each place that held or allocated anything

    @property
    def is_exact(self) -> bool:
        """Allocations are known at both ends."""
        return self.first.snapshot is not None and self.second.snapshot is not None

    @property
    def new(self) -> Moment:
        """The part of the second moment that was not held at the first."""
        held = {place: (row.on("").new, row.blocks.new) for place, row in self.places.items()}
        name = f"{self.second.name}, of what is new since {self.first.name}"
        return Moment(name, self.second.time, {place: pair for place, pair in held.items() if any(pair)}, None)

    @property
    def total(self) -> RangeRow:
        return sum(self.places.values(), RangeRow("total"))

    def rows_of(self, name_of: Callable[[int], str]) -> List[RangeRow]:
        """A row a name that `name_of` gives to accounts: the largest growth first, then the largest loss."""
        sums: Dict[str, RangeRow] = {}
        for account, row in self.places.items():
            name = name_of(account)
            sums[name] = sums.get(name, RangeRow(name)) + row

        def rank(row: RangeRow) -> Tuple[int, int, int, str]:
            change = row.on("")
            return -change.new, -change.gone, -change.allocated, row.name

        return sorted(sums.values(), key=rank)

    def rows(self, by: str, is_folded: bool) -> List[RangeRow]:
        """By name in a view of attribution.views.naming."""
        return self.rows_of(naming(self.names.profile, self.names, by, is_folded))


def _at(run: Profile, selector: str) -> Moment:
    at = select(run, selector)
    if at.snapshot is None:  # a peak may be a snapshot
        alike = (index for index, snapshot in enumerate(run.snapshots) if snapshot.time == at.time)
        at = at._replace(snapshot=next((n for n in alike if run.composition(n) == at.composition), None))
    return at


def _order(at: Moment) -> Tuple[int, int]:
    # A peak comes between the snapshots before its time and those of that time.
    return at.time, -1 if at.snapshot is None else at.snapshot


def _places(run: Profile, first: Moment, second: Moment) -> Dict[int, RangeRow]:
    begin, end = (
        run.lifetime(snapshot_by(run, at.time) if at.snapshot is None else at.snapshot) for at in (first, second)
    )
    nothing = (0, 0)
    first_of: Dict[Account, int] = {}
    sums: Dict[int, List[int]] = {}
    for account, of in enumerate(run.accounts):
        if side_of(of.kind) is None:
            continue
        held = first.composition.get(account, nothing), second.composition.get(account, nothing)
        n_bytes, blocks, temporaries = (after[account] - before[account] for before, after in zip(begin, end))
        row = [held[0][0], held[1][0], n_bytes, held[0][1], held[1][1], blocks, temporaries]
        if of.kind == "heap-overhead":
            row[3:] = [0, 0, 0, 0]
        if any(row):
            place = first_of.setdefault(of, account)
            sums[place] = [mine + more for mine, more in zip(sums.get(place, [0] * len(row)), row)]
    found = {}
    for place, figures in sums.items():
        change, is_host = _change(*figures[:3]), side_of(run.accounts.kind(place)) == "host"
        sides = (change, NO_CHANGE) if is_host else (NO_CHANGE, change)
        found[place] = RangeRow("", *sides, _change(*figures[3:6]), max(0, figures[6]))
    return found


def between(run: Profile, begin: str, end: str) -> Range:
    """From one moment to another, as moments.select takes them. Raises SelectionError."""
    if not run.snapshots:
        raise SelectionError("no complete snapshot, so no range")
    first, second = _at(run, begin), _at(run, end)
    if _order(first) == _order(second):
        raise SelectionError(f'a range from "{begin}" to "{end}" is empty: both are {first.name}')
    if _order(first) > _order(second):
        raise SelectionError(
            f'a range from "{begin}" to "{end}" goes backwards: {first.name} is not before {second.name}'
        )
    return Range(Names(run), first, second, _places(run, first, second))
