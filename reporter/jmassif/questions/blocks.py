# SPDX-License-Identifier: GPL-2.0-or-later
"""Large blocks: when each lived, where, and which account's it was. The largest, as many as a page holds."""

from typing import Dict, List, NamedTuple, Tuple

from jmassif.model.profile import Profile

MAX_BLOCKS = 20000


class Block(NamedTuple):
    begin: int
    end: int  # 0: never freed; else the time it was freed plus one
    address: int
    bytes: int
    account: int
    born: int  # snapshots that were taken before it came
    died: int  # snapshots that were taken before it went, plus one; 0: it never did
    came: int  # place of its record among those of all blocks
    went: int  # place of the record of its end, plus one; 0: it never did


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
    positions = [snapshot.position for snapshot in profile.snapshots]
    n_taken = 0
    found: List[Block] = []
    live: Dict[Tuple[int, int], int] = {}
    for row, fields in enumerate(zip(columns.time, columns.address, columns.size, columns.account)):
        time, address, n_bytes, account = fields
        while n_taken < len(positions) and positions[n_taken] <= row:
            n_taken += 1
        key = (address, account)
        if row in frees:
            index = live.pop(key, None)
            if index is not None:
                found[index] = found[index]._replace(end=time + 1, died=n_taken + 1, went=row + 1)
        else:
            live[key] = len(found)
            found.append(Block(time, 0, address, n_bytes, account, n_taken, 0, row, 0))
    if len(found) <= limit:
        return Blocks(found, 0, 0)
    ranked = sorted(range(len(found)), key=lambda index: -found[index].bytes)
    kept = sorted(ranked[:limit])
    return Blocks([found[index] for index in kept], len(found) - limit, found[ranked[limit]].bytes)
