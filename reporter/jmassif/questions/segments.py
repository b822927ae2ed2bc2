# SPDX-License-Identifier: GPL-2.0-or-later
"""Device memory as it lies: segments, which a caching allocator hands out in parts, the blocks in them, and the holes.

A *segment* is what an allocator has reserved and deals out, a *hole* what of it is free. Mappings of cuMemCreate'd memory
that follow each other are one segment. What is in no segment is a block by itself. Sizes and offsets are bytes.
"""

from bisect import bisect_left, bisect_right
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from jmassif.model.kinds import HANDLE_KINDS, side_of
from jmassif.model.profile import Profile
from jmassif.model.records import Composition

# Owner of what an allocator has reserved and not handed out.
CACHE = "cache"
# Of rows at the time of a peak, in search of it.
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
        """What of the free memory is not the largest hole: 0: one hole; near 1: crumbs."""
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
        """By row of Profile.blocks: bytes of device memory that lie in nothing else."""
        if self._made is None:
            self._made = {row: n_bytes for segment in self.segments for row, n_bytes in segment.made}
        return self._made

    @property
    def fragmentation(self) -> Fragmentation:
        if self._fragmentation is None:
            reserving = self.reserving
            holes = [hole for segment in reserving for hole in segment.holes]
            returnable = sum(segment.bytes for segment in reserving if segment.free == segment.bytes)
            reserved = sum(segment.bytes for segment in reserving)
            self._fragmentation = Fragmentation(reserved, sum(holes), len(holes), max(holes, default=0), returnable)
        return self._fragmentation


class _Live(NamedTuple):
    row: int
    bytes: int
    account: int


class _Piece(NamedTuple):
    """A range of addresses: a block, or mappings that follow each other."""

    address: int
    bytes: int
    account: int
    made: Tuple[Tuple[int, int], ...]  # rows of Profile.blocks, and bytes of each


class _Replay:
    """What is live, as the rows of the trace go by."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._frees = set(profile.frees)
        self._row = 0
        self._n_mappings = 0
        self._blocks: Dict[Tuple[int, int], _Live] = {}  # by address, account: a block may begin where its segment does
        self._mapped: Dict[int, Tuple[int, int]] = {}  # by address: size, handle

    def advance(self, position: int) -> None:
        """Goes on to before the row `position` of Profile.blocks."""
        blocks, accounts = self._profile.blocks, self._profile.accounts
        columns = [blocks[4 * self._row + field : 4 * position : 4] for field in (1, 2, 3)]
        for row, (address, size, account) in enumerate(zip(*columns), self._row):
            if side_of(accounts[account].kind) != "device":
                continue
            if row in self._frees:
                self._blocks.pop((address, account), None)
            else:
                self._blocks[address, account] = _Live(row, size, account)
        self._row = max(self._row, position)
        for mapping in self._profile.mappings[self._n_mappings :]:
            if mapping.position > position:
                break
            self._n_mappings += 1
            if mapping.handle is None:
                self._mapped.pop(mapping.address, None)
            else:
                self._mapped[mapping.address] = (mapping.size, mapping.handle)

    def device_bytes(self) -> int:
        """Of what lies in nothing else."""
        return sum(segment.bytes for segment in self.layout().segments)

    def layout(self) -> Layout:
        accounts = self._profile.accounts
        placed: List[_Piece] = []
        handles: Dict[int, _Live] = {}
        starts = sorted(self._mapped)
        known = {handle for _, handle in self._mapped.values()}

        def is_mapped(address: int) -> bool:
            at = bisect_right(starts, address) - 1
            return at >= 0 and address < starts[at] + self._mapped[starts[at]][0] and address not in known

        for (address, account), live in self._blocks.items():
            # A tensor in cuMemCreate'd memory is of that kind too, and has an address.
            if accounts[account].kind in HANDLE_KINDS and not is_mapped(address):
                handles[address] = live
            else:
                placed.append(_Piece(address, live.bytes, account, ((live.row, live.bytes),)))
        mapped = set()
        run: Optional[_Piece] = None
        for address in starts:
            size, handle = self._mapped[address]
            if handle not in handles:
                continue
            mapped.add(handle)
            piece = _Piece(address, size, handles[handle].account, ((handles[handle].row, size),))
            if run and run.address + run.bytes == address:
                run = run._replace(bytes=run.bytes + size, made=run.made + piece.made)
            else:
                placed += [run] if run else []
                run = piece
        placed += [run] if run else []
        by_handle = sum(live.bytes for handle, live in handles.items() if handle not in mapped)
        return Layout(list(_segments(self._profile, placed)), by_handle)


def _segments(profile: Profile, placed: List[_Piece]) -> Iterator[Segment]:
    def rank(piece: _Piece) -> Tuple[int, int, bool]:
        """A segment begins where its first block does, and may be all of that block."""
        return piece.address, -piece.bytes, profile.accounts[piece.account].owner != CACHE

    placed.sort(key=rank)
    outer: Optional[_Piece] = None
    inside: List[_Piece] = []
    for piece in placed:
        if outer and piece.address < outer.address + outer.bytes:
            inside.append(piece)
            continue
        if outer:
            yield _segment(profile, outer, inside)
        outer, inside = piece, []
    if outer:
        yield _segment(profile, outer, inside)


def _segment(profile: Profile, outer: _Piece, inside: List[_Piece]) -> Segment:
    address, n_bytes, account, made = outer
    if not inside and profile.accounts[account].owner != CACHE:
        return Segment(address, n_bytes, account, False, (Part(0, n_bytes, account),), made)
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
    return Segment(address, n_bytes, account, True, tuple(parts), made)


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
    """Whether blocks lie where the map shows them. PyTorch up to 1.9 reports them with numbers that are no addresses.

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
