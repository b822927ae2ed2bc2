# SPDX-License-Identifier: GPL-2.0-or-later
"""A model of PyTorch's caching allocator of CUDA memory, for what it would have reserved with other settings.

It follows PyTorch 2.1 to 2.6 with the backend `native`, and is held against PyTorch 2.6 itself by tests/torch-cuda. Sizes are
bytes. Not modelled: private pools of CUDA graphs, blocks that wait for events of other streams (record_stream).

A *segment* is what the driver gave, a *block* a part of it. Blocks of up to 1 MiB come from segments of 2 MiB in the small
pool, larger ones from the large pool. With expandable segments there is one range of addresses for each pool and stream, to
which memory is mapped by granules.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from typing import Dict, List, NamedTuple, Tuple

MIB = 1 << 20
_LEAST = 512  # sizes are multiples of it
_SMALL = MIB  # the largest block of the small pool
_SMALL_SEGMENT = 2 * MIB
_LARGE_SEGMENT = 20 * MIB
_LEAST_OWN_SEGMENT = 10 * MIB  # blocks from here on have segments of their size
_ROUND_SEGMENT = 2 * MIB
# An expandable segment's addresses never run out: PyTorch reserves 1 1/8 of the device's memory for each.
_ENDLESS = _LARGE_SEGMENT << 24


class SettingsError(Exception):
    """A text that PYTORCH_CUDA_ALLOC_CONF could not have, or a setting without a model."""


class Settings(NamedTuple):
    """The settings of PYTORCH_CUDA_ALLOC_CONF that have a model."""

    max_split_size: int = 0  # 0: none
    expandable_segments: bool = False
    garbage_collection_threshold: float = 0.0  # 0: none
    roundup_power2_divisions: int = 0  # 0: none; the same for all sizes

    @property
    def text(self) -> str:
        """As PYTORCH_CUDA_ALLOC_CONF has them; "" by default."""
        split = f"max_split_size_mb:{self.max_split_size // MIB}" if self.max_split_size else ""
        expandable = "expandable_segments:True" if self.expandable_segments else ""
        share = self.garbage_collection_threshold
        collection = f"garbage_collection_threshold:{share:g}" if share else ""
        divisions = self.roundup_power2_divisions
        power2 = f"roundup_power2_divisions:{divisions}" if divisions else ""
        return ",".join(filter(None, [split, expandable, collection, power2]))


def parse_settings(text: str) -> Settings:
    """Read a value of PYTORCH_CUDA_ALLOC_CONF. Raises SettingsError."""
    settings = Settings()
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, _, value = (each.strip() for each in part.partition(":"))
        try:
            if key == "max_split_size_mb":
                settings = settings._replace(max_split_size=int(value) * MIB)
            elif key == "expandable_segments":
                settings = settings._replace(expandable_segments=value == "True")
            elif key == "garbage_collection_threshold":
                settings = settings._replace(garbage_collection_threshold=float(value))
            elif key == "roundup_power2_divisions":
                settings = settings._replace(roundup_power2_divisions=int(value))
            elif (key, value) != ("backend", "native"):
                raise SettingsError(f"{part}: there is no model of this setting")
            if not all(0 <= number < _ENDLESS for number in settings):
                raise ValueError
        except ValueError:
            raise SettingsError(f"{part}: not a value of this setting")
    return settings


class OutOfMemory(Exception):
    """The share of the device's memory does not let the allocator reserve what it needs."""


# Free blocks are ordered by size, then address: one number has both.
ADDRESS_BITS = 64
_ADDRESS = (1 << ADDRESS_BITS) - 1


