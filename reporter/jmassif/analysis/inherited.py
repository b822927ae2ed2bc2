# SPDX-License-Identifier: GPL-2.0-or-later
"""What a forked child was born with, and what is its own.

It begins with all that its parent held, and both have it as long as neither writes to it; so the most that a child held may be
what it was born with, at the moment of the fork. What an account holds beyond that is the child's own. Of an account that frees
and allocates it is not known which blocks are which: then more may be its own, and never less.
"""

from typing import Collection, NamedTuple, Optional, Tuple

from jmassif.analysis.moments import Moment, select
from jmassif.model.records import Composition, side_of
from jmassif.model.run import Profile


def sides_of(measure: str) -> Tuple[str, ...]:
    """Of "total", "host" or "device"."""
    return ("host", "device") if measure == "total" else (measure,)


def is_forked(profile: Profile) -> bool:
    return "forked-from" in profile.manifest and bool(profile.snapshots)


def own_of(profile: Profile, composition: Composition) -> Composition:
    """What a forked child holds beyond what it was born with."""
    opening = profile.composition(0)
    own: Composition = {}
    for account, (n_bytes, blocks) in composition.items():
        bytes_before, blocks_before = opening.get(account, (0, 0))
        if n_bytes > bytes_before or blocks > blocks_before:
            own[account] = (max(0, n_bytes - bytes_before), max(0, blocks - blocks_before))
    return own


def left_at(profile: Profile, last: int) -> Composition:
    """Of what a forked child was born with, what it may still have at that snapshot, by account.

    What an account no longer held at some moment is gone, whatever it allocates later.
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


def _fullest_snapshot(profile: Profile, sides: Collection[str]) -> int:
    """The index of the one at which a forked child held most of its own."""
    opening = profile.composition(0)
    live = {account: n_bytes for account, (n_bytes, _) in opening.items()}
    own = most = best = 0
    for index, snapshot in enumerate(profile.snapshots[1:], 1):
        for account, n_bytes in zip(snapshot.changes.account, snapshot.changes.bytes):
            if side_of(profile.accounts[account].kind) in sides:
                before = opening.get(account, (0, 0))[0]
                own += max(0, n_bytes - before) - max(0, live.get(account, 0) - before)
                live[account] = n_bytes
        if own > most:
            most, best = own, index
    return best


def fullest_of_own(profile: Profile, sides: Collection[str]) -> Tuple[Moment, int]:
    """When a forked child held most of its own, as far as is told: its moment, of that part alone, and the bytes."""
    index = _fullest_snapshot(profile, sides)
    snapshot = profile.snapshots[index]
    told = [
        Moment(f"snapshot {snapshot.id}", snapshot.time, profile.composition(index), index),
        select(profile, "peak"),
    ]
    found = [each._replace(composition=own_of(profile, each.composition)) for each in told]
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
