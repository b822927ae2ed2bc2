# SPDX-License-Identifier: GPL-2.0-or-later
"""A range of a run, from one moment to another: by place, what came to stay, what went, and what was only passing (flows.py).

A place is a stack, a kind and an owner. Three things narrow its bounds, and mostly to a single figure:

- what it held at the snapshots in between, for what was there before was never more than that;
- the records of blocks: all of the device have one, and those of the heap from the recorder's --large on. What a place holds
  besides is bounded by itself. With --large=0 all blocks have records, and nothing is uncertain;
- where nothing was allocated, or nothing freed, or nothing was there before, nothing is uncertain anyway.
"""

from bisect import bisect_left, bisect_right
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from jmassif.analysis.moments import Moment, SelectionError, select
from jmassif.model.records import Composition, Lifetime, side_of
from jmassif.model.run import Profile


# ---- flows ----
# What became of some memory between two moments: what is new and still there, what is gone, and what was only passing.
#
# A snapshot tells of each place what it holds and all that it ever allocated. From two of them follows how much was allocated
# and freed in between; which blocks these frees ended, old ones or new ones, does not follow, unless there were none, or none
# of the old is left. So a flow is a pair of bounds with one unknown: how much of what was allocated in between is still there.


class Flow(NamedTuple):
    """Bytes, or blocks. All but `before` and `after` are the least that is certain."""

    before: int = 0  # held at the first moment
    after: int = 0  # held at the second
    new: int = 0  # allocated in between, and held at the second
    freed: int = 0  # of `before`, no longer held at the second
    passing: int = 0  # allocated in between, and no longer held at the second
    # So much more either is new and took the place of what was freed, or was passing: `new` and `freed` may be larger by up to
    # this, or `passing` may.
    uncertain: int = 0
    untold: int = 0  # so much more may have been passing: totals at a moment that is no snapshot are not told

    @property
    def allocated(self) -> int:
        """In between; with `untold` at least."""
        return self.new + self.passing + self.uncertain

    def plus(self, other: "Flow") -> "Flow":
        return Flow(*(mine + theirs for mine, theirs in zip(self, other)))


NOTHING = Flow()


def bounds(before: int, after: int, allocated: Tuple[int, int], lowest: int) -> Flow:
    """The flow of a place that held `before` and then `after`, and in between allocated from the least to the most that `allocated`
    tells. `lowest` is the least that it is known to have held from the first moment to the second.
    """
    # Memory that a cache takes back comes to it, and is no allocation.
    least = max(allocated[0], after - before, 0)
    most = max(allocated[1], least)
    # What was there before cannot be more than was there at any time since.
    new = after - min(before, after, lowest)
    at_most = max(new, min(most, after))
    passing = max(0, least - at_most)
    return Flow(before, after, new, before - after + new, passing, at_most - new, most - at_most - passing)


def recorded(before: int, after: int, new: int, allocated: int) -> Flow:
    """The flow of blocks that have records, of which nothing is uncertain."""
    return Flow(before, after, new, before - after + new, allocated - new)


# ---- passages ----
# What a trace tells of places on the way from one moment to another: the least they held, and which of their blocks came and went.
#
# Only blocks with records are known one by one. What a place holds besides, it holds *unrecorded*.


class Recorded(NamedTuple):
    """Of a place, bytes or blocks that have records."""

    before: int
    after: int
    new: int
    allocated: int


class _Sums:
    """Of a place: pairs of bytes and blocks."""

    __slots__ = ("held", "live", "before", "new", "allocated", "lowest", "lowest_unrecorded", "is_vague")

    def __init__(self) -> None:
        self.held = [0, 0]  # by the snapshot that the walk has come to
        self.live = [0, 0]  # in blocks with records
        self.before = [0, 0]  # likewise, at the first moment
        self.new = [0, 0]  # likewise, of what came after it
        self.allocated = [0, 0]
        self.lowest: List[Optional[int]] = [None, None]
        self.lowest_unrecorded: List[Optional[int]] = [None, None]
        self.is_vague = False  # it is not known on which side of an end one of its records lies

    def note(self) -> None:
        """What it holds now, it held in between."""
        for column in (0, 1):
            for lowest, now in (
                (self.lowest, self.held[column]),
                (self.lowest_unrecorded, self.held[column] - self.live[column]),
            ):
                known = lowest[column]
                lowest[column] = now if known is None else min(known, now)


