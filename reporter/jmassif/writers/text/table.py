# SPDX-License-Identifier: GPL-2.0-or-later
"""Cells of text in columns."""

from typing import NamedTuple


class Column(NamedTuple):
    head: str
    width: int = 0  # at least; 0: as wide as what is in it, for the last column
    gap: int = 0  # spaces before it, which stay where a cell is wider than its column
    align: str = ">"


class Table:
    def __init__(self, *columns: Column) -> None:
        self._form = "".join(f"{' ' * column.gap}{{:{column.align}{column.width or ''}}}" for column in columns)
        self.head = self.row(*(column.head for column in columns))

    def row(self, *cells: str) -> str:
        """A line; it ends in spaces where the last cells are empty."""
        return self._form.format(*cells)
