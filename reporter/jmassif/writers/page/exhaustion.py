# SPDX-License-Identifier: GPL-2.0-or-later
"""What the page shows of allocations that failed, and how segments were used over time."""

from typing import Any, Dict, List, Tuple

from jmassif.model.profile import Profile
from jmassif.questions.exhaustion import Incident, call, incidents_of
from jmassif.questions.segments import Layout, Segment, layout_at, layouts
from jmassif.questions.situation import arithmetic
from jmassif.units import printable
from jmassif.whose.names import Names

# The last ones: they are what a run died of.
_MAX_INCIDENTS = 50
_MAX_MAPS = 8
_MAX_SEGMENTS = 40
_MAX_FRAMES = 40
_MAX_MOMENTS = 400
_MAX_PIECES = 1 << 18  # in all maps over time: a few seconds' work
# Of a segment: what is narrower is drawn with its neighbour.
_NARROWEST = 1 / 400


def _parts(profile: Profile, segment: Segment) -> List[Tuple[int, str]]:
    """Bytes and owners, "" of holes, from the beginning of the segment to its end; crumbs are their neighbours'."""
    drawn: List[Tuple[int, str]] = []
    for part in segment.parts:
        owner = profile.accounts[part.account].owner if part.account else ""
        if drawn and (drawn[-1][1] == owner or part.bytes < segment.bytes * _NARROWEST):
            drawn[-1] = (drawn[-1][0] + part.bytes, drawn[-1][1])
        else:
            drawn.append((part.bytes, owner))
    return drawn


def _map(profile: Profile, layout: Layout) -> List[Dict[str, Any]]:
    largest = sorted(layout.segments, key=lambda segment: (-segment.bytes, segment.address))[:_MAX_SEGMENTS]
    return [
        {
            "address": f"{segment.address:x}",
            "bytes": segment.bytes,
            "free": segment.free,
            "parts": [list(part) for part in _parts(profile, segment)],
        }
        for segment in largest
    ]


def _incident(profile: Profile, names: Names, number: int, incident: Incident, has_map: bool) -> Dict[str, Any]:
    event, last = incident.tries[0], incident.last
    layout = layout_at(profile, last.position) if has_map else None
    line = names.charged(last.account)
    stack = profile.stack(profile.accounts[last.account].node)
    return {
        "number": number,
        "time": last.time,
        "snapshot": 0 if last.snapshot is None else profile.snapshots[last.snapshot].id,
        "call": printable(call(profile, event))[:200],
        "asked": incident.situation.asked,
        "error": last.error,
        "tries": [each.time for each in incident.tries],
        "outcome": incident.outcome,
        "freed": incident.freed,
        "verdict": incident.verdict,
        "reason": incident.reason,
        "helps": incident.helps,
        "arithmetic": [list(row) for row in arithmetic(incident.situation)],
        "line": names.frame(line)[:400] if line else "",
        "stack": [names.frame(frame)[:400] for _, frame in zip(range(_MAX_FRAMES), stack)],
        "map": _map(profile, layout) if layout else [],
        "segments_left_out": max(0, len(layout.segments) - _MAX_SEGMENTS) if layout else 0,
    }


def exhaustion(profile: Profile, names: Names) -> Dict[str, Any]:
    """The failures, the last ones with maps, and the calls that the trace only counts."""
    found = incidents_of(profile, names)
    numbered = list(enumerate(found, 1))[-_MAX_INCIDENTS:]
    with_map = {number for number, incident in numbered if not incident.is_resolved}
    with_map = set(sorted(with_map)[-_MAX_MAPS:])
    told = sum(len(incident.tries) for _, incident in numbered)
    return {
        "incidents": [_incident(profile, names, number, each, number in with_map) for number, each in numbered],
        "untold": max(0, profile.counters.get("out-of-memory", 0) - told),
        "over_time": _over_time(profile),
    }


def _over_time(profile: Profile) -> Dict[str, List[int]]:
    """Columns, at snapshots: what segments reserve, what of it is free, and the largest hole."""
    rows = [(snapshot.time, snapshot.position) for snapshot in profile.snapshots]
    n_blocks = profile.blocks.n_rows - 2 * len(profile.frees)
    step = max(1, -(-len(rows) // max(10, min(_MAX_MOMENTS, _MAX_PIECES // max(1, n_blocks)))))
    rows = rows[::-1][::step][::-1]
    columns: Dict[str, List[int]] = {"time": [], "reserved": [], "free": [], "largest_hole": []}
    for (time, _), layout in zip(rows, layouts(profile, [position for _, position in rows])):
        pieces = layout.fragmentation
        if not pieces.reserved:
            continue
        for name, value in zip(columns, (time, pieces.reserved, pieces.free, pieces.largest_hole)):
            columns[name].append(value)
    return columns
