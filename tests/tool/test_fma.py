# SPDX-License-Identifier: GPL-2.0-or-later
"""Fused multiply-adds have the processor's own results, to the bit: in every form, rounding mode, and for NaNs."""

from pathlib import Path
from typing import List

import pytest

from tests.harness import ARCH, Argument, check_run, record, run
from tests.tool.programs import program

N_INPUTS = 40000  # of each of 84 instructions in each of 4 rounding modes, besides 2,744 special ones


@pytest.mark.skipif(ARCH != "amd64", reason="VEX itself uses the processor's instructions here")
@pytest.mark.parametrize("unit", ["ms", "i"])
def test_multiply_adds_are_those_of_the_processor(unit: str) -> None:
    if " fma " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no FMA")
    command: List[Argument] = [program("fma.c", "-Wall", "-Wextra", "-Werror"), str(N_INPUTS if unit == "ms" else 100)]
    expected = check_run(command)
    assert len(expected.splitlines()) == 336
    recording = record(command, [f"--time-unit={unit}"])
    assert recording.stdout == expected, recording.stderr


@pytest.mark.skipif(ARCH != "amd64", reason="VEX itself uses the processor's instructions here")
def test_that_is_not_what_valgrind_does_by_itself() -> None:
    """Else the test above would prove nothing."""
    if " fma " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no FMA")
    command: List[Argument] = [program("fma.c", "-Wall", "-Wextra", "-Werror"), "10"]
    assert run(["valgrind", "-q", "--tool=none", *command]).stdout != check_run(command)
