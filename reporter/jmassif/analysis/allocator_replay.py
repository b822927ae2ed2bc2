# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory that the model of PyTorch's allocator reserves for the steps of a run, and what these steps may have asked for.

Without a limit on its memory the pools of the allocator do not depend on each other, so each replays its own steps. That of
large blocks comes first: it has most bytes and few steps.
"""

from array import array
from functools import lru_cache
from itertools import accumulate, chain, compress
from operator import not_
from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from jmassif.analysis.allocator_steps import Steps, handed_out
from jmassif.analysis.caching_allocator import (
    ADDRESS_BITS,
    ENDLESS,
    LARGE_SEGMENT,
    LEAST,
    MIB,
    ROUNDED_SEGMENT,
    SMALL,
    SMALL_SEGMENT,
    Block,
    CachingAllocator,
    Settings,
)


# Steps of a training repeat themselves: a period has so many allocations at least, and is looked for so far ahead.
_LEAST_PERIOD, _LONGEST_PERIOD = 256, 1 << 16
# Steps until it is looked for again, twice as many each time.
_SHORTEST_STRETCH, _LONGEST_STRETCH = 1 << 12, 1 << 17
# Allocations before another to which it may have a proportion, and examples of it for each stack.
_PRECEDING, _EXAMPLES = 4, 64
MOST_KNOWN = 1 << 16  # results that are kept: sizes repeat themselves


class Replay(NamedTuple):
    """Results of the model for steps."""

    reserved: int  # at most
    blocks: "array[int]"  # size of each allocation's
    # Of an allocation that took a large block as it was, for which up to 1 MiB less may have been asked for (else 0): more than
    # this was asked for, or a smaller block would have been taken.
    above: "array[int]"


def replay(steps: Steps, sizes: "array[int]", settings: Settings, allowed: int = 0, has_small: bool = True) -> Replay:
    """Steps.replayed with these sizes. `allowed` as in CachingAllocator. `has_small`: with small blocks. Raises OutOfMemory."""
    if not steps.is_host and not allowed:
        return Pools(steps, sizes).replay(settings, has_small)
    above, blocks = array("Q", [0]) * len(sizes), rounded(sizes, settings)[:]
    if steps.is_host:
        return Replay(max(handed_out(steps.order, sizes)), sizes, above)
    return Replay(_within(steps, blocks, CachingAllocator(settings, allowed, steps.falls)), blocks, above)


def rounded(sizes: "array[int]", settings: Settings) -> "array[int]":
    """As the allocator rounds them with these settings."""
    if not settings.roundup_power2_divisions:
        return sizes
    return array("Q", map(lru_cache(MOST_KNOWN)(CachingAllocator(settings).rounded), sizes))


def _within(steps: Steps, blocks: "array[int]", model: CachingAllocator) -> int:
    """The most that is reserved under a limit. Sizes of blocks become those that are taken."""
    live: Dict[int, Block] = {}
    peak, emptied = 0, set(steps.emptied)
    for at, step in enumerate(steps.replayed):
        if at in emptied:
            model.empty_cache()
        if step < 0:
            model.free(live.pop(~step))
        else:
            live[step] = model.malloc(blocks[step])
            blocks[step] = live[step][2]
            peak = max(peak, model.reserved)
    return peak


# ---- pool by pool -------------------------------------------------------------------------------


# Bytes that are reserved, or if negative released, before the allocation of this number.
_Change = Tuple[int, int]


def _most(changes: Iterable[List[_Change]]) -> int:
    """Reserved by pools together."""
    return max(accumulate(n_bytes for _, n_bytes in sorted(chain.from_iterable(changes))), default=0)


class _Stretch(NamedTuple):
    order: "array[int]"  # as Steps.order
    first: int  # number of its first allocation
    made: int  # allocations
    times: int  # in a row, each time with the numbers that follow
    is_emptied: bool  # the cache, before


class Pools:
    """The steps of a run, to be replayed with several settings."""

    def __init__(self, steps: Steps, sizes: "array[int]") -> None:
        order = steps.replayed
        self.sizes = sizes  # of large blocks others may follow, which are large too
        self._falls, self._is_emptied, self._n = steps.falls, bool(steps.emptied), max(order) + 1
        is_small = bytes(map(SMALL.__ge__, sizes[: self._n]))
        of_small = bytes(map((is_small + is_small[::-1]).__getitem__, order))  # ~number is an index from the end
        of_pools = (of_small.translate(bytes((1, 0)).ljust(256)), of_small)
        # With the run's own sizes each pool has done enough when its own blocks have. An emptied cache has less of either.
        enough = steps.enough if sizes is steps.sizes and not steps.emptied else (len(order),) * 2
        self._stretches: Tuple[List[_Stretch], List[_Stretch]] = [], []
        at = 0
        for each in _stretches(steps, order, sizes):
            n = len(each.order)
            for stretches, of_pool, end in zip(self._stretches, of_pools, enough):
                if at < end:
                    stretches.append(each._replace(order=array("i", compress(each.order, of_pool[at : at + n]))))
            at += n * each.times
        self._held: List[List[int]] = [[], []]  # numbers of the allocations that either pool had when it last grew
        # Changes of the pool of small blocks, by the settings that it depends on.
        self._small: Dict[Tuple[int, bool], List[_Change]] = {}

    def replay(self, settings: Settings, has_small: bool = True) -> Replay:
        """With all results. `has_small`: with small blocks."""
        above, blocks = array("Q", [0]) * len(self.sizes), rounded(self.sizes, settings)[:]
        changes = [self.changes(blocks, settings, False, above)]
        if has_small:
            changes.append(self._of_small(blocks, settings))
        return Replay(_most(changes), blocks, above)

    def reserved(self, settings: Settings, enough: int) -> int:
        """At most; `enough`, if that is not less."""
        granules = LARGE_SEGMENT if settings.expandable_segments else ROUNDED_SEGMENT, SMALL_SEGMENT
        # Each pool comes to have whole segments for all that it once held.
        held = (sum(rounded(array("Q", map(self.sizes.__getitem__, each)), settings)) for each in self._held)
        large, small = (-(-n_bytes // granule) * granule for n_bytes, granule in zip(held, granules))
        if large + small >= enough:
            return enough
        blocks = rounded(self.sizes[: self._n], settings)
        of_large = self.changes(blocks, settings, is_small=False, enough=enough - small)
        if _most([of_large]) + small >= enough:
            return enough
        return min(enough, _most([of_large, self._of_small(blocks, settings)]))

    def _of_small(self, blocks: "array[int]", settings: Settings) -> List[_Change]:
        key = settings.roundup_power2_divisions, settings.expandable_segments
        if key not in self._small:
            self._small[key] = self.changes(blocks, settings, is_small=True)
        return self._small[key]

    def changes(
        self,
        blocks: "array[int]",
        settings: Settings,
        is_small: bool,
        above: "Optional[array[int]]" = None,
        enough: int = ENDLESS,
    ) -> List[_Change]:
        """Changes of one pool, until it has reserved `enough`. With `above`, as in Replay, `blocks` become those that are taken."""
        model = CachingAllocator(settings, falls=self._falls)
        pool = (model.small if is_small else model.large)[0]
        free, live = pool.order, {}  # type: List[int], Dict[int, Block]
        malloc, add, above = pool.malloc, pool.add, None if pool.is_exact else above
        skips, passed_over = above is None and (is_small or not settings.max_split_size), 0
        reserved, found = 0, []  # type: int, List[_Change]
        for own, first, made, times, is_emptied in self._stretches[is_small]:
            if is_emptied:
                model.empty_cache()
                found.append((first, model.reserved - reserved))
                reserved = model.reserved
            asked = self.sizes[first : first + times * made]
            is_alike = times > 1 and asked == asked[:made] * times
            for left in reversed(range(times)):
                before = (reserved, live.copy()) if is_alike else None
                for step, after, then in zip(own, chain(own[1:], (0,)), chain(own[2:], (0, 0))):
                    if step < 0:
                        if step != passed_over:
                            _, begin, size = live.pop(~step)
                            add(begin, size)
                        continue
                    size = blocks[step]
                    if skips and after < 0 and ~step in (after, then) and free and free[-1] >> ADDRESS_BITS >= size:
                        passed_over = ~step  # freed before another is taken, and there is room: nothing changes
                        continue
                    block = live[step] = malloc(size)
                    if model.reserved != reserved:
                        found.append((step, model.reserved - reserved))
                        reserved = model.reserved
                        self._held[is_small] = [] if self._is_emptied else list(live)
                        if reserved >= enough:
                            return found
                    if above is not None and block[1] + block[2] not in pool.by_begin:
                        # Nothing was split off.
                        above[step] = max(block[2] - MIB - 1, pool.below, SMALL)
                        blocks[step] = block[2]
                last = first + made
                later = _later(before[1], live, made, left * made) if before and before[0] == reserved else None
                if later is not None:
                    live = later
                    if above is not None:
                        above[last : last + left * made] = above[first:last] * left
                        blocks[last : last + left * made] = blocks[first:last] * left
                    break
                if left:
                    own, first = _shifted(own, made), last
        return found


def _stretches(steps: Steps, order: "array[int]", sizes: "array[int]") -> Iterator[_Stretch]:
    at, first, is_emptied, longest = 0, 0, False, _SHORTEST_STRETCH
    for end in [*(number for number in steps.emptied if number < len(order)), len(order)]:
        while at < end:
            n, times = _repeated(order, sizes, at, end, first)
            longest = _SHORTEST_STRETCH if times > 1 else min(2 * longest, _LONGEST_STRETCH)
            part = order[at : at + n if times > 1 else min(at + longest, end)]
            made = max(0, max(part) + 1 - first)
            yield _Stretch(part, first, made, times, is_emptied)
            at, first, is_emptied = at + len(part) * times, first + made * times, False
        is_emptied = True


def _repeated(order: "array[int]", sizes: "array[int]", at: int, end: int, first: int) -> Tuple[int, int]:
    """So many steps from `at` on come so many times in a row; `first` is the allocation that comes next."""
    begin = sizes[first : first + _LEAST_PERIOD].tobytes()
    following = sizes[first + 1 : first + _LONGEST_PERIOD].tobytes()
    found = following.find(begin)
    while found % sizes.itemsize and found > 0:
        found = following.find(begin, found + 1)
    made = found // sizes.itemsize + 1
    if found < 0:
        return 0, 1
    made *= -(-_LEAST_PERIOD // made)
    asked, part = sizes[first : first + made], order[at : at + 4 * made]
    if first not in part or first + made not in part:
        return 0, 1
    n, times = part.index(first + made) - part.index(first), 1
    while (
        at + (times + 1) * n <= end
        and sizes[first + times * made : first + (times + 1) * made] == asked
        and order[at + times * n : at + (times + 1) * n] == _shifted(part[:n], times * made)
    ):
        times += 1
    return n, times


def _shifted(order: Sequence[int], by: int) -> "array[int]":
    """The same steps, of allocations that come so many later."""
    return array("i", (step + by if step >= 0 else step - by for step in order))


def _later(before: Dict[int, Block], live: Dict[int, Block], made: int, by: int) -> Optional[Dict[int, Block]]:
    """Blocks in use by number, `by` allocations after a period that made so many. None: the period was unlike the one before."""
    later = {}
    for number, block in live.items():
        if before.get(number - made) == block:
            later[number + by] = block
        elif before.get(number) == block and (number - made in live or number - made not in before):
            later[number] = block
        else:
            return None
    return later


# ---- requests -----------------------------------------------------------------------------------


def _in_proportion(accounts: "array[int]", sizes: "array[int]", above: "array[int]") -> bool:
    """Resolve allocations whose size has had one proportion to that of one of the few before, as with sequences of any length.

    False: there are none.
    """
    open_ = list(compress(range(len(above)), above))
    examples = dict.fromkeys((accounts[number] for number in open_), _EXAMPLES)
    pairs: Dict[
        Tuple[int, int, int], Tuple[int, int]
    ] = {}  # two sizes by stack, stack before and distance; 0: no proportion
    varied: Set[Tuple[int, int, int]] = set()
    for number in compress(range(len(above)), map(examples.__contains__, accounts)):
        account, size = accounts[number], sizes[number]
        if above[number] or not examples[account]:
            continue
        examples[account] -= 1
        for i in range(1, min(number, _PRECEDING) + 1):
            if not above[number - i]:
                key, before = (account, accounts[number - i], i), sizes[number - i]
                other_before, other = pairs.setdefault(key, (before, size))
                if before * other != size * other_before:
                    pairs[key] = 0, 0
                elif before != other_before:
                    varied.add(key)
    found = {}
    for number in open_:
        for i in range(1, min(number, _PRECEDING) + 1):
            before, size = pairs.get((accounts[number], accounts[number - i], i), (0, 0))
            if before and not above[number - i] and (accounts[number], accounts[number - i], i) in varied:
                size, rest = divmod(size * sizes[number - i], before)
                if not rest and not size % LEAST and above[number] < size <= sizes[number]:
                    found[number] = size
                    break
    for number, size in found.items():
        sizes[number], above[number] = size, 0
    return bool(found)


def requests(steps: Steps, made: Replay) -> "array[int]":
    """Sizes asked for: of a block that was taken whole what its stack asked for elsewhere after such an allocation, if that may be."""
    sizes, above = array("Q", steps.sizes), made.above[:]
    if _in_proportion(steps.accounts, sizes, above):
        _in_proportion(steps.accounts, sizes, above)
    n = max(compress(range(len(above)), above), default=-1) + 1
    for _ in range(2):  # what is known after the first time is an allocation before others
        is_known = bytearray(map(not_, above[:n]))
        accounts = array("I", chain((0,), compress(steps.accounts, is_known)))
        known = array("Q", chain((0,), compress(sizes, is_known)))
        open_ = list(compress(range(n), above))
        # Allocations by size, after those of a stack and size.
        asked: Dict[Tuple[int, int, int], Dict[int, int]] = {
            (steps.accounts[number], accounts[number - i], known[number - i]): {} for i, number in enumerate(open_)
        }
        keys = zip(accounts[1:], accounts, known)
        has_open = {account for account, _, _ in asked}.__contains__
        for key, size in compress(zip(keys, known[1:]), map(has_open, accounts[1:])):
            if key in asked:
                asked[key][size] = asked[key].get(size, 0) + 1
        commonest = {key: sorted(times, key=times.__getitem__, reverse=True) for key, times in asked.items()}
        for i, number in enumerate(open_):
            least, most = above[number], sizes[number]
            for size in commonest[steps.accounts[number], accounts[number - i], known[number - i]]:
                if least < size <= most:
                    sizes[number], above[number] = size, 0
                    break
    return sizes
