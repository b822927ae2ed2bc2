# SPDX-License-Identifier: GPL-2.0-or-later
"""The memory that a training needs with another batch size, or with other settings of PyTorch's allocator.

The steps of a run's caching allocator follow from its trace. Two runs with batches of `a` and `b` samples make the same
steps with other sizes: allocations of the same stack are compared one by one, and each size is continued in a straight
line. What the allocator would have reserved for them is what its model reserves (caching_allocator.py). Sizes are bytes.
"""

from array import array
from functools import lru_cache
from itertools import chain, compress, repeat
from operator import not_
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from jmassif.analysis.caching_allocator import (
    ADDRESS_BITS,
    Block,
    CachingAllocator,
    Settings,
    SettingsError,
    parse_settings,
)
from jmassif.analysis.device_history import Ranges
from jmassif.analysis.device_memory import CACHE
from jmassif.analysis.oom import allocator_config, at_least, chains_of
from jmassif.attribution.names import Names
from jmassif.model.records import DEVICE_KINDS, HANDLE_KINDS, PAGE_KINDS
from jmassif.model.run import Profile
from jmassif.model.run_info import fact
from jmassif.units import size as size_text

MIB = 1 << 20
_ROUNDED_TO = 512
_LARGEST = 1 << 44  # bytes of a tensor
# In Steps.order: the cache was emptied. Else the number of an allocation, or ~number where it is freed.
_EMPTIED = -(1 << 31)
# Share of the bytes at the peak. If more has no counterpart in the other run, they differ in more than the batch.
_MOST_UNLIKE = 0.1
_FIXED_ROLES = ("parameter", "gradient", "optimizer")
_SCALING_ROLES = ("activation", "input")
# The model's figure for the recorded run is the recorded one, or nearly: else the model does not hold for this run.
NEARLY = 0.01
_MOST_BATCH = 1 << 16
# Segments: the size of those for blocks below 10 MiB, and what larger ones are multiples of.
_LARGEST_COMMON, _ROUNDED_SEGMENT = 20 * MIB, 2 * MIB
_LEAST_STEPS = 50000  # are replayed
# Steps of a training repeat themselves: so many at least are one period, another is looked for so far ahead, and anew after so many.
_LEAST_PERIOD, _LONGEST_PERIOD, _LONGEST_STRETCH = 512, 1 << 17, 4096
# Allocations before another to which it may have a proportion, and examples of it for each stack.
_PRECEDING, _EXAMPLES = 4, 64
_MOST_KNOWN = 1 << 16  # results that are kept: sizes repeat themselves


class FitError(Exception):
    """Why a question has no answer."""


class Steps(NamedTuple):
    """Allocations and frees of a caching allocator, in its order."""

    sizes: "array[int]"  # of each allocation, as the allocator rounded it
    accounts: "array[int]"
    rows: "array[int]"  # likewise, of Profile.blocks
    order: "array[int]"
    ages: "array[int]"  # of each of `order`: 0 for an allocation; where one is freed, how many there were since, with itself
    reserved: int  # the most it had reserved, as recorded
    allocated: int  # the most it had handed out, as recorded
    last_growth: int  # of `order`: steps until it reserved for the last time
    peak: int  # likewise, until it had handed out the most
    falls: bool  # segments came at ever lower addresses, as a rule
    is_host: bool = False  # large blocks of the heap instead, whose sizes are exact; reserved is allocated

    @property
    def rounded_to(self) -> int:
        return 1 if self.is_host else _ROUNDED_TO

    @property
    def replayed(self) -> "array[int]":
        """The part of `order` that is enough: a run that reserves nothing more for as long again goes on like that."""
        return self.order[: max(2 * self.last_growth, _LEAST_STEPS)]


# ---- steps from a trace -------------------------------------------------------------------------


def _retries(run: Profile) -> List[Tuple[int, int]]:
    """Rows of blocks in which the allocator emptied its cache by itself, since memory had run out."""
    return [(event.position, event.outcome_position or event.position + 1) for *_, event in chains_of(run)]


