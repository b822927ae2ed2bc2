# SPDX-License-Identifier: GPL-2.0-or-later
"""Device memory as it lies: segments, which a caching allocator hands out in parts, the blocks in them, and the holes.

A *segment* is what an allocator has reserved and deals out, a *hole* what of it is free. Mappings of cuMemCreate'd memory
that follow each other are one segment. What is in no segment is a block by itself. Sizes and offsets are bytes.
"""

from bisect import bisect_left, bisect_right, insort
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from jmassif.model.records import HANDLE_KINDS, Composition, side_of
from jmassif.model.run import Profile


# Owner of what an allocator has reserved and not handed out.
CACHE = "cache"
# Rows at the time of a peak that are tried in search of it.
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


class Layout:
    """All device memory at a moment, by address; and what has handles only. Many ask the same of it, so it remembers."""

    def __init__(self, segments: List[Segment], by_handle: int) -> None:
        self.segments = segments
        self.by_handle = by_handle  # bytes of arrays, of memory that is not mapped, of the driver's
        self._made: Optional[Dict[int, int]] = None
        self._fragmentation: Optional[Fragmentation] = None

    @property
    def reserving(self) -> List[Segment]:
        return [segment for segment in self.segments if segment.is_segment]

    @property
    def made(self) -> Dict[int, int]:
        """Bytes of device memory that lie in nothing else, by row of Profile.blocks."""
        if self._made is None:
            self._made = {row: n_bytes for segment in self.segments for row, n_bytes in segment.made}
        return self._made

    @property
    def fragmentation(self) -> Fragmentation:
        if self._fragmentation is None:
            holes: List[int] = []
            reserved = returnable = 0
            for segment in self.reserving:
                own = segment.holes
                holes += own
                reserved += segment.bytes
                if sum(own) == segment.bytes:
                    returnable += segment.bytes
            self._fragmentation = Fragmentation(reserved, sum(holes), len(holes), max(holes, default=0), returnable)
        return self._fragmentation


class _Live(NamedTuple):
    row: int
    bytes: int
    account: int


class _Piece(NamedTuple):
    """A range of addresses: a block, or mappings that follow each other.

    In order a segment comes before what lies in it. It begins where its first block does, and may be all of that block.
    """

    address: int
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
        self._piece: Dict[Tuple[int, int], _Piece] = {}  # by address, account: a block may begin where its segment does
        self._by_handle: Dict[Tuple[int, int], Tuple[int, _Live]] = {}  # by handle or address, account: order, block
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
            live = None if row in self._frees else _Live(row, size, account)
            if kind in HANDLE_KINDS:
                self._set_by_handle(address, account, live)
            else:
                self._set(address, account, live)
        self._row = max(self._row, position)
        for mapping in self._profile.mappings[self._n_mappings :]:
            if mapping.position > position:
                break
            self._n_mappings += 1
            if mapping.handle is None:
                self._mapped.pop(mapping.address, None)
            else:
                self._mapped[mapping.address] = (mapping.size, mapping.handle)

    def _next_order(self) -> int:
        self._n_pieces += 1
        return self._n_pieces

    def _as_piece(self, address: int, order: int, live: _Live) -> _Piece:
        is_part = self._profile.accounts[live.account].owner != CACHE
        return _Piece(address, -live.bytes, is_part, order, live.account, ((live.row, live.bytes),))

    def _set(self, address: int, account: int, live: Optional[_Live]) -> None:
        before = self._piece.pop((address, account), None)
        if before:
            del self._placed[bisect_left(self._placed, before)]
        if live:
            piece = self._as_piece(address, before.order if before else self._next_order(), live)
            self._piece[address, account] = piece
            insort(self._placed, piece)

    def _set_by_handle(self, address: int, account: int, live: Optional[_Live]) -> None:
        key = address, account
        if live is None:
            self._by_handle.pop(key, None)
        else:
            order = self._by_handle[key][0] if key in self._by_handle else self._next_order()
            self._by_handle[key] = (order, live)

    def device_bytes(self) -> int:
        """Bytes that lie in nothing else."""
        return sum(segment.bytes for segment in self.layout().segments)

    def layout(self) -> Layout:
        more: List[_Piece] = []
        handles: Dict[int, _Live] = {}
        starts = sorted(self._mapped)
        known = {handle for _, handle in self._mapped.values()}

        def is_mapped(address: int) -> bool:
            at = bisect_right(starts, address) - 1
            return at >= 0 and address < starts[at] + self._mapped[starts[at]][0] and address not in known

        for (address, _), (order, live) in self._by_handle.items():
            # A tensor in cuMemCreate'd memory is of that kind too, and has an address.
            if is_mapped(address):
                more.append(self._as_piece(address, order, live))
            else:
                handles[address] = live
        more += self._runs(starts, handles)
        mapped = {self._mapped[address][1] for address in starts}
        by_handle = sum(live.bytes for handle, live in handles.items() if handle not in mapped)
        # Two runs in order are merged in no time.
        placed = sorted(self._placed + more) if more else self._placed
        before, self._segments = self._segments, {}
        for pieces in _nested(placed):
            self._segments[pieces] = before.get(pieces) or _segment(self._profile, pieces[0], pieces[1:])
        return Layout(list(self._segments.values()), by_handle)

    def _runs(self, starts: List[int], handles: Dict[int, _Live]) -> Iterator[_Piece]:
        """Runs of mappings that follow each other by their addresses. The blocks with handles are those of `handles`."""
        run: Optional[_Piece] = None
        for address in starts:
            size, handle = self._mapped[address]
            live = handles.get(handle)
            if live is None:
                continue
            piece = self._as_piece(address, self._n_pieces + 1 + address, live._replace(bytes=size))
            if run and run.address + run.bytes == address:
                run = run._replace(minus_bytes=run.minus_bytes - size, made=run.made + piece.made)
                continue
            if run:
                yield run
            run = piece
        if run:
            yield run


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


# ---- what others ask -------------------------------------------------------------------------


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


def position_of_peak(profile: Profile, which: str) -> int:
    """The peak knows its time only: of the rows of that time, after which one most device memory was live.

    That is one of them, for what is counted of the device are blocks; a pool's reserve apart, which is in none.
    """
    times = profile.blocks.time
    time = profile.peaks[which].time
    first, last = bisect_left(times, time), bisect_right(times, time)
    replay = _Replay(profile)
    most, at = -1, last
    for position in range(first, min(last, first + _MOST_TRIED) + 1):
        replay.advance(position)
        held = replay.device_bytes()
        if held > most:
            most, at = held, position
    return at


def is_placed(profile: Profile, layout: Layout, composition: Composition) -> bool:
    """True if blocks lie where the map shows them. PyTorch up to 1.9 reports numbers that are no addresses.

    `composition` is the ledger of the same moment.
    """
    cached = sum(
        n_bytes
        for account, (n_bytes, _) in composition.items()
        if profile.accounts[account].owner == CACHE and profile.accounts[account].kind in ("device", "managed", "vmm")
    )
    # The moments may differ by a block or two.
    free = layout.fragmentation.free
    return free - cached <= free // 20
