# SPDX-License-Identifier: GPL-2.0-or-later
"""--low-footprint: names of symbols stay in their files, and stacks show them as ever."""

import re
from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from tests.harness import Argument, Recording, allocated_by_function, compile_c, record
from tests.tool.programs import library, linked_to

N_FUNCTIONS = 2000
LONG = "a_name_that_is_as_long_as_those_of_templates_are_when_a_compiler_has_written_them_out_" * 2
N_NAMES_BYTES = N_FUNCTIONS * len(LONG)
LOW = ["--low-footprint=yes", "--profile-heap=yes"]

FUNCTIONS = "#include <stdlib.h>\nvoid *volatile kept;\nint some_data[4] = {1};\n" + "".join(
    f"void {LONG}{i}(void) {{ kept = malloc({i + 1}); }}\n" for i in range(N_FUNCTIONS)
)
CALLED = (0, 1, 777, N_FUNCTIONS - 1)
EXPECTED = {f"{LONG}{i}": (i + 1, 1) for i in CALLED}
MAIN = "".join(f"void {LONG}{i}(void);\n" for i in CALLED) + "int main(void) {%s return 0; }\n" % "".join(
    f" {LONG}{i}();" for i in CALLED
)

LOADS_AGAIN = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    char line[4096];
    int n = 0;
    for (int i = 0; i < 30; i++)
        dlclose(dlopen(argv[1], RTLD_NOW));
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        n += strstr(line, argv[2]) != NULL;
    printf("%d\n", n);
    return 0;
}
"""


def copied_bytes(recording: Recording) -> int:
    """What the core keeps of names by itself, at the end."""
    assert recording.returncode == 0, recording.stderr
    last = recording.stderr[recording.stderr.rindex('Arena "dinfo"') :]
    return sum(int(n.replace(",", "")) for n in re.findall(r"^ *([\d,]+) in .*addStr", last, re.MULTILINE))


def by_name(recording: Recording) -> Dict[str, Tuple[int, int]]:
    """The library's file has the name of a program, too: the core follows the link that is its soname."""
    return allocated_by_function(recording.profile, Path("program"))


@pytest.mark.parametrize("flags", [["-s"], []], ids=["stripped", "with all symbols"])
def test_names_of_a_library_are_not_copied_and_are_shown(flags: List[str]) -> None:
    named = library(FUNCTIONS, "libnames.so.1", "-O0", *flags)
    program: Argument = compile_c(MAIN, *linked_to(named))
    usual, low = record([program], ["--profile-heap=yes"]), record([program], LOW)
    assert by_name(low) == by_name(usual) == EXPECTED
    # Both have those of the C library's debug file, where that is installed.
    assert copied_bytes(usual) - copied_bytes(low) > N_NAMES_BYTES * 0.9


def test_names_of_a_program_are_not_copied_and_are_shown() -> None:
    program = compile_c(FUNCTIONS + MAIN, "-O0")
    usual, low = record([program], ["--profile-heap=yes"]), record([program], LOW)
    assert by_name(low) == by_name(usual) == EXPECTED
    assert copied_bytes(usual) - copied_bytes(low) > N_NAMES_BYTES * 0.9


def test_what_is_loaded_again_and_again_has_its_names_once() -> None:
    named = library(FUNCTIONS, "libnames.so.1", "-O0", "-s")
    low = record([compile_c(LOADS_AGAIN, "-ldl"), named, Path(named).resolve().parent.name], ["--low-footprint=yes"])
    # The program's own file lies elsewhere; the library is closed.
    assert low.returncode == 0 and 1 <= int(low.stdout) <= 2, low.stdout + low.stderr