def steps_of(run: Profile, is_host: bool = False) -> Steps:
    """Raises FitError if the trace has no steps of PyTorch's allocator. `is_host`: those of large blocks of the heap instead."""
    accounts, frees = run.accounts, bytearray(run.blocks.n_rows + 1)
    for row in run.frees:
        frees[row] = 1
    kinds = ("heap",) if is_host else DEVICE_KINDS
    is_counted = bytearray(kind in kinds for kind in accounts.by_type(lambda type_: type_.kind))
    has_handle = bytearray(kind in HANDLE_KINDS for kind in accounts.by_type(lambda type_: type_.kind))
    is_cache = bytearray(owner == CACHE and not is_host for owner in accounts.by_type(lambda type_: type_.owner))
    # Blocks begin in the first of the accounts that differ in role alone.
    first: Dict[Tuple[int, int], int] = {}
    keys = zip(accounts.nodes, accounts.type_numbers)
    is_first = bytearray(
        is_counted[account] and first.setdefault(key, account) == account for account, key in enumerate(keys)
    )
    sizes, of, rows, order, ages = array("Q"), array("I"), array("I"), array("i"), array("i")
    segments, handles = Ranges(), {}  # type: Ranges, Dict[int, int]
    in_segments: Set[int] = set()  # addresses that were found there
    live: Dict[int, int] = {}
    reserved = most_reserved = allocated = most_allocated = last_growth = peak = falls = last_segment = 0
    last = ended = 0  # the allocation that was freed last, and its address
    retries = _retries(run)
    columns = (run.blocks.address, run.blocks.size, run.blocks.account, frees)
    for row, (address, size, account, is_free) in enumerate(zip(*columns)):
        if not is_counted[account]:
            continue
        if is_cache[account]:
            held = handles if has_handle[account] else segments.bytes
            if not is_free:
                if has_handle[account]:
                    handles[address] = size
                else:
                    segments.add(address, size)
                falls += 1 if address < last_segment else -1
                last_segment = address
                reserved += size
                most_reserved = max(most_reserved, reserved)
                last_growth = len(order)
            elif address in held:
                reserved -= handles.pop(address) if has_handle[account] else segments.remove(address)
                in_segments.clear()
                is_own = any(begin <= row < end for begin, end in retries)
                if not is_own and (not order or order[-1] != _EMPTIED):
                    order.append(_EMPTIED)
                    ages.append(_EMPTIED)
            continue
        if is_free:
            number = live.pop(address, None)
            if number is not None:
                order.append(~number)
                ages.append(len(sizes) - number)
                allocated -= sizes[number]
                ended, last = address, number
            continue
        is_inside = is_host or address in in_segments
        if not is_inside and address in segments:
            in_segments.add(address)
            is_inside = True
        if is_inside or (has_handle[account] and handles):
            is_again = ended == address and order and order[-1] == ~last and sizes[last] == size
            if (
                is_again
                and not is_first[account]
                and accounts.nodes[of[last]] == accounts.nodes[account]
                and of[last] != account
            ):
                # The same block; its role is known now.
                order.pop()
                ages.pop()
                live[address] = last
                of[last] = account
            else:
                live[address] = len(sizes)
                order.append(len(sizes))
                ages.append(0)
                sizes.append(size)
                of.append(account)
                rows.append(row)
            allocated += size
            if allocated > most_allocated or not peak:
                most_allocated, peak = allocated, len(order)
    if not sizes and not run.is_complete:
        raise FitError("the trace was cut off before PyTorch allocated anything")
    if not sizes and not any(run.timeline.device):
        raise FitError(
            "the trace has no steps of PyTorch's CUDA allocator, for the run used no GPU: --batch=N judges host memory"
        )
    if not sizes:
        raise FitError(
            "the trace has no steps of PyTorch's CUDA allocator (PyTorch 1.10 or later with its native allocator has)"
        )
    if max(sizes) > _LARGEST:
        raise FitError(f"the trace is damaged: no device holds the {size_text(max(sizes))} of one of its tensors")
    if is_host:
        most_reserved, last_growth = most_allocated, len(order)
    return Steps(sizes, of, rows, order, ages, most_reserved, most_allocated, last_growth, peak, falls > 0, is_host)


def any_steps(run: Profile) -> Steps:
    """Those of the heap's large blocks if the run used no GPU. Raises FitError."""
    return steps_of(run, not any(run.timeline.device))


# ---- replays ------------------------------------------------------------------------------------


class Replay(NamedTuple):
    """Results of the model for steps."""

    reserved: int  # at most
    allocated: int
    whole: bytearray  # 1 for each allocation that took a large block as it was: up to 1 MiB less may have been asked for
    above: "array[int]"  # more than this was asked for by each of these, or a smaller block would have been taken


