# SPDX-License-Identifier: GPL-2.0-or-later
"""A difference as JSON (fields: docs/reference.md). Sizes are bytes."""

import json
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence

from jmassif.analysis.aggregate import Usage
from jmassif.analysis.compare import Difference, DifferenceRow as Row, View
from jmassif.analysis.ladder import Ladder
from jmassif.export.json import data


JSON_VERSION = 1


class DifferenceFigures(NamedTuple):
    host: int  # bytes
    device: int
    number: int  # of blocks or calls


class DifferenceCell(NamedTuple):
    """Figures of a column. The change is against the first one."""

    host: int
    device: int
    number: int
    change: DifferenceFigures
    beyond_noise: Optional[bool]


class DifferenceRow(NamedTuple):
    """A cell for each column. `inside`: the calls around a call; a row that these contain is not in the total."""

    name: str
    inside: Sequence[str]
    in_total: bool
    cells: List[DifferenceCell]


class DifferenceTable(NamedTuple):
    """`number_is`: "blocks" or "calls"."""

    by: str
    number_is: str
    rows: List[DifferenceRow]
    other_rows: int
    other: Optional[DifferenceRow]
    rounding: Optional[DifferenceRow]
    total: DifferenceRow


class LadderRow(NamedTuple):
    """Figures for each column. `role`: "shown", "sum", "less" or "plus"."""

    key: str
    role: str
    about: bool
    bytes: List[int]
    changes: List[int]


def _figures(figures: Usage) -> DifferenceFigures:
    return DifferenceFigures(figures.host_bytes, figures.device_bytes, figures.blocks)


def _row(row: Row) -> DifferenceRow:
    cells = [
        DifferenceCell(*_figures(cell.figures), change=_figures(cell.change), beyond_noise=cell.is_beyond_noise)
        for cell in row.cells
    ]
    return DifferenceRow(row.key.name, row.key.inside, row.key.is_counted, cells)


def table_of(view: View) -> DifferenceTable:
    other, rounding = (row and _row(row) for row in (view.other, view.rounding))
    rows = list(map(_row, view.rows))
    return DifferenceTable(view.by, view.counts, rows, view.n_other, other, rounding, _row(view.total))


def rows_of(sides: List[Ladder]) -> List[LadderRow]:
    rows = []
    for first, *others in zip(*(ladder.rungs for ladder in sides)):
        numbers = [rung.bytes for rung in (first, *others)]
        changes = [n_bytes - first.bytes for n_bytes in numbers]
        rows.append(LadderRow(first.key, first.role, first.is_about, numbers, changes))
    return rows


def as_json(difference: Difference) -> Dict[str, Any]:
    """Fit for json.dumps()."""
    columns = [
        {
            "label": column.label,
            "runs": [{"file": run.name, "complete": run.is_complete, "facts": run.facts} for run in column.runs],
        }
        for column in difference.columns
    ]
    found: Dict[str, Any] = data(
        {
            "format": "jmassif-diff",
            "version": JSON_VERSION,
            "findings": difference.findings,
            "moment": difference.moment,
            "discrete": difference.is_discrete,
            "min_bytes": difference.min_bytes,
            "columns": columns,
            "facts": difference.facts,
            "ladders": [{"pool": sides[0].pool, "rows": rows_of(sides)} for sides in difference.ladders],
            "views": list(map(table_of, difference.views)),
        }
    )
    return found


def write_json(difference: Difference) -> Iterator[str]:
    """One object, pure ASCII."""
    yield json.dumps(as_json(difference), indent=1)
