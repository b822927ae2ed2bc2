# SPDX-License-Identifier: GPL-2.0-or-later
"""A model of PyTorch's caching allocator of CUDA memory, for what it would have reserved with other settings.

It follows PyTorch 2.1 to 2.6 with the backend `native`, and is held against PyTorch 2.6 itself by tests/torch-cuda. Sizes are
bytes. Not modelled: private pools of CUDA graphs, blocks that wait for events of other streams (record_stream).

A *segment* is what the driver gave, a *block* a part of it. Blocks of up to 1 MiB come from segments of 2 MiB in the small
pool, larger ones from the large pool. With expandable segments there is one range of addresses for each pool and stream, to
which memory is mapped by granules.
"""

from bisect import bisect_left, insort
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

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
        except ValueError:
            raise SettingsError(f"{part}: not a value of this setting")
    return settings


class OutOfMemory(Exception):
    """The limit does not let the allocator reserve what it needs."""


class Block:
    __slots__ = (
        "address",
        "size",
        "pool",
        "is_allocated",
        "is_mapped",
        "is_expandable",
        "is_whole",
        "before",
        "after",
        "since",
    )

    def __init__(self, address: int, size: int, pool: "_Pool") -> None:
        self.address = address
        self.size = size
        self.pool = pool
        self.is_allocated = False
        self.is_mapped = True
        self.is_expandable = False
        self.is_whole = False  # allocated without a rest: less may have been asked for
        self.before: Optional[Block] = None
        self.after: Optional[Block] = None
        self.since = 0  # searches of its kind of pool before it was freed

    @property
    def is_segment(self) -> bool:
        return self.before is None and self.after is None


class _Pool:
    """Free blocks of one size class and stream."""

    def __init__(self, is_small: bool) -> None:
        self.is_small = is_small
        self.granule = _SMALL_SEGMENT if is_small else _LARGE_SEGMENT
        self.order: List[Tuple[int, int]] = []  # sizes and addresses of free blocks
        self.blocks: Dict[int, Block] = {}  # likewise, by address
        self.unmapped: List[Block] = []  # ranges of expandable segments without memory

    def add(self, block: Block) -> None:
        insort(self.order, (block.size, block.address))
        self.blocks[block.address] = block

    def remove(self, block: Block) -> None:
        del self.order[bisect_left(self.order, (block.size, block.address))]
        del self.blocks[block.address]

    def __iter__(self) -> Iterator[Block]:
        """The smallest first. Blocks may be removed meanwhile."""
        return iter([self.blocks[address] for _, address in self.order])


