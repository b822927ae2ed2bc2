# SPDX-License-Identifier: GPL-2.0-or-later
"""Allocations and frees of a caching allocator, from a trace; without a GPU, of large blocks of the heap. Sizes are bytes."""

from array import array
from itertools import accumulate, compress
from operator import add, and_, neg
from typing import Dict, Iterable, Iterator, List, NamedTuple, Set, Tuple

from jmassif.analysis.caching_allocator import LEAST, LEAST_OWN_SEGMENT
from jmassif.analysis.device_history import Ranges
from jmassif.analysis.device_memory import CACHE
from jmassif.analysis.oom import chains_of
from jmassif.model.records import DEVICE_KINDS, HANDLE_KINDS
from jmassif.model.run import Profile
from jmassif.units import size as size_text

_LARGEST = 1 << 44  # bytes of a tensor
_LEAST_STEPS = 50000  # are replayed


class FitError(Exception):
    """Why a question has no answer."""


class Steps(NamedTuple):
    """Allocations and frees of a caching allocator, in its order."""

    sizes: "array[int]"  # of each allocation, as the allocator rounded it
    accounts: "array[int]"
    rows: "array[int]"  # likewise, of Profile.blocks
    order: "array[int]"  # the number of each allocation; ~number where it is freed
    emptied: List[int]  # steps of `order` before each time that the cache was emptied
    reserved: int  # the most it had reserved, as recorded
    allocated: int  # the most it had handed out, as recorded
    growths: Tuple[
        int, int
    ]  # of `order`: steps until the pool of large blocks, and of small ones, reserved for the last time
    peak: int  # likewise, until it had handed out the most
    falls: bool  # segments came at ever lower addresses, as a rule
    is_host: bool = False  # large blocks of the heap instead, whose sizes are exact; reserved is allocated

    @property
    def rounded_to(self) -> int:
        return 1 if self.is_host else LEAST

    @property
    def replayed(self) -> "array[int]":
        """The part of `order` that is enough: a run that reserves nothing more for as long again goes on like that."""
        return self.order[: max(self.enough)]

    @property
    def enough(self) -> Tuple[int, int]:
        """Steps of `order` that are enough for either pool alone."""
        large, small = (max(2 * growth, _LEAST_STEPS) for growth in self.growths)
        return large, small

    def held_at_peak(self) -> List[int]:
        """Numbers of the allocations that were live when most was handed out."""
        order = self.order[: self.peak]
        is_live = bytearray(b"\1" * (order[-1] + 1))
        for step in order:
            if step < 0:
                is_live[~step] = 0
        return list(compress(range(len(is_live)), is_live))


def handed_out(order: Iterable[int], sizes: "array[int]") -> Iterator[int]:
    """Bytes in use after each step."""
    both = array("q", sizes)  # ~number is an index from the end
    both.extend(map(neg, reversed(sizes)))
    return accumulate(map(both.__getitem__, order))


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
    sorts = bytes(map(add, is_counted, map(and_, is_counted, is_cache)))  # 1: a block's, 2: a segment's
    rows, order = array("I"), array("i")
    emptied, segments, handles = [], Ranges(), {}  # type: List[int], Ranges, Dict[int, int]
    in_segments: Set[int] = set()  # addresses that were found there
    live: Dict[int, int] = {}
    known: Dict[int, int] = {}  # accounts of allocations by number, after their role
    growths = [0, 0]
    reserved = most_reserved = falls = last_segment = n = 0
    last = ended = -1  # the allocation that was freed last, and its address, where that was the last step
    retries = _retries(run)
    bytes_of, account_of = run.blocks.size, run.blocks.account
    for row, (address, size, account, is_free) in enumerate(zip(run.blocks.address, bytes_of, account_of, frees)):
        sort = sorts[account]
        if sort == 1:
            if is_free:
                number = live.pop(address, -1)
                if number >= 0:
                    order.append(~number)
                    ended, last = address, number
                continue
            if not is_host and address not in in_segments:
                if address in segments:
                    in_segments.add(address)
                elif not (handles and has_handle[account]):
                    continue
            if ended == address and not is_first[account] and bytes_of[rows[last]] == size:
                before = known.get(last, account_of[rows[last]])
                if before != account and accounts.nodes[before] == accounts.nodes[account]:
                    # The same block; its role is known now.
                    order.pop()
                    live[address], known[last], ended = last, account, -1
                    continue
            live[address] = n
            order.append(n)
            rows.append(row)
            n, ended = n + 1, -1
        elif sort:
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
                growths[size < LEAST_OWN_SEGMENT] = len(order)
            elif address in held:
                reserved -= handles.pop(address) if has_handle[account] else segments.remove(address)
                in_segments.clear()
                is_own = any(begin <= row < end for begin, end in retries)
                if not is_own and emptied[-1:] != [len(order)]:
                    emptied.append(len(order))
                    ended = -1
    sizes = array("Q", map(bytes_of.__getitem__, rows))
    of = array("I", map(account_of.__getitem__, rows))
    for number, account in known.items():
        of[number] = account
    if not sizes and not run.is_complete:
        raise FitError("the trace was cut off before PyTorch allocated anything")
    if not sizes:
        why = " (PyTorch 1.10 or later with its native allocator has)"
        if not any(run.timeline.device):
            why = ", for the run used no GPU: --batch=N judges host memory"
        raise FitError(f"the trace has no steps of PyTorch's CUDA allocator{why}")
    if max(sizes) > _LARGEST:
        raise FitError(f"the trace is damaged: no device holds the {size_text(max(sizes))} of one of its tensors")
    del bytes_of, account_of, live  # they are large
    held_after = array("q", handed_out(order, sizes))
    allocated = max(held_after)
    if is_host:
        most_reserved, growths = allocated, [len(order)] * 2
    peak, both = 1 + held_after.index(allocated), (growths[0], growths[1])
    return Steps(sizes, of, rows, order, emptied, most_reserved, allocated, both, peak, falls > 0, is_host)


def any_steps(run: Profile) -> Steps:
    """Those of the heap's large blocks if the run used no GPU. Raises FitError."""
    return steps_of(run, not any(run.timeline.device))
