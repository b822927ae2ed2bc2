# SPDX-License-Identifier: GPL-2.0-or-later
"""Regions that the program named (NVTX, jmassif.region), and the calls that cost most at the start."""

from math import inf
from typing import Dict, List, NamedTuple, Tuple

from jmassif.model.records import Scope, growth_by_side
from jmassif.model.run import Profile


class NamedRegions(NamedTuple):
    """All regions of one name. Time and growth leave out regions inside one of the same name in their thread."""

    text: str
    calls: int = 0
    time: int = 0  # of those that have ended, in the trace's unit
    recorded: int = 0  # one by one; the rest is of these
    most: int = 0
    host: int = 0
    device: int = 0


def regions_by_name(profile: Profile) -> List[NamedRegions]:
    """A row a name, in the order in which the names first came."""
    rows: Dict[str, NamedRegions] = {}
    open_until: Dict[Tuple[int, str], float] = {}  # by thread and name, a row of the timeline: the outermost one's end
    for region in profile.regions:
        key = region.thread, region.text
        is_outermost = region.begin_row >= open_until.get(key, 0)
        if is_outermost:
            open_until[key] = inf if region.end is None else region.end_row
        figures = profile.region_figures(region)
        row = rows.get(region.text, NamedRegions(region.text))
        time = 0 if region.end is None else region.end - region.begin
        rows[region.text] = row._replace(
            calls=row.calls + 1,
            time=row.time + time * is_outermost,
            recorded=row.recorded + 1,
            most=max(row.most, figures.most),
            host=row.host + figures.host * is_outermost,
            device=row.device + figures.device * is_outermost,
        )
    for sums in profile.region_sums.values():
        row = rows.get(sums.text, NamedRegions(sums.text))
        rows[sums.text] = row._replace(calls=max(row.calls, sums.calls), time=max(row.time, sums.time))
    return list(rows.values())


# ---- scopes ----

# A scope matters from this share of the peak, or of the running time, on.
_MIN_SCOPE_SHARE = 0.001


class ScopeRow(NamedTuple):
    scope: Scope
    depth: int


class Waterfall(NamedTuple):
    rows: List[ScopeRow]  # in order of time, a nested scope after the one around it
    n_left_out: int
    left_out_bytes: int  # net growth of the scopes left out that are in no other scope


def waterfall(profile: Profile, limit: int) -> Waterfall:
    """The scopes that cost most, in memory or in time, up to `limit`; and the scopes around them."""
    by_id = {scope.id: scope for scope in profile.scopes}
    cost = {scope.id: sum(growth_by_side(scope.growths)) for scope in profile.scopes}
    all_bytes = max((peak.host + peak.device for peak in profile.peaks.values()), default=0) or 1
    all_time = max((scope.end for scope in profile.scopes), default=0) or 1

    def share(scope: Scope) -> float:
        return max(abs(cost[scope.id]) / all_bytes, (scope.end - scope.begin) / all_time)

    chosen = set()
    for scope in sorted(profile.scopes, key=lambda scope: (-share(scope), scope.id))[:limit]:
        outer = scope if share(scope) >= _MIN_SCOPE_SHARE else None
        while outer is not None and outer.id not in chosen:
            chosen.add(outer.id)
            outer = by_id.get(outer.parent)
    inside: Dict[int, List[Scope]] = {}  # the latest first
    for scope in sorted(map(by_id.__getitem__, chosen), key=lambda scope: (scope.begin, scope.id), reverse=True):
        inside.setdefault(scope.parent if scope.parent in by_id else 0, []).append(scope)
    rows: List[ScopeRow] = []
    pending = [ScopeRow(scope, 0) for scope in inside.get(0, [])]
    while pending:
        row = pending.pop()
        rows.append(row)
        pending += [ScopeRow(scope, row.depth + 1) for scope in inside.get(row.scope.id, [])]
    left_out = [scope for scope in profile.scopes if scope.id not in chosen]
    return Waterfall(rows, len(left_out), sum(cost[scope.id] for scope in left_out if scope.parent not in by_id))
