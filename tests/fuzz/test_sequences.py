# SPDX-License-Identifier: GPL-2.0-or-later
"""A short walk, from one seed (or JMASSIF_SEED); `python3 -m tests.fuzz.sequences` walks longer."""

from pathlib import Path

from tests.fuzz import searching, sequences

_STEPS = 120


@searching.extent(3, 60)
def test_after_every_step_the_ledger_is_what_the_book_says(sim: Path, n_runs: int) -> None:
    seed = searching.seed()
    tally = sequences.search(seed, n_runs, sim, _STEPS)
    print(f"seed {seed}: {tally.runs} runs, {tally.steps} steps, slowest {tally.slowest[0]:.1f} s")
    assert not tally.faults, f"seed {seed}: " + "\n".join(tally.faults)
    assert tally.steps >= n_runs * _STEPS


def test_a_block_that_is_in_the_book_alone_is_seen(sim: Path, tmp_path: Path) -> None:
    """The recorder is told to leave one function's blocks out."""
    case = sequences.Case(1, 60, ["heap"], ["--pages=no", "--ignore-fn=by_malloc"], {})
    (fault,) = sequences.attempt(sequences.program(sim), case, tmp_path).faults
    assert "heap: the book has" in fault
