# SPDX-License-Identifier: GPL-2.0-or-later
"""What stays of an account: of what it holds at a moment, as much as it never again holds less of until the end.

That only rises, whatever comes and goes beside it; growth.py looks at when it rises, and how often was allocated for it.
Snapshots are walked from the last to the first, since what stays follows from what comes later: so a number or two an account
are all that is kept, of a run that has millions of balances.

Moments are *samples*, indices of snapshots. Of an account counts what it holds at each, and that it has then since the last
change before; what it holds at the end of all is the sample behind the last.
"""

from array import array
from typing import Callable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.model.kinds import KINDS
from jmassif.model.profile import Profile
from jmassif.model.rows import Changes

# Of what has grown: the fewest accounts that make so much of it are asked how often they allocated.
_MOST_OF_IT = 0.9
_PAGE = 4096


class Stayed(NamedTuple):
    """What stays of the accounts of one line."""

    accounts: "array[int]"  # that hold something at the end, and have changed after the first sample
    held: List[int]  # one number: bytes of all of them at the end
    rises: List[int]  # bytes, by sample; empty if there are none


def _backwards(profile: Profile, samples: Sequence[int], end: int) -> Iterator[Tuple[int, Changes]]:
    """The changes of each snapshot up to `end`, the last first, and at which sample they are what accounts hold."""
    at = len(samples)
    for index in range(end, -1, -1):
        while at and samples[at - 1] >= index:
            at -= 1
        yield at, profile.snapshots[index].changes


def stayed(
    profile: Profile, samples: Sequence[int], end: int, counts: Callable[[int], bool], line_of: Callable[[int], Stayed]
) -> None:
    """Fills in what `line_of` gives for the accounts that count and belong to a line."""
    n = len(samples)
    unseen = n + 1
    # By account: the sample of its change that comes next; what stays from then on; whether an earlier change matters.
    next_at = array("I", [unseen]) * len(profile.accounts)
    matters = bytearray(bool(fields.kind) and counts(account) for account, fields in enumerate(profile.accounts))
    stays = array("Q", bytes(8 * len(next_at)))
    lines: List[Optional[Stayed]] = [None] * len(next_at)
    for at, changes in _backwards(profile, samples, end):
        for account, n_bytes in changes.backwards(matters, changes.bytes):
            later = next_at[account]
            if later == at:
                continue
            before = n_bytes if later == unseen else min(stays[account], n_bytes)
            line = lines[account]
            if line:
                _add_rise(line, later, stays[account] - before, n)
            elif 0 < at < n and (later == n or n_bytes):
                line = lines[account] = line_of(account)
                line.accounts.append(account)
                line.held[0] += n_bytes if later == unseen else stays[account]
            next_at[account] = at
            stays[account] = before
            matters[account] = at > 0 and before > 0
    for account, line in enumerate(lines):
        if line and matters[account]:
            _add_rise(line, next_at[account], stays[account], n)


def _add_rise(line: Stayed, at: int, n_bytes: int, n_samples: int) -> None:
    if n_bytes and at < n_samples:
        if not line.rises:
            line.rises.extend([0] * n_samples)
        line.rises[at] += n_bytes


# Bytes that an account has more than stayed at some sample, and how often it was allocated for since.
Grown = Tuple[int, int]


def grown_since(profile: Profile, samples: Sequence[int], end: int, begins: Sequence[int]) -> List[Grown]:
    """By account, since the sample that `begins` has for it; -1: it is not asked about.

    Pages that are sampled come one by one, and each counts.
    """
    n = len(begins)
    is_sampled = {kind: profile.is_sampled(kind) for kind in ("",) + KINDS}
    sampled = bytearray(is_sampled[account.kind] for account in profile.accounts)
    unseen = len(samples) + 1
    next_at = array("I", [unseen]) * n
    matters = bytearray(begin >= 0 for begin in begins)
    held, stays, times = array("Q", bytes(8 * n)), array("Q", bytes(8 * n)), [0] * n
    is_new = bytearray(b"\1") * n  # nothing came before that is known
    for at, changes in _backwards(profile, samples, end):
        columns = (changes.bytes, changes.all_bytes, changes.all_blocks)
        for account, n_bytes, all_bytes, blocks in changes.backwards(matters, *columns):
            later = next_at[account]
            if later == at:
                continue
            allocated = all_bytes // _PAGE if sampled[account] else blocks
            if later == unseen:
                held[account], stays[account], times[account] = n_bytes, n_bytes, allocated
            stays[account] = min(stays[account], n_bytes)
            next_at[account] = at
            if at <= begins[account]:
                times[account] -= allocated
                is_new[account] = matters[account] = 0
    return [(held[id_] - (0 if is_new[id_] else stays[id_]), times[id_]) for id_ in range(n)]


def allocations(accounts: Sequence[Grown]) -> int:
    """How often was allocated what makes most of the growth."""
    grown = sorted(accounts, reverse=True)
    enough = _MOST_OF_IT * sum(n_bytes for n_bytes, _ in grown)
    times = 0
    for n_bytes, allocated in grown:
        times += allocated
        enough -= n_bytes
        if enough <= 0:
            break
    return times
