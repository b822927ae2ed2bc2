# SPDX-License-Identifier: GPL-2.0-or-later
"""The timeline as a graph of characters.

Each column stands for a span of time and shows the fullest moment in it, so that a spike is never lost to rounding. Its
bar has host memory at the bottom and device memory on top of it, and above both what was reached for a moment between
two samples. A graph of one pool has bars of one character.
"""

from itertools import groupby
from typing import Iterable, List, NamedTuple, Sequence

from jmassif.model.run import Profile
from jmassif.render import layout as roles
from jmassif.render.layout import Line, Part
from jmassif.units import moment, size


HOST = ":"
DEVICE = "@"
BETWEEN = "'"

_MARGIN = 9  # columns left of the axis
_ROLES = {HOST: roles.HOST, DEVICE: roles.DEVICE}


class Point(NamedTuple):
    """The totals of one moment, and the largest sum since the point before."""

    time: int
    host: int
    device: int
    maximum: int


def timeline_points(profile: Profile) -> List[Point]:
    """The timeline with the exact peaks put in."""
    points = [Point(*row) for row in zip(*profile.timeline)]
    for peak in profile.peaks.values():
        points.append(Point(peak.time, peak.host, peak.device, peak.host + peak.device))
    points.sort(key=lambda point: point.time)
    return points


def one_pool(points: Sequence[Point], side: str) -> List[Point]:
    """The timeline of the host or of the device alone."""
    if side == "host":
        return [Point(p.time, p.host, 0, p.host) for p in points]
    return [Point(p.time, 0, p.device, p.device) for p in points]


def _fullest(points: Sequence[Point]) -> Point:
    fullest = max(points, key=lambda point: point.host + point.device)
    return fullest._replace(maximum=max(point.maximum for point in points))


def _column_of(time: int, points: Sequence[Point], width: int) -> int:
    begin = points[0].time
    span = max(1, points[-1].time - begin)
    return min(width - 1, (time - begin) * width // span)


def _columns(points: Sequence[Point], width: int) -> List[Point]:
    """The point of each column. Without a sample the level stays as it was."""
    members: List[List[Point]] = [[] for _ in range(width)]
    for point in points:
        members[_column_of(point.time, points, width)].append(point)
    columns = []
    level = points[0]
    for inside in members:
        if inside:
            columns.append(_fullest(inside))
            level = inside[-1]._replace(maximum=inside[-1].host + inside[-1].device)
        else:
            columns.append(level)
    return columns


def _bar(column: Point, top: int, height: int) -> str:
    """The column's characters from the bottom up, `height` of them. What is there at all shows."""
    n_total = -(-(column.host + column.device) * height // top)
    n_device = (column.device * height + top // 2) // top if column.host else n_total
    n_host = max(0, n_total - n_device)
    n_maximum = -(-column.maximum * height // top)
    bar = HOST * n_host + DEVICE * (n_total - n_host) + BETWEEN * (n_maximum - n_total)
    return bar.ljust(height)


def _pointer(column: int, text: str, width: int) -> str:
    """A line that points down at a column, with the text on the side that has room."""
    if column + 2 + len(text) <= width:
        return f"{' ' * column}v {text}"
    return f"{text} v".rjust(column + 1)


def _bars(margin: str, cells: str) -> Line:
    runs = ("".join(run) for _, run in groupby(cells))
    return Line(margin, *((run, _ROLES.get(run[0], "")) for run in runs))


def legend(entries: Iterable[str]) -> Line:
    """The legend of the characters in bars; an entry begins with the character."""
    parts: List[Part] = [(" " * (_MARGIN + 1), "")]
    for entry in entries:
        gap = "   " if len(parts) > 1 else ""
        parts += [(gap, ""), (entry[0], _ROLES.get(entry[0], "")), (entry[1:], "")]
    return Line(*parts)


def columns_of(points: Sequence[Point], width: int, height: int) -> List[Line]:
    """The graph's bars alone, from the top down."""
    top = max(1, max(point.maximum for point in points))
    bars = [_bar(column, top, height) for column in _columns(points, width)]
    return [_bars("", "".join(bar[row] for bar in bars)) for row in range(height - 1, -1, -1)]


def draw(points: Sequence[Point], width: int, height: int, unit: str, caption: str) -> List[str]:
    """The graph's lines. `caption` names the largest value, to which a mark points; `points` are in order of time."""
    fullest = max(points, key=lambda point: point.maximum)
    top = max(1, fullest.maximum)
    bars = [_bar(column, top, height) for column in _columns(points, width)]
    margin = " " * _MARGIN
    lines: List[str] = [f"{margin} {_pointer(_column_of(fullest.time, points, width), caption, width)}".rstrip()]
    for row in range(height - 1, -1, -1):
        label = size(fullest.maximum) if row == height - 1 else ""
        axis = "^" if row == height - 1 else "|"
        lines.append(_bars(f"{label:>{_MARGIN}}{axis}", "".join(bar[row] for bar in bars).rstrip()))
    lines.append(f"{'0':>{_MARGIN}}+{'-' * (width - 1)}>")
    begin, end = moment(points[0].time, unit), moment(points[-1].time, unit)
    lines.append(f"{margin} {begin}{end:>{max(1, width - len(begin))}}")
    return lines
