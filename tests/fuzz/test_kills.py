# SPDX-License-Identifier: GPL-2.0-or-later
"""A few kills, from one seed (or JMASSIF_SEED); `python3 -m tests.fuzz.kills --runs=1000` makes more."""

from pathlib import Path

from tests.fuzz import kills, searching
from tests.harness import BUILD
from tests.tool import board


@searching.extent(4, 60)
def test_killed_in_training_all_traces_have_what_was_logged_a_second_before(sim: Path, n_runs: int) -> None:
    board.require_board(sim)
    seed = searching.seed()
    print(f"seed {seed}")
    tally = kills.search(seed, n_runs, BUILD / "fuzz")
    assert not tally.faults, f"seed {seed}: " + "\n".join(tally.faults)
    # Half of the moments are in training.
    assert tally.n_traces >= n_runs // 2 and tally.n_told >= n_runs // 2


def test_what_is_missing_from_a_trace_is_seen(tmp_path: Path) -> None:
    """The log tells of a process that left no trace, half of it in time."""
    (tmp_path / "log").write_text("1000000000 7 load_batch 100\n2500000000 7 load_batch 300\n")
    outcome = kills.judge(tmp_path, 3000000000)
    assert outcome.faults == ["7: load_batch: 0 bytes of 100 (at last 300), no trace"]
    (tmp_path / "trace.7").write_text("no trace\n")
    assert "exit status 2" in kills.judge(tmp_path, 3000000000).faults[0]
