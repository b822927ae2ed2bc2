# SPDX-License-Identifier: GPL-2.0-or-later
"""JetPack 4: buffers' descriptors begin at 1024, where the usual limit of open files ends and Valgrind's own begin."""

import re
import resource
from pathlib import Path
from typing import List

from tests import harness
from tests.harness import BUILD, Argument, Recording
from tests.tool import board, cuda_ledger, programs

ALLOCATED = 5 << 20


def limited(soft: int, hard: int) -> List[Argument]:
    return ["sh", "-c", f'ulimit -Sn {soft} && ulimit -Hn {hard} && exec "$@"', "sh"]


def hard_limit() -> int:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return 1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16)


def recorded(sim: Path, soft: int, hard: int) -> Recording:
    board.require_board(sim)
    return harness.record(
        [programs.program("nvmap_limit.c")],
        env={"LD_PRELOAD": str(BUILD / "jmassif" / "libjmassif.so")},
        launcher=[*limited(soft, hard), *board.launcher(sim, "r32")],
    )


def test_buffers_beyond_the_usual_limit_are_mapped_and_closed(sim: Path) -> None:
    recording = recorded(sim, 1024, hard_limit())
    assert recording.returncode == 0, recording.stderr
    assert int(re.findall(r"^handle (\d+)$", recording.stdout, re.MULTILINE)[0]) >= 1024
    mapped, _, gone = cuda_ledger.at_marks(recording.profile)
    assert board.by_kind(recording.profile, mapped).get("driver") == ALLOCATED
    assert board.by_kind(recording.profile, gone).get("driver", 0) == 0


def test_where_the_limit_cannot_be_raised_the_mend_is_said(sim: Path) -> None:
    recording = recorded(sim, 1024, 1037)
    assert recording.stderr.count("run first:  ulimit -n 65536") == 1
