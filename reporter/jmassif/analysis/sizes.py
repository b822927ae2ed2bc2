# SPDX-License-Identifier: GPL-2.0-or-later
"""How large the blocks were that a program asked for: at a moment, and in the whole run.

Of blocks with records each size is known: those of the device, and of the heap from the recorder's --large on (--large=0: all). Of the
others bytes and blocks are recorded by place, so a block counts with the mean of its place, and `blocks_by_mean` counts these.
What a heap adds around blocks, and resident pages, are no blocks.
"""

import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from typing import Dict, List, NamedTuple, Tuple

from jmassif.analysis.moments import Moment
from jmassif.attribution.names import Names
from jmassif.model.records import KINDS, side_of
from jmassif.model.run import Profile


# ---- blocks ----
# Large blocks: when each lived, where, and which account's it was. The largest, as many as a page holds.

MAX_BLOCKS = 20000


class Block(NamedTuple):
    begin: int
    end: int  # 0: never freed; else the time it was freed plus one
    address: int
    bytes: int
    account: int


class Blocks(NamedTuple):
    rows: List[Block]  # in the order in which they were allocated
    n_left_out: int
    left_out_bytes: int  # of the largest that was left out


def blocks(profile: Profile, limit: int = MAX_BLOCKS) -> Blocks:
    """The `limit` largest blocks that have records.

    A block is known by its address and its account: host and device may use one address for two blocks, and a tensor may
    begin where its segment does. What frees nothing that is known, as in a child of fork, is passed over.
    """
    columns = profile.blocks
    frees = set(profile.frees)
    found: List[Block] = []
    live: Dict[Tuple[int, int], int] = {}
    for row, fields in enumerate(zip(columns.time, columns.address, columns.size, columns.account)):
        time, address, n_bytes, account = fields
        key = (address, account)
        if row in frees:
            index = live.pop(key, None)
            if index is not None:
                found[index] = found[index]._replace(end=time + 1)
        else:
            live[key] = len(found)
            found.append(Block(time, 0, address, n_bytes, account))
    if len(found) <= limit:
        return Blocks(found, 0, 0)
    ranked = sorted(range(len(found)), key=lambda index: -found[index].bytes)
    kept = sorted(ranked[:limit])
    return Blocks([found[index] for index in kept], len(found) - limit, found[ranked[limit]].bytes)


# ---- sizes ----


class SizeClass(NamedTuple):
    """Blocks of `least` to `most` bytes: the sizes of so many bits."""

    least: int
    most: int
    blocks: int
    bytes: int


class Histogram(NamedTuple):
    blocks: int
    bytes: int
    blocks_by_mean: int  # of them, without records: their size is the mean of their stack
    classes: List[SizeClass]  # those that have blocks

    @property
    def mean(self) -> int:
        return self.bytes // self.blocks if self.blocks else 0


class NamedSizes(NamedTuple):
    name: str
    held: Histogram
    asked: Histogram
    at_once: int  # blocks freed before their thread allocated anything else


class SizeTables(NamedTuple):
    held: Histogram  # at the moment
    asked: Histogram  # in the whole run
    owners: List[NamedSizes]  # the most frequent first
    lines: List[NamedSizes]


