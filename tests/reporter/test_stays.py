# SPDX-License-Identifier: GPL-2.0-or-later
"""Retained memory of accounts, against what each of them holds at every sample: the least of that and of all later ones."""

import random
from collections import Counter
from typing import Dict, List, Tuple

import pytest

from jmassif.analysis.leaks import rises_of
from tests.reporter.traces import random_run


@pytest.mark.parametrize("seed", range(12))
def test_retained_memory_rises_by_what_is_never_freed(seed: int) -> None:
    rng = random.Random(seed)
    profile = random_run(seed, 25, 30).load()
    end = rng.randrange(15, len(profile.snapshots))
    samples = sorted(rng.sample(range(end + 1), rng.randrange(3, 12)))
    counts = [account % 5 > 0 for account in range(len(profile.accounts))]
    found: Dict[int, List[Tuple[int, int]]] = {}
    old: "Counter[int]" = Counter()
    for account, sample, n_bytes, n_old in rises_of(profile, samples, end, profile.composition(end), counts):
        old[account] += n_old
        if n_bytes:
            found.setdefault(account, []).insert(0, (sample, n_bytes))
    holdings = [profile.composition(snapshot) for snapshot in samples + [end]]
    expected = {}
    for account in range(1, len(profile.accounts)):
        held = [live.get(account, (0, 0))[0] for live in holdings]
        stays = [min(held[at:]) for at in range(len(held))]
        rises = [(at, n - before) for at, (n, before) in enumerate(zip(stays, [0] + stays)) if n > before]
        if counts[account] and rises:
            expected[account] = rises
    assert found == expected and found
    assert old == {account: sum(n for _, n in rises) for account, rises in found.items()}
