# SPDX-License-Identifier: GPL-2.0-or-later
"""The books of the whole process against what it reads of itself in /proc, and how little they leave unexplained."""

import platform
import re
from pathlib import Path
from typing import List, Tuple

import pytest

from jmassif.analysis.balance import MemoryBalance, memory_balance, device_balance, fullest, sampled
from jmassif.render.system import BALANCE
from jmassif.model.run import Profile
from tests.harness import BUILD, PYTHON, ROOT, Recording, compile_c, record, sim_build
from tests.tool.programs import print_report
from tests.torch.finished import trained

MIB = 1 << 20
WITH_PAGES = ["--pages=yes"]
HEADERS = f"-I{ROOT / 'jmassif'}"

SUMS = """
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "jmassif.h"
#define MIB (1 << 20)
static long sum_of(const char *path, const char *format)
{
    FILE *file = fopen(path, "r");
    char line[4096];
    long sum = 0, n;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, format, &n) == 1)
            sum += n;
    fclose(file);
    return sum;
}
"""

# It says what it has done, and what /proc says of all of it: Valgrind's mappings are there as well.
TOUCHES = """
int main(void)
{
    JMASSIF_SNAPSHOT();
    printf("%ld\\n", sum_of("/proc/self/smaps", "Rss: %ld kB") * 1024);
    char *block = malloc(64 * MIB);
    JMASSIF_SNAPSHOT();
    printf("%ld\\n", sum_of("/proc/self/smaps", "Rss: %ld kB") * 1024);
    memset(block, 1, 48 * MIB);
    JMASSIF_SNAPSHOT();
    printf("%ld\\n", sum_of("/proc/self/smaps", "Rss: %ld kB") * 1024);
    return 0;
}
"""


def requested(profile: Profile) -> List[MemoryBalance]:
    return [
        memory_balance(profile, index) for index in sampled(profile) if profile.snapshots[index].reason == "request"
    ]


def test_the_process_is_as_large_as_it_reads_in_proc() -> None:
    recording = record([compile_c(SUMS + TOUCHES, HEADERS, "-fno-builtin")], WITH_PAGES)
    said = [int(line) for line in recording.stdout.split()]
    made = requested(recording.profile)
    assert len(said) == len(made) == 3
    for resident, each in zip(said, made):
        # Reading the file takes a buffer, and pages of the tool's and the program's code that were not there before.
        assert each.process == pytest.approx(resident, abs=2 * MIB)
        assert abs(each.unaccounted) <= 64 * 1024
        assert each.before + each.process + each.elsewhere + each.free == each.board
    # What is asked for has no pages until it is touched.
    assert made[1].untouched - made[0].untouched == pytest.approx(-64 * MIB, abs=MIB)
    assert made[2].untouched - made[1].untouched == pytest.approx(48 * MIB, abs=MIB)
    assert all(0 <= each.allocators < MIB for each in made)
    assert made[2].held == made[1].held == pytest.approx(made[0].held + 64 * MIB, abs=MIB)


# The kernel merges blocks that malloc maps with the program's mappings beside them.
MERGED = """
#include <sys/mman.h>
int main(void)
{
    for (int i = 0; i < 16; i++) {
        memset(malloc(MIB + 4096), 1, MIB);
        memset(mmap(0, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, MIB);
    }
    JMASSIF_SNAPSHOT();
    return 0;
}
"""

LIBRARY = """
static char data[8 * MIB] = {1};
__attribute__((constructor)) static void begin(void)
{
    memset(data, 2, sizeof data);
    JMASSIF_SNAPSHOT();
}
"""

LOADS = """
#include <dlfcn.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int failed = dlopen(argv[1], RTLD_NOW) == NULL;
    usleep(20000); /* figures have their millisecond: those of the end shall have another */
    return failed;
}
"""


def test_blocks_beside_mappings_are_counted_once() -> None:
    (made,) = requested(record([compile_c(SUMS + MERGED, HEADERS, "-fno-builtin")], WITH_PAGES).profile)
    assert abs(made.unaccounted) <= 64 * 1024
    assert made.held >= 32 * MIB


def test_a_library_is_counted_before_it_is_loaded_whole() -> None:
    library = compile_c(SUMS + LIBRARY, HEADERS, "-shared", "-fpic")
    (made,) = requested(record([compile_c(SUMS + LOADS, HEADERS), library], WITH_PAGES).profile)
    assert abs(made.unaccounted) <= 64 * 1024
    assert made.held >= 8 * MIB


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
    profile = trained(1, *WITH_PAGES).profile
    peak = fullest(profile, profile.peaks["total"].time)
    assert peak is not None
    for snapshot in sampled(profile):
        made = memory_balance(profile, snapshot)
        assert abs(made.unaccounted) <= 0.03 * made.process, profile.snapshots[snapshot]
    assert memory_balance(profile, peak).share_of_peak > 0.9


def test_a_gpus_own_memory_is_what_the_driver_says() -> None:
    """The simulated card keeps 48 MiB for itself, and slabs that small blocks share."""
    env = {"JMSIM_DISCRETE": "1", "LD_LIBRARY_PATH": str(sim_build())}
    profile = record([sim_build() / "programs" / "cuda_storm", "2000"], env=env).profile
    made = device_balance(profile)
    assert made is not None and made.board == 4 << 30
    assert made.before + made.held + made.unaccounted + made.free == made.board
    # It is looked at again when a sixteenth and a MiB have come.
    assert made.held >= (profile.peaks["device"].device - MIB) * 16 / 17
    assert abs(made.unaccounted) < 16 * MIB and made.before >= 48 * MIB
    unified = record([sim_build() / "programs" / "cuda_storm", "2000"], env={**env, "JMSIM_DISCRETE": "0"}).profile
    assert device_balance(unified) is None  # it is the machine's memory


