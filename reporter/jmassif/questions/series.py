# SPDX-License-Identifier: GPL-2.0-or-later
"""What each owner, kind, library or line held at each snapshot."""

from typing import Callable, Dict, Iterator, List, Tuple

from jmassif.model.kinds import counted_blocks, side_of
from jmassif.model.profile import Profile
from jmassif.model.records import Snapshot
from jmassif.model.replay import Replay


class Balance:
    """What goes under one name at a moment, by side. The same object changes from snapshot to snapshot."""

    __slots__ = ("bytes", "blocks")

    def __init__(self) -> None:
        self.bytes = {"host": 0, "device": 0}
        self.blocks = {"host": 0, "device": 0}

    @property
    def all_bytes(self) -> int:
        return self.bytes["host"] + self.bytes["device"]


def series(profile: Profile, name_of: Callable[[int], str]) -> Iterator[Tuple[Snapshot, Dict[str, Balance]]]:
    """Each snapshot with what every name that has come up so far holds. Kinds that are only listed are left out."""
    balances: Dict[str, Balance] = {}
    of: List[Balance] = [Balance()] * len(profile.accounts)
    is_known = bytearray(len(profile.accounts))
    replay = Replay(len(profile.accounts))
    sides = [side_of(account.kind) for account in profile.accounts]
    for snapshot in profile.snapshots:
        for account, n_bytes, blocks in replay.growths(snapshot):
            side = sides[account]
            if side is None:
                continue
            if not is_known[account]:
                is_known[account] = 1
                name = name_of(account)
                if name not in balances:
                    balances[name] = Balance()
                of[account] = balances[name]
            balance = of[account]
            balance.bytes[side] += n_bytes
            balance.blocks[side] += counted_blocks(profile.accounts[account].kind, blocks)
        yield snapshot, balances