class _Sizes:
    """Blocks by the bits of their size."""

    def __init__(self) -> None:
        self.blocks: "Counter[int]" = Counter()
        self.bytes: "Counter[int]" = Counter()
        self.by_mean = 0

    def add(self, n_bytes: int, blocks: int = 1) -> None:
        n_bits = (n_bytes // blocks).bit_length()
        self.blocks[n_bits] += blocks
        self.bytes[n_bits] += n_bytes

    def add_all(self, n_bytes: int, blocks: int, recorded: List[int]) -> None:
        """Blocks of an account; `recorded`: the sizes of those that have records."""
        rest_bytes, rest = n_bytes - sum(recorded), blocks - len(recorded)
        if rest < 0 or rest_bytes < 0 or (rest_bytes and not rest):
            # They are segments, of which other accounts hold parts.
            recorded, rest_bytes, rest = [], n_bytes, blocks
        for size in recorded:
            self.add(size)
        if rest:
            self.add(rest_bytes, rest)
            # The mean of a single block is its size.
            self.by_mean += rest if rest > 1 else 0

    def join(self, other: "_Sizes") -> None:
        self.blocks.update(other.blocks)
        self.bytes.update(other.bytes)
        self.by_mean += other.by_mean

    def histogram(self) -> Histogram:
        classes = [SizeClass(1 << n >> 1, (1 << n) - 1, self.blocks[n], self.bytes[n]) for n in sorted(self.blocks)]
        return Histogram(sum(self.blocks.values()), sum(self.bytes.values()), self.by_mean, classes)


def recorded_sizes(profile: Profile, moment: Moment) -> Tuple[Dict[int, List[int]], Dict[int, List[int]]]:
    """The sizes of blocks that were live at the moment, and of all, by account.

    Of a peak only its time is known. Where an account's records are of that very time, they are those at which it holds what it held
    at the peak; if there are none, its blocks at the peak are not known.
    """
    times = profile.blocks.time
    least, most = bisect_left(times, moment.time), bisect_right(times, moment.time)
    if moment.snapshot is not None:
        least = most = profile.snapshots[moment.snapshot].position
    addresses, block_sizes, accounts = profile.blocks.address, profile.blocks.size, profile.blocks.account
    live: Dict[int, Dict[int, int]] = {}  # sizes by account and address
    live_bytes: "Counter[int]" = Counter()
    held: Dict[int, List[int]] = {}
    asked: Dict[int, List[int]] = {}
    frees = set(profile.frees)
    vague = set(accounts[least:most])

    def settle(account: int) -> None:
        sizes = live.get(account, {})
        if account in vague and account not in held:
            if (live_bytes[account], len(sizes)) == moment.composition.get(account):
                held[account] = list(sizes.values())

    # One row more, for a moment after the last record.
    for row in range(len(accounts) + 1):
        if row == least:
            for each in vague:
                settle(each)
        if row == most:
            held.update((each, list(sizes.values())) for each, sizes in live.items() if each not in vague)
        if row == len(accounts):
            break
        address, size, account = addresses[row], block_sizes[row], accounts[row]
        if row in frees:
            live_bytes[account] -= live.get(account, {}).pop(address, 0)
        else:
            live.setdefault(account, {})[address] = size
            live_bytes[account] += size
            asked.setdefault(account, []).append(size)
        if least <= row < most:
            settle(account)
    return held, asked


class _Sums:
    """Blocks of some accounts."""

    def __init__(self) -> None:
        self.held = _Sizes()
        self.asked = _Sizes()
        self.at_once = 0

    def join(self, other: "_Sums") -> None:
        self.held.join(other.held)
        self.asked.join(other.asked)
        self.at_once += other.at_once

    def named(self, name: str) -> NamedSizes:
        return NamedSizes(name, self.held.histogram(), self.asked.histogram(), self.at_once)


def size_tables(run: Profile, names: Names, moment: Moment, most_lines: int = sys.maxsize) -> SizeTables:
    """Summed as the accounts go by: there may be hundreds of thousands of them. Further lines are one row."""
    held, asked = recorded_sizes(run, moment)
    lifetime = run.lifetime()
    of_blocks = {kind for kind in KINDS if side_of(kind) and kind != "heap-overhead" and not run.is_sampled(kind)}
    found: Dict[Tuple[str, str], _Sums] = {}  # by owner and line
    for account, (_, kind, owner) in enumerate(run.accounts):
        n_bytes, blocks = moment.composition.get(account, (0, 0))
        if kind not in of_blocks or not (blocks or lifetime.blocks[account]):
            continue
        sums = found.setdefault((owner, names.line(account)), _Sums())
        if blocks:
            sums.held.add_all(n_bytes, blocks, held.get(account, []))
        if lifetime.blocks[account]:
            sums.asked.add_all(lifetime.bytes[account], lifetime.blocks[account], asked.get(account, []))
        sums.at_once += lifetime.temporaries[account]
    all_ = _Sums()
    owners: Dict[str, _Sums] = {}
    lines: Dict[str, _Sums] = {}
    for (owner, line), sums in found.items():
        for sum_ in (all_, owners.setdefault(owner, _Sums()), lines.setdefault(line, _Sums())):
            sum_.join(sums)

    whole = all_.named("")
    return SizeTables(whole.held, whole.asked, _ranked(owners), _ranked(lines, most_lines))


def _ranked(named: Dict[str, _Sums], most: int = sys.maxsize) -> List[NamedSizes]:
    rows = sorted(named.items(), key=lambda row: (-sum(row[1].asked.blocks.values()), row[0]))
    rest = _Sums()
    for _, sums in rows[most:]:
        rest.join(sums)
    others = [rest.named(f"({len(rows) - most:,} other lines)")] if len(rows) > most else []
    return [sums.named(name) for name, sums in rows[:most]] + others