class CachingAllocator:
    """The allocator of one device.

    `limit` are the bytes that the driver can give it, `allowed` those that set_per_process_memory_fraction allows (0: not
    called); without the latter PyTorch collects no garbage. `falls`: the driver gives each segment a lower address than the
    last, which decides between free blocks of one size.
    """

    def __init__(
        self, settings: Settings = Settings(), limit: Optional[int] = None, allowed: int = 0, falls: bool = False
    ) -> None:
        self.reserved = 0
        self.allocated = 0
        self.peak_reserved = 0
        self.peak_allocated = 0
        self.retries = 0
        self._settings = settings
        self._limit = limit
        self._allowed = allowed
        self.below = 0  # the largest free block that was too small for the last malloc
        self._falls = falls
        self._collect_above = settings.garbage_collection_threshold * allowed
        self._pools: Dict[Tuple[bool, int], _Pool] = {}
        self._next = 2 << 40  # address
        self._searches = 0  # of large blocks

    # ---- the interface ----------------------------------------------------------------------

    def malloc(self, n_bytes: int, stream: int = 0, address: int = 0) -> Block:
        """`address`: where a segment lies that this needs; 0: behind the last. Raises OutOfMemory."""
        self._next = address or self._next
        size = self.rounded(n_bytes)
        pool = self._pool(size <= _SMALL, stream)
        self._searches += not pool.is_small
        block = self._find(pool, size)
        if block is None:
            if self._collect_above:
                self._collect_garbage()
            block = self._reserve(pool, size)
            if block is None and self._release_some(pool, size):
                block = self._reserve(pool, size)
            if block is None:
                self.retries += 1
                self.empty_cache()
                block = self._reserve(pool, size)
            if block is None:
                raise OutOfMemory()
        block.is_whole = not self._is_split(block, size)
        if not block.is_whole:
            self._split(block, size)
        block.is_allocated = True
        self.allocated += block.size
        if self.allocated > self.peak_allocated:
            self.peak_allocated = self.allocated
        return block

    def free(self, block: Block) -> None:
        self.allocated -= block.size
        block.is_allocated = False
        self._return(block)

    def empty_cache(self) -> None:
        for pool in list(self._pools.values()):
            for block in pool:
                if block.is_expandable:
                    self._unmap(block)
                elif block.is_segment:
                    self._release(block)

    def rounded(self, n_bytes: int) -> int:
        """As large as its block will be at least."""
        divisions = self._settings.roundup_power2_divisions
        if n_bytes < _LEAST:
            return _LEAST
        if divisions > 1 and n_bytes > _LEAST * divisions:
            floor = 1 << (n_bytes.bit_length() - 1)
            step = floor // divisions
            if floor < n_bytes:
                n_bytes = floor + -(-(n_bytes - floor) // step) * step
            return n_bytes
        return -(-n_bytes // _LEAST) * _LEAST

    # ---- free blocks ------------------------------------------------------------------------

    def _pool(self, is_small: bool, stream: int) -> _Pool:
        pool = self._pools.get((is_small, stream))
        if pool is None:
            pool = self._pools[is_small, stream] = _Pool(is_small)
        return pool

    def _find(self, pool: _Pool, size: int) -> Optional[Block]:
        """The smallest free block that is large enough, out of its pool."""
        at = bisect_left(pool.order, (size, 0))
        self.below = pool.order[at - 1][0] if at else 0
        if at == len(pool.order):
            return None
        block = pool.blocks[pool.order[at][1]]
        if block.is_expandable:
            # A block that can grow counts as large as it can become.
            for _, address in pool.order[at + 1 :]:
                other = pool.blocks[address]
                if _possible(other) >= _possible(block):
                    break
                block = other
        most = self._settings.max_split_size
        if most and ((size < most <= block.size) or (size >= most and block.size >= size + _LARGE_SEGMENT)):
            return None
        pool.remove(block)
        return block

    def _is_split(self, block: Block, size: int) -> bool:
        rest = block.size - size
        if block.pool.is_small or self._settings.expandable_segments:
            return rest >= _LEAST
        return rest > _SMALL and (not self._settings.max_split_size or size < self._settings.max_split_size)

    def _split(self, block: Block, size: int) -> None:
        """The rest goes back to the pool."""
        rest = self._insert_after(block, size)
        rest.since = self._searches
        rest.pool.add(rest)

    @staticmethod
    def _insert_after(block: Block, size: int) -> Block:
        """A new block for what lies beyond `size` bytes."""
        rest = Block(block.address + size, block.size - size, block.pool)
        rest.is_expandable = block.is_expandable
        rest.before, rest.after = block, block.after
        if rest.after:
            rest.after.before = rest
        block.after = rest
        block.size = size
        return rest

    def _merge(self, block: Block, other: Optional[Block]) -> None:
        if other is None or other.is_allocated or other.is_mapped != block.is_mapped:
            return
        if other is block.before:
            block.address = other.address
            block.before = other.before
            if block.before:
                block.before.after = block
        else:
            block.after = other.after
            if block.after:
                block.after.before = block
        if other.is_mapped:
            # It is in the pool under the size that it has.
            other.pool.remove(other)
        else:
            other.pool.unmapped.remove(other)
        block.size += other.size

    def _return(self, block: Block) -> None:
        self._merge(block, block.before)
        self._merge(block, block.after)
        block.since = self._searches
        block.pool.add(block)

    # ---- segments ---------------------------------------------------------------------------

    def _grow(self, n_bytes: int) -> bool:
        if self._limit and self.reserved + n_bytes > self._limit:
            return False
        self.reserved += n_bytes
        if self.reserved > self.peak_reserved:
            self.peak_reserved = self.reserved
        return True

    def _reserve(self, pool: _Pool, size: int) -> Optional[Block]:
        if pool.is_small:
            segment = _SMALL_SEGMENT
        elif size < _LEAST_OWN_SEGMENT:
            segment = _LARGE_SEGMENT
        else:
            segment = -(-size // _ROUND_SEGMENT) * _ROUND_SEGMENT
        if self._allowed and self.reserved + segment > self._allowed:
            return None
        if self._settings.expandable_segments:
            return self._expand(pool, size)
        if not self._grow(segment):
            return None
        if self._falls:
            self._next -= segment
            return Block(self._next, segment, pool)
        self._next += segment
        return Block(self._next - segment, segment, pool)

    def _release(self, block: Block) -> None:
        block.pool.remove(block)
        self.reserved -= block.size

    def _release_some(self, pool: _Pool, size: int) -> bool:
        """Returns free blocks that may not be split, enough for `size`. False if there are not so many."""
        most = self._settings.max_split_size
        if not most:
            return False
        size = max(size, most)
        at = bisect_left(pool.order, (size, 0))
        if at < len(pool.order):
            self._release(pool.blocks[pool.order[at][1]])
            return True
        released = 0
        while released < size and pool.order and pool.order[-1][0] >= most:
            released += pool.order[-1][0]
            self._release(pool.blocks[pool.order[-1][1]])
        return released >= size

    def _collect_garbage(self) -> None:
        """Returns the large segments that have been free for longer than others, until there are few enough."""
        wanted = self.reserved - self._collect_above
        free = [
            block
            for (is_small, _), pool in self._pools.items()
            if not is_small
            for block in pool
            if block.is_segment and not block.is_expandable
        ]
        age = sum(self._searches - block.since for block in free)
        while wanted > 0 and free:
            threshold = age / len(free)
            old = [block for block in free if self._searches - block.since >= threshold]
            if not old:
                break
            for block in old:
                wanted -= block.size
                age -= self._searches - block.since
                free.remove(block)
                self._release(block)

    # ---- expandable segments ----------------------------------------------------------------

    def _expand(self, pool: _Pool, size: int) -> Optional[Block]:
        block = self._room(pool, size)
        if not block.is_mapped and not self._map(block, min(block.size, size)):
            return None
        while block.size < size:
            after = block.after
            assert after is not None and not after.is_mapped
            if not self._map(after, min(size - block.size, after.size)):
                return None
            block = after
        pool.remove(block)
        return block

    def _room(self, pool: _Pool, size: int) -> Block:
        """The first block of some that follow each other, free or without memory, and have so many bytes together."""
        for block in sorted(pool.unmapped, key=lambda each: each.address):
            first: Block = block
            if block.before and not block.before.is_allocated:
                first = block.before
            n_bytes, at = 0, first  # type: int, Optional[Block]
            while n_bytes < size and at and not at.is_allocated:
                n_bytes += at.size
                at = at.after
            if n_bytes >= size:
                return first
        # Granules are counted from here.
        address = -(-self._next // _LARGE_SEGMENT) * _LARGE_SEGMENT
        block = Block(address, _ENDLESS, pool)
        self._next = address + _ENDLESS
        block.is_mapped = False
        block.is_expandable = True
        pool.unmapped.append(block)
        return block

    def _map(self, block: Block, size: int) -> bool:
        """Gives memory to the first `size` bytes or more of a block without, and adds the block to its pool."""
        pool = block.pool
        mapped = min(-(-size // pool.granule) * pool.granule, block.size)
        if not self._grow(mapped):
            return False
        pool.unmapped.remove(block)
        if mapped < block.size:
            rest = self._insert_after(block, mapped)
            rest.is_mapped = False
            pool.unmapped.append(rest)
        block.is_mapped = True
        self._return(block)
        return True

    def _unmap(self, block: Block) -> None:
        """Returns the whole granules of a free block."""
        pool = block.pool
        begin = -(-block.address // pool.granule) * pool.granule
        end = (block.address + block.size) // pool.granule * pool.granule
        if begin >= end:
            return
        pool.remove(block)
        if end < block.address + block.size:
            pool.add(self._insert_after(block, end - block.address))
        if block.address < begin:
            whole = self._insert_after(block, begin - block.address)
            pool.add(block)
            block = whole
        self.reserved -= block.size
        block.is_mapped = False
        self._merge(block, block.before)
        self._merge(block, block.after)
        pool.unmapped.append(block)


def _possible(block: Block) -> int:
    after = block.after
    return block.size + (after.size if after and not after.is_mapped else 0)
