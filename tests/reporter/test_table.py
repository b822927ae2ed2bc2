# SPDX-License-Identifier: GPL-2.0-or-later
"""Cells of text in columns."""

from jmassif.render.layout import Column, Table

TABLE = Table(Column("name", 6, align="<"), Column("size", 6), Column("share", 5, gap=1), Column("who", gap=2))


def test_cells_stand_below_their_headings() -> None:
    assert TABLE.head == "name    size share  who"
    assert TABLE.row("a", "1 B", "9 %", "b c") == "a        1 B   9 %  b c"


def test_a_gap_stays_before_a_cell_that_is_too_wide() -> None:
    assert TABLE.row("abcdef", "123456", "100.0 %", "") == "abcdef123456 100.0 %"


def test_what_stands_for_a_format_in_a_cell_is_text() -> None:
    assert TABLE.row("{}", "{0}", "%s", "{x!r}") == "{}       {0}    %s  {x!r}"
    assert Table(Column("{}", 4)).head == "  {}"
