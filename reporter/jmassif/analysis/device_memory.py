# SPDX-License-Identifier: GPL-2.0-or-later
"""Device memory as it lies: segments, which a caching allocator hands out in parts, the blocks in them, and the holes.

A *segment* is what an allocator has reserved and deals out, a *hole* what of it is free. Mappings of cuMemCreate'd memory
that follow each other are one segment. What is in no segment is a block by itself. Sizes and offsets are bytes.
"""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from typing import Dict, Iterable, Iterator, List, NamedTuple, Tuple

from jmassif.model.records import HANDLE_KINDS, Account, Accounts, LiveBytesByAccount, side_of
from jmassif.model.run import Profile


# Owner of what an allocator has reserved and not handed out.
CACHE = "cache"
# Rows that fit a peak equally.
_MOST_TRIED = 200


class Part(NamedTuple):
    """A block in a segment or, with the account 0, a hole."""

    offset: int
    bytes: int
    account: int


class Segment(NamedTuple):
    address: int
    bytes: int
    account: int  # of what is in none of its blocks
    is_segment: bool  # and not a block by itself
    parts: Tuple[Part, ...]  # by offset; they cover it
    made: Tuple[Tuple[int, int], ...]  # rows of Profile.blocks that it came to life with, and bytes of each

    @property
    def holes(self) -> List[int]:
        return [part.bytes for part in self.parts if not part.account]

    @property
    def free(self) -> int:
        return sum(self.holes)


class Fragmentation(NamedTuple):
    reserved: int  # by segments
    free: int
    holes: int
    largest_hole: int
    returnable: int  # in segments of which nothing is used

    @property
    def share(self) -> float:
        """The part of the free memory outside the largest hole; 0: one hole; near 1: crumbs."""
        return 1 - self.largest_hole / self.free if self.free else 0.0


class Layout(NamedTuple):
    """All device memory at a moment, by address; and the bytes that have handles only."""

    segments: List[Segment]
    by_handle: int  # bytes of arrays, of memory that is not mapped, of the driver's

    @property
    def reserving(self) -> List[Segment]:
        return [segment for segment in self.segments if segment.is_segment]

    @property
    def fragmentation(self) -> Fragmentation:
        reserving = self.reserving
        holes = [n_bytes for segment in reserving for n_bytes in segment.holes]
        returnable = sum(segment.bytes for segment in reserving if segment.free == segment.bytes)
        reserved = sum(segment.bytes for segment in reserving)
        return Fragmentation(reserved, sum(holes), len(holes), max(holes, default=0), returnable)

    def is_placed(self, accounts: Accounts, live: LiveBytesByAccount) -> bool:
        """True if blocks lie where the map shows them. PyTorch up to 1.9 reports numbers that are no addresses."""
        cached = 0
        for account, (n_bytes, _) in live.items():
            _, kind, owner = accounts[account]
            cached += n_bytes if owner == CACHE and kind in ("device", "managed", "vmm") else 0
        free = self.fragmentation.free
        return free - cached <= free // 20  # the moments may differ by a block or two


class _Piece(NamedTuple):
    """A range of addresses: a block, or mappings that follow each other.

    In order a segment comes before what lies in it. It begins where its first block does, and may be all of that block.
    """

    address: int  # or a handle
    minus_bytes: int
    is_part: bool  # not what an allocator has reserved
    order: int  # in which pieces came that are alike; later ones are larger
    account: int
    made: Tuple[Tuple[int, int], ...]  # rows of Profile.blocks, and bytes of each

    @property
    def bytes(self) -> int:
        return -self.minus_bytes


