# SPDX-License-Identifier: GPL-2.0-or-later
"""Sizes on the page: the histogram, and who allocates most often, as a trace of which both are known has them."""

from pathlib import Path
from typing import Any, List

import pytest

from tests.reporter.traces import Trace
from tests.web.browser import look, write_page


def made() -> Trace:
    """Of app 1,000 blocks of 100 bytes of which 10 are left, of lib 3 of 5,000; the peak has 20 and 3. Of heap-overhead there are none."""
    trace = Trace(time_unit="ms", memory="unified", command="./a.out", option_large="0")
    trace.manifest("option.large", "0")
    trace.group("yours", "app")
    trace.group("libraries", "lib")
    small = trace.account("heap", "app", ["small (a.c:1)", "main (a.c:9)"])
    large = trace.account("heap", "lib", ["large (a.c:2)", "main (a.c:9)"])
    overhead = trace.account("heap-overhead", "lib", ["large (a.c:2)", "main (a.c:9)"])
    trace.snapshot(
        5,
        "exit",
        {small: (1000, 10, 100000, 1000, 900), large: (0, 0, 15000, 3, 0), overhead: (0, 0, 24, 3, 0)},
        {"total": (4, {small: (2000, 20), large: (15000, 3), overhead: (24, 3)})},
    )
    trace.lines.append("Z 6 exit 0")
    return trace


def tables(page: Path) -> List[Any]:
    """Their rows."""
    names = ("Blocks by size", "Blocks by size and owner", "Lines that allocate most often")
    rows = [("rows", f"#sizes .table:has(h3:text-is('{name}')) tbody") for name in names]
    return look(page, *rows)


@pytest.fixture(scope="module", name="page")
def fixture_page(tmp_path_factory: Any) -> Path:
    directory: Path = tmp_path_factory.mktemp("page")
    return write_page(directory, made().save(directory))


def test_blocks_by_size_are_those_of_the_peak_and_of_the_whole_run(page: Path) -> None:
    histogram, owners, often = tables(page)
    rows = {row[0]: row[1:] for row in histogram}
    assert rows["64 B to 128 B"] == [20, 2000, 1000, 100000] and rows["4.00 KiB to 8.00 KiB"] == [3, 15000, 3, 15000]
    assert len(rows) == 7 and sum(row[0] + row[2] for row in rows.values()) == 1026
    assert [[row[0], *row[-3:]] for row in owners] == [["app", 1000, 100000, 100], ["lib", 3, 15000, 5000]]
    assert [row[2] for row in owners] == [1000, 0] and [row[4] for row in owners] == [0, 3]
    assert [[row[0], row[1], row[3], row[4], row[5]] for row in often] == [
        ["small (a.c:1)", 1000, 100000, 100, 900],
        ["large (a.c:2)", 3, 15000, 5000, 0],
    ]


def test_axe_finds_nothing_and_it_can_be_read_in_a_narrow_window(page: Path) -> None:
    (problems,) = look(page, ("axe",), width=420)
    assert problems == []
