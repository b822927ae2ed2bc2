# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows for spreadsheets, as RFC 4180 has them but for the ends of lines, which are the writer's.

Texts of a trace are untrusted: control characters are escaped, so that a line is a row, and a name that a spreadsheet would
take for a formula gets an apostrophe before it.
"""

from typing import Iterable

from jmassif.units import printable

_FORMULA = ("=", "+", "-", "@")


def _cell(value: object) -> str:
    text = printable(str(value))
    if isinstance(value, str) and text.startswith(_FORMULA):
        text = "'" + text
    if any(special in text for special in ',"'):
        return '"' + text.replace('"', '""') + '"'
    return text


def line(cells: Iterable[object]) -> str:
    """The cells of a row, texts and numbers; None is an empty one."""
    return ",".join("" if cell is None else _cell(cell) for cell in cells)
