# SPDX-License-Identifier: GPL-2.0-or-later
"""Blocks with records: those of the device, and of the heap from the recorder's --large on (--large=0: all)."""

from bisect import bisect_left, bisect_right
from collections import Counter
from typing import Dict, Iterator, List, NamedTuple, Tuple

from jmassif.analysis.moments import Moment
from jmassif.model.run import Profile


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


def blocks(profile: Profile, limit: int) -> Blocks:
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


def live_sizes(profile: Profile, moment: Moment) -> Dict[int, List[int]]:
    """The sizes of blocks that were live at the moment, by account.

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
        if least <= row < most:
            settle(account)
    return held


def heap_steps(run: Profile) -> Iterator[Tuple[int, int]]:
    """Times at which blocks of the heap that have records were allocated or freed, and their bytes: negative when freed."""
    live: Dict[int, int] = {}
    rows = run.blocks
    for time, address, n_bytes, account in zip(rows.time, rows.address, rows.size, rows.account):
        if not n_bytes:
            yield time, -live.pop(address, 0)
        elif run.accounts.kind(account) == "heap":
            live[address] = n_bytes
            yield time, n_bytes