class Passages:
    """Of some places, `wanted`, each known by one account; `places` tells that of every account."""

    def __init__(self, profile: Profile, places: Sequence[int], wanted: Set[int]) -> None:
        self._profile = profile
        self._sums: List[Optional[_Sums]] = [None] * len(places)  # by account, one a place
        made = {place: _Sums() for place in wanted}
        for account, place in enumerate(places):
            self._sums[account] = made.get(place)
        self._made = made
        # By place and address: size of a live block, and whether it is new.
        self._blocks: Dict[Tuple[int, int], Tuple[int, bool]] = {}
        self._places = places
        self._accounts: Dict[int, Tuple[int, int]] = {}  # what accounts of these places hold, as `held`
        self._is_free = bytearray(profile.blocks.n_rows)
        for row in profile.frees:
            self._is_free[row] = 1

    def lowest(self, place: int, column: int) -> int:
        """The least that it held at the snapshots in between, bytes (column 0) or blocks; no bound where there is none."""
        found = self._made[place].lowest[column]
        return 1 << 64 if found is None else found

    def lowest_unrecorded(self, place: int, column: int) -> int:
        """Likewise, beside blocks with records."""
        found = self._made[place].lowest_unrecorded[column]
        return 1 << 64 if found is None else found

    def recorded(self, place: int, column: int) -> Optional[Recorded]:
        """None: there are no records, or it is not known what of them lies in between."""
        sums = self._made[place]
        if sums.is_vague:
            return None
        found = Recorded(sums.before[column], sums.live[column], sums.new[column], sums.allocated[column])
        return found if any(found) else None

    def walk(self, at_first: Composition, snapshots: range, begin: Tuple[int, int], end: Tuple[int, int]) -> None:
        """From the first moment, with what was held then, past snapshots, by their indices, to the second. Of either end: how many
        records of blocks lie before it, at least and at most.
        """
        self._go(0, begin[0], False)
        self._vague(*begin)
        self._go(begin[0], begin[1], False)
        for sums in self._made.values():
            sums.before = list(sums.live)
        at = begin[1]
        for index in snapshots:
            position = min(max(at, self._profile.snapshots[index].position), end[0])
            self._go(at, position, True)
            at = position
            self._hold(index, index == snapshots.start)
        self._go(at, end[0], True)
        self._vague(*end)

    def _vague(self, begin: int, end: int) -> None:
        width = self._profile.blocks.WIDTH
        for account in self._profile.blocks[begin * width + 3 : end * width : width]:
            sums = self._sums[account]
            if sums is not None:
                sums.is_vague = True

    def _hold(self, index: int, is_first: bool) -> None:
        """The walk has come to a snapshot. The first is told in full: what changed since the one before it is not since the moment."""
        profile = self._profile
        touched: Set[_Sums] = set()
        if is_first:
            held = profile.composition(index)
            self._accounts = {
                account: held.get(account, (0, 0)) for account, s in enumerate(self._sums) if s is not None
            }
            for account, (n_bytes, blocks) in self._accounts.items():
                sums = self._sums[account]
                if sums is not None:
                    sums.held[0] += n_bytes
                    sums.held[1] += blocks
            touched = set(self._made.values())
        else:
            rows = profile.snapshots[index].changes
            for account, n_bytes, blocks in zip(rows.account, rows.bytes, rows.blocks):
                sums = self._sums[account]
                if sums is not None:
                    known = self._accounts[account]
                    sums.held[0] += n_bytes - known[0]
                    sums.held[1] += blocks - known[1]
                    self._accounts[account] = n_bytes, blocks
                    touched.add(sums)
        for sums in touched:
            sums.note()

    def _go(self, begin: int, end: int, is_new: bool) -> None:
        """Past records of blocks, by their numbers."""
        profile, live, places = self._profile, self._blocks, self._places
        width = profile.blocks.WIDTH
        rows = profile.blocks[begin * width : end * width]
        # A block that turns out to be for something else ends and begins again, in another account of the same place.
        ended: Tuple[int, int, int, int, bool] = (-1, 0, 0, 0, False)
        for row, address, size, account in zip(range(begin, end), rows[1::width], rows[2::width], rows[3::width]):
            sums = self._sums[account]
            if sums is None:
                continue
            key = places[account], address
            if self._is_free[row]:
                block = live.pop(key, None)
                if block is not None:
                    sums.live[0] -= block[0]
                    sums.live[1] -= 1
                    if block[1]:
                        sums.new[0] -= block[0]
                        sums.new[1] -= 1
                    ended = row, address, block[0], account, block[1]
                continue
            is_moved = ended[:3] == (row - 1, address, size) and ended[3] != account and places[ended[3]] == key[0]
            is_of_range = ended[4] if is_moved else is_new
            live[key] = size, is_of_range
            sums.live[0] += size
            sums.live[1] += 1
            if is_of_range:
                sums.new[0] += size
                sums.new[1] += 1
            if is_new and not is_moved:
                sums.allocated[0] += size
                sums.allocated[1] += 1


# ---- between ----

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
