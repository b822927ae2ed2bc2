# SPDX-License-Identifier: GPL-2.0-or-later
"""Random operations on the devices of each release: after every one the ledger has what the kernel has committed.

driver_random (tests/sim/programs/random) makes, maps, shares, sends, duplicates and frees buffers and objects in all ways
that it knows, forks, execs, and makes calls that must fail. After each operation it writes the board's own total down and
sets a region, at which a profile has the ledger's totals.
"""

from pathlib import Path
from typing import List, NamedTuple

import pytest

from tests import harness
from tests.tool import board

OPERATIONS, AT_LENGTH = 4_000, 50_000


class Step(NamedTuple):
    number: int
    committed: int
    operation: str


def steps_of(log: Path) -> List[Step]:
    steps = []
    for line in log.read_text().splitlines():
        number, committed, _, operation = line.split(" ", 3)
        steps.append(Step(int(number), int(committed), operation))
    return steps


def totals_at_regions(trace: Path) -> List[int]:
    """Host and device bytes together when each region begins."""
    totals, now = [], 0
    with trace.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            fields = line.split(" ")
            if fields[0] == "t":
                now = int(fields[2]) + int(fields[3])
            elif fields[0] == "S":
                now = int(fields[4]) + int(fields[5])
            elif fields[0] == "B":
                totals.append(now)
    return totals


def check(sim: Path, release: str, n_operations: int, tmp_path: Path) -> None:
    board.require_board(sim)
    log = tmp_path / "log"
    # Children have traces of their own, which nobody reads here.
    recording = board.record(sim, release, "driver_random", str(n_operations), "7", f"--log={log}", "--check")
    (trace,) = [trace for trace in recording.traces if "\nm forked-from" not in trace.read_text("utf-8", "replace")]
    steps, totals = steps_of(log), totals_at_regions(trace)
    assert len(steps) == len(totals) == n_operations
    others = totals[0] - steps[0].committed  # the heap, which stands still
    wrong = [(step, total - others) for step, total in zip(steps, totals) if total - others != step.committed]
    assert not wrong, wrong[:3]
    assert max(step.committed for step in steps) > 1 << 20
    assert board.odd(trace) == {}


@pytest.mark.parametrize("release", board.RELEASES)
def test_the_ledger_is_the_kernels_after_every_operation(sim: Path, release: str, tmp_path: Path) -> None:
    check(sim, release, OPERATIONS, tmp_path)


@pytest.mark.parametrize("release", board.RELEASES)
def test_the_ledger_is_the_kernels_after_many_operations_at_length(sim: Path, release: str, tmp_path: Path) -> None:
    check(sim, release, AT_LENGTH, tmp_path)
