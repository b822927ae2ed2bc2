# SPDX-License-Identifier: GPL-2.0-or-later
"""Sizes of blocks, on traces with known ones."""

from typing import Dict, Tuple

from jmassif.analysis.moments import select
from jmassif.analysis.sizes import Histogram, SizeClass, size_tables
from jmassif.attribution.names import Names
from tests import harness
from tests.reporter.traces import Trace


def test_blocks_with_records_have_their_sizes_and_others_the_mean_of_their_place() -> None:
    trace = Trace(time_unit="ms", memory="unified")
    place = trace.account("heap", "app", ["f (a.c:1)"])
    trace.block(1, 0x1000, 5000, place)
    trace.block(2, 0x2000, 70000, place)
    trace.block_end(3, 0x1000, place)
    # Beside 70,000 bytes with a record it holds three blocks of 100 bytes, and has allocated one of 60 more.
    trace.snapshot(4, "time", {place: (70300, 4, 75360, 6, 0)})
    run = trace.load()
    by = size_tables(run, Names(run), select(run, "1"))
    held, asked = by.held, by.asked
    assert held == Histogram(4, 70300, 3, [SizeClass(64, 127, 3, 300), SizeClass(65536, 131071, 1, 70000)])
    assert [(each.most, each.blocks) for each in asked.classes] == [(127, 4), (8191, 1), (131071, 1)]
    assert asked.blocks_by_mean == 4 and asked.bytes == 75360


def test_segments_that_parts_are_handed_out_of_count_by_what_is_left() -> None:
    trace = Trace(time_unit="ms", memory="unified")
    cache = trace.account("device", "cache", ["grow (t.c:1)"])
    trace.block(1, 0x1000, 1000, cache)
    trace.snapshot(2, "time", {cache: (600, 1, 1000, 1, 0)})
    run = trace.load()
    held = size_tables(run, Names(run), select(run, "1")).held
    assert (held.blocks, held.bytes) == (1, 600)


LINES = """
#include <stdio.h>
#include <stdlib.h>
static void *kept[600];
int main(void)
{
    for (int i = 0; i < 300; i++)
        kept[i] = malloc(17 + i % 5);
    for (int i = 0; i < 90; i++)
        kept[300 + i] = malloc(i % 2 ? 1000 : 5000);
    for (int i = 0; i < 50; i++)
        kept[400 + i] = calloc(1, 70000 + i);
    for (int i = 0; i < 600; i++)
        free(kept[i]);
    for (int i = 0; i < 200; i++)
        free(malloc(3));
    for (int i = 0; i < 7; i++)
        kept[i] = malloc(130);
    return 0;
}
"""

# What the program asks for, by line: from the least to the most bytes of a power of two's class, blocks and bytes.
_KNOWN = {
    8: {(16, 31): (300, sum(17 + i % 5 for i in range(300)))},
    10: {(512, 1023): (45, 45_000), (4096, 8191): (45, 225_000)},
    12: {(65536, 131071): (50, sum(70_000 + i for i in range(50)))},
    16: {(2, 3): (200, 600)},
    18: {(128, 255): (7, 910)},
}


def _classes(histogram: Histogram) -> Dict[Tuple[int, int], Tuple[int, int]]:
    return {(of.least, of.most): (of.blocks, of.bytes) for of in histogram.classes}


def test_the_histogram_of_a_program_whose_requests_are_known() -> None:
    # Given a program that frees all of its first three loops before the last two,
    run = harness.record([harness.compile_c(LINES)], ["--large=0", "--pages=no"]).profile
    for moment, lines in (("peak", (8, 10, 12)), ("last", (18,))):
        sizes = size_tables(run, Names(run), select(run, moment))
        rows = {row.name: row for row in sizes.lines}
        # then each line has what it asked for, and of that what was held at the moment,
        for line, known in _KNOWN.items():
            (row,) = [row for name, row in rows.items() if name.endswith(f".c:{line})")]
            assert _classes(row.asked) == known and row.asked.blocks_by_mean == 0
            assert _classes(row.held) == (known if line in lines else {}), (moment, line)
            # The last block of line 12 is freed before anything else is allocated too.
            assert row.at_once == {16: 200, 12: 1}.get(line, 0)
        # and the rows of lines, those of owners and the whole are the same blocks.
        for which, whole in (("held", sizes.held), ("asked", sizes.asked)):
            for figure in ("blocks", "bytes"):
                sums = [sum(getattr(getattr(row, which), figure) for row in of) for of in (sizes.lines, sizes.owners)]
                assert [*sums, sum(getattr(of, figure) for of in whole.classes)] == [getattr(whole, figure)] * 3
