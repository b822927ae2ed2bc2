# SPDX-License-Identifier: GPL-2.0-or-later
"""The heap as massif sees it: small deterministic programs, their peaks equal to the byte.

Both tools count what the core's allocator hands out, and both add a header of eight bytes and the rounding to it, so the
useful heap and the rest must be the same figures. massif's own peak is exact with --peak-inaccuracy=0.
"""

from typing import List, NamedTuple

import pytest

from tests.harness import massif
from tests.tool.programs import DIRECTORY, assert_readable, at_peak, library, linked_to, program, run_both


class Case(NamedTuple):
    source: str
    flags: List[str] = []
    is_ordered: bool = True  # the same blocks lie side by side in every run


CASES = [
    Case("malloc_sizes.c", ["-fno-builtin"]),
    Case("calloc_zeroes.c", ["-fno-builtin"]),
    Case("realloc_all_ways.c", ["-fno-builtin", "-Wno-use-after-free"]),
    Case("aligned.c", ["-fno-builtin"]),
    Case("new_delete.cc", ["-std=c++17", "-fsized-deallocation"]),
    Case("absurd_sizes.c", ["-fno-builtin"]),
    Case("libc_allocates.c"),
    Case("containers.cc", ["-std=c++17"]),
    Case("threads.c", ["-pthread"], is_ordered=False),
    Case("custom_allocator.c"),
    Case("never_frees.c", ["-fno-builtin"]),
    Case("tree.c"),
    Case("random_walk.c"),
]
MASSIF = ["--peak-inaccuracy=0.0"]


@pytest.mark.parametrize("case", CASES, ids=[case.source for case in CASES])
def test_the_peak_is_massifs(case: Case) -> None:
    compiled = program(case.source, *case.flags)
    profile = run_both([compiled]).profile
    expected = massif([compiled], MASSIF)
    assert at_peak(profile, "heap") == expected.heap
    # A block takes over a rest of memory that is too small for a block of its own.
    rests = 0 if case.is_ordered else expected.extra // 100
    assert abs(at_peak(profile, "heap-overhead") - expected.extra) <= rests


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
