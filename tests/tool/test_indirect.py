# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a return or a call of another library will lead is foreseen: the program does not notice, and the core is asked less."""

import re
from pathlib import Path
from typing import List

import pytest

from tests.harness import BUILD, VALGRIND, Argument, check_run, compile_c, record, run
from tests.tool.programs import program

CALLS = """
#include <stdio.h>
#include <stdlib.h>
int main(int n, char **arguments)
{
    long sum = 0;
    for (int i = 0; i < 200000; i++)
        sum += labs(i - 100000) + strtol("12", NULL, n + 9);
    printf("%ld\\n", sum);
    return 0;
}
"""


def indirect_jumps(told: str) -> int:
    found = re.search(r"scheduler: ([\d,]+) indir transfers", told)
    assert found, told
    return int(found.group(1).replace(",", ""))


@pytest.mark.parametrize("linking", [(), ("-Wl,-z,now",), ("-fno-plt",)], ids=["lazy", "now", "no-plt"])
def test_the_core_is_seldom_asked_where_calls_and_returns_lead(linking: List[str]) -> None:
    command: List[Argument] = [compile_c(CALLS, "-fno-builtin", *linking)]
    env = {"VALGRIND_LIB": str(BUILD / ".in_place")}
    alone = run([VALGRIND, "--tool=none", "--stats=yes", *command], env=env)
    recording = record(command, ["--stats=yes", "--code-cache=no"])
    assert recording.stdout == alone.stdout == check_run(command)
    # There are two calls and their returns in each round, as many jumps through a table, and more inside.
    assert indirect_jumps(alone.stderr) > 600000
    assert indirect_jumps(recording.stderr) < indirect_jumps(alone.stderr) * (0.7 if not linking else 0.05)


@pytest.mark.parametrize(
    "flags", [("-O0",), ("-O2",), ("-O2", "-fno-plt"), ("-O1", "-fno-omit-frame-pointer")], ids=" ".join
)
def test_jumps_that_lead_elsewhere_each_time(flags: List[str], tmp_path: Path) -> None:
    command: List[Argument] = [
        program("indirect.c", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", *flags),
        "5000",
    ]
    expected = check_run(command)
    for _ in range(2):  # with what the first run has kept, too
        assert record(command, [f"--code-cache={tmp_path}/cache"]).stdout == expected
    few = record([command[0], "1"], [f"--code-cache={tmp_path}/other"])
    assert few.stdout == check_run([command[0], "1"])
    assert record(command, [f"--code-cache={tmp_path}/other"]).stdout == expected
