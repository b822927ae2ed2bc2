# SPDX-License-Identifier: GPL-2.0-or-later
"""What a trace tells of places on the way from one moment to another: the least they held, and which of their blocks came and went.

Only blocks with records are known one by one. What a place holds besides, it holds *unrecorded*.
"""

from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from jmassif.model.profile import Profile
from jmassif.model.records import Composition


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
