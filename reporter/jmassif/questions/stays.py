# SPDX-License-Identifier: GPL-2.0-or-later
"""What stays of an account: of what it holds at a moment, as much as it never again holds less of until the end.

That only rises, whatever comes and goes beside it; growth.py looks at when it rises, and how often was allocated for it.
"""

from typing import Callable, Dict, List, NamedTuple, Sequence, Tuple

from jmassif.model.profile import Profile

# Of what has grown: the fewest accounts that make so much of it are asked how often they allocated.
_MOST_OF_IT = 0.9
_PAGE = 4096


class Holding(NamedTuple):
    """What an account has from a sample on."""

    at: int  # index of the sample
    bytes: int
    allocated: int  # blocks, all that it ever had; of sampled pages, which come one by one, these


History = List[Holding]


def histories(profile: Profile, samples: Sequence[int], end: int, counts: Callable[[int], bool]) -> Dict[int, History]:
    """By account, without those that hold nothing at the end or do not change after the first sample."""
    position = {snapshot: at for at, snapshot in enumerate(samples)}
    # Most accounts do not count, and a run has them by the hundred thousand.
    counted = bytearray(bool(account.kind) and counts(id_) for id_, account in enumerate(profile.accounts))
    sampled = bytearray(profile.is_sampled(account.kind) for account in profile.accounts)
    changed: Dict[int, History] = {}
    pending: Dict[int, Tuple[int, int]] = {}
    for index, snapshot in enumerate(profile.snapshots[: end + 1]):
        changes = snapshot.changes
        for account, n_bytes, all_bytes, blocks in zip(
            changes.account, changes.bytes, changes.all_bytes, changes.all_blocks
        ):
            if counted[account]:
                pending[account] = (n_bytes, all_bytes // _PAGE if sampled[account] else blocks)
        if index in position:
            for account, held in pending.items():
                changed.setdefault(account, []).append(Holding(position[index], *held))
            pending = {}
    found = {}
    for account, history in changed.items():
        last = Holding(len(samples), *pending.get(account, history[-1][1:]))
        if last.bytes and history[-1].at:
            # What is gone at the end did not stay.
            found[account] = history + [last]
    return found


def add_rises(history: History, rises: List[int]) -> None:
    """Adds by how much what stays of an account rises at each sample. What it begins with is none."""
    stays = history[-1].bytes
    for index in range(len(history) - 1, -1, -1):
        at = history[index].at
        before = min(stays, history[index - 1].bytes if index else 0)
        if 0 < at < len(rises):
            rises[at] += stays - before
        stays = before


def allocations(accounts: Sequence[History], begin: int) -> int:
    """How often was allocated, after that sample, what makes most of the growth since."""
    grown = []
    for history in accounts:
        before = [holding for holding in history if holding.at <= begin]
        stayed = min([holding.bytes for holding in before[-1:] + history[len(before) :]]) if before else 0
        allocated = history[-1].allocated - (before[-1].allocated if before else 0)
        grown.append((history[-1].bytes - stayed, allocated))
    grown.sort(reverse=True)
    enough = _MOST_OF_IT * sum(n_bytes for n_bytes, _ in grown)
    times = 0
    for n_bytes, allocated in grown:
        times += allocated
        enough -= n_bytes
        if enough <= 0:
            break
    return times
