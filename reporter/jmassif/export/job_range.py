# SPDX-License-Identifier: GPL-2.0-or-later
"""Several processes as JSON: their sum, and a range over them. docs/formats.md describes both, docs/range.schema.json the second."""

import json
from typing import Any, Callable, Dict, Iterator, List, Optional

from jmassif.analysis.moments import Moment
from jmassif.analysis.processes import Ended, JobReport, NamesOf, Processes, TimelineRow, build_job_report
from jmassif.analysis.processes_range import Instant, RangePart, job_range
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


def _sampled(process: Process, found: Optional[Moment]) -> Optional[Dict[str, Any]]:
    """On the common clock."""
    if found is None:
        return None
    snapshot = None if found.snapshot is None else process.profile.snapshots[found.snapshot].id
    return {"time": found.time + process.offset, "snapshot": snapshot}


def _process(job: Processes, part: RangePart, by: _Naming, lines: _Naming) -> Dict[str, Any]:
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
        "from": _sampled(process, part.first),
        "to": _sampled(process, part.second),
        "total": _total(rows),
        "table": [_row(row) for row in rows],
        "lines": [_row(row) for row in part.rows(lines(process))],
    }


def _ended(made: JobReport, each: Ended) -> Dict[str, Any]:
    process = each.process
    part = next((part for part in made.main_peak.parts if part.process is process), None)
    return {
        "pid": process.pid,
        "id": run_id(process.profile),
        "command": unicode_text(process.profile.manifest.get("command", "")),
        "relation": process.relation or None,
        "parent": None if process.parent is None else made.job.members[process.parent].pid,
        "begin": process.begin,
        "end": process.end,
        "outcome": each.outcome.end,
        "code": each.outcome.code,
        "at_peak": part and {"host": part.host, "device": part.device, "is_pss": part.has_share},
        "ledger_peak": process.peak(made.measures[-1]),
    }


def write_job(job: Processes, view_of: Callable[[Profile], View], is_each: bool = False) -> Iterator[str]:
    """The sum over time and at its peaks, each process, and owners, in one line."""
    made = build_job_report(job)
    peaks = {
        which: {"time": at.time, "host": at.on("host"), "device": at.on("device")} for which, at in made.peaks.items()
    }
    yield json.dumps(
        {
            "format": "jmassif-job",
            "version": VERSION,
            "creator": f"jmassif {__version__}",
            "memory": "discrete" if job.is_discrete else "unified",
            "no_clock": unicode_text(job.no_clock),
            "peak": made.measures[-1],
            "peaks": {} if job.no_clock else peaks,
            "largest": made.largest.pid,
            "processes": [_ended(made, each) for each in made.ended],
            "owners": [
                {"name": row.name, "group": group.name, **row.usage._asdict()}
                for group in made.ledger.groups
                for row in group.owners
            ],
            "adjustments": made.adjustments._asdict(),
            "timeline": {name: [getattr(row, name) for row in job.timeline()] for name in TimelineRow._fields},
        }
    )


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
