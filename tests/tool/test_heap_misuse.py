# SPDX-License-Identifier: GPL-2.0-or-later
"""What programs should not do with the heap, and what only some do: the recorder counts it and goes on.

Where the C library would abort (frees of pointers that it never gave out), the recorder, like massif, passes it over and
says so in the trace's counters.
"""

from typing import Sequence

from tests.harness import Recording, compile_c, record
from tests.tool.programs import assert_readable, at_peak, live_at

PRELUDE = """
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <valgrind/valgrind.h>
static char region[1 << 20];
"""


def run_main(body: str, options: Sequence[str] = ()) -> Recording:
    text = f"{PRELUDE}\nint main(void)\n{{\n{body}\nreturn 7;\n}}\n"
    recording = record([compile_c(text, "-fno-builtin", "-w")], options)
    assert recording.returncode == 7, recording.stderr
    assert_readable(recording.trace)
    return recording


def test_frees_of_what_was_never_allocated_are_counted() -> None:
    recording = run_main(
        """
        char *p = malloc(100), *kept = malloc(50);
        free(p + 16); free(region); free((void *)8); free(p); free(p); free(kept - 16);
        free(NULL);
        """
    )
    assert recording.profile.counters == {"free-of-unknown-pointer": 5}
    assert at_peak(recording.profile, "heap") == 150
    assert live_at(recording.profile, -1) == 50


def test_reallocs_of_what_was_never_allocated_give_nothing() -> None:
    recording = run_main(
        """
        char *p = malloc(100);
        puts(realloc(p + 16, 10) || realloc(region, 10) ? "memory" : "nothing");
        printf("%zu\\n", malloc_usable_size(region));
        """
    )
    assert recording.stdout == "nothing\n0\n"
    assert recording.profile.counters == {"realloc-of-unknown-pointer": 2}


def test_sizes_that_overflow_with_the_allocators_own_needs_fail() -> None:
    recording = run_main(
        """
        int failed = 0;
        char *kept = malloc(100);
        for (size_t less = 1; less < 100000; less = less * 3 + 1) {
            failed += !malloc(SIZE_MAX - less);
            failed += !malloc((SIZE_MAX >> 1) - less);
            failed += !calloc(1, (SIZE_MAX >> 1) - less);
            failed += !realloc(kept, (SIZE_MAX >> 1) - less);
            failed += !realloc(kept, SIZE_MAX / 4 * 3 - less);
            failed += !memalign(4096, (SIZE_MAX >> 1) - less);
            failed += !memalign((size_t)1 << 62, 100);
        }
        printf("%d %s\\n", failed, errno == ENOMEM ? "ENOMEM" : "?");
        free(kept);
        """
    )
    assert recording.stdout == "77 ENOMEM\n"
    assert recording.profile.counters == {"heap-allocation-failed": 77}


def test_large_alignments_are_kept() -> None:
    recording = run_main(
        """
        void *p = memalign(1 << 21, 5), *q = NULL;
        int error = posix_memalign(&q, 1 << 20, 3000000);
        printf("%d %d %d\\n", error, (int)((uintptr_t)p % (1 << 21)), (int)((uintptr_t)q % (1 << 20)));
        free(p);
        q = realloc(q, 4000000);
        free(q);
        """
    )
    assert recording.stdout == "0 0 0\n"


def test_realloc_carries_all_that_malloc_usable_size_promises() -> None:
    """Programs such as servers with counters of their own write to every usable byte, whatever they asked for."""
    recording = run_main(
        """
        int lost = 0, cut = 0;
        for (size_t size = 1; size < 6000; size++) {
            char *p = malloc(size);
            for (int step = 0; step < 6; step++) {
                size_t usable = malloc_usable_size(p), to = (size_t[]){usable + 1, size / 2 + 1, usable + 5000,
                                                                      size, 3 * usable, 9}[step];
                memset(p, 1 + step, usable);
                p = realloc(p, to);
                for (size_t i = 0; i < usable && i < to; i++)
                    if (p[i] != 1 + step) {
                        lost++;
                        break;
                    }
                cut += malloc_usable_size(p) < to;
            }
            free(p);
        }
        printf("%d lost, %d too small\\n", lost, cut);
        """
    )
    assert recording.stdout == "0 lost, 0 too small\n"


