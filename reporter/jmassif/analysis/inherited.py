# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory that a forked child inherited, and its own.

A child begins with all memory of its parent, and both share it until one writes to it; so the peak of a child may be the moment of
the fork. Bytes of an account beyond the inherited ones are the child's own. Where an account frees and allocates, more may be its
own, and never less.
"""

from typing import Dict, Iterable, NamedTuple, Optional, Tuple

from jmassif.analysis.aggregate import aggregate, sum_of
from jmassif.analysis.moments import Moment, select
from jmassif.model.records import LiveBytesByAccount, side_of
from jmassif.model.run import Profile


# Host memory that has no pages in the process.
OF_DRIVERS = ("pinned", "driver-host")


def is_forked(profile: Profile) -> bool:
    return "forked-from" in profile.manifest and bool(profile.snapshots)


def beyond(inherited: LiveBytesByAccount, live: LiveBytesByAccount) -> LiveBytesByAccount:
    """Memory of a forked child beyond the inherited."""
    own: LiveBytesByAccount = {}
    for account, (n_bytes, blocks) in live.items():
        bytes_before, blocks_before = inherited.get(account, (0, 0))
        if n_bytes > bytes_before or blocks > blocks_before:
            own[account] = (max(0, n_bytes - bytes_before), max(0, blocks - blocks_before))
    return own


def left_at(profile: Profile, last: int) -> LiveBytesByAccount:
    """Inherited memory that a forked child may still have at that snapshot, by account.

    Bytes that an account has once freed are gone, whatever it allocates later.
    """
    if not is_forked(profile):
        return {}
    left = profile.composition(0)
    for snapshot in profile.snapshots[1 : last + 1]:
        rows = snapshot.changes
        for account, n_bytes, blocks in zip(rows.account, rows.bytes, rows.blocks):
            if account in left:
                before = left[account]
                left[account] = (min(before[0], n_bytes), min(before[1], blocks))
    return left


class OwnBytes:
    """Bytes beyond the inherited by space, as accounts change."""

    def __init__(self, run: Profile, inherited: LiveBytesByAccount) -> None:
        self.host = self.device = self.drivers = 0
        self._inherited = inherited
        self._own: Dict[int, int] = {}
        self._accounts = run.accounts

    def update(self, changes: Iterable[Tuple[int, int]]) -> None:
        """Takes the present bytes of accounts."""
        for account, n_bytes in changes:
            own = max(0, n_bytes - self._inherited.get(account, (0, 0))[0])
            change = own - self._own.get(account, 0)
            self._own[account] = own
            kind = self._accounts.kind(account)
            if side_of(kind) == "host":
                self.host += change
                self.drivers += change if kind in OF_DRIVERS else 0
            elif side_of(kind) == "device":
                self.device += change

    def on(self, space: str) -> int:
        return {"": self.host + self.device, "host": self.host, "device": self.device}[space]


def _bytes_on(run: Profile, live: LiveBytesByAccount, space: str) -> int:
    return sum_of(aggregate(run, live, lambda account: 0).values()).on(space)


def _fullest_of_own(run: Profile, space: str) -> Tuple[Moment, int]:
    """The moment at which a forked child had most memory of its own, with that part alone, and the bytes."""
    sums, own = OwnBytes(run, run.composition(0)), []
    for snapshot in run.snapshots:
        sums.update(zip(snapshot.changes.account, snapshot.changes.bytes))
        own.append(sums.on(space))
    fullest = run.snapshots[own.index(max(own))]
    moments = [select(run, str(fullest.id)), select(run, "peak")]
    found = [each._replace(composition=beyond(run.composition(0), each.composition)) for each in moments]
    return max(((each, _bytes_on(run, each.composition, space)) for each in found), key=lambda row: row[1])


class Inherited(NamedTuple):
    """Memory that a forked child shares with its parent at a moment; bytes."""

    parent: str  # its pid
    shared_bytes: int  # at most
    own_bytes: int  # at least
    most_own_bytes: int  # the most of its own, at `most_own_at`
    most_own_at: int  # time


# Less than half of the most that it held of its own says little of a child.
_MUCH_OF_ITS_OWN = 0.5
_LEAST_OWN = 1 << 20


def inherited_at(profile: Profile, at: Moment, space: str) -> Tuple[Optional[Inherited], LiveBytesByAccount]:
    """In "host" or "device" memory, in both with ""; and the memory in which to look for a line: the child's own, if it has any.

    None of a process that was not forked, or has nothing inherited.
    """
    if not is_forked(profile):
        return None, at.composition
    live = beyond(profile.composition(0), at.composition)
    held, own = _bytes_on(profile, at.composition, space), _bytes_on(profile, live, space)
    if own >= held:
        return None, at.composition
    best, most = _fullest_of_own(profile, space)
    found = Inherited(profile.manifest["forked-from"], held - own, own, most, best.time)
    if own < _MUCH_OF_ITS_OWN * most and most >= _LEAST_OWN:
        return found, best.composition
    return found, live if own >= _LEAST_OWN else at.composition
