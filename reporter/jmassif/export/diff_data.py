# SPDX-License-Identifier: GPL-2.0-or-later
"""A difference as JSON and CSV (fields: docs/reference.md). Sizes are bytes."""

import json
from typing import Any, Dict, Iterator, List, Optional

from jmassif.analysis.aggregate import Usage
from jmassif.analysis.compare import Difference, DifferenceRow, View
from jmassif.analysis.ladder import Ladder
from jmassif.export.csv import line
from jmassif.export.json import data
from jmassif.model.run_info import label

JSON_VERSION = 1


def _figures(figures: Usage) -> Dict[str, Any]:
    return {"host": figures.host_bytes, "device": figures.device_bytes, "number": figures.blocks}


def _row(row: Optional[DifferenceRow]) -> Optional[Dict[str, Any]]:
    return row and {
        "name": row.key.name,
        "inside": row.key.inside,
        "in_total": row.key.is_counted,
        "cells": [
            {**_figures(cell.figures), "change": _figures(cell.change), "beyond_noise": cell.is_beyond_noise}
            for cell in row.cells
        ],
    }


def _view(view: View) -> Dict[str, Any]:
    return {
        "by": view.by,
        "number_is": view.counts,
        "rows": [_row(row) for row in view.rows],
        "other_rows": view.n_other,
        **{name: _row(getattr(view, name)) for name in ("other", "rounding", "total")},
    }


def _ladder(sides: List[Ladder]) -> Dict[str, Any]:
    rows = []
    for first, *others in zip(*(ladder.rungs for ladder in sides)):
        numbers = [rung.bytes for rung in (first, *others)]
        changes = [n_bytes - first.bytes for n_bytes in numbers]
        rows.append(
            {"key": first.key, "role": first.role, "about": first.is_about, "bytes": numbers, "changes": changes}
        )
    return {"pool": sides[0].pool, "rows": rows}


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
            "ladders": [_ladder(sides) for sides in difference.ladders],
            "views": [_view(view) for view in difference.views],
        }
    )
    return found


def write_json(difference: Difference) -> Iterator[str]:
    """One object, pure ASCII."""
    yield json.dumps(as_json(difference), indent=1)


_HEAD = (
    "view,row,name,inside,in_total,column,runs,host_bytes,device_bytes,bytes,number,"
    "host_change,device_change,change,number_change,beyond_noise"
)


def write_csv(difference: Difference) -> Iterator[str]:
    """A line a row and column, so that a spreadsheet can pivot it; RFC 4180 but for the ends of lines."""
    yield _HEAD
    for view in difference.views:
        rows = [("part", row) for row in view.rows]
        rows += [(name, row) for name, row in view._asdict().items() if isinstance(row, DifferenceRow)]
        for name, row in rows:
            key = row.key
            for column, cell in zip(difference.columns, row.cells):
                yield line(
                    [view.by, name, key.name, " > ".join(key.inside), int(key.is_counted)]
                    + [column.label, len(column.runs)]
                    + [n for u in cell[:2] for n in (u.host_bytes, u.device_bytes, u.bytes, u.blocks)]
                    + [None if cell.is_beyond_noise is None else int(cell.is_beyond_noise)]
                )
