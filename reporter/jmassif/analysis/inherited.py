# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory that a forked child inherited, and its own.

A child begins with all memory of its parent, and both share it until one writes to it; so the peak of a child may be the moment of
the fork. Bytes of an account beyond the inherited ones are the child's own. Where an account frees and allocates, more may be its
own, and never less.
"""

from typing import Dict, Iterable, Iterator, NamedTuple, Optional, Tuple

from jmassif.analysis.aggregate import aggregate, sum_of
from jmassif.analysis.moments import Moment
from jmassif.model.records import DEVICE_KINDS, HOST_KINDS, PEAKS, LiveBytesByAccount
from jmassif.model.run import Profile


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


class Observed(NamedTuple):
    """A snapshot or peak of one process. Bytes are without inherited ones."""

    time: int
    snapshot: Optional[int]  # index
    peak: str  # one of PEAKS; "" with a snapshot
    host: int
    device: int
    drivers: int  # part of `host`: memory that is in no process's pages

    def on(self, space: str) -> int:
        return {"": self.host + self.device, "host": self.host, "device": self.device}[space]

    def composition(self, run: Profile) -> LiveBytesByAccount:
        """The accounts, with inherited memory."""
        return run.peak_composition(self.peak) if self.snapshot is None else run.composition(self.snapshot)


# The sums of Observed that memory of a kind is in; that of drivers has no pages in the process.
_SUMS: Dict[str, Tuple[str, ...]] = dict.fromkeys(HOST_KINDS, ("host",))
_SUMS.update(dict.fromkeys(DEVICE_KINDS, ("device",)))
_SUMS.update(dict.fromkeys(("pinned", "driver-host"), ("host", "drivers")))


def observed(run: Profile, inherited: LiveBytesByAccount) -> Iterator[Observed]:
    """All snapshots and peaks in order of time, a peak before the snapshot with which it was recorded."""

    def update(sums: Dict[str, int], own: Dict[int, int], changes: Iterable[Tuple[int, int]]) -> None:
        for account, n_bytes in changes:
            n_bytes = max(0, n_bytes - inherited.get(account, (0, 0))[0])
            for name in _SUMS.get(run.accounts.kind(account), ()):
                sums[name] += n_bytes - own.get(account, 0)
            own[account] = n_bytes

    sums = dict.fromkeys(("host", "device", "drivers"), 0)
    own: Dict[int, int] = {}  # by account
    latest = run.snapshots[0].time if run.snapshots else 0
    for index, snapshot in enumerate(run.snapshots):
        peaks = [peak for peak in run.peaks.values() if peak.snapshot == index and peak.which in PEAKS]
        for peak in sorted(peaks, key=lambda peak: (peak.time, PEAKS.index(peak.which))):
            latest = max(latest, peak.time)
            at = dict.fromkeys(sums, 0)
            live = run.peak_composition(peak.which)
            update(at, {}, ((account, n_bytes) for account, (n_bytes, _) in live.items()))
            yield Observed(latest, None, peak.which, **at)
        latest = max(latest, snapshot.time)
        update(sums, own, zip(snapshot.changes.account, snapshot.changes.bytes))
        yield Observed(latest, index, "", **sums)


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
    inherited = profile.composition(0)
    live = beyond(inherited, at.composition)
    held, own = (
        sum_of(aggregate(profile, part, lambda account: 0).values()).on(space) for part in (at.composition, live)
    )
    if own >= held:
        return None, at.composition
    best = max(observed(profile, inherited), key=lambda each: each.on(space))
    most = best.on(space)
    found = Inherited(profile.manifest["forked-from"], held - own, own, most, best.time)
    if own < _MUCH_OF_ITS_OWN * most and most >= _LEAST_OWN:
        return found, beyond(inherited, best.composition(profile))
    return found, live if own >= _LEAST_OWN else at.composition
