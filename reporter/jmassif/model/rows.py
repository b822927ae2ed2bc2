# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows of a few numbers each, packed in arrays, with names for the columns.

A run has balances by the million: an object for each would take ten times the memory. What a trace has most of, the changes of
a snapshot, lies in a column each, as narrow as its largest number; of all else rows lie end to end, and a column is a slice.
"""

import sys
from array import array
from itertools import compress
from typing import TYPE_CHECKING, Any, Iterator, Tuple

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


# Type of a number: that of half of its bytes.
_HALF = {"Q": "I", "I": "H", "H": "B"}
# Of two halves, which come in the order of the machine's bytes.
_LOW, _HIGH = (0, 1) if sys.byteorder == "little" else (1, 0)


def narrowed(column: "array[int]") -> "array[int]":
    """The same numbers in as few bytes each as the largest needs. By bytes, for looking at each number would take ten times as long."""
    while column.typecode in _HALF and column:
        halves = array(_HALF[column.typecode], column.tobytes())
        if halves[_HIGH::2].tobytes() != bytes(column.itemsize // 2 * len(column)):
            break
        column = halves[_LOW::2]
    return column


def _joined(first: "array[int]", second: "array[int]") -> "array[int]":
    """The second behind the first, which may be changed."""
    if not first:
        return second
    if second.itemsize > first.itemsize:
        first = array(second.typecode, first)
    first.extend(second if second.typecode == first.typecode else array(first.typecode, second))
    return first


class Changes:
    """What accounts hold at a snapshot, and all they ever had: the fields of `c` records, a column each."""

    WIDTH = 6
    __slots__ = ("account", "bytes", "blocks", "all_bytes", "all_blocks", "temporaries")

    def __init__(self) -> None:
        self.account: "array[int]" = array("B")
        self.bytes: "array[int]" = array("B")
        self.blocks: "array[int]" = array("B")
        self.all_bytes: "array[int]" = array("B")
        self.all_blocks: "array[int]" = array("B")
        self.temporaries: "array[int]" = array("B")

    def extend(self, rows: "array[int]") -> None:
        """By rows that lie end to end, of 64-bit numbers."""
        for place, name in enumerate(self.__slots__):
            setattr(self, name, _joined(getattr(self, name), narrowed(rows[place :: self.WIDTH])))

    @property
    def columns(self) -> Tuple["array[int]", ...]:
        return self.account, self.bytes, self.blocks, self.all_bytes, self.all_blocks, self.temporaries

    @property
    def n_rows(self) -> int:
        return len(self.account)

    def backwards(self, wanted: bytearray, *columns: "array[int]") -> Iterator[Tuple[int, ...]]:
        """(account, number of each column) of the accounts that are not 0 in `wanted` when their turn comes, the last row first."""
        accounts = self.account
        rows = zip(reversed(accounts), *[reversed(column) for column in columns])
        return compress(rows, map(wanted.__getitem__, reversed(accounts)))
