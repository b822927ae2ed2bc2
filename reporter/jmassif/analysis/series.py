# SPDX-License-Identifier: GPL-2.0-or-later
"""Usage by owner, kind, library or line at each snapshot."""

from typing import Callable, Dict, Iterator, List, Tuple

from jmassif.analysis.aggregate import Usage
from jmassif.model.records import Snapshot, counted_blocks, side_of
from jmassif.model.replay import Replay
from jmassif.model.run import Profile


def series(run: Profile, name_of: Callable[[int], str]) -> Iterator[Tuple[Snapshot, Dict[str, Usage]]]:
    """Each snapshot with the usage of every name that has come up so far. Kinds that are only listed are left out."""
    sums: Dict[str, List[int]] = {}  # in the order of Usage's fields
    of: Dict[int, List[int]] = {}  # by account
    places = {"host": 0, "device": 2, None: -1}
    kinds = [account.kind for account in run.accounts]
    replay = Replay(len(kinds))
    for snapshot in run.snapshots:
        for account, n_bytes, blocks in replay.growths(snapshot):
            place = places[side_of(kinds[account])]
            if place < 0:
                continue
            if account not in of:
                of[account] = sums.setdefault(name_of(account), [0, 0, 0, 0])
            of[account][place] += n_bytes
            of[account][place + 1] += counted_blocks(kinds[account], blocks)
        yield snapshot, {name: Usage(*figures) for name, figures in sums.items()}
