# SPDX-License-Identifier: GPL-2.0-or-later
"""Bounds over time, and what can be calculated with them: the algebra of sums over processes. Knows nothing of memory."""

from bisect import bisect_left
from heapq import heappop, heappush
from typing import Callable, Dict, List, NamedTuple, Sequence, Tuple


class Curve(NamedTuple):
    """A bound over time: in the millisecond times[i] it is at[i], from there to the next one after[i]. Zero before."""

    times: List[int]
    at: List[int]
    after: List[int]


Pick = Callable[[Sequence[int]], int]


def curve_of(instants: Sequence[Tuple[int, int]], between: Sequence[int], pick: Pick) -> Curve:
    """From values at instants, in order, and a bound between each two of them; `pick` is min or max."""
    members: Dict[int, List[int]] = {}
    for time, value in instants:
        members.setdefault(time, []).append(value)
    after = dict.fromkeys(members, 0)
    for (time, _), (later, _), value in zip(instants, instants[1:], between):
        members[time].append(value)
        members[later].append(value)
        if later > time:
            after[time] = value
    times = sorted(members)
    return Curve(times, [pick(members[time]) for time in times], [after[time] for time in times])


def combined(curves: Sequence[Curve], function: Callable[[Sequence[int]], int]) -> Curve:
    """`function` of the values of all curves, at every time of one of them."""
    times = sorted({time for curve in curves for time in curve.times})
    now = [0] * len(curves)
    places = [0] * len(curves)
    at, after = [], []
    for time in times:
        here = list(now)
        for index, curve in enumerate(curves):
            place = places[index]
            if place < len(curve.times) and curve.times[place] == time:
                here[index], now[index] = curve.at[place], curve.after[place]
                places[index] = place + 1
        at.append(function(here))
        after.append(function(now))
    return Curve(times, at, after)


def added(curves: Sequence[Curve]) -> Curve:
    """The sum of many curves, in one sweep."""
    events = sorted(
        (time, index, place) for index, curve in enumerate(curves) for place, time in enumerate(curve.times)
    )
    now = [0] * len(curves)
    level = 0
    times: List[int] = []
    at: List[int] = []
    after: List[int] = []
    for time, index, place in events:
        curve = curves[index]
        if not times or times[-1] != time:
            times.append(time)
            at.append(level)
            after.append(level)
        at[-1] += curve.at[place] - now[index]
        level += curve.after[place] - now[index]
        after[-1] = level
        now[index] = curve.after[place]
    return Curve(times, at, after)


def highest(curves: Sequence[Curve]) -> Curve:
    """The largest of many curves, none of them negative, in one sweep."""
    events = sorted(
        (time, index, place) for index, curve in enumerate(curves) for place, time in enumerate(curve.times)
    )
    # Levels from the last time on, largest first: (-value, curve, which of its levels it was). What is over stays until it is on top.
    levels: List[Tuple[int, int, int]] = []
    newest = [0] * len(curves)
    times: List[int] = []
    at: List[int] = []
    after: List[int] = []
    begin = 0
    while begin < len(events):
        time = events[begin][0]
        end = begin
        while end < len(events) and events[end][0] == time:
            newest[events[end][1]] += 1
            end += 1
        here = events[begin:end]
        at.append(max([_top(levels, newest)] + [curves[index].at[place] for _, index, place in here]))
        for _, index, place in here:
            heappush(levels, (-curves[index].after[place], index, newest[index]))
        after.append(_top(levels, newest))
        times.append(time)
        begin = end
    return Curve(times, at, after)


def _top(levels: List[Tuple[int, int, int]], newest: Sequence[int]) -> int:
    while levels and levels[0][2] != newest[levels[0][1]]:
        heappop(levels)
    return -levels[0][0] if levels else 0


def steps(instants: Sequence[Tuple[int, int]]) -> Curve:
    """A level that stays until the next instant; zero after the last."""
    last = dict(instants)
    times = sorted(last)
    return Curve(times, [last[time] for time in times], [last[time] for time in times[:-1]] + [0] * bool(times))


def values_at(curve: Curve, times: Sequence[int]) -> List[int]:
    """Of the curve at `times`, which are in order."""
    place = bisect_left(curve.times, times[0]) if times else 0
    values, after = [], curve.after[place - 1] if place else 0
    for time in times:
        while place < len(curve.times) and curve.times[place] < time:
            after = curve.after[place]
            place += 1
        is_here = place < len(curve.times) and curve.times[place] == time
        values.append(curve.at[place] if is_here else after)
    return values


def values_after(curve: Curve, times: Sequence[int]) -> List[int]:
    """Of the curve right after each of `times`, which are in order."""
    values, place, after = [], 0, 0
    for time in times:
        while place < len(curve.times) and curve.times[place] <= time:
            after = curve.after[place]
            place += 1
        values.append(after)
    return values
