# SPDX-License-Identifier: GPL-2.0-or-later
"""A block that shrinks gives back what it no longer needs, as the C library's does."""

import pytest

from tests.harness import Recording, compile_c, record, run
from tests.tool.programs import at_peak, live_at

# Buffers are filled and then trimmed; what the kernel then counts as resident is printed, in KiB, and how many blocks lost
# their contents.
TRIMS = """
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long resident_kib(void)
{
    long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (!statm || fscanf(statm, "%*d %ld", &pages) != 1)
        abort();
    fclose(statm);
    return pages * (getpagesize() / 1024);
}

int main(int argc, char **argv)
{
    size_t from = strtoul(argv[1], NULL, 10), to = strtoul(argv[2], NULL, 10), align = strtoul(argv[3], NULL, 10);
    int n = atoi(argv[4]), lost = 0;
    char **kept = calloc(n, sizeof *kept);
    long before = resident_kib();
    for (int i = 0; i < n; i++) {
        kept[i] = memalign(align, from);
        memset(kept[i], 1 + i % 100, from);
        kept[i] = realloc(kept[i], to);
    }
    long held = resident_kib() - before;
    for (int i = 0; i < n; i++) {
        for (size_t at = 0; at < to; at++)
            lost += kept[i][at] != 1 + i % 100;
        lost += malloc_usable_size(kept[i]) < to;
        memset(kept[i], 0, malloc_usable_size(kept[i]));
    }
    printf("%ld %d", held, lost);
    return 0;
}
"""

MIB = 1 << 20


def trimmed(start: int, end: int, n: int, align: int = 16) -> Recording:
    recording = record([compile_c(TRIMS, "-fno-builtin"), str(start), str(end), str(align), str(n)], status=0)
    return recording


@pytest.mark.parametrize(
    "start, end, align, n",
    [
        pytest.param(100000, 10, 16, 1000, id="to-a-few-bytes"),
        pytest.param(100000, 9000, 16, 1000, id="to-a-tenth"),
        pytest.param(4000, 10, 16, 20000, id="between-small-sizes"),
        pytest.param(3 * MIB, 10, 16, 40, id="of-a-mapping-of-its-own"),
        pytest.param(9 * MIB, 5 * MIB, 16, 20, id="whole-pages-of-a-mapping"),
        pytest.param(100000, 9000, 4096, 1000, id="aligned"),
    ],
)
def test_a_shrunk_block_gives_the_rest_back(start: int, end: int, align: int, n: int) -> None:
    recording = trimmed(start, end, n, align)
    held_kib, n_lost = map(int, recording.stdout.split())
    assert n_lost == 0
    native = run([compile_c(TRIMS, "-fno-builtin"), str(start), str(end), str(align), str(n)])
    native_kib = int(native.stdout.split()[0])
    # The recorder's own memory grows beside the program's, by its table of blocks.
    assert held_kib <= 2 * native_kib + 4096
    overhead = live_at(recording.profile, -1, "heap-overhead")
    assert overhead <= 64 * (n + 10) + (4096 + 64) * (n if end > MIB else 0)
    assert at_peak(recording.profile, "heap") >= n * end


def test_the_rest_of_a_shrunk_block_is_used_again() -> None:
    """What is given back between live blocks is memory for others, not a hole."""
    program = compile_c(
        """
        #include <stdint.h>
        #include <stdio.h>
        #include <stdlib.h>
        int main(void)
        {
            uintptr_t lowest = UINTPTR_MAX, highest = 0;
            for (int i = 0; i < 20000; i++) {
                uintptr_t at = (uintptr_t)realloc(malloc(60000), 5000);
                lowest = at < lowest ? at : lowest;
                highest = at > highest ? at : highest;
            }
            printf("%zu", (size_t)(highest - lowest));
            return 0;
        }
        """,
        "-fno-builtin",
    )
    span = int(record([program]).stdout)
    assert span < 2 * 20000 * 5000


def test_memory_that_holds_translated_code_shrinks_without_harm() -> None:
    """The core cannot unmap what it has translated code of (it asserts that there is none)."""
    program = compile_c(
        """
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/mman.h>
        static int answer(void) { return 42; }
        int main(void)
        {
            size_t bytes = 9 << 20;
            char *p = malloc(bytes), *page = (char *)(((size_t)p + bytes / 2) & ~(size_t)4095);
            memcpy(page, (void *)answer, 64);
            mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
            int got = ((int (*)(void))page)();
            p = realloc(p, 5000);
            p = realloc(p, 9 << 20);
            printf("%d %d", got, p != NULL);
            return 0;
        }
        """,
        "-fno-builtin",
        "-O1",
        "-fcf-protection=none",
    )
    recording = record([program])
    assert (recording.returncode, recording.stdout) == (0, "42 1"), recording.stderr