class _Pool:
    """Free blocks of one size class and stream, by address. No two are neighbours."""

    def __init__(self, is_small: bool, settings: Settings) -> None:
        self.is_small = is_small
        is_exact = is_small or settings.expandable_segments
        self.least_rest = _LEAST if is_exact else _SMALL + 1  # that is split off
        self.most_split = settings.max_split_size or _ENDLESS
        self.split_below = _ENDLESS if is_exact else self.most_split
        self.granule = _SMALL_SEGMENT if is_small else _LARGE_SEGMENT
        self.order: List[int] = []  # sizes and addresses
        # Free blocks that were taken, and what was left of each (or 0), as far as sizes and begins do not have it yet: the
        # last of them is often the first that is freed, which only puts it back.
        self.pending: List[Tuple[int, int, int]] = []
        self.sizes: Dict[int, int] = {}
        self.begins: Dict[int, int] = {}  # by the end
        self.since: Dict[int, int] = {}  # searches of large blocks before it was freed
        self.segments: Dict[int, int] = {}  # sizes of the driver's, by address
        self.unmapped: Dict[int, int] = {}  # sizes of ranges of expandable segments without memory

    def add(self, begin: int, size: int) -> int:
        """Merges it with its free neighbours. Returns where the block begins."""
        sizes, begins, order = self.sizes, self.begins, self.order
        end = begin + size
        more = sizes.pop(end, 0)
        if more:
            del order[bisect_left(order, more << ADDRESS_BITS | end)]
            end += more
        before = begins.pop(begin, 0)
        if before:
            del order[bisect_left(order, (begin - before) << ADDRESS_BITS | before)]
            begin = before
        sizes[begin] = end - begin
        begins[end] = begin
        insort(order, (end - begin) << ADDRESS_BITS | begin)
        return begin

    def remove(self, begin: int) -> int:
        """Returns its size."""
        size = self.sizes.pop(begin)
        del self.begins[begin + size], self.order[bisect_left(self.order, size << ADDRESS_BITS | begin)]
        return size

    def settle(self) -> None:
        """Brings sizes and begins up to date."""
        for begin, key, rest in self.pending:
            del self.sizes[begin]
            if rest:
                self.sizes[rest & _ADDRESS] = rest >> ADDRESS_BITS
                self.begins[begin + (key >> ADDRESS_BITS)] = rest & _ADDRESS
            else:
                del self.begins[begin + (key >> ADDRESS_BITS)]
        del self.pending[:]

    def whole_segments(self) -> List[int]:
        """Those that are free."""
        return [begin for begin, size in self.segments.items() if self.sizes.get(begin) == size]


Block = Tuple[_Pool, int, int]  # address, size


