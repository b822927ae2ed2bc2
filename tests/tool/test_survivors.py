# SPDX-License-Identifier: GPL-2.0-or-later
"""Roles that only what outlives a call has: the program itself knows what that was, at its peak and in all."""

from pathlib import Path
from typing import Iterable, Tuple

import pytest

from jmassif.model.run import Profile
from tests.harness import record
from tests.tool.programs import assert_readable, program

RULES = """
tensor passes make
role kept passes pass survivors
role outside passes *
"""


def by_survival(profile: Profile, held: Iterable[Tuple[int, int]]) -> Tuple[int, int]:
    """Of tensors' accounts and their bytes: bytes that have a role for good, bytes that had none but for a while."""
    kept = fleeting = 0
    for account, n_bytes in held:
        if profile.accounts[account].kind == "heap" and profile.role(account):
            if profile.role(account) == "temporary":
                fleeting += n_bytes
            else:
                kept += n_bytes
    return kept, fleeting


@pytest.mark.parametrize("seed", range(1, 7))
@pytest.mark.parametrize("interval", [[], ["--time-unit=B", "--max-snapshots=1000"]], ids=["ms", "many-snapshots"])
def test_what_outlives_a_call_is_known_at_the_peak_too(seed: int, interval: Iterable[str], tmp_path: Path) -> None:
    rules = tmp_path / "my.rules"
    rules.write_text(RULES)
    recording = record(
        [program("passes.c", "-O1", "-fno-builtin"), str(seed)], [f"--owners={rules}", *interval], status=0
    )
    assert_readable(recording.trace)
    profile = recording.profile
    told = [tuple(map(int, line.split())) for line in recording.stdout.splitlines()]
    at_peak = profile.peak_composition("total")
    assert by_survival(profile, ((account, n_bytes) for account, (n_bytes, _) in at_peak.items())) == told[0]
    in_all = profile.counts()
    assert by_survival(profile, ((account, counts.bytes) for account, counts in in_all.items())) == told[1]
    assert profile.peak_composition("host") == at_peak
