# SPDX-License-Identifier: GPL-2.0-or-later
"""What programs should not do with the heap, and what only some do: the recorder counts it and goes on.

Where the C library would abort (frees of pointers that it never gave out), the recorder, like massif, passes it over and
says so in the trace's counters.
"""

import shutil
from typing import Dict, NamedTuple, Optional, Sequence

import pytest

from tests.harness import Recording, compile_c, record
from tests.tool.programs import assert_readable, at_peak, live_at, run_both

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
    recording = record([compile_c(text, "-fno-builtin", "-w")], options, status=7)
    assert_readable(recording.trace)
    return recording


class Case(NamedTuple):
    body: str
    stdout: str = ""
    counters: Dict[str, int] = {}
    peak: Optional[int] = None
    live: Optional[int] = None


CASES = {
    "frees_of_what_was_never_allocated_are_counted": Case(
        """
        char *p = malloc(100), *kept = malloc(50);
        free(p + 16); free(region); free((void *)8); free(p); free(p); free(kept - 16);
        free(NULL);
        """,
        counters={"free-of-unknown-pointer": 5},
        peak=150,
        live=50,
    ),
    "reallocs_of_what_was_never_allocated_give_nothing": Case(
        """
        char *p = malloc(100);
        puts(realloc(p + 16, 10) || realloc(region, 10) ? "memory" : "nothing");
        printf("%zu\\n", malloc_usable_size(region));
        """,
        stdout="nothing\n0\n",
        counters={"realloc-of-unknown-pointer": 2},
    ),
    "sizes_that_overflow_with_the_allocators_own_needs_fail": Case(
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
        """,
        stdout="77 ENOMEM\n",
        counters={"heap-allocation-failed": 77},
    ),
    # Programs such as servers with counters of their own write to every usable byte, whatever they asked for.
    "realloc_carries_all_that_malloc_usable_size_promises": Case(
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
        """,
        stdout="0 lost, 0 too small\n",
    ),
    "every_alignment_is_kept": Case(
        """
        for (int bits = 3; bits < 25; bits++) {
            size_t align = (size_t)1 << bits;
            void *p = memalign(align, 100), *q = NULL, *r = aligned_alloc(align, 100000);
            posix_memalign(&q, align, bits);
            if (!p || !q || !r || ((uintptr_t)p | (uintptr_t)q | (uintptr_t)r) % align)
                printf("%d: %p %p %p\\n", bits, p, q, r);
            memset(p, 1, malloc_usable_size(p));
            memset(r, 2, malloc_usable_size(r));
            r = realloc(realloc(r, 50), 4000000);
            printf("%d", ((char *)r)[49] - 2);
            free(p); free(q); free(r);
        }
        """,
        stdout="0" * 22,
        live=0,
    ),
    "a_custom_block_at_the_start_of_its_region_leaves_the_region_alone": Case(
        """
        for (int i = 0; i < 100; i++) {
            char *pool = malloc(1 << 20);
            VALGRIND_MALLOCLIKE_BLOCK(pool, 100, 0, 0);
            VALGRIND_FREELIKE_BLOCK(pool, 0);
            free(pool);
        }
        """,
        peak=1 << 20,
        live=0,
    ),
    "free_of_a_custom_block_is_counted": Case(
        """
        VALGRIND_MALLOCLIKE_BLOCK(region, 100, 0, 0);
        VALGRIND_MALLOCLIKE_BLOCK(region + 512, 100, 0, 0);
        free(region);
        printf("%s\\n", realloc(region + 512, 200) ? "memory" : "nothing");
        printf("%d\\n", malloc_usable_size(region + 512) > 100);
        """,
        stdout="nothing\n0\n",
        counters={"free-of-unknown-pointer": 1, "realloc-of-unknown-pointer": 1},
        live=200,
    ),
    "announcements_about_unknown_blocks_are_counted": Case(
        """
        VALGRIND_FREELIKE_BLOCK(region, 0);
        VALGRIND_RESIZEINPLACE_BLOCK(region, 10, 20, 0);
        VALGRIND_MALLOCLIKE_BLOCK(NULL, 10, 0, 0);
        """,
        counters={"free-of-unknown-pointer": 1, "realloc-of-unknown-pointer": 1},
    ),
    "what_is_written_beyond_a_small_block_breaks_nothing_of_the_recorders": Case(
        """
        for (size_t size = 0; size <= 4096; size += 128) {
            char *p = malloc(size), *q = malloc(size);
            memset(p - (size_t)p % 65536, 0xff, 65536);
            free(q); free(p);
            free(realloc(malloc(size), size + 1));
        }
        malloc(30);
        """,
        live=30,
    ),
}


@pytest.mark.parametrize("name", list(CASES))
def test_the_recorder_goes_on(name: str) -> None:
    case, recording = CASES[name], run_main(CASES[name].body)
    assert (recording.stdout, recording.profile.counters) == (case.stdout, case.counters)
    assert case.peak is None or at_peak(recording.profile, "heap") == case.peak
    assert case.live is None or live_at(recording.profile, -1) == case.live


