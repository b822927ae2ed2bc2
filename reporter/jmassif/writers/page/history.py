# SPDX-License-Identifier: GPL-2.0-or-later
"""What happened in a run, for the page: the machine's figures, marks and regions, calls worth a line."""

from typing import Any, Dict, Tuple

from jmassif.model.profile import Profile
from jmassif.model.records import Growth
from jmassif.questions.machine import histories, was_short
from jmassif.questions.regions import region_figures
from jmassif.questions.scopes import growth_by_side, waterfall
from jmassif.writers.page.columns import Columns
from jmassif.writers.page.texts import shown

_MAX_SCOPES = 200
_MAX_EVENTS = 2000
_MAX_SUMS = 200


def machine_figures(profile: Profile, columns: Columns) -> Dict[str, Any]:
    """The figures of the machine over time: their names, and rows of all of them, one figure after the other."""
    found = histories(profile)
    columns.add("machine.time", [time for history in found for time in history.times])
    columns.add("machine.bytes", [value for history in found for value in history.values])
    figures = [
        {
            "label": history.label,
            "rows": len(history.times),
            "wants_much": history.wants_much,
            "is_of_process": history.is_of_process,
            "beside": history.beside,
        }
        for history in found
    ]
    return {"machine": figures, "short_at": was_short(profile)}


def events(profile: Profile) -> Dict[str, Any]:
    """Marks and regions."""
    regions = []
    for region in profile.regions[:_MAX_EVENTS]:
        figures = region_figures(profile, region)
        regions.append(
            {
                "text": shown(region.text),
                "begin": region.begin,
                "end": region.end,
                "thread": region.thread,
                "depth": region.depth,
                "most": figures.most,
                "host": figures.host,
                "device": figures.device,
            }
        )
    return {
        "marks": [{"time": mark.time, "text": shown(mark.text)} for mark in profile.marks[:_MAX_EVENTS]],
        "regions": regions,
        "events_left_out": max(0, len(profile.marks) - _MAX_EVENTS) + max(0, len(profile.regions) - _MAX_EVENTS),
    }


def _growths(growths: Tuple[Growth, ...]) -> Dict[str, Any]:
    host, device = growth_by_side(growths)
    return {"host": host, "device": device, "kinds": [[part.kind, part.bytes] for part in growths if part.bytes]}


def scopes(profile: Profile) -> Dict[str, Any]:
    fall = waterfall(profile, _MAX_SCOPES)
    rows = []
    for scope, depth in fall.rows:
        rows.append({"name": shown(scope.name), "depth": depth, "begin": scope.begin, "end": scope.end})
        rows[-1].update(_growths(scope.growths))
    sums = []
    for total in sorted(profile.scope_sums.values(), key=lambda total: -total.calls)[:_MAX_SUMS]:
        sums.append({"name": shown(total.name), "calls": total.calls, "time": total.time})
        sums[-1].update(_growths(total.growths))
    return {"scopes": rows, "scopes_left_out": [fall.n_left_out, fall.left_out_bytes], "scope_sums": sums}