def test_new_and_free_may_be_mixed() -> None:
    text = """
    #include <cstdlib>
    #include <new>
    int main()
    {
        std::free(new int[100]);
        delete static_cast<char *>(std::malloc(10));
        ::operator delete(std::malloc(20), std::align_val_t(64));
        return 7;
    }
    """
    recording = record([compile_c(text, "-std=c++17", "-w", suffix=".cc")])
    assert recording.returncode == 7, recording.stderr
    assert not recording.profile.counters
    assert live_at(recording.profile, -1) == 0


def test_realloc_without_any_header() -> None:
    """Blocks that lose nothing to rounding, and have no header, have no overhead at all."""
    recording = run_main("free(realloc(malloc(16), 32)); free(realloc(malloc(64), 48));", ["--heap-admin=0"])
    assert at_peak(recording.profile, "heap") == 64
    assert at_peak(recording.profile, "heap-overhead") == 0


def test_a_custom_block_is_gone_when_its_memory_is_handed_out_again() -> None:
    """A pool that drops its region without announcing the end of every block."""
    recording = run_main(
        """
        char *pool = malloc(4096);
        for (int i = 0; i < 4096; i += 16)
            VALGRIND_MALLOCLIKE_BLOCK(pool + i, 16, 0, 0);
        free(pool);
        for (int i = 0; i < 2000; i++)
            ((char *)malloc(24))[0] = 1;
        """
    )
    # What malloc did not reuse still counts: nobody has said that it is gone.
    custom = 4096 - 16
    assert 2000 * 24 <= live_at(recording.profile, -1) <= 2000 * 24 + custom


def test_a_custom_block_at_the_start_of_its_region_leaves_the_region_alone() -> None:
    recording = run_main(
        """
        for (int i = 0; i < 100; i++) {
            char *pool = malloc(1 << 20);
            VALGRIND_MALLOCLIKE_BLOCK(pool, 100, 0, 0);
            VALGRIND_FREELIKE_BLOCK(pool, 0);
            free(pool);
        }
        """
    )
    assert "free-of-unknown-pointer" not in recording.profile.counters
    assert live_at(recording.profile, -1) == 0
    assert at_peak(recording.profile, "heap") == 1 << 20


def test_free_of_a_custom_block_is_counted() -> None:
    recording = run_main(
        """
        VALGRIND_MALLOCLIKE_BLOCK(region, 100, 0, 0);
        VALGRIND_MALLOCLIKE_BLOCK(region + 512, 100, 0, 0);
        free(region);
        printf("%s\\n", realloc(region + 512, 200) ? "memory" : "nothing");
        printf("%d\\n", malloc_usable_size(region + 512) > 100);
        """
    )
    assert recording.stdout == "nothing\n0\n"
    assert recording.profile.counters == {"free-of-unknown-pointer": 1, "realloc-of-unknown-pointer": 1}
    assert live_at(recording.profile, -1) == 200


def test_announcements_about_unknown_blocks_are_counted() -> None:
    recording = run_main(
        """
        VALGRIND_FREELIKE_BLOCK(region, 0);
        VALGRIND_RESIZEINPLACE_BLOCK(region, 10, 20, 0);
        VALGRIND_MALLOCLIKE_BLOCK(NULL, 10, 0, 0);
        """
    )
    assert recording.profile.counters == {"free-of-unknown-pointer": 1, "realloc-of-unknown-pointer": 1}


def test_without_the_heap_the_heap_works_all_the_same() -> None:
    recording = run_main(
        """
        char *p = realloc(calloc(100, 3), 9000);
        VALGRIND_MALLOCLIKE_BLOCK(region, 100, 0, 0);
        VALGRIND_RESIZEINPLACE_BLOCK(region, 100, 200, 0);
        VALGRIND_FREELIKE_BLOCK(region, 0);
        printf("%d\\n", p[299] + realloc(p, 100) != NULL);
        free(malloc(0));
        """,
        ["--heap=no"],
    )
    assert not recording.profile.counts()


def test_what_is_written_beyond_a_small_block_breaks_nothing_of_the_recorders() -> None:
    recording = run_main(
        """
        for (size_t size = 0; size <= 4096; size += 128) {
            char *p = malloc(size), *q = malloc(size);
            memset(p - (size_t)p % 65536, 0xff, 65536);
            free(q); free(p);
            free(realloc(malloc(size), size + 1));
        }
        malloc(30);
        """
    )
    assert live_at(recording.profile, -1) == 30
    assert recording.profile.counters == {}
