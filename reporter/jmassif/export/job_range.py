# SPDX-License-Identifier: GPL-2.0-or-later
"""A range over several processes as JSON. docs/range.schema.json is its schema, docs/formats.md says what it means.

It is a file of its own kind: a report on a run at a moment (json.py) has none of several processes.
"""

import json
from typing import Any, Callable, Dict, Iterator, List, Optional

from jmassif.analysis.moments import Moment
from jmassif.analysis.processes import NamesOf, Processes
from jmassif.analysis.processes_headline import Instant
from jmassif.analysis.processes_range import Part, job_range
from jmassif.analysis.range_diff import RangeRow, total_of
from jmassif.analysis.run_info import run_id
from jmassif.attribution.views import naming
from jmassif.model.processes import Process
from jmassif.model.run import Profile
from jmassif.render.view import View
from jmassif.units import unicode_text
from jmassif.version import __version__


VERSION = 1

_Naming = Callable[[Process], Callable[[int], str]]


def _row(row: RangeRow) -> Dict[str, Any]:
    sides = {side: getattr(row, side)._asdict() for side in ("host", "device", "blocks")}
    return {"name": unicode_text(row.name), **sides, "temporaries": row.temporaries}


def _total(rows: List[RangeRow]) -> Dict[str, Any]:
    found = _row(total_of(rows))
    del found["name"]
    return found


def _end(at: Instant) -> Dict[str, Any]:
    return {"name": unicode_text(at.name), "time": at.time}


def _told(process: Process, found: Optional[Moment]) -> Optional[Dict[str, Any]]:
    """On the common clock."""
    if found is None:
        return None
    snapshot = None if found.snapshot is None else process.profile.snapshots[found.snapshot].id
    return {"time": found.time + process.offset, "snapshot": snapshot}


def _process(job: Processes, part: Part, by: _Naming, lines: _Naming) -> Dict[str, Any]:
    process = part.process
    rows = part.rows(by(process))
    return {
        "pid": process.pid,
        "id": run_id(process.profile),
        "command": unicode_text(process.profile.manifest.get("command", "")),
        "relation": process.relation or None,
        "parent": None if process.parent is None else job.members[process.parent].pid,
        "begin": process.begin,
        "end": process.end,
        "from": _told(process, part.first),
        "to": _told(process, part.second),
        "total": _total(rows),
        "table": [_row(row) for row in rows],
        "lines": [_row(row) for row in part.rows(lines(process))],
    }


def write(job: Processes, view_of: Callable[[Profile], View], is_each: bool = False) -> Iterator[str]:
    """The lines, a process a line. Raises SelectionError."""
    view = view_of(job.members[0].profile)
    assert view.range is not None
    found = job_range(job, *view.range)
    names = NamesOf()

    def by(process: Process) -> Callable[[int], str]:
        return naming(process.profile, names(process), view.by, view.fold != "none")

    def lines(process: Process) -> Callable[[int], str]:
        return names(process).line

    rows = found.rows(by)
    head = {
        "format": "jmassif-range",
        "version": VERSION,
        "creator": f"jmassif {__version__}",
        "memory": "discrete" if job.is_discrete else "unified",
        "from": _end(found.first),
        "to": _end(found.second),
        "total": _total(rows),
        "table": {"by": view.by, "rows": [_row(row) for row in rows]},
        "lines": [_row(row) for row in found.rows(lines)],
    }
    yield json.dumps(head)[:-1] + ',"processes":['
    for number, part in enumerate(found.parts):
        comma = "," if number + 1 < len(found.parts) else ""
        yield json.dumps(_process(job, part, by, lines)) + comma
    yield "]}"
