# SPDX-License-Identifier: GPL-2.0-or-later
"""The books of the whole process against what it reads of itself in /proc, and how little they leave unexplained."""

import platform
import re
from pathlib import Path
from typing import List

import pytest

from jmassif.model.profile import Profile
from jmassif.questions.reconciliation import Books, books, device_books, fullest, sampled
from tests.harness import BUILD, PYTHON, ROOT, compile_c, record, sim_build

MIB = 1 << 20
WITH_PAGES = ["--pages=yes"]
HEADERS = f"-I{ROOT / 'jmassif'}"

# It says what it has done, and what /proc says of all of it: Valgrind's mappings are there as well.
TOUCHES = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "jmassif.h"
#define MIB (1 << 20)
static long resident(void)
{
    FILE *smaps = fopen("/proc/self/smaps", "r");
    char line[4096];
    long sum = 0, kib;
    while (fgets(line, sizeof line, smaps))
        if (sscanf(line, "Rss: %ld kB", &kib) == 1)
            sum += kib * 1024;
    fclose(smaps);
    return sum;
}
int main(void)
{
    JMASSIF_SNAPSHOT();
    printf("%ld\\n", resident());
    char *block = malloc(64 * MIB);
    JMASSIF_SNAPSHOT();
    printf("%ld\\n", resident());
    memset(block, 1, 48 * MIB);
    JMASSIF_SNAPSHOT();
    printf("%ld\\n", resident());
    return 0;
}
"""


def requested(profile: Profile) -> List[Books]:
    return [books(profile, index) for index in sampled(profile) if profile.snapshots[index].reason == "request"]


def test_the_process_is_as_large_as_it_reads_in_proc() -> None:
    recording = record([compile_c(TOUCHES, HEADERS, "-fno-builtin")], WITH_PAGES)
    said = [int(line) for line in recording.stdout.split()]
    made = requested(recording.profile)
    assert len(said) == len(made) == 3
    for resident, each in zip(said, made):
        # Reading the file takes a buffer, and pages of the tool's and the program's code that were not there before.
        assert each.process == pytest.approx(resident, abs=2 * MIB)
        assert abs(each.unaccounted) <= 64 * 1024
        assert each.before + each.process + each.elsewhere + each.free == each.board
    # What is asked for and never touched is the allocators', negative, until it is touched.
    assert made[1].allocators - made[0].allocators == pytest.approx(-64 * MIB, abs=MIB)
    assert made[2].allocators - made[1].allocators == pytest.approx(48 * MIB, abs=MIB)
    assert made[2].held == made[1].held == pytest.approx(made[0].held + 64 * MIB, abs=MIB)


def valgrinds(maps: str) -> int:
    """What the mappings hold that Valgrind makes on this architecture: above its own base, or of the tool's file."""
    held, is_tools = 0, False
    for line in maps.splitlines():
        head = re.match(r"([0-9a-f]+)-[0-9a-f]+ (?:\S+ +){4}(.*)", line)
        if head:
            name = Path(head[2]).name
            # The tool's variables lie behind its file.
            is_tools = "jmassif-" in name or (is_tools and not name)
            is_valgrinds = is_tools or (
                int(head[1], 16) >= 0x1000000000 and int(head[1], 16) < 0x1FFE000000 and not name
            )
        elif line.startswith("Rss:") and is_valgrinds:
            held += int(line.split()[1]) * 1024
    return held


READS_SMAPS = """
import ctypes, sys
kept = [bytes(10000) for _ in range(2000)]
ctypes.CDLL(sys.argv[1]).jmassif_snapshot()
print(open("/proc/self/smaps").read())
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="where Valgrind's own memory lies is amd64's")
def test_valgrinds_part_is_what_lies_where_valgrind_puts_its_own() -> None:
    recording = record([PYTHON, "-c", READS_SMAPS, BUILD / "jmassif" / "libjmassif.so"], WITH_PAGES)
    (made,) = requested(recording.profile)
    assert made.valgrind == pytest.approx(valgrinds(recording.stdout), rel=0.03)


def test_of_a_training_hardly_anything_is_unaccounted() -> None:
    recording = record([PYTHON, ROOT / "tests" / "bench" / "lenet.py", "1"], WITH_PAGES, timeout=600)
    assert recording.returncode == 0, recording.stderr
    profile = recording.profile
    peak = fullest(profile)
    assert peak is not None
    for snapshot in sampled(profile):
        made = books(profile, snapshot)
        assert abs(made.unaccounted) <= 0.03 * made.process, profile.snapshots[snapshot]
    assert books(profile, peak).share_of_peak > 0.9


def test_a_gpus_own_memory_is_what_the_driver_says() -> None:
    """The simulated card keeps 48 MiB for itself, and slabs that small blocks share."""
    env = {"JMSIM_DISCRETE": "1", "LD_LIBRARY_PATH": str(sim_build())}
    profile = record([sim_build() / "programs" / "cuda_storm", "2000"], env=env).profile
    made = device_books(profile)
    assert made is not None and made.board == 4 << 30
    assert made.before + made.held + made.unaccounted + made.free == made.board
    # It is looked at again when a sixteenth and a MiB have come.
    assert made.held >= (profile.peaks["device"].device - MIB) * 16 / 17
    assert abs(made.unaccounted) < 16 * MIB and made.before >= 48 * MIB
    unified = record([sim_build() / "programs" / "cuda_storm", "2000"], env={**env, "JMSIM_DISCRETE": "0"}).profile
    assert device_books(unified) is None  # it is the machine's memory
