# SPDX-License-Identifier: GPL-2.0-or-later
"""A range of a run, from one moment to another: by place, what came to stay, what went, and what was only passing (flows.py).

A place is a stack, a kind and an owner. Three things narrow its bounds, and mostly to a single figure:

- what it held at the snapshots in between, for what was there before was never more than that;
- the records of blocks: all of the device have one, and those of the heap from the recorder's --large on. What a place holds
  besides is bounded by itself. With --large=0 all blocks have records, and nothing is uncertain;
- where nothing was allocated, or nothing freed, or nothing was there before, nothing is uncertain anyway.
"""

from bisect import bisect_left, bisect_right
from typing import Callable, Dict, Iterable, List, NamedTuple, Tuple, Union

from jmassif.model.kinds import side_of
from jmassif.model.profile import Profile
from jmassif.model.records import Composition, Lifetime
from jmassif.questions.flows import NOTHING, Flow, bounds, recorded
from jmassif.questions.moments import Moment, SelectionError, select
from jmassif.questions.passages import Passages

# From where to where something lies that is known to lie between two numbers.
_Span = Tuple[int, int]


class Range(NamedTuple):
    first: Moment
    second: Moment
    # By the first account of each place that held or allocated anything: its bytes, and its blocks.
    flows: Dict[int, Tuple[Flow, Flow]]

    @property
    def total(self) -> Flow:
        total = NOTHING
        for n_bytes, _ in self.flows.values():
            total = total.plus(n_bytes)
        return total

    def composition(self, figure: str) -> Composition:
        """What one of the figures of Flow says of each place: bytes and blocks."""
        found = {account: (getattr(b, figure), getattr(n, figure)) for account, (b, n) in self.flows.items()}
        return {account: held for account, held in found.items() if any(held)}


# ---- where a moment lies -----------------------------------------------------------------------


class _Place(NamedTuple):
    """Where a moment lies among what the trace tells in order."""

    before: int  # index of the last snapshot that is no later; -1: there is none
    after: int  # likewise of the first that is no earlier
    rows: _Span  # of Profile.blocks: so many came before it, at least and at most


def _lies(profile: Profile, moment: Moment) -> _Place:
    if moment.snapshot is not None:
        position = profile.snapshots[moment.snapshot].position
        return _Place(moment.snapshot, moment.snapshot, (position, position))
    times = [snapshot.time for snapshot in profile.snapshots]
    rows = profile.blocks.time
    before, after = bisect_left(times, moment.time) - 1, bisect_right(times, moment.time)
    span = bisect_left(rows, moment.time), bisect_right(rows, moment.time)
    return _Place(before, min(after, len(times) - 1), span)


def _settled(profile: Profile, moment: Moment) -> Moment:
    """The moment as a snapshot, where it is one: a peak may be."""
    if moment.snapshot is None:
        for index, snapshot in enumerate(profile.snapshots):
            if snapshot.time == moment.time and profile.composition(index) == moment.composition:
                return moment._replace(snapshot=index)
    return moment


def moments_of(profile: Profile, begin: str, end: str) -> Tuple[Moment, Moment]:
    """The two moments, in their order. Raises SelectionError."""
    if not profile.snapshots:
        raise SelectionError("the trace has no complete snapshot, so no range")
    first, second = _settled(profile, select(profile, begin)), _settled(profile, select(profile, end))
    if first.snapshot is not None and first.snapshot == second.snapshot:
        raise SelectionError(f'a range from "{begin}" to "{end}" is empty: both are snapshot {_id(profile, first)}')
    if _order(profile, first) >= _order(profile, second):
        raise SelectionError(
            f'a range from "{begin}" to "{end}" goes backwards: {first.name} is not before {second.name}'
        )
    return first, second


def _id(profile: Profile, moment: Moment) -> int:
    return profile.snapshots[moment.snapshot or 0].id


def _order(profile: Profile, moment: Moment) -> Tuple[int, int]:
    # A peak is told after what was: of the same time, it comes between the snapshots before and those of that time.
    return moment.time, -1 if moment.snapshot is None else moment.snapshot


# ---- what is known at its ends ------------------------------------------------------------------


def _allocated(profile: Profile, moment: Moment, place: _Place) -> Tuple[Lifetime, Lifetime]:
    """By account: all that it had ever allocated by then, at least and at most."""
    before = profile.lifetime_at(place.before)
    if place.before == place.after:
        return before, before
    after = profile.lifetime_at(place.after)
    held_before = profile.composition(place.before) if place.before >= 0 else {}
    held_after = profile.composition(place.after)
    nothing = (0, 0)
    for account, held in moment.composition.items():
        earlier, later = held_before.get(account, nothing), held_after.get(account, nothing)
        for column, side in ((0, "bytes"), (1, "blocks")):
            least, most = getattr(before, side), getattr(after, side)
            least[account] += max(0, held[column] - earlier[column])
            most[account] = max(least[account], most[account] - max(0, later[column] - held[column]))
    return before, after


class _Ends(NamedTuple):
    """Of a place, bytes or blocks."""

    before: int
    after: int
    allocated: _Span


def _places(profile: Profile) -> List[int]:
    """By account: the first one of the same place. Those of one place differ in their tensors' role, which may change."""
    known: Dict[Tuple[int, str, str], int] = {}
    return [known.setdefault((a.node, a.kind, a.owner), index) for index, a in enumerate(profile.accounts)]


