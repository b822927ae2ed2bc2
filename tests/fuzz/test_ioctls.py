# SPDX-License-Identifier: GPL-2.0-or-later
"""A short walk of wild ioctls, from one seed (or JMASSIF_SEED); `python3 -m tests.fuzz.ioctls` walks longer."""

from pathlib import Path

from tests.fuzz import ioctls, searching
from tests.tool import board


@searching.extent(2, 60)
def test_the_ledger_is_the_kernels_whatever_structures_say(sim: Path, n_runs: int) -> None:
    board.require_board(sim)
    seed = searching.seed()
    tally = ioctls.search(seed, n_runs, sim)
    print(f"seed {seed}: {tally.runs} runs, {tally.steps} steps")
    assert not tally.faults, f"seed {seed}: " + "\n".join(tally.faults)
