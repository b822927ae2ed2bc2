# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows of owners, groups or roles as a table: bytes and blocks in each pool that the program used."""

from typing import List, NamedTuple, Sequence

from jmassif.questions.ledger import Ledger, Row
from jmassif.units import percent, size
from jmassif.writers.text.layout import Lines
from jmassif.writers.text.roles import SUM, Line


class _Entry(NamedTuple):
    row: Row
    indent: str = ""
    role: str = ""


def _table(sides: Sequence[str], is_sum: bool, entries: Sequence[_Entry], total: Row) -> Lines:
    width = max([12] + [len(entry.indent + entry.row.name) + 1 for entry in entries])

    def line(entry: _Entry) -> str:
        row = entry.row
        text = f"{entry.indent + row.name:<{width}}"
        for side in sides:
            held = row.on(side)
            blocks = f"{held.blocks:,}" if held.blocks else ""
            text += f"{size(held.bytes) if held.bytes or held.blocks else '-':>9}{blocks:>11}"
            if not is_sum:
                text += f"{percent(held.bytes, total.on(side).bytes) if held.bytes else '':>9}"
        if is_sum:
            text += f"{row.bytes:>17,}{percent(row.bytes, total.bytes):>9}"
        return Line((text.rstrip(), entry.role))

    head = " " * width
    for side in sides:
        head += f"{side:>9}{'blocks':>11}" + ("" if is_sum else f"{'share':>9}")
    if is_sum:
        head += f"{'bytes' if len(sides) == 1 else 'together (B)':>17}{'share':>9}"
    return [head] + [line(entry) for entry in entries]


def rows_table(sides: Sequence[str], is_sum: bool, rows: Sequence[Row], total: Row) -> Lines:
    """Rows and their sum: bytes and blocks in each pool that the program used.

    Where the pools add up (`is_sum`), the sum in bytes and its percents follow; else each pool has percents of its own.
    """
    return _table(sides, is_sum, [_Entry(row) for row in (*rows, total)], total)


def groups_table(sides: Sequence[str], is_sum: bool, ledger: Ledger) -> Lines:
    """Like rows_table: groups, below each its owners."""
    entries: List[_Entry] = []
    for group, owners in ledger.groups:
        entries += [_Entry(group, "", SUM)] + [_Entry(owner, "  ") for owner in owners]
    return _table(sides, is_sum, entries + [_Entry(ledger.total, "", SUM)], ledger.total)
