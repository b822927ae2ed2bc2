# SPDX-License-Identifier: GPL-2.0-or-later
"""Some damaged caches, always the same ones; `python3 -m tests.fuzz.caches` makes two thousand others."""

from pathlib import Path

from tests.fuzz import caches, searching
from tests.harness import Run, compile_c, run


@searching.extent(8, 200)
def test_a_damaged_cache_changes_nothing(n_runs: int) -> None:
    assert caches.search(2026, n_runs) == []


def test_a_result_that_differs_and_a_message_are_seen(tmp_path: Path) -> None:
    program = compile_c(caches.PROGRAM, "-O1", "-lm")
    alone = run([program])
    assert caches.fault(program, tmp_path / "cache", alone, 1) is None
    for other in (Run(alone.returncode, alone.stdout + " ", ""), Run(0, alone.stdout, "")):
        assert caches.fault(program, tmp_path / "cache", other, 1) is not None