class _Replay:
    """Live device memory, as the rows of the trace go by.

    The blocks that have addresses are kept in order, and a segment in which nothing has changed is taken from the layout before.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._frees = set(profile.frees)
        self._row = 0
        self._n_mappings = 0
        self._n_pieces = 0
        self._placed: List[_Piece] = []  # in order
        # Both by address or handle, and account: a block may begin where its segment does.
        self._by_address: Dict[Tuple[int, int], _Piece] = {}
        self._by_handle: Dict[Tuple[int, int], _Piece] = {}
        self._mapped: Dict[int, Tuple[int, int]] = {}  # by address: size, handle
        self._segments: Dict[Tuple[_Piece, ...], Segment] = {}  # of the last layout

    def advance(self, position: int) -> None:
        """Goes on to before the row `position` of Profile.blocks."""
        blocks, accounts = self._profile.blocks, self._profile.accounts
        columns = [blocks[4 * self._row + field : 4 * position : 4] for field in (1, 2, 3)]
        for row, (address, size, account) in enumerate(zip(*columns), self._row):
            kind = accounts[account].kind
            if side_of(kind) != "device":
                continue
            has_address = kind not in HANDLE_KINDS
            pieces = self._by_address if has_address else self._by_handle
            before = pieces.pop((address, account), None)
            if before and has_address:
                del self._placed[bisect_left(self._placed, before)]
            if row in self._frees:
                continue
            self._n_pieces += 1
            order = before.order if before else self._n_pieces
            is_part = accounts[account].owner != CACHE
            piece = _Piece(address, -size, is_part, order, account, ((row, size),))
            pieces[address, account] = piece
            if has_address:
                insort(self._placed, piece)
        self._row = max(self._row, position)
        for mapping in self._profile.mappings[self._n_mappings :]:
            if mapping.position > position:
                break
            self._n_mappings += 1
            if mapping.handle is None:
                self._mapped.pop(mapping.address, None)
            else:
                self._mapped[mapping.address] = (mapping.size, mapping.handle)

    def layout(self) -> Layout:
        more: List[_Piece] = []
        handles: Dict[int, _Piece] = {}
        starts = sorted(self._mapped)
        known = {handle for _, handle in self._mapped.values()}
        for piece in self._by_handle.values():
            # A tensor in cuMemCreate'd memory is of that kind too, and has an address.
            at = bisect_right(starts, piece.address) - 1
            is_mapped = at >= 0 and piece.address < starts[at] + self._mapped[starts[at]][0]
            if is_mapped and piece.address not in known:
                more.append(piece)
            else:
                handles[piece.address] = piece
        more += self._runs(starts, handles)
        by_handle = sum(piece.bytes for handle, piece in handles.items() if handle not in known)
        # Two runs in order are merged in no time.
        placed = sorted(self._placed + more) if more else self._placed
        before, self._segments = self._segments, {}
        for pieces in _nested(placed):
            self._segments[pieces] = before.get(pieces) or _segment(self._profile, pieces[0], pieces[1:])
        return Layout(list(self._segments.values()), by_handle)

    def _runs(self, starts: List[int], handles: Dict[int, _Piece]) -> List[_Piece]:
        """Runs of mappings that follow each other by their addresses. The blocks with handles are those of `handles`."""
        runs: List[_Piece] = []
        for address in starts:
            size, handle = self._mapped[address]
            block = handles.get(handle)
            if block is None:
                continue
            made = ((block.made[0][0], size),)
            if runs and runs[-1].address + runs[-1].bytes == address:
                runs[-1] = runs[-1]._replace(minus_bytes=runs[-1].minus_bytes - size, made=runs[-1].made + made)
            else:
                order = self._n_pieces + 1 + address
                runs.append(block._replace(address=address, minus_bytes=-size, order=order, made=made))
        return runs


def _nested(placed: List[_Piece]) -> Iterator[Tuple[_Piece, ...]]:
    """Each piece that lies in no other, with those that lie in it."""
    begin, end = 0, 0
    for at, piece in enumerate(placed):
        if piece.address >= end:
            if at:
                yield tuple(placed[begin:at])
            begin, end = at, piece.address + piece.bytes
    if placed:
        yield tuple(placed[begin:])


def _segment(profile: Profile, outer: _Piece, inside: Tuple[_Piece, ...]) -> Segment:
    address, n_bytes, account = outer.address, outer.bytes, outer.account
    if not inside and profile.accounts[account].owner != CACHE:
        return Segment(address, n_bytes, account, False, (Part(0, n_bytes, account),), outer.made)
    parts: List[Part] = []
    at = 0
    for piece in inside:
        offset = piece.address - address
        if offset > at:
            parts.append(Part(at, offset - at, 0))
        size = min(piece.bytes, n_bytes - offset)
        if offset + size > at:
            parts.append(Part(offset, size, piece.account))
        at = max(at, offset + size)
    if at < n_bytes:
        parts.append(Part(at, n_bytes - at, 0))
    return Segment(address, n_bytes, account, True, tuple(parts), outer.made)


def layouts(profile: Profile, positions: Iterable[int]) -> Iterator[Layout]:
    """One for each position, a number of rows of Profile.blocks; they must not fall."""
    replay = _Replay(profile)
    last, layout = -1, Layout([], 0)
    for position in positions:
        replay.advance(position)
        if position != last:
            last, layout = position, replay.layout()
        yield layout


def layout_at(profile: Profile, position: int) -> Layout:
    return next(layouts(profile, [position]))


def over_time(profile: Profile, most: int) -> List[Tuple[int, Fragmentation]]:
    """Times of snapshots, at most so many, evenly spread; those at which nothing was reserved are left out."""
    step = max(1, -(-len(profile.snapshots) // most))
    snapshots = profile.snapshots[::-1][::step][::-1]
    found = (layout.fragmentation for layout in layouts(profile, [each.position for each in snapshots]))
    return [(snapshot.time, pieces) for snapshot, pieces in zip(snapshots, found) if pieces.reserved]


def position_of_peak(profile: Profile, which: str) -> int:
    """The peak knows its time only: of the rows of that time, the one after which blocks of the device are the peak's.

    Of several, the one after which most was reserved. Roles, which may be known later than a block, do not count.
    """
    accounts, frees, time = profile.accounts, set(profile.frees), profile.peaks[which].time
    missing: Dict[Account, int] = defaultdict(int)  # of the blocks at the peak
    for account, (n_bytes, _) in profile.peak_composition(which).items():
        missing[accounts[account]] += n_bytes
    times = profile.blocks.time
    # The recorder takes the peak's time before that of the row, which may be of the next millisecond.
    first, last = bisect_left(times, time), min(bisect_right(times, time) + 1, len(times))
    sizes: Dict[Tuple[int, int], int] = {}
    off, found = 0, [(0, 0)] if first == 0 else []
    for row in range(last):
        _, address, n_bytes, account = profile.blocks[4 * row : 4 * row + 4]
        if side_of(accounts.kind(account)) == "device" and accounts.owner(account) != CACHE:
            more = -sizes.pop((address, account), 0) if row in frees else n_bytes
            if more > 0:
                sizes[address, account] = more
            left = missing[accounts[account]]
            off += abs(left - more) - abs(left)
            missing[accounts[account]] = left - more
        if row + 1 >= first:
            found.append((off, row + 1))
    least = min(found)[0]
    tried = [position for off, position in found if off == least][:_MOST_TRIED]
    held = [sum(segment.bytes for segment in layout.segments) for layout in layouts(profile, tried)]
    return tried[held.index(max(held))]
