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
LEAST = 512  # sizes are multiples of it
SMALL = MIB  # the largest block of the small pool
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB
LEAST_OWN_SEGMENT = 10 * MIB  # blocks from here on have segments of their size
ROUNDED_SEGMENT = 2 * MIB
# An expandable segment's addresses never run out: PyTorch reserves 1 1/8 of the device's memory for each.
ENDLESS = LARGE_SEGMENT << 24


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
            if not all(0 <= number < ENDLESS for number in settings):
                raise ValueError
        except ValueError:
            raise SettingsError(f"{part}: not a value of this setting")
    return settings


class OutOfMemory(Exception):
    """The share of the device's memory does not let the allocator reserve what it needs."""


# Free blocks are ordered by size, then address: one number has both.
ADDRESS_BITS = 64
_ADDRESS = (1 << ADDRESS_BITS) - 1

Block = Tuple["Pool", int, int]  # address, size


class Pool:
    """Free blocks of one size class and stream. No two are neighbours."""

    def __init__(self, allocator: "CachingAllocator", is_small: bool, settings: Settings) -> None:
        self.is_small = is_small
        self.is_exact = is_small or settings.expandable_segments  # a block is no larger than what was asked for
        self.least_rest = LEAST if self.is_exact else SMALL + 1  # that is split off
        self.most_split = settings.max_split_size or ENDLESS
        self.split_below = ENDLESS if self.is_exact else self.most_split
        self.granule = SMALL_SEGMENT if is_small else LARGE_SEGMENT
        self.order: List[int] = []  # sizes and addresses; likewise in the next two
        self.by_begin: Dict[int, int] = {}
        self.by_end: Dict[int, int] = {}
        self.segments: Dict[int, int] = {}  # sizes of the driver's, by address
        self.unmapped: Dict[int, int] = {}  # sizes of ranges of expandable segments without memory
        self.below = 0  # of the last block that was taken whole: the largest that was too small
        self.since: Dict[int, int] = {}  # searches before each block was freed
        self._is_plain = settings == Settings() or is_small and not settings.expandable_segments
        self._collects = settings.garbage_collection_threshold > 0
        self._allocator = allocator

    def malloc(self, size: int) -> Block:
        """`size` is rounded. Raises OutOfMemory."""
        order = self.order
        first = at = bisect_left(order, size << ADDRESS_BITS)
        if not self._is_plain:
            at = self._chosen(size, at)
        if at == len(order):
            at = bisect_left(order, self._allocator.new_block(self, size))
            first = min(first, at)  # others may have been released
        key = order.pop(at)
        begin, taken = key & _ADDRESS, key >> ADDRESS_BITS
        del self.by_begin[begin]
        if taken - size >= self.least_rest and size < self.split_below:
            key = taken - size << ADDRESS_BITS | begin + size
            self.by_begin[begin + size] = self.by_end[begin + taken] = key
            insort(order, key)
            if self._collects:
                self.since[begin + size] = self._allocator.searches
            return self, begin, size
        del self.by_end[begin + taken]
        self.below = order[first - 1] >> ADDRESS_BITS if first else 0
        return self, begin, taken

    def free(self, block: Block) -> None:
        self.add(block[1], block[2])

    def add(self, begin: int, size: int) -> None:
        """Merges it with its free neighbours."""
        order, end = self.order, begin + size
        if end in self.by_begin:
            key = self.by_begin.pop(end)
            del order[bisect_left(order, key)]
            end += key >> ADDRESS_BITS
        if begin in self.by_end:
            key = self.by_end.pop(begin)
            del order[bisect_left(order, key)]
            begin = key & _ADDRESS
        self.by_begin[begin] = self.by_end[end] = key = end - begin << ADDRESS_BITS | begin
        insort(order, key)
        if self._collects:
            self.since[begin] = self._allocator.searches

    def remove(self, begin: int) -> int:
        """Returns its size."""
        key = self.by_begin.pop(begin)
        size = key >> ADDRESS_BITS
        del self.by_end[begin + size], self.order[bisect_left(self.order, key)]
        return size

    def size(self, begin: int) -> int:
        """Bytes of the free block that begins there, if one does."""
        return self.by_begin.get(begin, 0) >> ADDRESS_BITS

    def largest(self) -> int:
        return self.order[-1] >> ADDRESS_BITS if self.order else 0

    def whole_segments(self) -> List[int]:
        """Those that are free."""
        return [begin for begin, size in self.segments.items() if self.size(begin) == size]

    def _chosen(self, size: int, at: int) -> int:
        """Index in `order` of the free block to take; its length: none will do. `at`: the first that is large enough."""
        order, most, unmapped = self.order, self.most_split, self.unmapped
        self._allocator.searches += not self.is_small
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
        return len(order) if size < most <= has or (size >= most and has >= size + LARGE_SEGMENT) else at


