# SPDX-License-Identifier: GPL-2.0-or-later
"""What is asked of the core's translator: its own figures (--stats=yes) for us and for --tool=none."""

import re
from pathlib import Path
from typing import Tuple

from tests.harness import BUILD, VALGRIND, Argument, Run, compile_c, record, run

SMALL = "int main(void) { return 0; }"


def sectors(*options: str) -> int:
    found = re.search(r"cache: (\d+) sectors of", record([compile_c(SMALL)], ["--stats=yes", *options]).stderr)
    assert found
    return int(found.group(1))


def test_low_footprint_keeps_less_translated_code_unless_the_user_says_how_much() -> None:
    by_default = sectors()
    assert sectors("--low-footprint=yes") == 2 < by_default
    assert sectors("--low-footprint=yes", "--num-transtab-sectors=9") == 9
    assert sectors("--num-transtab-sectors=9") == 9
    assert record([compile_c(SMALL)], ["--low-footprint=yes"]).profile.manifest["option.low-footprint"] == "yes"


AS_LONG_AS_OURS = ("--vex-guest-max-insns=20", "--vex-guest-chase=no")  # superblocks


def under(tool: str, *words: Argument) -> Run:
    """A tool of the build, ours or one of Valgrind's."""
    return run([VALGRIND, f"--tool={tool}", *words], env={"VALGRIND_LIB": str(BUILD / ".in_place")})


def bytes_a_superblock(tool: str, *options: str) -> float:
    """Of what translated code becomes."""
    told = under(tool, "--stats=yes", *options, "/bin/ls", "/").stderr
    found = re.search(r"transtab: new +([\d,]+) \([\d,]+ -> ([\d,]+)", told)
    assert found, told
    return int(found.group(2).replace(",", "")) / int(found.group(1).replace(",", ""))


def without_and_with(trace: Path, *options: str) -> Tuple[float, float]:
    """Without a tool, of superblocks as long as the tool's, and with it."""
    none = bytes_a_superblock("none", *options, *AS_LONG_AS_OURS)
    return none, bytes_a_superblock("jmassif", *options, "--code-cache=no", f"--jmassif-out-file={trace}")


def test_code_is_as_good_as_without_a_tool(tmp_path: Path) -> None:
    """The passes that are left out of an untouched superblock's translation would have found nothing.

    What is more are comparisons before returns and calls of other libraries (indirect.c).
    """
    none, ours = without_and_with(tmp_path / "trace", "--vex-iropt-register-updates=allregs-at-mem-access")
    assert 0.98 * none < ours < 1.06 * none


ALLOCATES = """
#include <stdlib.h>
int main(void)
{
    for (int i = 0; i < 10000; i++)
        free(realloc(malloc(10), 20));
    return 0;
}
"""


def test_an_allocation_does_not_go_through_the_cores_scheduler() -> None:
    told = record([compile_c(ALLOCATES, "-fno-builtin")], ["--stats=yes"]).stderr
    found = re.search(r"scheduler: [\d,]+/([\d,]+) major/minor sched events", told)
    assert found and int(found.group(1).replace(",", "")) < 10000, told
