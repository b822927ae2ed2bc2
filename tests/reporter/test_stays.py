# SPDX-License-Identifier: GPL-2.0-or-later
"""Retained memory of accounts, against what each of them holds at every sample: the least of that and of all later ones."""

import random
from typing import Dict, List, Tuple

import pytest

from jmassif.analysis.leaks import Retained, allocations, grown_since, retain
from jmassif.model.run import Profile
from tests.reporter.traces import random_run


def _run(seed: int) -> Tuple[Profile, List[int], int]:
    """A run, some of its snapshots, and the last one that counts."""
    rng = random.Random(seed)
    profile = random_run(seed, 25, 30).load()
    end = rng.randrange(15, len(profile.snapshots))
    return profile, sorted(rng.sample(range(end + 1), rng.randrange(3, 12))), end


def _holdings(profile: Profile, samples: List[int], end: int) -> Dict[int, List[int]]:
    """By account: bytes at each sample, and at the end."""
    told = [profile.composition(snapshot) for snapshot in samples + [end]]
    return {account: [held.get(account, (0, 0))[0] for held in told] for account in range(1, len(profile.accounts))}


@pytest.mark.parametrize("seed", range(6))
def test_retained_memory_rises_by_what_is_never_freed(seed: int) -> None:
    profile, samples, end = _run(seed)
    lines = [Retained() for _ in range(4)]
    counts = [account % 5 > 0 for account in range(len(profile.accounts))]
    retain(profile, samples, end, counts, lambda account: lines[account % 4])
    expected = [[0] * len(samples) for _ in lines]
    held_at_end = [0] * len(lines)
    for account, held in _holdings(profile, samples, end).items():
        assert (account in lines[account % 4].accounts) <= (account % 5 > 0 and held[-1] > 0)
        if account % 5 == 0:
            continue
        stays = [min(held[at:]) for at in range(len(held))]
        for at in range(1, len(samples)):
            expected[account % 4][at] += stays[at] - stays[at - 1]
        held_at_end[account % 4] += held[-1] if account in lines[account % 4].accounts else 0
    assert [line.rises or [0] * len(samples) for line in lines] == expected
    assert [line.held for line in lines] == held_at_end and any(held_at_end)


@pytest.mark.parametrize("seed", range(6))
def test_how_often_was_allocated_for_what_has_grown_since_a_sample(seed: int) -> None:
    profile, samples, end = _run(seed)
    begins = [account % (len(samples) + 1) - 1 for account in range(len(profile.accounts))]
    since = grown_since(profile, samples, end, begins)
    n_allocated = 0
    for account, held in _holdings(profile, samples, end).items():
        begin = begins[account]
        if begin < 0:
            continue
        blocks = [(0, 0)]  # index of the snapshot, and all that the account ever had by then
        for index, snapshot in enumerate(profile.snapshots[: end + 1]):
            for of, all_blocks in zip(snapshot.changes.account, snapshot.changes.all_blocks):
                blocks += [(index, all_blocks)] if of == account else []
        before = [n for index, n in blocks if index <= samples[begin]][-1]
        grown, times = since[account]
        assert times == blocks[-1][1] - before
        # What an account that came later holds has all grown.
        came_before = len([1 for index, _ in blocks[1:] if index <= samples[begin]]) > 0
        assert grown == held[-1] - (min(held[begin:]) if came_before else 0)
        n_allocated += times
    assert n_allocated


def test_most_of_what_grew_tells_how_often() -> None:
    assert allocations([(50, 7), (5, 1000), (950, 40)]) == 40
    assert allocations([(500, 7), (500, 40)]) == 47
    assert allocations([]) == 0
