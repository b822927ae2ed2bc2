# SPDX-License-Identifier: GPL-2.0-or-later
"""The screen of `jmassif top`: a pure function from a run's present state, and a terminal's size, to lines.

Each part of the screen has a least and a largest useful height. Parts that do not fit are left out, from the least important on; the
others share the rest of the height in the order of their worth.
"""

import unicodedata
from itertools import zip_longest
from typing import Callable, List, NamedTuple, Sequence, Tuple

from jmassif.analysis.aggregate import UsageRow, sum_of
from jmassif.live.run import LineUsage, LiveReport
from jmassif.render import layout as roles
from jmassif.render.graph import DEVICE, HOST, Point, columns_of
from jmassif.render.ladder import rows_of
from jmassif.render.layout import Line, Part
from jmassif.units import growth, moment, percent, printable, size

OTHERS = "#"
FREE = "."
_ROLE_OF = {HOST: roles.HOST, DEVICE: roles.DEVICE}
_WITH_GRAPH = 60  # columns; a narrower screen has no graph
_LADDERS_SHARE = 0.54
_LEAST_BAR = 6
_NAME = 10
_SIZE = 9


class Process(NamedTuple):
    pid: int
    held: int  # bytes
    text: str  # its state and command, safe to show


class Screen(NamedTuple):
    """A run, and the reader's choices."""

    report: LiveReport
    points: Sequence[Point]
    processes: Sequence[Process] = ()  # if there are several
    chosen: int = 0  # of them
    n_left_out: int = 0
    order: str = "held"  # of lines
    offset: int = 0  # lines that are scrolled away
    is_paused: bool = False
    note: str = ""


KEYS = (("q", "quit"), ("p", "pause"), ("s", "sort lines"), ("tab", "next process"), ("up, down", "scroll"))


