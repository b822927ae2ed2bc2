# SPDX-License-Identifier: GPL-2.0-or-later
"""Regions and calls as slices of their threads, and tracks on which slices nest."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from jmassif.model.records import Growth, Region, Scope, side_of
from jmassif.model.run import Profile


# ---- regions ----
# Regions that the program named (NVTX, jmassif.region): what was held inside them.
#
# The recorder writes the totals at both ends of a region, so these figures are exact.


class RegionFigures(NamedTuple):
    most: int  # bytes: the largest host + device inside it
    host: int  # bytes: how much more the program held at its end than at its beginning; negative if less
    device: int


class NamedRegions(NamedTuple):
    """All regions of one name. Time and growth leave out regions inside one of the same name in their thread."""

    text: str
    calls: int
    time: int  # of those that have ended, in the trace's unit
    # Over those that were recorded one by one:
    recorded: int
    most: int
    host: int
    device: int


def region_figures(profile: Profile, region: Region) -> RegionFigures:
    timeline = profile.timeline
    last = (len(timeline.time) if region.end is None else region.end_row) - 1
    first = region.begin_row - 1

    def total(row: int) -> int:
        return timeline.host[row] + timeline.device[row] if row >= 0 else 0

    most = max(timeline.maximum[first + 1 : last + 1], default=0)
    host = (timeline.host[last] if last >= 0 else 0) - (timeline.host[first] if first >= 0 else 0)
    device = (timeline.device[last] if last >= 0 else 0) - (timeline.device[first] if first >= 0 else 0)
    return RegionFigures(max(most, total(first)), host, device)


def _outermost(regions: List[Region]) -> List[bool]:
    """True for each region that is in no other of the same name and thread."""
    open_until: Dict[Tuple[int, str], Optional[int]] = {}  # a row of the timeline; None: to the end
    found = []
    for region in regions:
        key = region.thread, region.text
        until = open_until.get(key, 0)
        is_outermost = until is not None and region.begin_row >= until
        found.append(is_outermost)
        if is_outermost:
            open_until[key] = None if region.end is None else region.end_row
    return found


def regions_by_name(profile: Profile) -> List[NamedRegions]:
    """A row a name, in the order in which the names first came."""
    rows: Dict[str, NamedRegions] = {}
    for region, is_outermost in zip(profile.regions, _outermost(profile.regions)):
        figures = region_figures(profile, region)
        row = rows.get(region.text, NamedRegions(region.text, 0, 0, 0, 0, 0, 0))
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
        row = rows.get(sums.text, NamedRegions(sums.text, 0, 0, 0, 0, 0, 0))
        rows[sums.text] = row._replace(calls=max(row.calls, sums.calls), time=max(row.time, sums.time))
    return list(rows.values())


# ---- scopes ----
# The cost of calls: the costly ones in order of time, and the memory that each added.

# ---- scopes ----------------------------------------------------------------------------------


class ScopeRow(NamedTuple):
    scope: Scope
    depth: int


class Waterfall(NamedTuple):
    rows: List[ScopeRow]  # in order of time, a nested scope after the one around it
    n_left_out: int
    left_out_bytes: int  # net growth of the scopes left out that are in no other scope


def growth_by_side(growths: Tuple[Growth, ...]) -> Tuple[int, int]:
    """(host, device) bytes."""
    host = sum(growth.bytes for growth in growths if side_of(growth.kind) == "host")
    device = sum(growth.bytes for growth in growths if side_of(growth.kind) == "device")
    return host, device


def _latest_first(scopes: List[Scope]) -> List[Scope]:
    return sorted(scopes, key=lambda scope: (scope.begin, scope.id), reverse=True)


# A scope matters from this share of the peak, or of the running time, on.
_MIN_SCOPE_SHARE = 0.001


def waterfall(profile: Profile, limit: int) -> Waterfall:
    """The scopes that cost most, in memory or in time, up to `limit`; and the scopes around them."""
    by_id = {scope.id: scope for scope in profile.scopes}
    cost = {scope.id: sum(growth_by_side(scope.growths)) for scope in profile.scopes}
    all_bytes = max((peak.host + peak.device for peak in profile.peaks.values()), default=0) or 1
    all_time = max((scope.end for scope in profile.scopes), default=0) or 1

    def share(scope: Scope) -> float:
        return max(abs(cost[scope.id]) / all_bytes, (scope.end - scope.begin) / all_time)

    ranked = sorted(profile.scopes, key=lambda scope: (-share(scope), scope.id))
    ranked = [scope for scope in ranked[:limit] if share(scope) >= _MIN_SCOPE_SHARE]
    chosen = set()
    for scope in ranked:
        outer: Optional[Scope] = scope
        while outer is not None and outer.id not in chosen:
            chosen.add(outer.id)
            outer = by_id.get(outer.parent)
    inside: Dict[int, List[Scope]] = {}
    for id_ in chosen:
        scope = by_id[id_]
        inside.setdefault(scope.parent if scope.parent in by_id else 0, []).append(scope)

    rows: List[ScopeRow] = []
    pending = [ScopeRow(scope, 0) for scope in _latest_first(inside.get(0, []))]
    while pending:
        row = pending.pop()
        rows.append(row)
        nested = _latest_first(inside.get(row.scope.id, []))
        pending.extend(ScopeRow(scope, row.depth + 1) for scope in nested)
    left_out = [scope for scope in profile.scopes if scope.id not in chosen]
    return Waterfall(
        rows,
        len(left_out),
        sum(cost[scope.id] for scope in left_out if scope.parent not in by_id),
    )


# ---- slices ----

# Numbers of threads of the second track on, beyond those of real threads.
_FIRST_TRACK = 1 << 24


class Slice(NamedTuple):
    thread: int
    begin: int
    end: int
    category: str
    name: str
    figures: Dict[str, Any]


def slices(profile: Profile) -> List[Slice]:
    """In order of time, the outer one first."""
    found = []
    for region in profile.regions:
        end = max(region.begin, profile.last_time) if region.end is None else region.end
        most, host, device = region_figures(profile, region)
        figures = {"most_bytes": most, "host_growth_bytes": host, "device_growth_bytes": device}
        if region.end is None:
            figures["still_open"] = True
        found.append(Slice(region.thread, region.begin, end, "region", region.text, figures))
    for scope in sorted(profile.scopes, key=lambda scope: (scope.begin, -scope.end, scope.id)):
        host, device = growth_by_side(scope.growths)
        figures = {"host_growth_bytes": host, "device_growth_bytes": device}
        figures.update((f"{growth.kind}_blocks", growth.blocks) for growth in scope.growths)
        found.append(Slice(scope.thread, scope.begin, scope.end, "scope", scope.name, figures))
    # Stable: of slices with the same ends the region is the outer one, and a scope that was begun first.
    return sorted(found, key=lambda slice_: (slice_.begin, -slice_.end))


class Tracks:
    """The track of its thread that a slice goes to: the first in which it nests in those that are open."""

    def __init__(self) -> None:
        self._open: Dict[int, List[List[int]]] = {}  # by thread and track: the ends of the open slices
        self.names: Dict[int, str] = {}

    def place(self, slice_: Slice) -> int:
        tracks = self._open.setdefault(slice_.thread, [])
        for number, ends in enumerate(tracks):
            # One that ends where this one begins is not around it.
            while ends and ends[-1] <= slice_.begin and ends[-1] < slice_.end:
                ends.pop()
            if not ends or slice_.end <= ends[-1]:
                break
        else:
            number, ends = len(tracks), []
            tracks.append(ends)
        ends.append(slice_.end)
        if not number:
            self.names[slice_.thread] = f"thread {slice_.thread}"
            return slice_.thread
        track = _FIRST_TRACK * number + slice_.thread
        self.names[track] = f"thread {slice_.thread}, overlapping ({number + 1})"
        return track