class CachingAllocator:
    """The allocator of one device.

    `allowed` are the bytes that set_per_process_memory_fraction allows; 0: it was not called, and PyTorch collects no garbage.
    `falls`: the driver gives each segment a lower address than the last, which decides between free blocks of one size.
    """

    def __init__(self, settings: Settings = Settings(), allowed: int = 0, falls: bool = False) -> None:
        self.reserved = 0
        self.allocated = 0
        self.peak_reserved = 0
        self.peak_allocated = 0
        # The block of the last malloc, if up to 1 MiB less may have been asked for (else 0), and the largest that was too small.
        self.whole = 0
        self.below = 0
        self._is_expandable = settings.expandable_segments
        self._is_plain = settings._replace(roundup_power2_divisions=0) == Settings()
        self._divisions = settings.roundup_power2_divisions
        self._allowed = allowed
        self._falls = falls
        self._collect_above = settings.garbage_collection_threshold * allowed
        self._small: Dict[int, _Pool] = defaultdict(lambda: _Pool(True, settings))  # by stream
        self._large: Dict[int, _Pool] = defaultdict(lambda: _Pool(False, settings))
        self._next = 1 << 58  # address: segments of a long run may take many
        self._searches = 0  # of large blocks

    # ---- the interface ----------------------------------------------------------------------

    def malloc(self, n_bytes: int, stream: int = 0, address: int = 0, is_brief: bool = False) -> Block:
        """`address`: where a segment lies that this needs; 0: behind the last. Raises OutOfMemory.

        `is_brief`: the block is freed at once, which changes nothing else where a free one has room.
        """
        if address:
            self._next = address
        size = self.rounded(n_bytes) if self._divisions or n_bytes % _LEAST or not n_bytes else n_bytes
        pool = (self._small if size <= _SMALL else self._large)[stream]
        order = pool.order
        at = bisect_left(order, size << ADDRESS_BITS)
        self.below = order[at - 1] >> ADDRESS_BITS if at else 0
        if not self._is_plain:
            at = self._chosen(pool, size, at)
        if at < len(order):
            key = order[at]
        else:
            key = self._new(pool, size)
            at = bisect_left(order, key)
        begin, taken, rest = key & _ADDRESS, key >> ADDRESS_BITS, 0
        if taken - size >= pool.least_rest and size < pool.split_below:
            rest = taken - size << ADDRESS_BITS | begin + size
            taken, self.whole = size, 0
        else:
            self.whole = taken if pool.least_rest > _LEAST else 0
        allocated = self.allocated + taken
        if allocated > self.peak_allocated:
            self.peak_allocated = allocated
        if is_brief:
            if self._collect_above:
                pool.since[begin] = self._searches
            return pool, begin, taken
        self.allocated = allocated
        del order[at]
        if rest:
            insort(order, rest)
            if self._collect_above:
                pool.since[rest & _ADDRESS] = self._searches
        pool.pending.append((begin, key, rest))
        return pool, begin, taken

    def _chosen(self, pool: _Pool, size: int, at: int) -> int:
        """Index in pool.order of the free block to take; its length: none will do. `at`: the first that is large enough."""
        order, most, unmapped = pool.order, pool.most_split, pool.unmapped
        self._searches += not pool.is_small
        if at == len(order):
            return at
        has, begin = order[at] >> ADDRESS_BITS, order[at] & _ADDRESS
        if unmapped and begin + has in unmapped:
            # A block that can grow counts as large as it can become.
            possible = has + unmapped[begin + has]
            for later in range(at + 1, len(order)):
                other = order[later] >> ADDRESS_BITS
                other += unmapped.get((order[later] & _ADDRESS) + other, 0)
                if other >= possible:
                    break
                at, possible = later, other
            has = order[at] >> ADDRESS_BITS
        return len(order) if size < most <= has or (size >= most and has >= size + _LARGE_SEGMENT) else at

    def free(self, block: Block) -> None:
        pool, begin, size = block
        self.allocated -= size
        pending = pool.pending
        if pending and pending[-1][0] == begin:
            _, key, rest = pending.pop()
            if rest:
                del pool.order[bisect_left(pool.order, rest)]
            insort(pool.order, key)
        else:
            pool.settle()
            begin = pool.add(begin, size)
        if self._collect_above:
            pool.since[begin] = self._searches

    def empty_cache(self) -> None:
        for pool in self._pools():
            pool.settle()
            if self._is_expandable:
                for key in pool.order[:]:
                    self._unmap(pool, key & _ADDRESS)
            for begin in pool.whole_segments():
                self._release(pool, begin)

    def free_blocks(self, is_small: bool) -> List[int]:
        """Those of the first stream, by size above address; it is always the same list."""
        return (self._small if is_small else self._large)[0].order

    def state(self) -> List[object]:
        """All that decides, besides the blocks in use, what it does next; not what garbage it collects."""
        found: List[object] = [self.reserved, self.allocated]
        for pool in self._pools():
            pool.settle()
            found += [pool.order[:], pool.unmapped.copy()]
        return found

    def _pools(self) -> List[_Pool]:
        return [*self._small.values(), *self._large.values()]

    def rounded(self, n_bytes: int) -> int:
        """As large as its block will be at least."""
        divisions = self._divisions
        if n_bytes < _LEAST:
            return _LEAST
        if divisions > 1 and n_bytes > _LEAST * divisions:
            floor = 1 << (n_bytes.bit_length() - 1)
            step = floor // divisions
            if floor < n_bytes:
                n_bytes = floor + -(-(n_bytes - floor) // step) * step
            return n_bytes
        return -(-n_bytes // _LEAST) * _LEAST

    # ---- segments ---------------------------------------------------------------------------

    def _new(self, pool: _Pool, size: int) -> int:
        """The size and address of a free block that the driver's memory makes for it. Raises OutOfMemory."""
        for each in self._pools():
            each.settle()
        if self._collect_above:
            self._collect_garbage()
        begin = self._reserve(pool, size)
        if not begin and self._release_some(pool, size):
            begin = self._reserve(pool, size)
        if not begin:
            self.empty_cache()
            begin = self._reserve(pool, size)
        if not begin:
            raise OutOfMemory()
        return pool.sizes[begin] << ADDRESS_BITS | begin

    def _grow(self, n_bytes: int) -> None:
        self.reserved += n_bytes
        if self.reserved > self.peak_reserved:
            self.peak_reserved = self.reserved

    def _reserve(self, pool: _Pool, size: int) -> int:
        """The same, or 0."""
        if pool.is_small:
            segment = _SMALL_SEGMENT
        elif size < _LEAST_OWN_SEGMENT:
            segment = _LARGE_SEGMENT
        else:
            segment = -(-size // _ROUND_SEGMENT) * _ROUND_SEGMENT
        if self._allowed and self.reserved + segment > self._allowed:
            return 0
        if self._is_expandable:
            return self._expand(pool, size)
        self._grow(segment)
        if self._falls:
            self._next -= segment
        begin = 2 * self._next  # so that segments are no neighbours
        if not self._falls:
            self._next += segment
        pool.segments[begin] = segment
        pool.add(begin, segment)
        return begin

    def _release(self, pool: _Pool, begin: int) -> None:
        self.reserved -= pool.remove(begin)
        del pool.segments[begin]

    def _release_some(self, pool: _Pool, size: int) -> bool:
        """Returns free blocks that may not be split, enough for `size`. False if there are not so many."""
        most = pool.most_split
        if most == _ENDLESS:
            return False
        size = max(size, most)
        at = bisect_left(pool.order, size << ADDRESS_BITS)
        if at < len(pool.order):
            self._release(pool, pool.order[at] & _ADDRESS)
            return True
        released = self.reserved
        while released - self.reserved < size and pool.order and pool.order[-1] >> ADDRESS_BITS >= most:
            self._release(pool, pool.order[-1] & _ADDRESS)
        return released - self.reserved >= size

    def _collect_garbage(self) -> None:
        """Returns the large segments that have been free for longer than others, until there are few enough."""
        wanted = self.reserved - self._collect_above
        free = [(pool, begin) for pool in self._large.values() for begin in pool.whole_segments()]
        age = sum(self._searches - pool.since[begin] for pool, begin in free)
        while wanted > 0 and free:
            threshold = age / len(free)
            old = [(pool, begin) for pool, begin in free if self._searches - pool.since[begin] >= threshold]
            if not old:
                break
            for pool, begin in old:
                wanted -= pool.sizes[begin]
                age -= self._searches - pool.since[begin]
                free.remove((pool, begin))
                self._release(pool, begin)

    # ---- expandable segments ----------------------------------------------------------------

    def _expand(self, pool: _Pool, size: int) -> int:
        """As _reserve()."""
        begin = self._room(pool, size)
        has = pool.sizes.get(begin, 0)
        while has < size:
            self._map(pool, begin + has, size - has)
            has = pool.sizes[begin]
        return begin

    def _room(self, pool: _Pool, size: int) -> int:
        """The first block of some that follow each other, free or without memory, and have so many bytes together."""
        for begin in sorted(pool.unmapped):
            at = first = pool.begins.get(begin, begin)
            while at < first + size:
                n_bytes = pool.sizes.get(at) or pool.unmapped.get(at)
                if not n_bytes:
                    break
                at += n_bytes
            else:
                return first
        # Granules are counted from here.
        address = -(-self._next // _LARGE_SEGMENT) * _LARGE_SEGMENT
        self._next = address + _ENDLESS
        pool.unmapped[address] = _ENDLESS
        return address

    def _map(self, pool: _Pool, begin: int, size: int) -> None:
        """Gives memory to the first `size` bytes or more of a range without, if it has so many."""
        n_bytes = pool.unmapped[begin]
        mapped = min(-(-size // pool.granule) * pool.granule, n_bytes)
        self._grow(mapped)
        del pool.unmapped[begin]
        if mapped < n_bytes:
            pool.unmapped[begin + mapped] = n_bytes - mapped
        pool.add(begin, mapped)

    def _unmap(self, pool: _Pool, address: int) -> None:
        """Returns the whole granules of a free block."""
        granule, end_address = pool.granule, address + pool.sizes[address]
        begin, end = -(-address // granule) * granule, end_address // granule * granule
        if begin >= end:
            return
        pool.remove(address)
        if end < end_address:
            pool.add(end, end_address - end)
        if address < begin:
            pool.add(address, begin - address)
        self.reserved -= end - begin
        end += pool.unmapped.pop(end, 0)
        begin = next((before for before, size in pool.unmapped.items() if before + size == begin), begin)
        pool.unmapped[begin] = end - begin