def _ends(profile: Profile, places: List[int], first: Moment, second: Moment) -> Dict[int, List[_Ends]]:
    """By place: of its bytes, and of its blocks."""
    at_first = _allocated(profile, first, _lies(profile, first))
    at_second = _allocated(profile, second, _lies(profile, second))
    found: Dict[int, List[_Ends]] = {}
    nothing = (0, 0)
    for column, what in enumerate(("bytes", "blocks")):
        by_first = [getattr(lifetime, what) for lifetime in at_first]
        by_second = [getattr(lifetime, what) for lifetime in at_second]
        sums: Dict[int, List[int]] = {}
        for account, place in enumerate(places):
            if side_of(profile.accounts[account].kind) is None:
                continue
            row = (
                first.composition.get(account, nothing)[column],
                second.composition.get(account, nothing)[column],
                by_second[0][account] - by_first[1][account],
                by_second[1][account] - by_first[0][account],
            )
            if any(row):
                sums[place] = [mine + more for mine, more in zip(sums.get(place, (0, 0, 0, 0)), row)]
        for place, (before, after, least, most) in sums.items():
            ends = found.setdefault(place, [_Ends(0, 0, (0, 0)), _Ends(0, 0, (0, 0))])
            ends[column] = _Ends(before, after, (least, most))
    return found


# ---- together -----------------------------------------------------------------------------------


def _bounds(ends: _Ends, lowest: int) -> Flow:
    return bounds(ends.before, ends.after, ends.allocated, lowest)


def _narrowed(ends: _Ends, passages: Passages, place: int, column: int) -> Flow:
    """Of the bytes (column 0) or the blocks of a place that is uncertain by its ends."""
    whole = _bounds(ends, min(ends.before, passages.lowest(place, column)))
    found = passages.recorded(place, column)
    if found is None:
        return whole
    least, most = ends.allocated
    left = least - found.allocated, most - found.allocated
    rest = _Ends(ends.before - found.before, ends.after - found.after, left)
    lowest = passages.lowest_unrecorded(place, column)
    if min(rest.before, rest.after, rest.allocated[1], lowest) < 0:
        return whole  # its records tell of something else: of segments that parts are handed out of
    narrow = recorded(found.before, found.after, found.new, found.allocated).plus(
        _bounds(rest, min(rest.before, lowest))
    )
    return narrow if narrow.uncertain <= whole.uncertain else whole


def _is_uncertain(flow: Flow) -> bool:
    return bool(flow.uncertain or flow.untold)


def between(profile: Profile, begin: str, end: str) -> Range:
    """The range from one moment to another, as moments.select takes them. Raises SelectionError."""
    return range_of(profile, *moments_of(profile, begin, end))


def range_of(profile: Profile, first: Moment, second: Moment) -> Range:
    """Likewise, of moments in their order; they may be one."""
    places = _places(profile)
    ends = _ends(profile, places, first, second)
    flows = {place: (_bounds(of[0], of[0].before), _bounds(of[1], of[1].before)) for place, of in ends.items()}
    unsure = {place for place, pair in flows.items() if any(map(_is_uncertain, pair))}
    if unsure:
        begins, finishes = _lies(profile, first), _lies(profile, second)
        passages = Passages(profile, places, unsure)
        passages.walk(first.composition, range(begins.after, finishes.before + 1), begins.rows, finishes.rows)
        for place in unsure:
            of = ends[place]
            flows[place] = _narrowed(of[0], passages, place, 0), _narrowed(of[1], passages, place, 1)
    return Range(first, second, flows)


# What of a run is looked at: a moment, or what is new from one to another, each as moments.select takes it.
At = Union[str, Tuple[str, str]]


def new_of(found: Range) -> Moment:
    """What is new in a range, as a moment's."""
    name = f"{found.second.name}, of what is new since {found.first.name}"
    return Moment(name, found.second.time, found.composition("new"), None)


def look_at(profile: Profile, at: At) -> Moment:
    """Raises SelectionError."""
    return select(profile, at) if isinstance(at, str) else new_of(between(profile, *at))


class RangeRow(NamedTuple):
    """What goes under one name, by side."""

    name: str
    host: Flow = NOTHING
    device: Flow = NOTHING
    blocks: Flow = NOTHING  # of both sides; a heap block's overhead is no block of its own

    def plus(self, side: str, n_bytes: Flow, blocks: Flow) -> "RangeRow":
        found = (
            self._replace(host=self.host.plus(n_bytes))
            if side == "host"
            else self._replace(device=self.device.plus(n_bytes))
        )
        return found._replace(blocks=self.blocks.plus(blocks))

    @property
    def both(self) -> Flow:
        return self.host.plus(self.device)


def _rank(row: RangeRow) -> Tuple[int, int, int, str]:
    flow = row.both
    return -flow.new - flow.uncertain, -flow.freed, -flow.passing, row.name


def rows_of(profile: Profile, found: Range, name_of: Callable[[int], str]) -> List[RangeRow]:
    """A row a name that `name_of` gives to accounts: what has most that is new first, then what freed most."""
    sums: Dict[str, RangeRow] = {}
    for account, (n_bytes, blocks) in found.flows.items():
        name, kind = name_of(account), profile.accounts[account].kind
        row = sums.get(name) or RangeRow(name)
        sums[name] = row.plus(side_of(kind) or "", n_bytes, NOTHING if kind == "heap-overhead" else blocks)
    return sorted(sums.values(), key=_rank)


def joined(tables: Iterable[List[RangeRow]]) -> List[RangeRow]:
    """Those of several processes as one, by name, in the same order."""
    sums: Dict[str, RangeRow] = {}
    for row in (row for rows in tables for row in rows):
        sums[row.name] = total_of([sums[row.name], row], row.name) if row.name in sums else row
    return sorted(sums.values(), key=_rank)


def total_of(rows: List[RangeRow], name: str = "total") -> RangeRow:
    total = RangeRow(name)
    for row in rows:
        total = RangeRow(name, total.host.plus(row.host), total.device.plus(row.device), total.blocks.plus(row.blocks))
    return total