def replay(steps: Steps, sizes: "array[int]", settings: Settings, allowed: int = 0, most: int = 0) -> Replay:
    """Steps.replayed with these sizes. `allowed` as in CachingAllocator. Raises OutOfMemory.

    It ends where `most` bytes are reserved, if not 0.
    """
    if steps.is_host:
        peak = held = 0
        for step in steps.order:
            held += sizes[step] if step >= 0 else -sizes[~step]
            peak = max(peak, held)
        return Replay(peak, peak, bytearray(len(sizes)), array("Q", bytes(8 * len(sizes))))
    if settings.roundup_power2_divisions:
        rounded = lru_cache(_MOST_KNOWN)(CachingAllocator(settings).rounded)
        sizes, settings = array("Q", map(rounded, sizes)), settings._replace(roundup_power2_divisions=0)
    model = CachingAllocator(settings, allowed=allowed, falls=steps.falls)
    can_repeat = not settings.garbage_collection_threshold  # what to collect depends on all steps before
    # A block of up to so much that is freed at once changes nothing where there is room.
    passing = _LARGEST if settings == Settings(expandable_segments=True) else MIB if can_repeat else 0
    free_small = model.free_blocks(is_small=True)
    free_large = model.free_blocks(is_small=False)
    live: Dict[int, Block] = {}
    whole, above = bytearray(len(sizes)), array("Q", bytes(8 * len(sizes)))
    order, at = steps.replayed, 0
    while at < len(order) and not (most and model.reserved >= most):
        first, period, n = _repeated(steps, sizes, at, len(order)) if can_repeat else (0, len(order), 1)
        before = (model.state(), live.copy()) if n > 1 else None
        pairs = zip(order[at : at + period], chain(order[at + 1 : at + period], (_EMPTIED,)))
        for step, following in pairs:
            if step >= 0:
                size = sizes[step]
                if following == ~step:
                    next(pairs)
                    free = free_small if size <= MIB else free_large
                    if size <= passing and free and free[-1] >> ADDRESS_BITS >= size:
                        if model.allocated + size + MIB <= model.peak_allocated:
                            continue
                    model.malloc(size, is_brief=True)
                else:
                    live[step] = model.malloc(size)
                if most and model.reserved >= most:
                    break
                if model.whole:
                    whole[step] = 1
                    above[step] = max(model.whole - MIB - 1, model.below)
            elif step != _EMPTIED:
                model.free(live.pop(~step))
            else:
                model.empty_cache()
        at += period
        if before and before[0] == model.state():
            made = steps.ages[at - period : at].count(0)
            later = _later(before[1], live, made, (n - 1) * made)
            if later is not None:
                live, last = later, first + made
                whole[last : last + (n - 1) * made] = whole[first:last] * (n - 1)
                above[last : last + (n - 1) * made] = above[first:last] * (n - 1)
                at += (n - 1) * period
    return Replay(model.peak_reserved, model.peak_allocated, whole, above)