# It takes device memory and, outside of the process, as much of the machine's, as a driver's buffers are.
HOLDS = """
#include <fcntl.h>
#include <sys/mman.h>
int cudaMalloc(void **pointer, size_t bytes);
static long free_memory(void)
{
    return sum_of("/proc/meminfo", "MemAvailable: %ld kB") * 1024 + sum_of("/proc/zoneinfo", " count: %ld") * 4096;
}
static void tell(void)
{
    long before = free_memory();
    JMASSIF_SNAPSHOT();
    printf("%ld %ld %ld\\n", sum_of("/proc/self/smaps", "Rss: %ld kB") * 1024, before, free_memory());
}
int main(int argc, char **argv)
{
    void *pointer;
    long device = atol(argv[1]) * MIB, outside = atol(argv[2]) * MIB;
    if (cudaMalloc(&pointer, MIB))
        return 1;
    tell();
    for (int i = 0; i < 4; i++)
        if (cudaMalloc(&pointer, device / 4))
            return 1;
    if (outside && fallocate(memfd_create("buffer", 0), 0, 0, outside))
        return 1;
    memset(malloc(64 * MIB), 1, 48 * MIB);
    tell();
    return 0;
}
"""


def holding(device: int, outside: int, **env: str) -> Recording:
    """The program, with so many MiB of either."""
    sim = sim_build()
    program = compile_c(SUMS + HOLDS, HEADERS, "-fno-builtin", str(sim / "libcudart.so.10.2"), f"-Wl,-rpath,{sim}")
    recording = record([program, str(device), str(outside)], WITH_PAGES, env={"JMSIM_RESERVED": "1", **env}, status=0)
    return recording


def check_books(recording: Recording, device: int) -> Tuple[MemoryBalance, MemoryBalance]:
    """The books of both snapshots are the kernel's, of which so much more device memory is in use. Returns them."""
    before, after = requested(recording.profile)
    (resident_before, *free_before), (resident_after, *free_after) = (
        [int(n) for n in line.split()] for line in recording.stdout.splitlines()
    )
    assert after.board == int(re.findall(r"MemTotal: +(\d+)", Path("/proc/meminfo").read_text())[0]) * 1024
    for made in (before, after):
        assert abs(made.unaccounted) <= 64 * 1024 and not made.is_off
        # The simulated context never writes to its small blocks.
        assert -MIB <= made.allocators <= MIB
        assert sum(row.bytes(made) for row in BALANCE) + made.held == made.board
    # 64 MiB were asked for and 48 written to.
    assert after.untouched - before.untouched == pytest.approx(-16 * MIB, abs=MIB)
    assert after.process - before.process == pytest.approx(resident_after - resident_before + device, abs=2 * MIB)
    # Other programs take and free memory during the snapshots too.
    taken = [
        first - second - (resident_after - resident_before) - device for first in free_before for second in free_after
    ]
    assert min(taken) - 24 * MIB <= after.elsewhere - before.elsewhere <= max(taken) + 24 * MIB
    return before, after


@pytest.mark.parametrize("reserved", ["1", "0"])
def test_a_cards_memory_is_not_taken_from_the_mappings_that_have_its_addresses(reserved: str) -> None:
    recording = holding(3800, 0, JMSIM_DISCRETE="1", JMSIM_RESERVED=reserved)
    assert recording.profile.is_discrete
    _, after = check_books(recording, 0)
    assert after.held < 200 * MIB and after.outside < 16 * MIB
    report = print_report(recording.trace).stdout.split("--- System memory")[1].split("\n---")[0]
    assert "GiB" not in report.split("available ")[0].split("used before the run")[1].split("\n", 1)[1], report
    assert "is unexplained, more" not in report


def test_a_boards_device_memory_is_in_use_outside_of_the_process() -> None:
    recording = holding(256, 256)
    assert not recording.profile.is_discrete
    before, after = check_books(recording, 256 * MIB)
    assert after.outside - before.outside == 256 * MIB


def test_device_memory_that_the_kernel_does_not_have_is_named_where_elsewhere_is_negative() -> None:
    recording = holding(2000, 0)
    _, after = check_books(recording, 2000 * MIB)
    assert after.elsewhere < -1000 * MIB
    report = " ".join(print_report(recording.trace).stdout.split())
    assert re.search(r"freed by others since -\S+ GiB \S+ %", report)
    assert "Or the kernel does not count 1.9" in report


# Only read, and so mapped to the page of zeros, or blocks too small to be measured.
READS = """
#include <stdlib.h>
#include "jmassif.h"
int main(void)
{
    volatile char *block = malloc(32 << 20);
    for (long i = 0; i < 32 << 20; i += 4096)
        (void)block[i];
    JMASSIF_SNAPSHOT();
    return 0;
}
"""


def test_what_was_only_read_makes_a_negative_row_that_says_so() -> None:
    recording = record([compile_c(READS, HEADERS, "-fno-builtin")], WITH_PAGES)
    (made,) = requested(recording.profile)
    assert made.untouched + made.allocators == pytest.approx(-32 * MIB, abs=MIB)
    for row in BALANCE[1:]:
        assert row.bytes(made) >= 0 or row.negative
