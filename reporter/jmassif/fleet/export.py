# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs and their figures as tables for other programs: CSV, or a line of JSON each."""

import json
from typing import Any, Dict, Iterator, List, Sequence

from jmassif.fleet.database import Database
from jmassif.fleet.runs import FleetRun
from jmassif.fleet.schema import RUN
from jmassif.writers.spreadsheets import line

RUN_FIELDS = [name for name, _ in RUN.columns if name != "setup"]
FIGURE_FIELDS = ["run", "view", "name", "host", "device", "number"]
_RUNS_AT_ONCE = 500


def figures(database: Database, runs: Sequence[FleetRun]) -> Iterator[List[Any]]:
    """Rows of FIGURE_FIELDS, run by run."""
    for begin in range(0, len(runs), _RUNS_AT_ONCE):
        numbers = [run.number for run in runs[begin : begin + _RUNS_AT_ONCE]]
        ids = {run.number: run.fields["id"] for run in runs[begin : begin + _RUNS_AT_ONCE]}
        sql = (
            "SELECT f.run, p.view, p.name, f.host, f.device, f.number FROM figure f JOIN part p ON p.part = f.part"
            f" WHERE f.run IN ({','.join('?' * len(numbers))}) ORDER BY f.run, p.view, p.name"
        )
        for run, *rest in database.rows(sql, numbers):
            yield [ids[run], *rest]


def run_rows(runs: Sequence[FleetRun]) -> Iterator[List[Any]]:
    for run in runs:
        yield [run.fields["id"] if name == "run" else run.fields[name] for name in RUN_FIELDS]


def write_csv(heads: Sequence[str], rows: Iterator[List[Any]]) -> Iterator[str]:
    yield line(heads)
    for row in rows:
        yield line(row)


def write_jsonl(heads: Sequence[str], rows: Iterator[List[Any]]) -> Iterator[str]:
    for row in rows:
        found: Dict[str, Any] = dict(zip(heads, row))
        yield json.dumps(found, ensure_ascii=False)