class CachingAllocator:
    """The allocator of one device.

    `allowed` are the bytes that set_per_process_memory_fraction allows; 0: it was not called, and PyTorch collects no garbage.
    `falls`: the driver gives each segment a lower address than the last, which decides between free blocks of one size.
    """

    def __init__(self, settings: Settings = Settings(), allowed: int = 0, falls: bool = False) -> None:
        self.reserved = 0
        self.allocated = 0
        self.searches = 0  # of large blocks
        self._is_expandable = settings.expandable_segments
        self._divisions = settings.roundup_power2_divisions
        self._allowed = allowed
        self._falls = falls
        self._collect_above = settings.garbage_collection_threshold * allowed
        of_pools = Settings(settings.max_split_size, settings.expandable_segments, self._collect_above)
        self.small: Dict[int, Pool] = defaultdict(lambda: Pool(self, True, of_pools))  # by stream
        self.large: Dict[int, Pool] = defaultdict(lambda: Pool(self, False, of_pools))
        self._next = 1 << 58  # address: segments of a long run may take many

    # ---- the interface ----------------------------------------------------------------------

    def malloc(self, n_bytes: int, stream: int = 0, address: int = 0) -> Block:
        """`address`: where a segment lies that this needs; 0: behind the last. Raises OutOfMemory."""
        if address:
            self._next = address
        size = self.rounded(n_bytes)
        block = (self.small if size <= SMALL else self.large)[stream].malloc(size)
        self.allocated += block[2]
        return block

    def free(self, block: Block) -> None:
        self.allocated -= block[2]
        block[0].free(block)

    def empty_cache(self) -> None:
        for pool in self._pools():
            if self._is_expandable:
                for key in pool.order[:]:
                    self._unmap(pool, key & _ADDRESS)
            for begin in pool.whole_segments():
                self._release(pool, begin)

    def _pools(self) -> List[Pool]:
        return [*self.small.values(), *self.large.values()]

    def rounded(self, n_bytes: int) -> int:
        """As large as its block will be at least."""
        divisions = self._divisions
        if n_bytes < LEAST:
            return LEAST
        if divisions > 1 and n_bytes > LEAST * divisions:
            floor = 1 << (n_bytes.bit_length() - 1)
            step = floor // divisions
            return n_bytes if floor == n_bytes else floor + -(-(n_bytes - floor) // step) * step
        return -(-n_bytes // LEAST) * LEAST

    # ---- segments ---------------------------------------------------------------------------

    def new_block(self, pool: Pool, size: int) -> int:
        """The size and address of a free block that the driver's memory makes for it. Raises OutOfMemory."""
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
        return pool.by_begin[begin]

    def _reserve(self, pool: Pool, size: int) -> int:
        """The same, or 0."""
        if pool.is_small:
            segment = SMALL_SEGMENT
        elif size < LEAST_OWN_SEGMENT:
            segment = LARGE_SEGMENT
        else:
            segment = -(-size // ROUNDED_SEGMENT) * ROUNDED_SEGMENT
        if self._allowed and self.reserved + segment > self._allowed:
            return 0
        if self._is_expandable:
            return self._expand(pool, size)
        self.reserved += segment
        if self._falls:
            self._next -= segment
        begin = 2 * self._next  # so that segments are no neighbours
        if not self._falls:
            self._next += segment
        pool.segments[begin] = segment
        pool.add(begin, segment)
        return begin

    def _release(self, pool: Pool, begin: int) -> None:
        self.reserved -= pool.remove(begin)
        del pool.segments[begin]

    def _release_some(self, pool: Pool, size: int) -> bool:
        """Returns free blocks that may not be split, enough for `size`. False if there are not so many."""
        most = pool.most_split
        if most == ENDLESS:
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
        free = [(pool, begin) for pool in self.large.values() for begin in pool.whole_segments()]
        age = sum(self.searches - pool.since[begin] for pool, begin in free)
        while wanted > 0 and free:
            threshold = age / len(free)
            old = [(pool, begin) for pool, begin in free if self.searches - pool.since[begin] >= threshold]
            if not old:
                break
            for pool, begin in old:
                wanted -= pool.size(begin)
                age -= self.searches - pool.since[begin]
                free.remove((pool, begin))
                self._release(pool, begin)

    # ---- expandable segments ----------------------------------------------------------------

    def _expand(self, pool: Pool, size: int) -> int:
        """As _reserve()."""
        begin = self._room(pool, size)
        has = pool.size(begin)
        while has < size:
            self._map(pool, begin + has, size - has)
            has = pool.size(begin)
        return begin

    def _room(self, pool: Pool, size: int) -> int:
        """The first block of some that follow each other, free or without memory, and have so many bytes together."""
        for begin in sorted(pool.unmapped):
            at = first = pool.by_end.get(begin, begin) & _ADDRESS
            while at < first + size:
                n_bytes = pool.size(at) or pool.unmapped.get(at)
                if not n_bytes:
                    break
                at += n_bytes
            else:
                return first
        # Granules are counted from here.
        address = -(-self._next // LARGE_SEGMENT) * LARGE_SEGMENT
        self._next = address + ENDLESS
        pool.unmapped[address] = ENDLESS
        return address

    def _map(self, pool: Pool, begin: int, size: int) -> None:
        """Gives memory to the first `size` bytes or more of a range without, if it has so many."""
        n_bytes = pool.unmapped[begin]
        mapped = min(-(-size // pool.granule) * pool.granule, n_bytes)
        self.reserved += mapped
        del pool.unmapped[begin]
        if mapped < n_bytes:
            pool.unmapped[begin + mapped] = n_bytes - mapped
        pool.add(begin, mapped)

    def _unmap(self, pool: Pool, address: int) -> None:
        """Returns the whole granules of a free block."""
        granule, end_address = pool.granule, address + pool.size(address)
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
