# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory that a forked child inherited, and its own.

A child begins with all memory of its parent, and both share it until one writes to it; so the peak of a child may be the moment of
the fork. Bytes of an account beyond the inherited ones are the child's own. Where an account frees and allocates, more may be its
own, and never less.
"""

from typing import Collection, Dict, NamedTuple, Optional, Tuple

from jmassif.analysis.moments import Moment, select
from jmassif.model.records import Composition, side_of
from jmassif.model.run import Profile


# Host memory that has no pages in the process.
OF_DRIVERS = ("pinned", "driver-host")


def sides_of(measure: str) -> Tuple[str, ...]:
    """Of "total", "host" or "device"."""
    return ("host", "device") if measure == "total" else (measure,)


def is_forked(profile: Profile) -> bool:
    return "forked-from" in profile.manifest and bool(profile.snapshots)


def own_of(profile: Profile, composition: Composition) -> Composition:
    """Memory of a forked child beyond the inherited."""
    opening = profile.composition(0)
    own: Composition = {}
    for account, (n_bytes, blocks) in composition.items():
        bytes_before, blocks_before = opening.get(account, (0, 0))
        if n_bytes > bytes_before or blocks > blocks_before:
            own[account] = (max(0, n_bytes - bytes_before), max(0, blocks - blocks_before))
    return own


def left_at(profile: Profile, last: int) -> Composition:
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


def bytes_on(profile: Profile, composition: Composition, sides: Collection[str]) -> int:
    accounts = profile.accounts
    return sum(n_bytes for account, (n_bytes, _) in composition.items() if side_of(accounts[account].kind) in sides)


class OwnBytes:
    """Bytes beyond the opening balances by space, as accounts change."""

    def __init__(self, run: Profile, opening: Composition) -> None:
        self.host = self.device = self.drivers = 0
        self._opening = opening
        self._own: Dict[int, int] = {}
        self._accounts = run.accounts

    def set(self, account: int, n_bytes: int) -> None:
        own = max(0, n_bytes - self._opening.get(account, (0, 0))[0])
        change = own - self._own.get(account, 0)
        self._own[account] = own
        kind = self._accounts[account].kind
        if side_of(kind) == "host":
            self.host += change
            self.drivers += change if kind in OF_DRIVERS else 0
        elif side_of(kind) == "device":
            self.device += change


def fullest_of_own(profile: Profile, sides: Collection[str]) -> Tuple[Moment, int]:
    """The moment at which a forked child had most memory of its own, with that part alone, and the bytes."""
    sums, most, index = OwnBytes(profile, profile.composition(0)), 0, 0
    for number, snapshot in enumerate(profile.snapshots):
        for account, n_bytes in zip(snapshot.changes.account, snapshot.changes.bytes):
            sums.set(account, n_bytes)
        own = sum(getattr(sums, side) for side in sides)
        if own > most:
            most, index = own, number
    snapshot = profile.snapshots[index]
    moments = [
        Moment(f"snapshot {snapshot.id}", snapshot.time, profile.composition(index), index),
        select(profile, "peak"),
    ]
    found = [each._replace(composition=own_of(profile, each.composition)) for each in moments]
    best = max(found, key=lambda each: bytes_on(profile, each.composition, sides))
    return best, bytes_on(profile, best.composition, sides)


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


def inherited_at(profile: Profile, at: Moment, space: str) -> Tuple[Optional[Inherited], Composition]:
    """In "host" or "device" memory, in both with ""; and the memory in which to look for a line: the child's own, if it has any.

    None of a process that was not forked, or has nothing inherited.
    """
    if not is_forked(profile):
        return None, at.composition
    sides, live = sides_of(space or "total"), own_of(profile, at.composition)
    held, own = bytes_on(profile, at.composition, sides), bytes_on(profile, live, sides)
    if own >= held:
        return None, at.composition
    best, most = fullest_of_own(profile, sides)
    found = Inherited(profile.manifest["forked-from"], held - own, own, most, best.time)
    if own < _MUCH_OF_ITS_OWN * most and most >= _LEAST_OWN:
        return found, best.composition
    return found, live if own >= _LEAST_OWN else at.composition
