# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows of owners, groups or roles as a table: bytes and blocks in each pool that the program used."""

from typing import Sequence, Tuple

from jmassif.questions.ledger import Row
from jmassif.units import percent, size
from jmassif.writers.text.layout import Lines


def rows_table(sides: Sequence[str], is_sum: bool, rows: Sequence[Tuple[str, Row]], total: Row) -> Lines:
    """Rows, each with its indentation, and their sum: bytes and blocks in each pool that the program used.

    Where the pools add up (`is_sum`), the sum in bytes and its percents follow; else each pool has percents of its own.
    """
    width = max([12] + [len(indent + row.name) + 1 for indent, row in rows])

    def line(row: Row, indent: str) -> str:
        text = f"{indent + row.name:<{width}}"
        for side in sides:
            held = row.on(side)
            blocks = f"{held.blocks:,}" if held.blocks else ""
            text += f"{size(held.bytes) if held.bytes or held.blocks else '-':>9}{blocks:>11}"
            if not is_sum:
                text += f"{percent(held.bytes, total.on(side).bytes) if held.bytes else '':>9}"
        if is_sum:
            text += f"{row.bytes:>17,}{percent(row.bytes, total.bytes):>9}"
        return text.rstrip()

    head = " " * width
    for side in sides:
        head += f"{side:>9}{'blocks':>11}" + ("" if is_sum else f"{'share':>9}")
    if is_sum:
        head += f"{'bytes' if len(sides) == 1 else 'together (B)':>17}{'share':>9}"
    return [head] + [line(row, indent) for indent, row in rows] + [line(total, "")]