def width_of(text: str) -> int:
    """Columns of a terminal."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def fit(text: str, width: int) -> str:
    """In exactly so many columns, cut or filled up."""
    if width_of(text) > width:
        text = text[:width]
        while text and width_of(text) >= width:
            text = text[:-1]
        text += "…" if width else ""
    return text + " " * (width - width_of(text))


def cut(line: Line, width: int) -> Line:
    """No more than so many columns of a line and its parts."""
    parts: List[Part] = []
    left = width
    for text, role in line.parts:
        if width_of(text) > left:
            parts.append((fit(text, left), role))
            break
        parts.append((text, role))
        left -= width_of(text)
    return Line(*parts)


# ---- parts -----------------------------------------------------------------------------------------


def _bar(amounts: Sequence[Tuple[str, int]], whole: int, width: int) -> Line:
    """Amounts with their characters, as parts of a whole. What is there at all shows, where there is room."""
    parts: List[Part] = []
    used, so_far = 0, 0
    for character, n_bytes in amounts:
        so_far += n_bytes
        end = min(width, max(round(width * so_far / whole), used + (n_bytes > 0))) if whole else used
        parts.append((character * (end - used), _ROLE_OF.get(character, "")))
        used = end
    return Line("[", *parts, FREE * (width - used), "]")


def _heading(text: str) -> Line:
    return Line((text, roles.HEADING))


def _title(screen: Screen, width: int) -> Line:
    report = screen.report
    state = f"{'PAUSED, ' if screen.is_paused else ''}{report.state}, {moment(report.now.time, report.unit)}"
    role = "" if report.is_running or report.state == "exit status 0" else roles.WARNING
    room = max(0, width - width_of(state) - 2)
    return Line(_heading(fit(f"jmassif top  {report.pid or ''}  {report.command}", room)), "  ", (state, role))


def _pools(screen: Screen, width: int) -> List[Line]:
    lines: List[Line] = []
    for name, host, device, others, capacity in screen.report.pools:
        amounts = [(HOST, "host", host), (DEVICE, "device", device), (OTHERS, "others", others)]
        whole = capacity or max(1, host + device + others)
        lines.append(Line(fit(name, 8), _bar([(mark, n) for mark, _, n in amounts], whole, width - 10)))
        parts: List[Part] = [(" ", "")]
        for mark, label, n_bytes in amounts:
            if n_bytes:
                parts += [(mark, _ROLE_OF.get(mark, "")), (f" {label} {size(n_bytes)}  ", "")]
        if capacity:
            free = max(0, capacity - host - device - others)
            role = roles.WARNING if free < 0.05 * capacity else ""
            parts.append((f"{FREE} free {size(free)} of {size(capacity)}", role))
        lines.append(Line(*parts))
    return lines


def _owner(row: UsageRow, whole: int, width: int) -> Line:
    bar = max(0, width - _NAME - _SIZE - 10)
    text = f"{fit(printable(row.name), _NAME)} {size(row.bytes):>{_SIZE}} {percent(row.bytes, whole):>7}"
    if bar < _LEAST_BAR:
        return Line(text)
    return Line(text, " ", _bar([(HOST, row.usage.host_bytes), (DEVICE, row.usage.device_bytes)], whole, bar - 2))


def _owners(screen: Screen, width: int, height: int) -> List[Line]:
    """As many as there is room for; the smallest are one row."""
    rows = list(screen.report.owners)
    whole = sum(row.bytes for row in rows)
    room = max(1, height - 1)
    if len(rows) > room:
        small = rows[room - 1 :]
        rows = rows[: room - 1] + [UsageRow(f"{len(small)} smaller", sum_of(row.usage for row in small))]
    heading = _heading(f"{fit('OWNER', _NAME)} {'TOTAL':>{_SIZE}} {'SHARE':>7}")
    return [heading] + [_owner(row, whole, width) for row in rows]


def _graph(screen: Screen, width: int, height: int) -> List[Line]:
    report, points = screen.report, screen.points
    peak = f"peak {size(report.now.peak)} at {moment(report.now.peak_time, report.unit)}"
    lines = [_heading(peak if report.now.peak else "TIMELINE")]
    if not points or height < 3:
        return lines
    lines += [Line(" ", bar) for bar in columns_of(points, width - 1, height - 2)]
    begin, end = (moment(points[at].time, report.unit) for at in (0, -1))
    return lines + [Line(f" {begin}{end:>{max(1, width - 1 - len(begin))}}")]


def _ladder(screen: Screen, width: int, height: int) -> List[Line]:
    """The device's and the host's one after the other; their ends where there is little room."""
    lines: List[Line] = []
    for ladder in screen.report.ladders:
        title, rows = rows_of(screen.report.is_pytorch, ladder)
        room = max(3, height // len(screen.report.ladders))
        lines.append(_heading(title))
        dropped = max(0, len(rows) + 1 - room)
        for row in rows[:1] + rows[1 + dropped :]:
            text = f"{fit(row.label, max(1, width - _SIZE))}{row.number:>{_SIZE},}"
            lines.append(Line((text, roles.SUM if row.is_sum else "")))
    return lines[:height]


def _middle(screen: Screen, width: int, height: int) -> List[Line]:
    """The ladder, and beside it the timeline."""
    if width < _WITH_GRAPH:
        return _ladder(screen, width, height)
    left_width = int(width * _LADDERS_SHARE)
    left = [cut(line, left_width) for line in _ladder(screen, left_width, height)]
    right = _graph(screen, width - left_width - 2, height)
    pairs = zip_longest(left, right, fillvalue=Line(""))
    return [Line(first, " " * (left_width + 2 - width_of(first)), second) for first, second in pairs]


def _lines(screen: Screen, width: int, height: int) -> List[Line]:
    columns: List[Tuple[str, Callable[[LineUsage], str]]] = [("TOTAL", lambda row: size(row.usage.bytes))]
    if width >= _WITH_GRAPH:
        if any(row.usage.device_bytes for row in screen.report.owners):
            columns += [
                ("HOST", lambda row: size(row.usage.host_bytes)),
                ("DEVICE", lambda row: size(row.usage.device_bytes)),
            ]
        if screen.report.unit == "ms":
            columns.append(("+10 s", lambda row: growth(row.grown)))
    heads = " ".join(f"{head:>{_SIZE}}" for head, _ in columns)
    by = {"held": "", "grown": ", by growth"}.get(screen.order, f", by {screen.order}")
    lines = [_heading(f"{heads}  LINE{by}")]
    for row in screen.report.lines[screen.offset : screen.offset + height - 1]:
        figures = " ".join(f"{show(row):>{_SIZE}}" for _, show in columns)
        lines.append(Line(figures, "  ", (row.name, roles.PYTHON if ".py:" in row.name else "")))
    return lines


def _events(screen: Screen, width: int, height: int) -> List[Line]:
    lines = [_heading("EVENTS")]
    for time, text, is_warning in list(reversed(screen.report.events))[: height - 1]:
        when = f"{moment(time, screen.report.unit):>{_SIZE}}  "
        lines.append(Line(when, (text, roles.WARNING if is_warning else "")))
    return lines


def _processes(screen: Screen, width: int, height: int) -> List[Line]:
    """Always with the chosen one."""
    room = max(1, height - 1)
    begin = max(0, min(screen.chosen - room // 2, len(screen.processes) - room))
    shown = screen.processes[begin : begin + room]
    more = f", {len(screen.processes)} of them" if len(shown) < len(screen.processes) else ""
    more += f", {screen.n_left_out} more are not followed" if screen.n_left_out else ""
    lines = [_heading(f"{'PROCESS':>9} {'TOTAL':>{_SIZE}}  COMMAND{more}")]
    for at, process in enumerate(shown, begin):
        mark = ">" if at == screen.chosen else " "
        text = f"{mark}{process.pid:>8} {size(process.held):>{_SIZE}}  {process.text}"
        lines.append(Line((text, roles.SUM if at == screen.chosen else "")))
    return lines


# ---- all of it ---------------------------------------------------------------------------------------


class _Part(NamedTuple):
    worth: int  # a part of more worth stays longer and gets more rows
    least: int  # rows
    most: int
    draw: Callable[[Screen, int, int], List[Line]]


def _parts(screen: Screen) -> List[_Part]:
    """From top to bottom."""
    report = screen.report
    n_middle = sum(1 + len(ladder.rungs) for ladder in report.ladders)
    n_owners, n_events, n_processes = len(report.owners), len(report.events), len(screen.processes)
    parts = [
        _Part(5, 3, min(6, 1 + n_processes), _processes) if n_processes else None,
        _Part(4, 4, max(9, n_middle), _middle),
        _Part(1, 4, min(10, 1 + n_owners), _owners) if n_owners else None,
        _Part(3, 3, 1 + max(2, len(report.lines)), _lines),
        _Part(2, 2, min(7, 1 + n_events), _events) if n_events else None,
    ]
    return [part for part in parts if part]


def _heights(parts: Sequence[_Part], room: int) -> List[int]:
    """Rows for each part; 0 for one that does not fit."""
    heights = [part.least for part in parts]
    by_worth = sorted(range(len(parts)), key=lambda at: parts[at].worth)
    for at in by_worth:
        if sum(heights) > room:
            heights[at] = 0
    # A row each in turn, so that none starves; what is worth more first.
    growing = [at for at in reversed(by_worth) if heights[at]]
    while growing and sum(heights) < room:
        growing = [at for at in growing if heights[at] < parts[at].most]
        for at in growing[: room - sum(heights)]:
            heights[at] += 1
    return heights


def draw(screen: Screen, width: int, height: int) -> List[Line]:
    """No more than `height` lines of no more than `width` columns."""
    above = [_title(screen, width), *_pools(screen, width)]
    keys = "  ".join(f"{key} {what}" for key, what in KEYS)
    below = Line((fit(screen.note or keys, width), roles.WARNING if screen.note else roles.HEADING))
    room = height - len(above) - 1
    if room < 0:
        return [cut(line, width) for line in above[:height]]
    parts = _parts(screen)
    middle: List[Line] = []
    for part, rows in zip(parts, _heights(parts, room)):
        if rows:
            middle += (part.draw(screen, width, rows) + [Line("")] * rows)[:rows]
    middle += [Line("")] * (room - len(middle))
    return [cut(line, width) for line in [*above, *middle, below]]


def frame(screen: Screen, width: int, height: int) -> List[Line]:
    """A screen to print: without the keys, and without empty lines at its end."""
    lines = draw(screen, width, height)
    lines = lines if screen.note else lines[:-1]
    while lines and not lines[-1].strip():
        lines.pop()
    return lines
