# SPDX-License-Identifier: GPL-2.0-or-later
"""A short walk, from another seed each time; `python3 -m tests.fuzz.sequences` walks longer."""

import time
from pathlib import Path

from tests.fuzz import sequences

_SECONDS = 8
_STEPS = 120


def test_after_every_step_the_ledger_is_what_the_book_says(sim: Path) -> None:
    seed = int(time.time())
    tally = sequences.search(seed, _SECONDS, sim, _STEPS)
    print(f"seed {seed}: {tally.runs} runs, {tally.steps} steps, slowest {tally.slowest[0]:.1f} s")
    if tally.faults:
        # Signals and threads do not come twice at the same moment. What is not seen again is printed, and is for a longer
        # walk by hand to find.
        print("once: " + "\n".join(tally.faults))
        tally = sequences.search(seed, 2 * _SECONDS, sim, _STEPS)
    assert not tally.faults, f"seed {seed}: " + "\n".join(tally.faults)
    assert tally.steps >= _STEPS


def test_a_block_that_is_in_the_book_alone_is_seen(sim: Path, tmp_path: Path) -> None:
    """The recorder is told to leave one function's blocks out."""
    case = sequences.Case(1, 60, ["heap"], ["--pages=no", "--ignore-fn=by_malloc"], {})
    (fault,) = sequences.attempt(sequences.program(sim), case, tmp_path).faults
    assert "heap: the book has" in fault
