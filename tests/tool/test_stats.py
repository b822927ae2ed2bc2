# SPDX-License-Identifier: GPL-2.0-or-later
"""--stats=yes: what the recorder says of its own memory, against what Valgrind's allocator says of it."""

import re
from typing import Dict

import pytest

from tests.harness import Recording, compile_c, record

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
    return record([compile_c(KEEPS, "-fno-builtin"), str(n), str(size)], ["--stats=yes", "--profile-heap=yes"])


def rows_of(recording: Recording, what: str) -> int:
    found = re.search(rf" jmassif: .* ([\d,]+) {what}$", recording.stderr, re.MULTILINE)
    assert found, recording.stderr
    return int(found.group(1).replace(",", ""))


def bytes_of(stderr: str, pattern: str) -> Dict[str, int]:
    """By cost centre."""
    sums: Dict[str, int] = {}
    for bytes_, centre in re.findall(pattern, stderr, re.MULTILINE):
        sums[centre] = sums.get(centre, 0) + int(bytes_.replace(",", ""))
    return sums


@pytest.mark.parametrize("size, table", [(SMALL, "jm.slab"), (LARGE, "jm.blocks")])
def test_the_recorders_memory_is_what_valgrinds_allocator_has_given_it(size: int, table: str) -> None:
    stderr = keeping(20000, size).stderr
    told = bytes_of(stderr, r" jmassif: +([\d,]+) bytes in (jm\.\S+)")
    # Said again whenever the arena has grown.
    known = bytes_of(stderr[stderr.rindex('Arena "core"') :], r"^ +([\d,]+) in +[\d,]+: (jm\.\S+)")
    assert {table, "jm.node", "jm.account", "jm.frame", "jm.location", "jm.trace", "jm.trace.strings"} <= set(told)
    for centre, bytes_ in known.items():
        # The allocator's own rounding is in what it says; names and options are not worth a row.
        assert told.get(centre, 0) <= bytes_ <= 1.02 * told.get(centre, 0) + 16384, centre
    # An array that grows has room for half as much again.
    assert 0.98 * sum(known.values()) <= sum(told.values()) <= sum(known.values())


def test_live_blocks_nodes_and_accounts_are_counted() -> None:
    few, many = keeping(1000, SMALL), keeping(5000, SMALL)
    assert rows_of(many, "live small blocks") - rows_of(few, "live small blocks") == 4000
    # The last 24 of the 1024 stacks.
    assert rows_of(many, "accounts") - rows_of(few, "accounts") == 24
    assert rows_of(many, "nodes of stacks") > rows_of(few, "nodes of stacks") > 1000
    few, many = keeping(1000, LARGE), keeping(2000, LARGE)
    assert rows_of(many, "live blocks that are not small") - rows_of(few, "live blocks that are not small") == 1000


@pytest.mark.parametrize("n", [20000, 24000, 29000, 35000])
@pytest.mark.parametrize("size, table, least, most", [(SMALL, "jm.slab", 6, 7), (LARGE, "jm.blocks", 16, 24)])
def test_a_live_block_takes_few_bytes(n: int, size: int, table: str, least: int, most: int) -> None:
    told = bytes_of(keeping(n, size).stderr, r" jmassif: +([\d,]+) bytes in (jm\.\S+)")
    assert least * n <= told[table] <= most * n


def test_without_stats_nothing_is_said() -> None:
    assert " jmassif: " not in record([compile_c(KEEPS, "-fno-builtin"), "10", "24"], ["-q"]).stderr
