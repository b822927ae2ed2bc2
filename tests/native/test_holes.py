# SPDX-License-Identifier: GPL-2.0-or-later
"""Holes in glibc's heaps: the report names them and the setting that returns them, and the kernel confirms that it does."""

import re
from typing import Dict, Tuple

from jmassif.analysis.ladder import ladders
from jmassif.analysis.summary import build_report, moment_of
from jmassif.attribution.names import Names
from jmassif.render.summary import findings
from tests.harness import compile_c, record

MIB = 1 << 20

# Each block is larger than the holes that those before it have left; their first bytes keep the holes apart.
SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
    char line[200], *last = malloc(30 << 20);
    free(last); /* from now on blocks up to this size come from the heap */
    last = malloc(1000);
    for (int mib = 10; mib <= 20; mib++) {
        char *block = malloc(mib << 20);
        memset(block, 1, mib << 20);
        last = realloc(last, 1000);
        last = block;
    }
    last = realloc(last, 1000);
    memset(malloc(50 << 20), 1, 50 << 20);
    usleep(400000);
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "VmHWM:", 6))
            puts(line);
    return 0;
}
"""


def reported(variables: Dict[str, str], source: str = SOURCE) -> Tuple[str, int, int]:
    """The findings; what the ladder says is free inside malloc; the most that the kernel has seen resident."""
    recording = record([compile_c(source, "-fno-builtin")], ["--pages=yes"], env=variables, status=0, host="native")
    profile, names = recording.profile, Names(recording.profile)
    moment = moment_of(profile, names, "")
    unused = [rung.bytes for rung in ladders(profile, moment)[0].rungs if rung.key == "unused"]
    (highest,) = re.findall(r"VmHWM:\s+(\d+) kB", recording.stdout)
    return (
        " ".join(each.text for each in findings(build_report(profile, moment, names))),
        sum(unused),
        int(highest) * 1024,
    )


def test_memory_that_is_free_inside_malloc_is_named_with_what_returns_it() -> None:
    text, unused, highest = reported({})
    holes = sum(range(10, 20)) * MIB  # that of the last block is the heap's top
    assert holes - 2 * MIB < unused < holes + 30 * MIB
    assert re.search(
        r"1[3-7]\d MiB is resident but free inside malloc\. Try MALLOC_TRIM_THRESHOLD_=131072: glibc then ", text
    )
    trimmed, left, lower = reported({"MALLOC_TRIM_THRESHOLD_": "131072"})
    assert "THRESHOLD" not in trimmed and left < 3 * MIB
    assert highest - lower > holes - 2 * MIB


def test_a_setting_that_is_made_another_way_is_not_advised_again() -> None:
    for variable, value in (
        ("MALLOC_MMAP_THRESHOLD_", "40000000"),
        ("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=40000000"),
    ):
        text, unused, _ = reported({variable: value})
        assert unused > 100 * MIB and "THRESHOLD" not in text, variable


def small_blocks(mib: int) -> str:
    """A program that keeps one in 50 of 200 MB of small blocks, and then a large one."""
    begin, end = SOURCE[: SOURCE.index("    char line")], SOURCE[SOURCE.index("    memset(malloc(50") :]
    return f"""{begin}
    char line[200];
    static char *small[200000];
    for (int i = 0; i < 200000; i++)
        memset(small[i] = malloc(1000), 1, 1000);
    usleep(300000);
    for (int i = 0; i < 200000; i++)
        if (i % 50)
            free(small[i]);
{end.replace("50 << 20", f"{mib} << 20")}"""


def test_no_threshold_is_advised_for_holes_of_small_blocks() -> None:
    text, unused, _ = reported({}, small_blocks(210))
    assert unused > 150 * MIB and "THRESHOLD" not in text


def test_resident_memory_that_is_highest_after_the_peak_of_blocks_is_named() -> None:
    text, _, highest = reported({}, small_blocks(100))
    found = re.search(
        r"Resident memory is highest at .*: (\d+) MiB, 1[6-9]\d MiB of it free inside malloc\. malloc_trim", text
    )
    assert found and abs(int(found.group(1)) - highest // MIB) <= 3