def test_what_fails_says_so_as_the_c_library_does() -> None:
    """Addresses differ, so results are told as yes or no, with errno."""
    text = f"""{PRELUDE}
    #define TELL(call) (errno = 0, printf("%-40s %d", #call, (call) != NULL), printf(" %d\\n", errno))
    int main(void)
    {{
        void *p = NULL;
        int error;
        TELL(malloc((size_t)1 << 46)); TELL(malloc(SIZE_MAX / 2 + 1)); TELL(malloc(SIZE_MAX));
        TELL(calloc(SIZE_MAX / 2, 4)); TELL(calloc((size_t)1 << 46, 1));
        TELL(realloc(malloc(1), (size_t)1 << 46)); TELL(reallocarray(malloc(1), SIZE_MAX / 2, 4));
        TELL(aligned_alloc(64, SIZE_MAX)); TELL(aligned_alloc(64, SIZE_MAX - 10)); TELL(aligned_alloc(64, SIZE_MAX / 2 + 10));
        TELL(memalign(4096, SIZE_MAX - 10)); TELL(memalign((size_t)1 << 30, SIZE_MAX / 2));
        TELL(valloc(SIZE_MAX - 100)); TELL(valloc(5000)); TELL(pvalloc(SIZE_MAX - 100)); TELL(pvalloc(5000));
        error = posix_memalign(&p, 3, 100); printf("%d\\n", error);
        error = posix_memalign(&p, 64, SIZE_MAX - 100); printf("%d\\n", error);
        printf("%d\\n", (int)((uintptr_t)pvalloc(1) % 4096));
        return 0;
    }}
    """
    run_both([compile_c(text, "-fno-builtin", "-w")])


def test_a_new_that_fails_throws() -> None:
    text = """
    #include <cstdio>
    #include <new>
    #include <thread>
    static int calls;
    static void handler()
    {
        if (++calls == 3)
            std::set_new_handler(nullptr);
    }
    template <typename Allocate> static void tell(const char *name, Allocate allocate)
    {
        try {
            std::printf("%s: %s\\n", name, allocate() ? "memory" : "none");
        } catch (std::bad_alloc &) {
            std::printf("%s: bad_alloc, %d calls\\n", name, calls);
        }
    }
    int main()
    {
        const std::size_t huge = (std::size_t)1 << 46;
        const std::align_val_t aligned{256};
        tell("nothrow", [&] { return operator new(huge, std::nothrow); });
        tell("nothrow []", [&] { return operator new[](huge, std::nothrow); });
        tell("nothrow aligned", [&] { return operator new(huge, aligned, std::nothrow); });
        std::set_new_handler(handler);
        tell("new", [&] { return operator new(huge); });
        tell("new []", [&] { return operator new[](huge); });
        tell("aligned", [&] { return operator new(huge, aligned); });
        tell("aligned []", [&] { return operator new[](huge, aligned); });
        std::thread([&] { tell("in a thread", [&] { return operator new(huge); }); }).join();
        tell("small", [&] { return operator new(10); });
    }
    """
    for linking in ((), ("-static-libstdc++", "-static-libgcc")):
        run_both([compile_c(text, "-std=c++17", "-pthread", *linking, suffix=".cc")])


def test_the_first_wild_free_is_told() -> None:
    recording = run_main("free(region); free(region + 16);")
    told = [line for line in recording.stderr.splitlines() if "no block of malloc's" in line]
    assert len(told) == 1, recording.stderr


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
    recording = record([compile_c(text, "-std=c++17", "-w", suffix=".cc")], status=7)
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


def test_a_custom_block_that_is_announced_again_counts_once() -> None:
    recording = run_main(
        """
        for (int i = 0; i < 10; i++)
            VALGRIND_MALLOCLIKE_BLOCK(region, 100 + i, 0, 0);
        """
    )
    assert live_at(recording.profile, -1) == 109
    assert at_peak(recording.profile, "heap") == 109


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


WEAK = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char pool[1 << 16];
static size_t used;

__attribute__((weak)) void *malloc(size_t n)
{
    used += (n + 15) / 16 * 16;
    return pool + used - (n + 15) / 16 * 16;
}

int main(void)
{
    char *p = malloc(100);
    strcpy(p, "kept");
    p = realloc(p, 5000);
    if (!p || strcmp(p, "kept") != 0)
        return 1;
    free(p);
    return 0;
}
"""


def test_a_weak_malloc_is_replaced_as_the_rest_is() -> None:
    """As musl has it: the others are global."""
    recording = record([compile_c(WEAK, "-fno-builtin")], status=0)
    assert not [line for line in recording.trace.read_text().splitlines() if line.startswith("k ")]


@pytest.mark.skipif(shutil.which("musl-gcc") is None, reason="musl-gcc is not installed")
def test_a_program_of_musls_has_its_heap_in_the_ledger() -> None:
    text = """
    #include <stdlib.h>
    #include <string.h>
    int main(void)
    {
        char *p = malloc(123456), *aligned = aligned_alloc(64, 640), *zeroes = calloc(10, 1000);
        memset(p, 1, 123456);
        p = realloc(p, 200000);
        if (!p || p[123455] != 1 || !aligned || zeroes[9999])
            return 1;
        free(aligned);
        free(zeroes);
        return 0;
    }
    """
    recording = record([compile_c(text, "-fno-builtin", compiler="musl-gcc")], status=0)
    assert live_at(recording.profile, -1) == 200000
