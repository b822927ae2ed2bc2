# SPDX-License-Identifier: GPL-2.0-or-later
"""A difference as JSON (fields: docs/reference.md). Sizes are bytes."""

import json
from typing import Any, Dict, Iterator, List

from jmassif.analysis.aggregate import Usage
from jmassif.analysis.compare import Difference, DifferenceRow, View
from jmassif.analysis.ladder import Ladder
from jmassif.export.json import data


JSON_VERSION = 1


def _figures(usage: Usage) -> Dict[str, Any]:
    return {"host": usage.host_bytes, "device": usage.device_bytes, "number": usage.blocks}


def _row(row: DifferenceRow) -> Dict[str, Any]:
    cells = [
        {**_figures(cell.figures), "change": _figures(cell.change), "beyond_noise": cell.is_beyond_noise}
        for cell in row.cells
    ]
    return {"name": row.key.name, "inside": row.key.inside, "in_total": row.key.is_counted, "cells": cells}


def _view(view: View) -> Dict[str, Any]:
    return {
        "by": view.by,
        "number_is": view.counts,
        "rows": list(map(_row, view.rows)),
        "other_rows": view.n_other,
        "other": view.other and _row(view.other),
        "rounding": view.rounding and _row(view.rounding),
        "total": _row(view.total),
    }


def _ladder(sides: List[Ladder]) -> Dict[str, Any]:
    rows = []
    for rungs in zip(*(ladder.rungs for ladder in sides)):
        first, sizes = rungs[0], [rung.bytes for rung in rungs]
        changes = [n_bytes - first.bytes for n_bytes in sizes]
        named = {"key": first.key, "role": first.role, "about": first.is_about}
        rows.append({**named, "bytes": sizes, "changes": changes})
    return {"pool": sides[0].pool, "rows": rows}


def write_json(difference: Difference) -> Iterator[str]:
    """One object, pure ASCII."""
    columns = [
        {
            "label": column.label,
            "runs": [{"file": run.name, "complete": run.is_complete, "facts": run.facts} for run in column.runs],
        }
        for column in difference.columns
    ]
    found = {
        "format": "jmassif-diff",
        "version": JSON_VERSION,
        "findings": difference.findings,
        "moment": difference.moment,
        "discrete": difference.is_discrete,
        "min_bytes": difference.min_bytes,
        "columns": columns,
        "facts": difference.facts,
        "ladders": list(map(_ladder, difference.ladders)),
        "views": list(map(_view, difference.views)),
    }
    yield json.dumps(data(found), indent=1)
