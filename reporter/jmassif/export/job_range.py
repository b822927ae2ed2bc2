# SPDX-License-Identifier: GPL-2.0-or-later
"""Several processes as JSON: their sum, and a range over them. docs/formats.md describes both, docs/range.schema.json the second."""

import json
from typing import Any, Callable, Dict, Iterator, List, Optional

from jmassif.analysis.moments import Moment
from jmassif.analysis.processes import MEASURES, Ended, Processes, TimelineRow, build_job_report
from jmassif.analysis.range_diff import RangeRow, job_range, joined, total_of
from jmassif.model.process_tree import Process
from jmassif.model.run import Profile
from jmassif.model.run_info import run_id
from jmassif.render.view import View
from jmassif.units import unicode_text
from jmassif.version import __version__


VERSION = 1


def _row(row: RangeRow) -> Dict[str, Any]:
    sides = {side: getattr(row, side)._asdict() for side in ("host", "device", "blocks")}
    return {**sides, "temporaries": row.temporaries}


def _rows(rows: List[RangeRow]) -> List[Dict[str, Any]]:
    return [{"name": unicode_text(row.name), **_row(row)} for row in rows]


def _sampled(process: Process, at: Optional[Moment]) -> Optional[Dict[str, Any]]:
    """On the common clock."""
    snapshot = None if at is None or at.snapshot is None else process.profile.snapshots[at.snapshot].id
    return at and {"time": at.time + process.offset, "snapshot": snapshot}


def _head(job: Processes, format_: str) -> Dict[str, Any]:
    return {
        "format": format_,
        "version": VERSION,
        "creator": f"jmassif {__version__}",
        "memory": "discrete" if job.is_discrete else "unified",
    }


def _process(job: Processes, process: Process) -> Dict[str, Any]:
    return {
        "pid": process.pid,
        "id": run_id(process.profile),
        "command": unicode_text(process.profile.manifest.get("command", "")),
        "relation": process.relation or None,
        "parent": None if process.parent is None else job.members[process.parent].pid,
        "begin": process.begin,
        "end": process.end,
    }


def _ended(job: Processes, each: Ended) -> Dict[str, Any]:
    part = job.main_peak.part_of(each.process)
    return {
        **_process(job, each.process),
        "outcome": each.outcome.end,
        "code": each.outcome.code,
        "at_peak": part and {"host": part.host, "device": part.device, "is_pss": part.has_share},
        "ledger_peak": each.process.peak(job.measures[-1]),
    }


def write_job(job: Processes, view_of: Callable[[Profile], View], is_each: bool = False) -> Iterator[str]:
    """The sum over time and at its peaks, each process, and owners, in one line."""
    made = build_job_report(job)
    peaks = {
        which: {"time": at.time, "host": at.on("host"), "device": at.on("device")}
        for which, at in ((which, job.peak(which)) for which in MEASURES)
    }
    yield json.dumps(
        {
            **_head(job, "jmassif-job"),
            "no_clock": unicode_text(job.no_clock),
            "peak": job.measures[-1],
            "peaks": {} if job.no_clock else peaks,
            "largest": job.largest().pid,
            "processes": [_ended(job, each) for each in made.ended],
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
    """A range over the processes, in one line. Raises SelectionError."""
    view = view_of(job.members[0].profile)
    assert view.range is not None
    found = job_range(job, *view.range)
    tables = [(part, part.rows(view.by, view.fold != "none"), part.rows("line")) for part in found.parts]
    table = joined(row for _, rows, _ in tables for row in rows)
    yield json.dumps(
        {
            **_head(job, "jmassif-range"),
            **{
                name: {"name": unicode_text(at.name), "time": at.time}
                for name, at in (("from", found.first), ("to", found.second))
            },
            "total": _row(total_of(table)),
            "table": {"by": view.by, "rows": _rows(table)},
            "lines": _rows(joined(row for _, _, lines in tables for row in lines)),
            "processes": [
                {
                    **_process(job, part.process),
                    "from": _sampled(part.process, part.first),
                    "to": _sampled(part.process, part.second),
                    "total": _row(part.total),
                    "table": _rows(rows),
                    "lines": _rows(lines),
                }
                for part, rows, lines in tables
            ],
        }
    )
