# SPDX-License-Identifier: GPL-2.0-or-later
"""What calls cost: the costly ones in order of time, and what each added."""

from typing import Dict, List, NamedTuple, Optional, Tuple

from jmassif.model.kinds import side_of
from jmassif.model.profile import Profile
from jmassif.model.records import Growth, Scope


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
