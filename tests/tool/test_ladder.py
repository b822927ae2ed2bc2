# SPDX-License-Identifier: GPL-2.0-or-later
"""The ladder's ends, against the kernel's figures as the program reads them and against what the program has allocated."""

import re
from pathlib import Path
from typing import Dict

import pytest

from jmassif.analysis.ladder import LESS, Ladder, ladders
from jmassif.analysis.moments import select
from tests.harness import Recording, compile_c, record
from tests.tool import board
from tests.tool.test_others import program, requested

MIB = 1 << 20
GIB = 1 << 30


def ladder_of(recording: Recording, moment: str) -> Ladder:
    profile = recording.profile
    return ladders(profile, select(profile, moment))[0]


def rungs(ladder: Ladder) -> Dict[str, int]:
    """By key: bytes, negative where they are taken away."""
    return {rung.key: -rung.bytes if rung.role == LESS else rung.bytes for rung in ladder.rungs}


def test_on_a_board_it_begins_with_what_the_kernel_says_is_in_use(sim: Path) -> None:
    board.require_board(sim)
    launcher = board.launcher(sim, "r32", f"--memory={4 * GIB}", "--machine")
    recording = record([program()], ["--pages=yes"], launcher=launcher, status=0)
    said = {name: int(n) * 1024 for name, n in re.findall(r"^(\w+):\s+(\d+) kB$", recording.stdout, re.MULTILINE)}
    ladder = ladder_of(recording, requested(recording))
    found = rungs(ladder)
    used = said["MemTotal"] - sum(said[name] for name in ("MemFree", "Buffers", "Cached", "SReclaimable"))
    assert found["jtop"] == pytest.approx(used, abs=2 * MIB)
    assert found["program"] == pytest.approx(230 * MIB, abs=70 * MIB) and found["own-code"] >= 230 * MIB
    # What nothing explains is the profiler and the driver's own.
    assert 0 < -found["others"] < 150 * MIB


def test_elsewhere_it_begins_with_the_resident_memory_and_ends_with_the_programs_own() -> None:
    kept = compile_c(
        """
        #include <stdlib.h>
        #include <string.h>
        int main(void)
        {
            memset(malloc(50 << 20), 1, 50 << 20);
            malloc(30 << 20); /* never written to */
            return 0;
        }
        """,
        "-fno-builtin",
    )
    found = rungs(ladder_of(record([kept], ["--pages=yes"]), "end"))
    assert found["own-code"] == pytest.approx(80 * MIB, abs=MIB)
    assert found["unwritten"] == pytest.approx(30 * MIB, abs=MIB)
    assert found["htop"] + found["profiler"] == pytest.approx(50 * MIB, abs=8 * MIB)
    assert abs(found["unexplained"]) < 4 * MIB
