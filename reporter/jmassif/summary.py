# SPDX-License-Identifier: GPL-2.0-or-later
"""What a reader should look at: the moment that is asked for, the answer in a sentence, the costly scopes."""

from typing import Callable, Dict, List, NamedTuple, Optional, Tuple, Union

from jmassif.ledger import Ledger, Row
from jmassif.names import Names
from jmassif.profile import ALLOCATED, Composition, Profile, Scope, side_of
from jmassif.trace import Growth
from jmassif.units import percent, printable, size

SELECTORS = ("peak", "peak-host", "peak-device", "peak-allocated", "start", "end", "last")


class SelectionError(Exception):
    """The trace does not have the moment that was asked for. The message says what it has."""


class Moment(NamedTuple):
    """One moment of the run and who held what then."""

    name: str  # "the peak", "snapshot 7"
    time: int
    composition: Composition
    snapshot: Optional[int]  # index, where it is a snapshot


def main_peak(profile: Profile) -> str:
    """The peak that "the peak" means. On a discrete GPU a sum of both pools says nothing: it is the device's there."""
    if profile.is_discrete:
        device = profile.peaks.get("device")
        return "device" if device and device.device else "host"
    return "total"


def _fullest_snapshot(profile: Profile) -> int:
    """For a trace without a record of the peak: killed before it was first written."""
    totals = [snapshot.host + snapshot.device for snapshot in profile.snapshots]
    return totals.index(max(totals))


# Of what was held before the program let go of it all, at least this much is still there at "the end".
_END_SHARE = 0.9


def _last_before_the_fall(profile: Profile) -> int:
    """Programs free their memory as they end, Python all of its modules: what they held until then is told before.

    Where the recorder saw an interpreter's end, and the program did not grow beyond that without it, it is the moment.
    """
    totals = [snapshot.host + snapshot.device for snapshot in profile.snapshots]
    index = len(totals) - 1
    if profile.snapshots[index].reason not in ("exit", "signal"):
        return index
    for told in range(index - 1, -1, -1):
        if profile.snapshots[told].reason == "end" and totals[told] >= totals[index]:
            return told
    if profile.snapshots[index].reason == "signal":
        return index
    top = index
    while top and totals[top - 1] > totals[top]:
        top -= 1
    while totals[index] < _END_SHARE * totals[top]:
        index -= 1
    return index


# As many as a message can list.
_MAX_MARKS = 10
_MAX_MARK = 60  # characters


def _snapshot(profile: Profile, index: int, name: str) -> Moment:
    return Moment(name, profile.snapshots[index].time, profile.composition(index), index)


def mark_snapshots(profile: Profile) -> Dict[str, int]:
    """By the text of each mark that the program took a snapshot at: the index of that, for the last time."""
    return {mark.text: mark.snapshot for mark in profile.marks if mark.snapshot is not None}


def select(profile: Profile, selector: str) -> Moment:
    """The moment that `selector` names: one of SELECTORS, a snapshot's id, or a mark. Raises SelectionError."""
    if not profile.snapshots:
        if selector in SELECTORS:
            return Moment("the start", 0, {}, None)
        raise SelectionError("the trace has no complete snapshot")
    if selector == "start":
        return _snapshot(profile, 0, "the start")
    if selector == "last":
        return _snapshot(profile, len(profile.snapshots) - 1, "the last snapshot")
    if selector == "end":
        return _snapshot(profile, _last_before_the_fall(profile), "the end")
    if selector in SELECTORS:
        which = selector[len("peak-") :] or main_peak(profile)
        name = "the peak" if selector == "peak" else f"the {which} peak"
        if which == ALLOCATED and not profile.has_pages:
            which = "total"
        if which in profile.peaks:
            peak = profile.peaks[which]
            return Moment(name, peak.time, profile.peak_composition(which), None)
        return _snapshot(profile, _fullest_snapshot(profile), "the fullest snapshot")
    for index, snapshot in enumerate(profile.snapshots):
        if str(snapshot.id) == selector:
            return _snapshot(profile, index, f"snapshot {selector}")
    marks = mark_snapshots(profile)
    if selector in marks:
        return _snapshot(profile, marks[selector], f'the mark "{printable(selector[:_MAX_MARK])}"')
    ids = [snapshot.id for snapshot in profile.snapshots]
    named = SELECTORS + tuple(f'"{text[:_MAX_MARK]}"' for text in list(marks)[:_MAX_MARKS])
    raise SelectionError(f'no snapshot "{selector}": there are {min(ids)} to {max(ids)}, {", ".join(named)}')


