# SPDX-License-Identifier: GPL-2.0-or-later
"""The arm64 build, cross-compiled and emulated, records what the native build records."""

import re
from pathlib import Path
from typing import Callable, List

import pytest

from jmassif.model.records import DEVICE_KINDS
from tests.fuzz.caches import PROGRAM
from tests.harness import (
    ARM64_SYSROOT,
    Argument,
    Recording,
    allocated_by_function,
    arm64_build,
    compile_arm64,
    compile_c,
    held_at_peak,
    record,
    record_arm64,
    record_arm64_natively,
    run,
    sim_build_arm64,
)

HEAP = r"""
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void *keep(void *p)
{
    static void *volatile kept[64];
    static int n;
    return kept[n++ % 64] = p;
}

void by_malloc(void) { keep(malloc(100)); free(malloc(10)); free(NULL); }
void by_calloc(void) { keep(calloc(7, 11)); }
void by_realloc(void) { keep(realloc(realloc(malloc(50), 500), 5)); }
void by_memalign(void)
{
    void *p;
    keep(memalign(64, 300));
    keep(aligned_alloc(128, 256));
    keep(valloc(40));
    if (posix_memalign(&p, 1024, 90) == 0)
        keep(p);
}
void by_failing(void) { keep(malloc((size_t)-1 / 2)); keep(calloc((size_t)-1, 16)); }
void *by_thread(void *unused) { return keep(strdup("twelve bytes")); }

int main(void)
{
    pthread_t thread;
    by_malloc();
    by_calloc();
    by_realloc();
    by_memalign();
    by_failing();
    pthread_create(&thread, NULL, by_thread, NULL);
    pthread_join(thread, NULL);
    return 5;
}
"""

NEW = r"""
#include <new>

struct alignas(64) Line { char text[128]; };
void *volatile kept[8];

void by_new() { kept[0] = new int; kept[1] = new char[33]; delete new long; delete[] new char[3]; }
void by_nothrow() { kept[2] = new (std::nothrow) char[21]; }
void by_aligned() { kept[3] = new Line; delete new Line; kept[4] = new Line[3]; }

int main()
{
    by_new();
    by_nothrow();
    by_aligned();
    return 5;
}
"""


@pytest.mark.parametrize("record_there", [record_arm64, record_arm64_natively], ids=["valgrind", "native"])
@pytest.mark.parametrize("suffix, text", [(".c", HEAP), (".cc", NEW)], ids=["malloc", "new"])
def test_an_emulated_run_allocates_what_a_native_one_does(
    suffix: str, text: str, record_there: Callable[[List[Path]], Recording]
) -> None:
    flags = ("-O0", "-pthread", "-Wno-alloc-size-larger-than", "-fno-builtin")
    native, emulated = compile_c(text, *flags, suffix=suffix), compile_arm64(text, *flags, suffix=suffix)
    here, there = record([native]), record_there([emulated])
    assert (here.returncode, there.returncode) == (5, 5), there.stderr
    assert there.profile.manifest["arch"] == "arm64"
    expected = allocated_by_function(here.profile, native)
    assert len(expected) >= 3
    if record_there is record_arm64_natively and "main" in expected:  # a thread's table has one more module with TLS
        expected["main"] = (expected["main"][0] + 16, expected["main"][1])
    assert allocated_by_function(there.profile, emulated) == expected


@pytest.mark.parametrize("record_there", [record_arm64, record_arm64_natively], ids=["valgrind", "native"])
@pytest.mark.parametrize("program", ["cuda_mixed", "cuda_static", "cuda_driver"])
def test_an_emulated_run_holds_the_device_memory_that_a_native_one_does(
    sim: Path, program: str, record_there: Callable[[List[Path]], Recording]
) -> None:
    arm64_build()
    here, there = record([sim / "programs" / program]), record_there([sim_build_arm64() / "programs" / program])
    assert (there.returncode, there.stdout) == (here.returncode, here.stdout), there.stderr
    expected = held_at_peak(here.profile, "device", DEVICE_KINDS)
    assert expected
    assert held_at_peak(there.profile, "device", DEVICE_KINDS) == expected


BEYOND_39_BITS = r"""
#include <stdio.h>
#include <sys/mman.h>
int main(void)
{
    void *there = (void *)(1L << 39);
    return mmap(there, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == there;
}
"""


def test_it_records_in_the_39_bits_of_addresses_that_jetsons_kernels_give() -> None:
    flags = ("-O0", "-pthread", "-fno-builtin", "-Wno-alloc-size-larger-than")
    few = {"QEMU_RESERVED_VA": str(1 << 39)}
    beyond: List[Argument] = ["qemu-aarch64-static", "-L", ARM64_SYSROOT, compile_arm64(BEYOND_39_BITS)]
    arm64_build()
    assert run(beyond, env=few).returncode == 0
    arm64, native = compile_arm64(HEAP, *flags), compile_c(HEAP, *flags)
    there = record_arm64([arm64], env=few)
    assert there.returncode == 5, there.stderr
    assert allocated_by_function(there.profile, arm64) == allocated_by_function(record([native]).profile, native)


def test_an_emulated_run_finds_what_the_one_before_has_translated(tmp_path: Path) -> None:
    arm64_build()
    program = compile_arm64(PROGRAM, "-O1", "-lm")
    alone = run(["qemu-aarch64-static", "-L", ARM64_SYSROOT, program])
    for more in ("", "x" * 900):
        again = record_arm64([program], [f"--code-cache={tmp_path}", "--stats=yes"], env={"MORE": more})
        assert (again.returncode, again.stdout) == (alone.returncode, alone.stdout), again.stderr
    told = re.search(r"translations: (\d+) found, (\d+) missing", again.stderr)
    assert told, again.stderr
    found, missing = map(int, told.groups())
    assert found > 1000 and found >= 0.98 * (found + missing)
