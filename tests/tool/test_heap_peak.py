# SPDX-License-Identifier: GPL-2.0-or-later
"""The heap as massif sees it: small deterministic programs, their peaks equal to the byte.

Both tools add a header of eight bytes and the rounding to what is asked for, so the useful heap must be the same figure,
and the rest nearly (is_massifs_extra says by how much it may differ). massif's own peak is exact with --peak-inaccuracy=0.

massif never gives back what a shrinking realloc frees, and counts it as overhead; the C library does, and so do we. So
programs are compared with it without such calls, and with them with what they have counted themselves.
"""

import re
from typing import List, NamedTuple

import pytest

from tests.harness import massif, record
from tests.tool.programs import (
    DIRECTORY,
    LARGEST_REST,
    assert_readable,
    at_peak,
    is_massifs_extra,
    library,
    linked_to,
    live_at,
    program,
    run_both,
)


class Case(NamedTuple):
    source: str
    flags: List[str] = []
    is_trimmed: bool = False  # the C library shrinks blocks in it


CASES = [
    Case("malloc_sizes.c", ["-fno-builtin"]),
    Case("calloc_zeroes.c", ["-fno-builtin"]),
    Case("aligned.c", ["-fno-builtin"]),
    Case("new_delete.cc", ["-std=c++17", "-fsized-deallocation"]),
    Case("absurd_sizes.c", ["-fno-builtin"]),
    Case("libc_allocates.c", is_trimmed=True),
    Case("containers.cc", ["-std=c++17"]),
    Case("threads.c", ["-pthread"]),
    Case("custom_allocator.c"),
    Case("never_frees.c", ["-fno-builtin"]),
    Case("tree.c"),
    Case("random_walk.c", ["-DNEVER_SHRINKS"]),
]
MASSIF = ["--peak-inaccuracy=0.0", "--depth=1"]


@pytest.mark.parametrize("case", CASES, ids=[case.source for case in CASES])
def test_the_peak_is_massifs(case: Case) -> None:
    compiled = program(case.source, *case.flags)
    profile = run_both([compiled]).profile
    expected = massif([compiled], MASSIF)
    assert at_peak(profile, "heap") == expected.heap
    assert case.is_trimmed or is_massifs_extra(profile, expected.extra)
    assert at_peak(profile, "heap-overhead") <= expected.extra


def test_realloc_in_all_ways() -> None:
    recording = run_both([program("realloc_all_ways.c", "-fno-builtin", "-Wno-use-after-free")])
    assert at_peak(recording.profile, "heap") == 500000
    assert at_peak(recording.profile, "heap-overhead") <= 8 + LARGEST_REST


def test_a_walk_that_shrinks_blocks_holds_what_it_counts() -> None:
    recording = run_both([program("random_walk.c")])
    live, most = map(int, re.findall(r"[0-9]+", recording.stdout))
    assert live_at(recording.profile, -1) == live
    assert at_peak(recording.profile, "heap") == most


def test_an_allocator_of_ones_own_is_seen_by_its_synonym() -> None:
    own_malloc = library(DIRECTORY / "own_malloc.c", "libownmalloc.so", "-fno-builtin")
    compiled = program("uses_own_malloc.c", *linked_to(own_malloc))
    synonym = "--soname-synonyms=somalloc=libownmalloc*"
    seen = massif([compiled], [*MASSIF, synonym])
    assert seen.heap > 50 * 1000
    assert at_peak(run_both([compiled], synonym).profile, "heap") == seen.heap
    # The counter-check: here the library's calls are its own business.
    no_synonym = "--soname-synonyms=somalloc=nouserintercepts"
    assert massif([compiled], [*MASSIF, no_synonym]).heap == 0
    recording = run_both([compiled], no_synonym)
    assert not recording.profile.peaks
    assert_readable(recording.trace)


@pytest.mark.parametrize("n", [25000, pytest.param(100000, id="at_length")])
def test_blocks_of_all_sizes_keep_to_themselves(n: int) -> None:
    flags = ("-fno-builtin", "-O2", f"-DN={n}")
    compiled = program("slabs.c", *flags, "-DNEVER_SHRINKS")
    recording = run_both([compiled])
    assert at_peak(recording.profile, "heap") == massif([compiled], MASSIF).heap
    for each in (recording, run_both([program("slabs.c", *flags)])):
        assert live_at(each.profile, -1) == int(each.stdout)


def test_memory_that_was_freed_goes_back_to_the_kernel() -> None:
    with_blocks, without = map(int, record([program("gives_back.c", "-fno-builtin")]).stdout.split())
    assert with_blocks - without > 50 * 1024