def _repeated(steps: Steps, sizes: "array[int]", at: int, end: int) -> Tuple[int, int, int]:
    """The first allocation from the step `at` on; so many steps from there, and how often they come without a break."""
    ages = steps.ages
    first = next((step for step in steps.order[at : at + _LEAST_PERIOD] if step >= 0), -1)
    begin, following = ages[at : at + _LEAST_PERIOD].tobytes(), ages[at + 1 : at + _LONGEST_PERIOD].tobytes()
    found = following.find(begin)
    while found % ages.itemsize and found > 0:
        found = following.find(begin, found + 1)
    if found < 0 or first < 0:
        return first, _LONGEST_STRETCH, 1
    period = found // ages.itemsize + 1
    period *= -(-_LEAST_PERIOD // period)
    pattern, n = ages[at : at + period], 1
    made = pattern.count(0)
    asked = sizes[first : first + made]
    while (
        at + (n + 1) * period <= end
        and ages[at + n * period : at + (n + 1) * period] == pattern
        and sizes[first + n * made : first + (n + 1) * made] == asked
    ):
        n += 1
    return (first, period, n) if n > 2 else (first, _LONGEST_STRETCH, 1)


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


def _in_proportion(accounts: "array[int]", sizes: "array[int]", above: "array[int]") -> None:
    """Resolve allocations whose size has had one proportion to that of one of the few before, as with sequences of any length."""
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
                if not rest and not size % _ROUNDED_TO and above[number] < size <= sizes[number]:
                    found[number] = size
                    break
    for number, size in found.items():
        sizes[number], above[number] = size, 0


def requests(steps: Steps, made: Replay) -> "array[int]":
    """Sizes asked for: of a block that was taken whole what its stack asked for elsewhere after such an allocation, if that may be."""
    sizes, above = array("Q", steps.sizes), made.above[:]
    for _ in range(2):
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


# ---- another batch size -------------------------------------------------------------------------


def _stack_keys(run: Profile) -> Dict[int, int]:
    """A number for the stack of each account that allocated, the same in runs of the same program."""
    keys: Dict[int, int] = {0: 0}
    parts: Dict[int, int] = {}

    def part(frame: int) -> int:
        known = parts.get(frame)
        if known is None:
            fields = run.frame(frame)
            # Addresses differ from run to run, lines of native code may not be known.
            is_python = fields.type == "p"
            place = (fields.function, fields.file, fields.line) if is_python else (fields.function or fields.object,)
            known = parts[frame] = hash(place)
        return known

    def key(node: int) -> int:
        path = []
        while node not in keys:
            path.append(node)
            node = run.node_parent[node]
        for each in reversed(path):
            keys[each] = hash((keys[run.node_parent[each]], part(run.node_frame[each])))
        return keys[path[0] if path else node]

    return {account: key(run.accounts.nodes[account]) for account in set(run.blocks.account)}


class Line(NamedTuple):
    """Bytes at the peak that a line has with each batch: `fixed` + `each` * batch."""

    label: str
    fixed: int
    each: float


class Continued(NamedTuple):
    """Two runs as one, for any batch size."""

    steps: Steps  # of the run with the larger batch
    batches: Tuple[int, int]
    reserved: Tuple[int, int]  # as recorded
    modelled: int  # of the second run
    before: "array[int]"  # size of each allocation in the run with the smaller batch
    was_whole: bytearray  # Replay.whole, likewise
    whole: bytearray
    unlike: float  # share of the bytes at the peak without a counterpart there, which their role does not explain
    at_peak: List[int]  # numbers of allocations

    def sizes(self, batch: int) -> "array[int]":
        """Sizes of at least as many allocations as are replayed."""
        rounded_to = self.steps.rounded_to

        @lru_cache(_MOST_KNOWN)
        def at(before: int, was_whole: int, size: int, whole: int) -> int:
            small, large = _Size(before, was_whole, rounded_to), _Size(size, whole, rounded_to)
            return _size_at(small, large, self.batches, batch)

        return array("Q", map(at, self.before, self.was_whole, self.steps.sizes, self.whole))


class _Size(NamedTuple):
    """A block's size, and the smallest request that it can stand for."""

    bytes: int
    is_whole: int
    rounded_to: int

    @property
    def least(self) -> int:
        """As little may have been asked for."""
        return max(1, self.bytes - self.rounded_to + 1 - (MIB if self.is_whole else 0))


def _size_at(small: _Size, large: _Size, batches: Tuple[int, int], batch: int) -> int:
    """The size of an allocation that was `small` and `large` with these batches, as the allocator rounds it."""
    a, b = batches
    if large.bytes <= small.bytes:
        return large.bytes
    if not a:
        return max(1, -(-large.bytes * batch // (b * large.rounded_to))) * large.rounded_to
    # Samples alone, if what is known leaves that open; else nothing of the batch's; else a fixed part besides.
    most = min(small.bytes / a, large.bytes / b)
    if max(small.least / a, large.least / b) <= most:
        each = most if small.is_whole == large.is_whole else small.bytes / a if large.is_whole else large.bytes / b
        n_bytes = each * batch
    elif large.least <= small.bytes:
        return small.bytes
    else:
        n_bytes = small.bytes + (large.bytes - small.bytes) / (b - a) * (batch - a)
    return max(1, -(-int(n_bytes) // large.rounded_to)) * large.rounded_to


def held_at_peak(steps: Steps) -> List[int]:
    """Numbers of the allocations that were live when most was handed out."""
    order = steps.order[: steps.peak]
    is_live = bytearray(b"\1" * (order[-1] + 1))
    for step in order:
        if _EMPTIED < step < 0:
            is_live[~step] = 0
    return list(compress(range(len(is_live)), is_live))


def _sizes_of_model(steps: Steps, roles: Dict[int, Optional[str]]) -> Set[int]:
    """Those of parameters, gradients and optimizer state; cast for autocast, they have half of it."""
    sizes = {size for size, account in zip(steps.sizes, steps.accounts) if roles[account] in _FIXED_ROLES}
    return sizes | {-(-size // 2 // steps.rounded_to) * steps.rounded_to for size in sizes}


def _compared(steps: Steps, at_peak: List[int]) -> int:
    """So many allocations are compared with another run's: those that are replayed, and those at the peak."""
    return max(next(step for step in reversed(steps.replayed) if step >= 0), at_peak[-1]) + 1


def continued(runs: Tuple[Profile, Profile], batches: Tuple[int, int]) -> Continued:
    """The first run is that with the smaller batch. Raises FitError."""
    smaller, larger = (any_steps(run) for run in runs)
    if smaller.is_host != larger.is_host and not all(run.is_complete for run in runs):
        raise FitError("only one of the runs used a GPU: was the other killed before it did?")
    if smaller.is_host != larger.is_host:
        raise FitError("the runs differ in more than the batch: one used a GPU, the other did not")
    keys = [_stack_keys(run) for run in runs]
    made = [replay(steps, steps.sizes, settings_of(run)) for steps, run in zip((smaller, larger), runs)]
    likes: Dict[int, "array[int]"] = {}  # numbers of allocations by the key of their stack
    of = {account: likes.setdefault(key, array("i")).append for account, key in keys[0].items()}
    for number, account in enumerate(smaller.accounts):
        of[account](number)
    # A run with more steps repeats the last.
    ends: Dict[int, Iterator[int]] = {key: chain(found, repeat(found[-1])) for key, found in likes.items() if found}
    counterparts = {account: ends.get(key, repeat(-1)) for account, key in keys[1].items()}
    least_recorded = runs[0].option("large", 0)  # smaller blocks of the heap have no records

    @lru_cache(_MOST_KNOWN)
    def judged(n_bytes: int, whole: int, other_bytes: int, other_whole: int) -> Tuple[int, int, bool]:
        """Size of the counterpart, Replay.whole of it, and whether it is none. `other_bytes` is 0 without one."""
        own, other = _Size(n_bytes, whole, larger.rounded_to), _Size(other_bytes, other_whole, larger.rounded_to)
        if larger.is_host and not other.bytes and own.bytes * batches[0] < least_recorded * batches[1]:
            other = own._replace(bytes=own.bytes * batches[0] // batches[1])
        if other.bytes and own.bytes >= other.least and own.least * batches[0] <= other.bytes * batches[1]:
            return other.bytes, other.is_whole, False
        return own.bytes, own.is_whole, True

    at_peak = held_at_peak(larger)
    before, was_whole, unmatched = array("Q"), bytearray(), bytearray()
    for account, n_bytes, whole in zip(larger.accounts[: _compared(larger, at_peak)], larger.sizes, made[1].whole):
        like = next(counterparts[account])
        other = (smaller.sizes[like], made[0].whole[like]) if like >= 0 else (0, 0)
        size, is_whole, is_unlike = judged(n_bytes, whole, *other)
        before.append(size)
        was_whole.append(is_whole)
        unmatched.append(is_unlike)
    parameters = [
        sum(steps.sizes[n] for n in numbers if run.role(steps.accounts[n]) == "parameter")
        for run, steps, numbers in zip(runs, (smaller, larger), (held_at_peak(smaller), at_peak))
    ]
    if abs(parameters[0] - parameters[1]) > NEARLY * max(parameters):
        raise FitError(
            "the runs differ in more than the batch: parameters have {} and {}".format(*map(size_text, parameters))
        )
    # Gradients and optimizer state have no other size than the parameters, which are the same.
    unlike = sum(
        larger.sizes[n] for n in at_peak if unmatched[n] and runs[1].role(larger.accounts[n]) not in _FIXED_ROLES
    )
    reserved, share = (smaller.reserved, larger.reserved), unlike / max(1, larger.allocated)
    roles = {account: runs[1].role(account) for account in set(larger.accounts)}
    if batches[0] == 1 and share > _MOST_UNLIKE:
        # Other kernels run on one sample. Activations grow with the batch, as from one run; workspaces do not.
        fixed = _sizes_of_model(larger, roles)
        for n, is_open in enumerate(unmatched):
            if is_open and roles[larger.accounts[n]] in _SCALING_ROLES and larger.sizes[n] not in fixed:
                before[n] = -(-larger.sizes[n] // (batches[1] * larger.rounded_to)) * larger.rounded_to
                unmatched[n] = False
    found = Continued(larger, batches, reserved, made[1].reserved, before, was_whole, made[1].whole, share, at_peak)
    is_workspace = bytearray(
        owner in ("workspace", "cudnn") for owner in runs[1].accounts.by_type(lambda type_: type_.owner)
    )
    left = sum(
        larger.sizes[n]
        for n in at_peak
        if unmatched[n]
        and roles[larger.accounts[n]] not in _FIXED_ROLES
        and not (batches[0] == 1 and is_workspace[larger.accounts[n]])
    )
    if left > _MOST_UNLIKE * larger.allocated and 1 in batches:
        raise FitError(
            f"PyTorch works in other ways on a batch of 1: {left / larger.allocated:.0%} of its bytes at the peak of batch {batches[1]} have no"
            " counterpart there; record batches 2 and 4 instead"
        )
    if left > _MOST_UNLIKE * larger.allocated:
        raise FitError(
            f"the runs differ in more than the batch: {found.unlike:.0%} of PyTorch's bytes at the peak of the larger have no"
            " counterpart in the other"
        )
    return found


# ---- what there is ------------------------------------------------------------------------------


def _space(run: Profile, is_dry: bool = False) -> str:
    """The memory that has to fit: a name of a peak."""
    return "total" if is_dry or not run.is_discrete else "device" if any(run.timeline.device) else "host"


def _rest(run: Profile, reserved: int, space: str) -> int:
    """Memory of the program at its peak, without the allocator's."""
    return max(0, run.peaks[space].bytes - reserved) if space in run.peaks else 0


def _pages(run: Profile, space: str) -> int:
    """Resident pages at the peak: sampled, and different in each run of a program."""
    held = run.peak_composition(space) if space in run.peaks else {}
    return sum(n_bytes for account, (n_bytes, _) in held.items() if run.accounts.kind(account) in PAGE_KINDS)


def _unused(run: Profile) -> int:
    """Free memory inside malloc, which is in no peak: what was resident beyond it in some sample, without the recorder's."""
    samples = zip(*run.system.get("process-resident", ((), ())))
    most = max((n - (run.system_at("resident-valgrind", time) or 0) for time, n in samples), default=0)
    return max(0, most - run.peaks["host"].bytes) if "host" in run.peaks else 0


# Owners that are there before the program does anything, of CUDA and the JetPack.
_STARTUP_OWNERS = ("context", "module", "cudart", "slack", "cudnn", "cublas", "cufft", "cusparse", "cusolver", "curand")


class StartupCost(NamedTuple):
    owner: str
    recorded: int  # bytes in the run
    replaced: int  # likewise, in the trace that stands for another release or board


def _startup(run: Profile, space: str) -> Dict[str, int]:
    """Bytes at the peak by owner."""
    found = dict.fromkeys(_STARTUP_OWNERS, 0)
    for account, (n_bytes, _) in run.peak_composition(space).items() if space in run.peaks else ():
        owner = run.accounts.owner(account)
        if owner in found and (space == "total" or run.accounts.kind(account) in DEVICE_KINDS):
            found[owner] += n_bytes
    return found


def _startup_costs(run: Profile, other: Optional[Profile], space: str) -> List[StartupCost]:
    """Raises FitError."""
    before, after = _startup(run, space), _startup(other or run, space)
    if other and not any(after.values()):
        raise FitError("the trace of another start-up has no context, no module and no library of CUDA")
    rows = [StartupCost(owner, before[owner], after[owner]) for owner in before if before[owner] or after[owner]]
    return sorted(rows, key=lambda row: (-abs(row.replaced - row.recorded), row.owner))


class Room(NamedTuple):
    """Memory that a program can have on a board."""

    available: int
    others: Optional[int]  # in use by the rest of the system; None: not measured, and not taken away
    is_measured: bool  # on this board; else `others` was measured on another


def _first(run: Profile, figure: str) -> Optional[int]:
    values = run.system.get(figure, ((), ()))[1]
    return values[0] if values else None


def room_of(run: Profile, board: Optional[int], is_dry: bool = False) -> Room:
    """`is_dry`: other programs of a machine that is no board do not count. Raises FitError."""
    if _space(run) == "device":
        total, free, held = (_first(run, figure) for figure in ("device-total", "device-free", "device-ledger"))
        free = None if free is None else free + (held or 0)
    else:
        total, free = _first(run, "mem-total"), _first(run, "mem-available")
        first = run.snapshots[0] if run.snapshots else None
        free = None if free is None else free + (first.host + first.device if first else 0)
    is_unlike = is_dry and run.is_discrete
    if total is None or free is None or is_unlike:
        if board is None:
            raise FitError("the trace does not say how much memory there was: name it with --board=SIZE")
        return Room(board, None, False)
    free = min(free, total)
    if board is None:
        return Room(free, total - free, True)
    return Room(max(0, board - (total - free)), total - free, False)


# ---- answers ------------------------------------------------------------------------------------


class Need(NamedTuple):
    """Memory that a batch size needs."""

    batch: int
    allocated: int  # at most, in PyTorch's tensors and workspaces
    reserved: int  # at most, by its allocator
    rest: int  # of the program
    least: int  # of `program`, where it is not certain
    most: int  # likewise
    unused: int  # free inside malloc, of a run on the CPU

    @property
    def program(self) -> int:
        return self.reserved + self.rest + self.unused

    @property
    def is_about(self) -> bool:
        return self.least < self.most


class Fit(NamedTuple):
    needs: List[Need]  # those asked for, and those at the limit, by batch
    largest: Optional[int]  # batch that fits; None: none does
    room: Room
    lines: List[Line]  # that grow with the batch, the largest first
    recorded: int  # reserved by the run with the larger batch
    modelled: int  # what the model says of it
    batches: Tuple[int, ...]
    unlike: float  # Continued.unlike
    is_cut: bool  # a run did not come to its end
    startup: List[StartupCost]
    unused: int  # free inside malloc, of the run with the larger batch
    steps: Steps  # of the run with the larger batch

    def fits(self, need: Need) -> Optional[bool]:
        """None: it may."""
        return True if need.most <= self.room.available else False if need.least > self.room.available else None


def settings_of(run: Profile) -> Settings:
    """Settings of PyTorch's allocator as recorded. Raises FitError."""
    try:
        return parse_settings(allocator_config(run)[1])
    except SettingsError as error:
        raise FitError(str(error))


# The batch does not explain a smaller difference of two runs.
_LEAST_GROWTH = 0.01


def _check_alike(runs: Sequence[Profile]) -> None:
    """Raises FitError."""
    for key, what in (
        ("pytorch", "PyTorch"),
        ("cuda", "CUDA"),
        ("cudnn", "cuDNN"),
        ("arch", "the processor"),
        ("l4t", "the JetPack"),
        ("board", "the board"),
    ):
        values = [fact(run, key) for run in runs]
        if values[0] != values[1]:
            raise FitError(
                f"the runs differ in more than the batch: {what} is {values[0] or 'unknown'} and {values[1] or 'unknown'}"
            )
    if settings_of(runs[0]) != settings_of(runs[1]):
        raise FitError("the runs differ in more than the batch: the settings of PyTorch's allocator are others")


def _lines(run: Profile, found: Continued) -> List[Line]:
    names, steps = Names(run), found.steps
    sums: Dict[str, List[int]] = {}
    for number in found.at_peak:
        both = sums.setdefault(names.line(steps.accounts[number]), [0, 0])
        both[0] += found.before[number]
        both[1] += steps.sizes[number]
    a, b = found.batches
    lines = [Line(label, int(n - (n - m) / (b - a) * b), (n - m) / (b - a)) for label, (m, n) in sums.items() if n > m]
    return sorted(lines, key=lambda line: (-line.each, line.label))


# ---- from one run -------------------------------------------------------------------------------


def _by_roles(run: Profile, batch: int) -> Tuple[Continued, Continued, Continued]:
    """A run as if of two, of which the smaller had no samples: as it seems, and if all that is open was fixed, or scaled.

    Open are temporary tensors, what has no role, and all else that is as large as a parameter or, cast for autocast, half of it.
    The latter seem fixed, the others scaled.
    """
    steps = any_steps(run)
    modelled = replay(steps, steps.sizes, settings_of(run))
    roles = {account: run.role(account) for account in set(steps.accounts)}
    of_model = _sizes_of_model(steps, roles)
    at_peak = held_at_peak(steps)
    accounts = steps.accounts[: _compared(steps, at_peak)]

    def made(scales: Callable[[int, Optional[str]], bool]) -> Continued:
        @lru_cache(_MOST_KNOWN)
        def fixed(size: int, account: int) -> int:
            return 0 if scales(size, roles[account]) else size

        before = array("Q", map(fixed, steps.sizes, accounts))
        whole = bytearray(len(before))
        reserved = steps.reserved, steps.reserved
        return Continued(steps, (0, batch), reserved, modelled.reserved, before, whole, whole, 0.0, at_peak)

    return (
        made(lambda size, role: role not in (None, *_FIXED_ROLES) and size not in of_model),
        made(lambda size, role: role in _SCALING_ROLES and size not in of_model),
        made(lambda size, role: role not in _FIXED_ROLES and (role is not None or not steps.is_host)),
    )


# ---- the answer ---------------------------------------------------------------------------------


def fit_batches(
    runs: Sequence[Profile],
    batches: Sequence[int],
    asked: List[int],
    board: Optional[int] = None,
    startup_of: Optional[Profile] = None,
    is_dry: bool = False,
) -> Fit:
    """For the batch sizes asked for and, without any, for the largest that fits. Raises FitError.

    `batches` are those of the runs, two or one; without any the answer is of the recorded run, as batch 1. `board` is the
    memory of the board in question, by default that of the runs. The start-up costs what it did in `startup_of`. `is_dry`:
    host and device are one memory there, whatever they were.
    """
    run, space = runs[-1], _space(runs[-1], is_dry)
    is_recorded, batches = not batches, batches or (1,)
    if len(runs) == 2:
        if batches[0] == batches[1]:
            raise FitError("both runs have the same batch")
        if batches[0] > batches[1]:
            return fit_batches(runs[::-1], batches[::-1], asked, board, startup_of, is_dry)
        if "process" in run.manifest and run.manifest == runs[0].manifest:
            raise FitError("both traces are of the same run")
        _check_alike(runs)
        found = (continued((runs[0], run), (batches[0], batches[1])),)  # type: Tuple[Continued, ...]
    else:
        found = _by_roles(run, batches[0])
    settings, costs = settings_of(run), _startup_costs(run, startup_of, space) if startup_of or is_dry else []
    room = room_of(startup_of, board, False) if is_dry and startup_of else room_of(run, board, is_dry)
    rests = [_rest(each, reserved, space) for each, reserved in zip(runs, found[0].reserved)]
    pages = [_pages(each, space) for each in runs]
    unused = [_unused(each) if space == "host" else 0 for each in runs]
    replaced = sum(row.replaced - row.recorded for row in costs)

    def straight(figures: List[int], batch: int, fixed: Sequence[int] = (0,)) -> int:
        """`fixed`: the part of each figure that the batch does not explain."""
        growth = figures[-1] - figures[0] - (fixed[-1] - fixed[0])
        if growth <= _LEAST_GROWTH * figures[-1]:
            return max(figures)
        return int(figures[-1] + growth / (batches[-1] - batches[0]) * (batch - batches[-1]))

    def beside(batch: int) -> Tuple[int, int]:
        """Memory of the rest of the program, and free inside malloc."""
        return max(0, straight(rests, batch, pages) + replaced), max(0, straight(unused, batch))

    def need(batch: int) -> Need:
        made = [replay(each.steps, each.sizes(batch), settings) for each in found]
        rest, free = beside(batch)
        # A cache can be smaller than with the sizes of any guess, or have a segment more.
        least = made[0].reserved if len(made) == 1 or batch in batches else min(each.allocated for each in made)
        most = max(each.reserved for each in made)
        if least < made[0].reserved and not found[0].steps.is_host:
            most += _LARGEST_COMMON
        return Need(batch, made[0].allocated, made[0].reserved, rest, least + rest, most + rest + free, free)

    def fits(batch: int) -> bool:
        left = room.available - sum(beside(batch))
        return left >= 0 and replay(found[0].steps, found[0].sizes(batch), settings, most=left + 1).reserved <= left

    largest = None if is_recorded else _largest(fits)
    wanted = asked or ({1} if is_recorded else {largest or 1, (largest or 0) + 1})
    known = () if is_recorded else tuple(batches)
    is_cut = not all(each.is_complete for each in runs)
    needs = [need(batch) for batch in sorted(wanted)]
    last = found[0]
    lines = _lines(run, last)
    return Fit(
        needs,
        largest,
        room,
        lines,
        last.reserved[1],
        last.modelled,
        known,
        last.unlike,
        is_cut,
        costs,
        unused[-1],
        last.steps,
    )


def _largest(fits: Callable[[int], bool]) -> Optional[int]:
    """The largest batch that fits, if one does: more samples never need less."""
    if not fits(1):
        return None
    low, high = 1, 2
    while high < _MOST_BATCH and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


# ---- other settings -----------------------------------------------------------------------------


class Trial(NamedTuple):
    settings: Settings
    made: Replay


class Trials(NamedTuple):
    variable: str  # of the environment, that this PyTorch reads
    recorded: Settings
    reserved: int  # as recorded
    modelled: int  # what the model says of the recorded settings
    others: List[Trial]  # that need less than as recorded and than all tried before them, the least first
    steps: Steps
    # For PyTorch's allocator on the board asked for, beside the rest of the program and of the system.
    room: Optional[int]

    @property
    def holds(self) -> bool:
        return abs(self.modelled - self.reserved) <= NEARLY * self.reserved


# Expandable segments come last: boards without cuMemCreate need the best of the others.
TRIED = (
    Settings(),
    *(Settings(max_split_size=n * MIB) for n in (32, 64, 128, 256, 512)),
    Settings(roundup_power2_divisions=4),
    Settings(roundup_power2_divisions=8),
    Settings(max_split_size=128 * MIB, roundup_power2_divisions=8),
    Settings(expandable_segments=True),
    Settings(expandable_segments=True, roundup_power2_divisions=4),
    Settings(expandable_segments=True, roundup_power2_divisions=8),
)


def try_settings(run: Profile, board: Optional[int] = None) -> Trials:
    """Replay the steps with other settings of PyTorch's allocator; `board` has so much memory. Raises FitError."""
    steps, recorded = steps_of(run), settings_of(run)
    made = replay(steps, steps.sizes, recorded)
    modelled, sizes = made.reserved, requests(steps, made)
    version = run.manifest.get("pytorch", "")
    can_expand = run.manifest.get("cuda-vmm") != "no" and (not version or at_least(version, 2, 1))
    tried = [each for each in TRIED if each != recorded and (can_expand or not each.expandable_segments)]
    # No segment is larger, so these are without effect.
    largest = max(_LARGEST_COMMON, *sizes) + _ROUNDED_SEGMENT
    better, least = [], modelled  # type: List[Trial], int
    for each in tried:
        trial = Trial(each, replay(steps, sizes, each, most=least)) if each.max_split_size < largest else None
        if trial and trial.made.reserved < least:
            better, least = [trial, *better], trial.made.reserved
    room = None if board is None else room_of(run, board).available - _rest(run, steps.reserved, _space(run))
    return Trials(allocator_config(run)[0], recorded, steps.reserved, modelled, better, steps, room)
