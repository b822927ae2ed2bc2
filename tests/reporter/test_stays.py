# SPDX-License-Identifier: GPL-2.0-or-later
"""Retained memory of accounts, against what each of them holds at every sample: the least of that and of all later ones."""

import random

import pytest

from jmassif.analysis.leaks import retained
from tests.reporter.traces import random_run


@pytest.mark.parametrize("seed", range(12))
def test_retained_memory_rises_by_what_is_never_freed(seed: int) -> None:
    rng = random.Random(seed)
    profile = random_run(seed, 25, 30).load()
    end = rng.randrange(15, len(profile.snapshots))
    samples = sorted(rng.sample(range(end + 1), rng.randrange(3, 12)))
    counts = [account % 5 > 0 for account in range(len(profile.accounts))]
    found = retained(profile, samples, end, counts)
    holdings = [profile.composition(snapshot) for snapshot in samples + [end]]
    expected = {}
    for account in range(1, len(profile.accounts)):
        held = [live.get(account, (0, 0))[0] for live in holdings]
        stays = [min(held[at:]) for at in range(len(held))]
        rises = [(at, n) for at, (n, before) in enumerate(zip(stays, [0] + stays)) if n > before]
        if counts[account] and rises:
            expected[account] = rises
    assert found == expected and found
