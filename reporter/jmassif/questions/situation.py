# SPDX-License-Identifier: GPL-2.0-or-later
"""What there was when an allocation failed, and the arithmetic that a verdict on it follows from. None is not known."""

from bisect import bisect_right
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.model.kinds import side_of
from jmassif.model.profile import Profile
from jmassif.model.records import Exhaustion
from jmassif.model.replay import Replay
from jmassif.questions.segments import Layout
from jmassif.units import count, size

MIB = 1 << 20


class Situation(NamedTuple):
    """What there was at the last failure."""

    side: str  # of what was asked for
    asked: Optional[int]
    free: Optional[int]  # of the device, as the driver said; of the machine, for memory of the host
    gathered: int  # of what was asked for: got already, by pieces
    total: Optional[int]  # likewise
    reserved: int  # by segments on the device
    cached: int  # of that, in no block
    holes: int
    largest_hole: int
    returnable: int  # in segments of which nothing is used
    pool_unused: int  # reserved by stream-ordered pools beyond their blocks
    own: Optional[int]  # this program's, on the side; of both where they share the memory
    others: Optional[int]  # what else is not free
    limit: Optional[int]  # of the address space
    by_owner: Dict[str, int]  # all that this program held

    @property
    def missing(self) -> Optional[int]:
        """What was asked for and neither free nor to be had from caches."""
        if self.asked is None or self.free is None:
            return None
        return max(0, self.asked - self.gathered - self.free - self.returnable - self.pool_unused)


class Holdings(NamedTuple):
    host: int
    device: int
    by_owner: Dict[str, int]


def holdings_at_snapshots(profile: Profile, wanted: Sequence[int]) -> Dict[int, Holdings]:
    """By index of the snapshot: what the program held. One pass for all of them."""
    found: Dict[int, Holdings] = {}
    replay = Replay(len(profile.accounts))
    by_owner: Dict[str, int] = {}
    for index, snapshot in enumerate(profile.snapshots[: max(wanted, default=-1) + 1]):
        for account, n_bytes, _ in replay.growths(snapshot):
            _, kind, owner = profile.accounts[account]
            if side_of(kind):
                by_owner[owner] = by_owner.get(owner, 0) + n_bytes
        if index in wanted:
            found[index] = Holdings(snapshot.host, snapshot.device, dict(by_owner))
    return found


def nothing_known(profile: Profile, event: Exhaustion) -> Holdings:
    """Without a snapshot: the totals."""
    at = bisect_right(profile.timeline.time, event.time) - 1
    if at < 0:
        return Holdings(0, 0, {})
    return Holdings(profile.timeline.host[at], profile.timeline.device[at], {})


def _rest(total: Optional[int], free: Optional[int], own: int) -> Optional[int]:
    return None if total is None or free is None else max(0, total - free - own)


def situation_of(profile: Profile, event: Exhaustion, layout: Layout, held: Holdings) -> Situation:
    figures = event.figures
    side = side_of(profile.accounts[event.account].kind) or "device"
    kind = profile.accounts[event.account].kind
    if kind == "pinned" and "device-free" in figures:
        side = "device"  # the driver was asked, and on a board it is one memory
    own = held.host + held.device
    if side == "device":
        free, total = figures.get("device-free"), figures.get("device-total")
        own = held.device if profile.is_discrete else own
        others = _rest(total, free, own)
    else:
        available = profile.system_at("mem-available", event.time)
        swap = profile.system_at("swap-free", event.time) or 0
        total = profile.system_at("mem-total", event.time) or profile.number("mem-total-bytes")
        own = held.host if profile.is_discrete else own
        resident = profile.system_at("process-resident", event.time) or 0
        on_board = 0 if profile.is_discrete else held.device
        others = _rest(total, available, resident + on_board)
        free = None if available is None else available + swap
    pieces = layout.fragmentation
    gathered = max(0, figures.get("vmm-created", 0) - figures.get("vmm-mapped", 0)) if kind == "vmm" else 0
    return Situation(
        side=side,
        asked=max(event.bytes + gathered, figures.get("framework-request", 0)) or None,
        free=free,
        gathered=gathered,
        total=total,
        reserved=pieces.reserved,
        cached=pieces.free,
        holes=pieces.holes,
        largest_hole=pieces.largest_hole,
        returnable=pieces.returnable,
        pool_unused=max(0, figures.get("pool-reserved", 0) - figures.get("pool-used", 0)),
        own=own,
        others=others,
        limit=figures.get("address-space-limit"),
        by_owner=held.by_owner,
    )


def arithmetic(s: Situation) -> List[Tuple[str, int, str]]:
    """The figures that a verdict follows from: label, indented as a part of the one above, bytes, and a remark."""
    where = "on the device" if s.side == "device" else "in memory and swap"
    of_total = f"of {size(s.total)}" if s.total else ""
    rows: List[Tuple[str, Optional[int], str]] = [("asked for", s.asked, ""), (f"free {where}", s.free, of_total)]
    if s.reserved:
        rows.append(("reserved in segments", s.reserved, ""))
        rows.append(("  of it free", s.cached, f"in {count(s.holes, 'hole')}" if s.holes else ""))
        rows.append(("    the largest hole", s.largest_hole, ""))
        rows.append(("    that could be given back", s.returnable, ""))
    if s.gathered:
        rows.insert(1, ("of it had already, in pieces", s.gathered, ""))
    if s.pool_unused:
        rows.append(("unused in stream-ordered pools", s.pool_unused, ""))
    if s.missing and s.missing != s.asked:
        rows.append(("missing", s.missing, ""))
    rows += [("this program holds", s.own, ""), ("everything else holds", s.others, "")]
    return [(label, n_bytes, remark) for label, n_bytes, remark in rows if n_bytes is not None]
