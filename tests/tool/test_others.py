# SPDX-License-Identifier: GPL-2.0-or-later
"""What other tools would have shown, against the tools themselves and what the program reads of itself."""

import re

import pytest

from jmassif.analysis.moments import select
from jmassif.analysis.other_tools import Shown, others
from tests.harness import ROOT, Recording, compile_c, massif, record, sim_build

MIB = 1 << 20
HEADERS = f"-I{ROOT / 'jmassif'}"

# The heap's peak, then device memory, then what the kernel and the driver say at a snapshot.
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "jmassif.h"
int cudaMalloc(void **pointer, size_t bytes);
int cudaMemGetInfo(size_t *free, size_t *total);
static void print(const char *path, const char *label)
{
    FILE *file = fopen(path, "r");
    char line[256];
    while (fgets(line, sizeof line, file))
        if (strncmp(line, label, strlen(label)) == 0)
            printf("%s", line);
    fclose(file);
}
int main(void)
{
    void *pointer;
    size_t free_bytes, total_bytes;
    char *block = malloc(30 << 20);
    memset(block, 1, 30 << 20);
    if (cudaMalloc(&pointer, 200 << 20))
        return 1;
    JMASSIF_SNAPSHOT();
    print("/proc/self/status", "VmRSS:");
    print("/proc/self/status", "VmSize:");
    static const char *const meminfo[] = {"MemTotal:", "MemFree:", "Buffers:", "Cached:", "SReclaimable:"};
    for (int i = 0; i < 5; i++)
        print("/proc/meminfo", meminfo[i]);
    if (cudaMemGetInfo(&free_bytes, &total_bytes))
        return 1;
    printf("Used: %zu kB\\n", (total_bytes - free_bytes) >> 10);
    free(block);
    return 0;
}
"""


def program() -> str:
    sim = sim_build()
    return str(compile_c(PROGRAM, HEADERS, "-fno-builtin", str(sim / "libcudart.so.10.2"), f"-Wl,-rpath,{sim}"))


def shown(recording: Recording, selector: str, figure: str) -> Shown:
    return next(row for row in others(recording.profile, select(recording.profile, selector)) if row.figure == figure)


def requested(recording: Recording) -> str:
    return next(str(snapshot.id) for snapshot in recording.profile.snapshots if snapshot.reason == "request")


@pytest.mark.parametrize("discrete", ["0", "1"])
def test_the_kernels_and_the_drivers_figures_are_what_the_program_reads(discrete: str) -> None:
    recording = record([program()], ["--pages=yes"], env={"JMSIM_DISCRETE": discrete})
    said = {name: int(n) * 1024 for name, n in re.findall(r"^(\w+):\s+(\d+) kB$", recording.stdout, re.MULTILINE)}
    at = requested(recording)
    assert shown(recording, at, "RES").bytes == pytest.approx(said["VmRSS"], abs=MIB)
    assert shown(recording, at, "VIRT").bytes == pytest.approx(said["VmSize"], abs=MIB)
    assert re.search(r"here 3[0-9]\.\d MiB are the program's own", shown(recording, at, "RES").leaves_out)
    figures = [row.figure for row in others(recording.profile, select(recording.profile, at))]
    if discrete == "1":
        assert shown(recording, at, "memory used").bytes == said["Used"] and "RAM" not in figures
    else:
        used = said["MemTotal"] - sum(said[name] for name in ("MemFree", "Buffers", "Cached", "SReclaimable"))
        assert shown(recording, at, "RAM").bytes == pytest.approx(used, abs=64 * MIB)  # other programs come and go
        assert "memory used" not in figures
    # Nobody has a caching allocator here.
    assert not any(
        row.tool in ("torch.cuda", "its allocator") for row in others(recording.profile, select(recording.profile, at))
    )


def test_massifs_figure_is_massifs_peak() -> None:
    recording = record([program()])
    expected = massif([program()])
    row = shown(recording, "peak-allocated" if "allocated" in recording.profile.peaks else "peak", "heap")
    assert row.bytes == pytest.approx(expected.heap + expected.extra, rel=0.002) and row.sampled_at is None
