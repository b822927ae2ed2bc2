# SPDX-License-Identifier: GPL-2.0-or-later
"""The timeline as a graph of characters.

Each column stands for a span of time and shows the fullest moment in it, so that a spike is never lost to rounding. Its
bar has host memory at the bottom and device memory on top of it, and above both what was reached for a moment between
two records. A graph of one pool has bars of one character.
"""

from itertools import groupby
from typing import Dict, Iterator, List, NamedTuple, Sequence

from jmassif.model.run import Profile
from jmassif.render import layout as roles
from jmassif.render.layout import Line, Lines
from jmassif.render.view import View
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


def _column_of(time: int, points: Sequence[Point], width: int) -> int:
    begin = points[0].time
    span = max(1, points[-1].time - begin)
    return min(width - 1, (time - begin) * width // span)


def _columns(points: Sequence[Point], width: int) -> List[Point]:
    """The fullest point of each column, and the largest sum in it. Without a sample the level stays as it was."""
    inside = {column: list(group) for column, group in groupby(points, lambda p: _column_of(p.time, points, width))}
    columns, level = [], points[0]
    for column in range(width):
        members = inside.get(column, [level])
        fullest = max(members, key=lambda point: point.host + point.device)
        columns.append(fullest._replace(maximum=max(point.maximum for point in members)))
        level = members[-1]._replace(maximum=members[-1].host + members[-1].device)
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


def _coloured(margin: str, cells: str) -> Line:
    runs = ("".join(run) for _, run in groupby(cells))
    return Line(margin, *((run, _ROLES.get(run[0], "")) for run in runs))


def _rows(points: Sequence[Point], width: int, height: int) -> Iterator[str]:
    """The bars' characters from the top down."""
    top = max(1, max(point.maximum for point in points))
    bars = [_bar(column, top, height) for column in _columns(points, width)]
    return ("".join(row) for row in reversed(list(zip(*bars))))


def columns_of(points: Sequence[Point], width: int, height: int) -> List[Line]:
    """The graph's bars alone, from the top down."""
    return [_coloured("", row) for row in _rows(points, width, height)]


def draw(points: Sequence[Point], width: int, height: int, unit: str, caption: str) -> Lines:
    """The graph's lines. `caption` names the largest value, to which a mark points; `points` are in order of time."""
    fullest = max(points, key=lambda point: point.maximum)
    margin = " " * _MARGIN
    lines: Lines = [f"{margin} {_pointer(_column_of(fullest.time, points, width), caption, width)}".rstrip()]
    axes = [f"{size(fullest.maximum):>{_MARGIN}}^"] + [f"{margin}|"] * (height - 1)
    lines += [_coloured(axis, row.rstrip()) for axis, row in zip(axes, _rows(points, width, height))]
    lines.append(f"{'0':>{_MARGIN}}+{'-' * (width - 1)}>")
    begin, end = moment(points[0].time, unit), moment(points[-1].time, unit)
    return lines + [f"{margin} {begin}{end:>{max(1, width - len(begin))}}"]


_HEIGHT = 11
_HEIGHT_OF_TWO = 7  # graphs, each
_HEIGHT_IN_BRIEF = 6


def graph(points: Sequence[Point], is_discrete: bool, unit: str, view: View) -> Lines:
    """The graph as a report has it: host and device in one or, of a discrete GPU, each in its own."""
    used = [side for side in ("device", "host") if any(getattr(point, side) for point in points)]
    is_split = is_discrete and len(used) == 2
    height = _HEIGHT_IN_BRIEF if view.is_brief else _HEIGHT_OF_TWO if is_split else _HEIGHT
    pools: Dict[str, Sequence[Point]] = (
        {f"{side} ": one_pool(points, side) for side in used} if is_split else {"": points} if points else {}
    )
    lines: Lines = []
    for name, pool in pools.items():
        top = max(pool, key=lambda point: point.maximum)
        caption = f"{name}peak: {size(top.maximum)} at {moment(top.time, unit)}"
        lines += [""] + draw(pool, view.width, height, unit, caption)
    if is_split or not lines:
        return lines
    legend = [(bar, f" {side}") for side, bar in (("host", HOST), ("device", DEVICE)) if side in used]
    legend += [(BETWEEN, " short peaks, over before the next record")] if any(BETWEEN in line for line in lines) else []
    entries = [
        Line("   " if n else " " * (_MARGIN + 1), (bar, _ROLES.get(bar, "")), text)
        for n, (bar, text) in enumerate(legend)
    ]
    return lines + [Line(*entries)]