# ---- the answer ------------------------------------------------------------------------------

_WHOSE = {
    "yours": "yours",
    "cached": "reserved by a cache and not in use",
    "libraries": "held by libraries",
    "runtime": "held by the runtime",
    "other": "of owners without a group",
}


def _shares(table: Ledger, bytes_of: Callable[[Row], int]) -> str:
    """ "62.1 % is yours (tensor 1.20 GiB, app 3.00 MiB); 30.0 % is held by libraries (…)" """
    total = bytes_of(table.total)
    shares = []
    for group, owners in sorted(table.groups, key=lambda row: -bytes_of(row[0])):
        if not bytes_of(group):
            continue
        share = f"{percent(bytes_of(group), total)} is {_WHOSE[group.name]}"
        named = sorted((o for o in owners if bytes_of(o)), key=lambda owner: -bytes_of(owner))
        if group.name != "cached":
            parts = [f"{owner.name} {size(bytes_of(owner))}" for owner in named[:3]]
            share += f" ({', '.join(parts)}{', …' if len(named) > 3 else ''})"
        shares.append(share)
    return "; ".join(shares)


class Place(NamedTuple):
    """All memory of one kind and owner that one Python line or, without Python, one frame is to blame for."""

    bytes: int
    kind: str
    owner: str
    account: int  # its largest


def largest_place(profile: Profile, names: Names, composition: Composition) -> Optional[Place]:
    """The place that holds most; None if all memory is without a stack, or listed only."""
    found: Dict[Tuple[Union[int, str], str, str], Place] = {}
    for account, (n_bytes, _) in composition.items():
        node, kind, owner = profile.accounts[account]
        if not node or not side_of(kind):
            continue
        key = (names.charged(account) or names.site_frame(account), kind, owner)
        place = found.get(key)
        if place is None:
            found[key] = Place(n_bytes, kind, owner, account)
        else:
            is_larger = n_bytes > composition[place.account][0]
            found[key] = Place(place.bytes + n_bytes, kind, owner, account if is_larger else place.account)
    if not found:
        return None
    return max(found.values(), key=lambda place: (place.bytes, -place.account))


def answer(profile: Profile, names: Names, composition: Composition, table: Ledger) -> str:
    """Where the memory went, in words that are safe to show: one sentence on whose it is, one on the largest single place."""
    total = table.total
    if not total.bytes:
        return "No memory is on record here."
    sides: List[Tuple[str, Callable[[Row], int]]] = [
        ("device", lambda row: row.device.bytes),
        ("host", lambda row: row.host.bytes),
    ]
    used = [(side, bytes_of) for side, bytes_of in sides if bytes_of(total)]
    if profile.is_discrete or len(used) == 1:
        text = " ".join(
            f"The program held {size(bytes_of(total))} of {side} memory: {_shares(table, bytes_of)}."
            for side, bytes_of in used
        )
    else:
        split = " + ".join(f"{size(bytes_of(total))} {side}" for side, bytes_of in reversed(used))
        shares = _shares(table, lambda row: row.bytes)
        text = f"The program held {size(total.bytes)} ({split}). Of it {shares}."
    largest = largest_place(profile, names, composition)
    if largest:
        pool = total.bytes
        if profile.is_discrete:
            pool = total.host.bytes if side_of(largest.kind) == "host" else total.device.bytes
        line = names.charged(largest.account)
        verb = "mapped" if profile.is_sampled(largest.kind) else "allocated"
        where = f"{verb} by {names.frame(line)}" if line else f"{verb} in {names.site_frame(largest.account)}"
        text += (
            f" The largest single place: {size(largest.bytes)} ({percent(largest.bytes, pool)}) of {largest.kind} memory"
            f" ({largest.owner}), {where}."
        )
    return text


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
