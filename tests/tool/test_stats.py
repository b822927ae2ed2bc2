# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorder's own memory, as Valgrind's allocator says by --profile-heap=yes."""

import pytest

from tests.harness import Recording, compile_c, record
from tests.tool.programs import own_memory

# argv[1] blocks of argv[2] bytes that live to the end, from 1024 call stacks.
KEEPS = """
#include <stdlib.h>
static size_t size;
static void *step(unsigned path, int depth);
static __attribute__((noinline)) void *other(unsigned path, int depth)
{
    void *volatile p = step(path, depth);
    return p;
}
static __attribute__((noinline)) void *step(unsigned path, int depth)
{
    void *volatile p = depth == 0 ? malloc(size) : path & 1 ? step(path / 2, depth - 1) : other(path / 2, depth - 1);
    return p;
}
int main(int argc, char **argv)
{
    size = (size_t)atoi(argv[2]);
    for (unsigned i = 0; i < (unsigned)atoi(argv[1]); i++)
        step(i, 10);
    return 0;
}
"""


SMALL = 24
LARGE = 5000


def keeping(n: int, size: int) -> Recording:
    return record([compile_c(KEEPS, "-fno-builtin"), str(n), str(size)], ["--profile-heap=yes"])


@pytest.mark.parametrize("n", [20000, 24000, 29000, 35000])
@pytest.mark.parametrize("size, table, least, most", [(SMALL, "jm.slab", 6, 7), (LARGE, "jm.blocks", 16, 43)])
def test_a_live_block_takes_few_bytes(n: int, size: int, table: str, least: int, most: int) -> None:
    assert least * n <= own_memory(keeping(n, size))[table] <= most * n
