# SPDX-License-Identifier: GPL-2.0-or-later
"""Columns of numbers, packed so that they deflate well and a browser unpacks them in one pass each.

A column is laid out in planes: the lowest bytes of all its numbers, then their second bytes, and so on; the highest planes,
which are zero as a rule, are left out. Signed numbers are folded (0, -1, 1, -2, … become 0, 1, 2, 3, …).
"""

import sys
from array import array
from typing import Dict, Iterable, List, Union

from jmassif.writers.view import FormatError

# Beyond this, a browser's numbers have gaps.
MAX_EXACT = 2**53


class TooLarge(FormatError):
    """A figure that the page could not show exactly. The message is one line."""


def fold(value: int) -> int:
    """A signed number as an unsigned one."""
    return value << 1 if value >= 0 else (-value << 1) - 1


class Columns:
    """Named columns, in one run of bytes."""

    def __init__(self) -> None:
        self.specs: Dict[str, Dict[str, Union[int, str]]] = {}
        self._planes: List[bytes] = []
        self._n_bytes = 0

    def add(self, name: str, numbers: Iterable[int], type_: str = "number") -> None:
        """`type_` is "number", "signed" (of folded numbers) or "address" (any 64 bits). Raises TooLarge."""
        try:
            column = numbers if isinstance(numbers, array) else array("Q", numbers)
        except OverflowError:
            raise TooLarge(f"column {name} has a figure beyond 64 bits, which a page cannot show")
        limit = MAX_EXACT * 2 if type_ == "signed" else MAX_EXACT
        if type_ != "address" and len(column) and max(column) >= limit:
            raise TooLarge(f"column {name} has a figure beyond 8 PiB, which a page cannot show exactly")
        if sys.byteorder == "big":
            column = array("Q", column)
            column.byteswap()
        raw = column.tobytes()
        planes = [raw[place :: column.itemsize] for place in range(column.itemsize)]
        while planes and not any(planes[-1]):
            planes.pop()
        self.specs[name] = {"type": type_, "rows": len(column), "planes": len(planes), "at": self._n_bytes}
        self._planes += planes
        self._n_bytes += len(planes) * len(column)

    def bytes(self) -> bytes:
        return b"".join(self._planes)
