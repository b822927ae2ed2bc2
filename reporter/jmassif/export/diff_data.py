# SPDX-License-Identifier: GPL-2.0-or-later
"""A difference as JSON and CSV (fields: docs/formats.md). Sizes are bytes."""

import json
from typing import Any, Dict, Iterator, Optional

from jmassif.analysis.aggregate import Usage
from jmassif.analysis.compare import Difference, DifferenceRow, Finding, RungRow, View
from jmassif.export.csv import line
from jmassif.model.run_info import label


JSON_VERSION = 1


def _figures(figures: Usage) -> Dict[str, Any]:
    return {"host": figures.host_bytes, "device": figures.device_bytes, "number": figures.blocks}


def _row(row: Optional[DifferenceRow]) -> Optional[Dict[str, Any]]:
    return row and {
        "name": row.name,
        "inside": list(row.path),
        "in_total": row.is_counted,
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
        "other": _row(view.other),
        "rounding": _row(view.rounding),
        "total": _row(view.total),
    }


def _finding(finding: Finding) -> Dict[str, Any]:
    lines = {key: moved and moved._asdict() for key, moved in (("most", finding.most), ("against", finding.against))}
    step = finding.step and dict(zip(("key", "change"), finding.step))
    largest = [{"name": name, "change": change} for name, change in finding.largest]
    return {**finding._asdict(), **lines, "step": step, "largest": largest}


def _rung(row: RungRow) -> Dict[str, Any]:
    return {"key": row.key, "role": row.role, "about": row.is_about, "bytes": row.bytes, "changes": row.changes}


def as_json(difference: Difference) -> Dict[str, Any]:
    """Fit for json.dumps()."""
    columns = [
        {
            "label": column.label,
            "runs": [{"file": run.name, "complete": run.is_complete, "facts": dict(run.facts)} for run in column.runs],
        }
        for column in difference.columns
    ]
    facts = [{"key": fact.key, "label": label(fact.key), "values": fact.values} for fact in difference.facts]
    return {
        "format": "jmassif-diff",
        "version": JSON_VERSION,
        "findings": [_finding(finding) for finding in difference.findings],
        "moment": difference.moment,
        "discrete": difference.is_discrete,
        "min_bytes": difference.min_bytes,
        "columns": columns,
        "facts": facts,
        "ladders": [{"pool": view.pool, "rows": [_rung(row) for row in view.rows]} for view in difference.ladders],
        "views": [_view(view) for view in difference.views],
    }


def write_json(difference: Difference) -> Iterator[str]:
    """One object, pure ASCII."""
    yield json.dumps(as_json(difference), indent=1)


_HEAD = (
    "view,row,name,inside,in_total,column,runs,host_bytes,device_bytes,bytes,number,"
    "host_change,device_change,change,number_change,beyond_noise"
).split(",")


def write_csv(difference: Difference) -> Iterator[str]:
    """A line a row and column, so that a spreadsheet can pivot it; RFC 4180 but for the ends of lines."""
    yield ",".join(_HEAD)
    for view in difference.views:
        rows = [("part", row) for row in view.rows]
        rows += [(name, row) for name, row in view._asdict().items() if isinstance(row, DifferenceRow)]
        for name, row in rows:
            for column, cell in zip(difference.columns, row.cells):
                figures, change = cell.figures, cell.change
                yield line(
                    [view.by, name, row.name, " > ".join(row.path), int(row.is_counted), column.label, len(column.runs)]
                    + [figures.host_bytes, figures.device_bytes, figures.bytes, figures.blocks]
                    + [change.host_bytes, change.device_bytes, change.bytes, change.blocks]
                    + [None if cell.is_beyond_noise is None else int(cell.is_beyond_noise)]
                )
