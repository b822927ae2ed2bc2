# SPDX-License-Identifier: GPL-2.0-or-later
"""Driver memory below the CUDA API, on the simulated board of each release: what the kernel has committed is in the ledger
to the byte, as blocks of the API and what is around them."""

from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from tests.harness import Recording
from tests.tool import board, cuda_ledger
from tests.tool.test_cuda_lifetimes import STORIES

# Programs that print at each of their points what their kernel has committed: all of cuda_lifetime's stories on one release
# of each kind, the richest of them on the others.
ALL = (("cuda_driver",),) + tuple(("cuda_lifetime", story) for story in STORIES)
RICH = (("cuda_driver",), ("cuda_lifetime", "vmm_two_mappings"), ("cuda_lifetime", "device_reset"))
RUNS = [(release, run) for release in board.RELEASES for run in (ALL if release in ("r35", "rm580") else RICH)]

_recordings: Dict[Tuple[str, Tuple[str, ...]], Recording] = {}


def recorded(sim: Path, release: str, program: Tuple[str, ...]) -> Recording:
    board.require_board(sim)
    key = (release, program)
    if key not in _recordings:
        _recordings[key] = board.record(sim, release, *program)
    return _recordings[key]


def compared(recording: Recording, release: str) -> List[Tuple[str, int, int]]:
    """Of each point its name, what the ledger has, and what the kernel had committed."""
    compositions = cuda_ledger.at_marks(recording.profile)
    points = list(cuda_ledger.points(recording.stdout))
    assert len(compositions) == len(points) > 0
    return [
        (name, board.committed(recording.profile, composition, release), figures["committed"])
        for composition, (name, figures) in zip(compositions, points)
    ]


@pytest.mark.parametrize("release,program", RUNS, ids=[f"{release}-{run[-1]}" for release, run in RUNS])
def test_blocks_and_slack_are_what_the_kernel_has_committed(sim: Path, release: str, program: Tuple[str, ...]) -> None:
    recording = recorded(sim, release, program)
    rows = compared(recording, release)
    wrong = [row for row in rows if row[1] != row[2]]
    assert not wrong, wrong
    assert max(committed for _, _, committed in rows) >= 48 << 20  # a context's worth
    assert board.odd(recording.trace) == {}
    cuda_ledger.assert_totals_are_sums(recording.trace)
