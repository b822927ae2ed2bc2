# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows of a few numbers each, packed end to end in an array, with names for the columns.

A run has balances by the million: an object for each would take ten times the memory. A column is read in one slice.
"""

from array import array
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    _Numbers = array[int]
else:
    _Numbers = array


class _Column:
    """Every n-th number, from the n-th on."""

    def __init__(self, place: int) -> None:
        self._place = place

    def __get__(self, rows: Any, _: Any) -> "array[int]":
        found: "array[int]" = rows[self._place :: rows.WIDTH]
        return found


class _Rows(_Numbers):
    WIDTH = 0

    def __new__(cls) -> Any:
        return array.__new__(cls, "Q")  # type: ignore[call-arg]

    @property
    def n_rows(self) -> int:
        return len(self) // self.WIDTH


class Changes(_Rows):
    """What accounts hold at a snapshot, and all they ever had: the fields of `c` records."""

    WIDTH = 6
    account, bytes, blocks = _Column(0), _Column(1), _Column(2)
    all_bytes, all_blocks, temporaries = _Column(3), _Column(4), _Column(5)


class Differences(_Rows):
    """What accounts held otherwise at a peak: the fields of `d` records."""

    WIDTH = 3
    account, bytes, blocks = _Column(0), _Column(1), _Column(2)


class PageChanges(_Rows):
    """What is known of accounts' mappings from a snapshot on: the fields of `v` records."""

    WIDTH = 4
    account, virtual, shared, swapped = _Column(0), _Column(1), _Column(2), _Column(3)


class BlockEvents(_Rows):
    """Blocks that came (`+` records) and went (`-`, of size 0)."""

    WIDTH = 4
    time, address, size, account = _Column(0), _Column(1), _Column(2), _Column(3)
