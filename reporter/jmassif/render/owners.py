# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows of owners, groups or roles as a table: bytes and blocks in each pool that the program used."""

from typing import List, NamedTuple, Sequence

from jmassif.analysis.aggregate import Ledger, Usage, UsageRow, sum_of
from jmassif.render.layout import SUM, Column, Line, Lines, Table
from jmassif.render.words import GROUP_NAMES
from jmassif.units import percent, size


class _Entry(NamedTuple):
    row: UsageRow
    indent: str = ""
    role: str = ""


def _table(sides: Sequence[str], is_sum: bool, entries: Sequence[_Entry], total: Usage) -> Lines:
    width = max([12] + [len(entry.indent + entry.row.name) + 1 for entry in entries])

    share = Column("share", 9)
    columns = [Column("", width, align="<")]
    for side in sides:
        columns += [Column(side, 9), Column("blocks", 11)] + ([] if is_sum else [share])
    if is_sum:
        columns += [Column("bytes" if len(sides) == 1 else "total (bytes)", 17), share]
    table = Table(*columns)

    def line(entry: _Entry) -> str:
        row = entry.row
        cells = [entry.indent + row.name]
        for side in sides:
            n_bytes, blocks = row.usage.on(side), row.usage.blocks_on(side)
            cells.append(size(n_bytes) if n_bytes or blocks else "-")
            cells.append(f"{blocks:,}" if blocks else "")
            if not is_sum:
                cells.append(percent(n_bytes, total.on(side)) if n_bytes else "")
        if is_sum:
            cells += [f"{row.bytes:,}", percent(row.bytes, total.bytes)]
        return Line((table.row(*cells).rstrip(), entry.role))

    return [table.head] + [line(entry) for entry in entries]


def rows_table(sides: Sequence[str], is_sum: bool, rows: Sequence[UsageRow], name: str) -> Lines:
    """Rows and their sum, with its `name`: bytes and blocks in each pool that the program used.

    Where the pools add up (`is_sum`), the sum in bytes and its percents follow; else each pool has percents of its own.
    """
    total = sum_of(row.usage for row in rows)
    return _table(sides, is_sum, [_Entry(row) for row in (*rows, UsageRow(name, total))], total)


def _merged(owners: Sequence[UsageRow], least: float) -> List[UsageRow]:
    """Those below `least` bytes, if there are several, are one row."""
    small = [owner for owner in owners if owner.bytes < least]
    if len(small) < 2:
        return list(owners)
    rest = UsageRow(f"{len(small)} smaller", sum_of(owner.usage for owner in small))
    return [owner for owner in owners if owner.bytes >= least] + [rest]


def groups_table(sides: Sequence[str], is_sum: bool, ledger: Ledger, least_share: float = 0.0) -> Lines:
    """Like rows_table: groups, below each its owners; those with less than a share of all are one row."""
    entries: List[_Entry] = []
    for group in ledger.groups:
        shown = _merged(group.owners, least_share * ledger.total.bytes)
        entries += [_Entry(UsageRow(GROUP_NAMES[group.name], group.usage), "", SUM)] + [
            _Entry(owner, "  ") for owner in shown
        ]
    return _table(sides, is_sum, entries + [_Entry(UsageRow("total", ledger.total), "", SUM)], ledger.total)
