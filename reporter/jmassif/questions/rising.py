# SPDX-License-Identifier: GPL-2.0-or-later
"""What keeps growing while a program does its work: memory that leaks, and caches without a bound.

What a program holds in the end does not tell: most of that are the libraries that it has imported. So the snapshots from
the last import to the end are parted into fifths. The first one, in which a program sets up what it works with, is passed
over. What rises is what held more in each of the others than in the one before, even when it held least: buffers that come
and go have the same least in every step, and what is made once or twice has grown once or twice.
"""

from typing import Callable, Dict, List, Optional

from jmassif.model.kinds import side_of
from jmassif.model.profile import Profile
from jmassif.model.replay import Replay
from jmassif.whose.charges import Innermost

_PARTS = 5
# Of all that imports allocate in the whole run: later ones, of a few small modules, are not waited for.
_IMPORTED = 0.99
# Of all that is held in the end: what rises by less is not worth a reader's time.
_LEAST_SHARE = 0.001

_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"


def _imported(profile: Profile) -> int:
    """The index of the first snapshot that has nearly all of the imports' allocations behind it."""
    frames = {id_ for id_, fields in profile.frames.items() if profile.strings[fields[3]] == _IMPORT_SYSTEM}
    importing = Innermost(profile, frames)
    allocated: Dict[int, int] = {}  # by account
    sums: List[int] = []
    so_far = 0
    for snapshot in profile.snapshots:
        for account, total_bytes in zip(snapshot.changes.account, snapshot.changes.all_bytes):
            if importing(profile.accounts[account].node):
                so_far += total_bytes - allocated.get(account, 0)
                allocated[account] = total_bytes
        sums.append(so_far)
    return next(index for index, sum_ in enumerate(sums) if sum_ >= _IMPORTED * so_far)


def rising(profile: Profile, label: Callable[[int], Optional[str]], end: int) -> List[str]:
    """The labels whose memory, of both sides together, rises up to the snapshot with the index `end`; what rises most first.

    `label` is of an account; None: it does not count.
    """
    first = _imported(profile)
    n_snapshots = end + 1 - first
    if n_snapshots < _PARTS:
        return []
    replay = Replay(len(profile.accounts))
    held: Dict[str, int] = {}
    least: List[Dict[str, int]] = []  # by part, of what is held
    for index, snapshot in enumerate(profile.snapshots[: end + 1]):
        touched = set()
        for account, n_bytes, _ in replay.growths(snapshot):
            to = label(account) if side_of(profile.accounts[account].kind) else None
            if to is not None:
                held[to] = held.get(to, 0) + n_bytes
                touched.add(to)
        if index < first:
            continue
        if (index - first) * _PARTS // n_snapshots == len(least):
            least.append(dict(held))
        for to in touched:
            least[-1][to] = min(held[to], least[-1].get(to, 0))
    worth = _LEAST_SHARE * (profile.snapshots[end].host + profile.snapshots[end].device)
    risen: Dict[str, int] = {}
    for to in held:
        parts = [each.get(to, 0) for each in least[1:]]
        if all(earlier < later for earlier, later in zip(parts, parts[1:])):
            risen[to] = parts[-1] - parts[0]
    return sorted((to for to in risen if risen[to] >= worth), key=lambda to: (-risen[to], to))
