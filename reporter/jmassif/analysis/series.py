# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory over time as areas that lie on each other: who held how much of all that was held, at every time on record.

Who held what is told at snapshots and at peaks; there the areas are exact. In between a trace tells the totals, which are exact
too, and how they are shared out is interpolated. As the page's areas (reporter/web/src/runs/areas.js).
"""

from bisect import bisect_right
from typing import Callable, Dict, Iterator, List, NamedTuple, Tuple

from jmassif.model.records import PEAKS, Snapshot, counted_blocks, side_of
from jmassif.model.replay import Replay
from jmassif.model.run import Profile


# ---- series ----
# What each owner, kind, library or line held at each snapshot.


class Balance:
    """What goes under one name at a moment, by side. The same object changes from snapshot to snapshot."""

    __slots__ = ("bytes", "blocks")

    def __init__(self) -> None:
        self.bytes = {"host": 0, "device": 0}
        self.blocks = {"host": 0, "device": 0}

    @property
    def all_bytes(self) -> int:
        return self.bytes["host"] + self.bytes["device"]


def series(profile: Profile, name_of: Callable[[int], str]) -> Iterator[Tuple[Snapshot, Dict[str, Balance]]]:
    """Each snapshot with what every name that has come up so far holds. Kinds that are only listed are left out."""
    balances: Dict[str, Balance] = {}
    of: List[Balance] = [Balance()] * len(profile.accounts)
    is_known = bytearray(len(profile.accounts))
    replay = Replay(len(profile.accounts))
    sides = [side_of(account.kind) for account in profile.accounts]
    for snapshot in profile.snapshots:
        for account, n_bytes, blocks in replay.growths(snapshot):
            side = sides[account]
            if side is None:
                continue
            if not is_known[account]:
                is_known[account] = 1
                name = name_of(account)
                if name not in balances:
                    balances[name] = Balance()
                of[account] = balances[name]
            balance = of[account]
            balance.bytes[side] += n_bytes
            balance.blocks[side] += counted_blocks(profile.accounts[account].kind, blocks)
        yield snapshot, balances


# ---- areas ----

Pair = Tuple[int, int]  # bytes of the host and of the device


class Told(NamedTuple):
    """A moment of which it is known who held what."""

    time: int
    peak: str  # which, of kinds.PEAKS; "": it is a snapshot
    held: Dict[str, Pair]


class Point(NamedTuple):
    """The totals at a time."""

    time: int
    host: int
    device: int
    maximum: int  # the largest sum since the point before
    told: int  # index of the moment that it is; -1: none


class History(NamedTuple):
    moments: List[Told]  # in order of time
    points: List[Point]  # likewise; each moment is one of them
    names: List[str]  # what held most at any moment first


def _of_peak(profile: Profile, which: str, name_of: Callable[[int], str]) -> Dict[str, Pair]:
    held: Dict[str, Pair] = {}
    for account, (n_bytes, _) in profile.peak_composition(which).items():
        side = side_of(profile.accounts[account].kind)
        if side is None:
            continue
        host, device = held.get(name_of(account), (0, 0))
        held[name_of(account)] = (host + n_bytes, device) if side == "host" else (host, device + n_bytes)
    return held


def _moments(profile: Profile, name_of: Callable[[int], str]) -> List[Told]:
    """Of a time the peaks first: what follows them in the same millisecond is what the time ends with."""
    found = [
        Told(snapshot.time, "", {name: (row.bytes["host"], row.bytes["device"]) for name, row in balances.items()})
        for snapshot, balances in series(profile, name_of)
    ]
    for which in PEAKS:
        if which in profile.peaks:
            found.append(Told(profile.peaks[which].time, which, _of_peak(profile, which, name_of)))
    return sorted(found, key=lambda told: (told.time, not told.peak))


def _points(profile: Profile, moments: List[Told]) -> List[Point]:
    points = [Point(*row, -1) for row in zip(*profile.timeline)]
    for index, told in enumerate(moments):
        host, device = (sum(pair[side] for pair in told.held.values()) for side in (0, 1))
        points.append(Point(told.time, host, device, host + device, index))
    # Totals that are told for the time of a moment come before it.
    return sorted(points, key=lambda point: (point.time, point.told))


def history(profile: Profile, name_of: Callable[[int], str]) -> History:
    """Of all memory that is in a sum; `name_of` groups accounts."""
    moments = _moments(profile, name_of)
    most: Dict[str, int] = {}
    for told in moments:
        for name, pair in told.held.items():
            most[name] = max(most.get(name, 0), sum(pair))
    names = sorted((name for name in most if most[name]), key=lambda name: (-most[name], name))
    return History(moments, _points(profile, moments), names)


def _share(moments: List[Told], times: List[int], point: Point, name: str, side: Callable[[Pair], int]) -> float:
    """What the name held at a point, before it is scaled to what is known of the total."""

    def held(index: int) -> int:
        return side(moments[index].held.get(name, (0, 0)))

    if point.told >= 0:
        return held(point.told)
    after = bisect_right(times, point.time)
    if not after:
        return 0
    if after == len(times) or times[after - 1] == point.time:
        return held(after - 1)
    before, part = held(after - 1), (point.time - times[after - 1]) / (times[after] - times[after - 1])
    return before + (held(after) - before) * part


def stacked(
    made: History, points: List[Point], groups: List[List[str]], side: Callable[[Pair], int]
) -> List[List[float]]:
    """By group of names, the lowest first: the upper edge of its area at each of the points, which are some of the history's."""
    times = [told.time for told in made.moments]
    edges: List[List[float]] = [[] for _ in groups]
    for point in points:
        reached, column = 0.0, []
        for names in groups:
            reached += sum(_share(made.moments, times, point, name, side) for name in names)
            column.append(reached)
        total = side((point.host, point.device))
        for edge, value in zip(edges, column):
            edge.append(value * total / reached if reached else 0.0)
    return edges
