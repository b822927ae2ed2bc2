# SPDX-License-Identifier: GPL-2.0-or-later
"""The screen of `jmassif top`: a pure function from a run's present state, and a terminal's size, to lines.

Each part of the screen has a least and a largest useful height. Parts that do not fit are left out, from the least important on; the
others share the rest of the height in the order of their worth.
"""

import unicodedata
from typing import Callable, List, NamedTuple, Sequence, Tuple

from jmassif.analysis.aggregate import UsageRow, sum_of
from jmassif.live.run import MEMORY, Event, LineUsage
from jmassif.render import layout as roles
from jmassif.render.graph import DEVICE, HOST, Point, columns_of
from jmassif.render.ladder import LadderRows
from jmassif.render.layout import Line, Part
from jmassif.units import growth, moment, percent, printable, size


OTHERS = "#"
FREE = "."
_ROLE_OF = {HOST: roles.HOST, DEVICE: roles.DEVICE}
# A screen that is narrower has the owners alone beside no graph.
_WITH_GRAPH = 60
_OWNERS_SHARE = 0.54
_LEAST_BAR = 6
_NAME = 10
_SIZE = 9


class Pool(NamedTuple):
    """Bytes."""

    name: str
    host: int
    device: int
    others: int  # in use by everything else
    capacity: int  # 0: not known


class Process(NamedTuple):
    pid: int
    text: str  # what it is, safe to show
    held: int
    state: str


class Screen(NamedTuple):
    """The content of a screen."""

    command: str  # safe to show
    pid: int
    state: str
    is_running: bool
    unit: str  # of times
    time: int
    pools: Sequence[Pool]
    peak: Tuple[int, int]  # bytes, time
    owners: Sequence[UsageRow]  # the largest first
    ladders: Sequence[LadderRows]
    lines: Sequence[LineUsage]  # in their order
    points: Sequence[Point]
    events: Sequence[Event]  # the newest last
    processes: Sequence[Process] = ()  # if there are several
    chosen: int = 0  # of them
    n_left_out: int = 0
    order: str = "held"
    offset: int = 0  # lines that are scrolled away
    is_paused: bool = False
    is_help: bool = False
    note: str = ""


KEYS = (
    ("q", "quit"),
    ("p", "pause, and go on"),
    ("s", "sort lines by total, growth, device memory, host memory"),
    ("up, down", "scroll the lines"),
    ("tab", "next process"),
    ("?", "this help"),
)
_SHORT_KEYS = "q quit  p pause  s sort  tab process  ? help"


def width_of(text: str) -> int:
    """Columns of a terminal."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def fit(text: str, width: int) -> str:
    """In exactly so many columns, cut or filled up."""
    if width_of(text) > width:
        kept, used = [], 0
        for character in text:
            used += width_of(character)
            if used > width - 1:
                break
            kept.append(character)
        text = "".join(kept) + "…" if width > 0 else ""
    return text + " " * (width - width_of(text))


def cut(line: str, width: int) -> Line:
    """A line, with its parts, in no more than so many columns."""
    parts: List[Part] = []
    left = width
    for text, role in line.parts if isinstance(line, Line) else ((line, ""),):
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


def _title(screen: Screen, width: int) -> List[Line]:
    state = f"{screen.state}, {moment(screen.time, screen.unit)}"
    if screen.is_paused:
        state = f"PAUSED, {state}"
    role = "" if screen.is_running or screen.state.startswith("ended, status 0") else roles.WARNING
    left = f"jmassif top  {screen.pid or ''}  {screen.command}"
    room = max(0, width - width_of(state) - 2)
    return [Line((fit(left, room), roles.HEADING), "  ", (state, role))]


def _pools(screen: Screen, width: int) -> List[Line]:
    lines: List[Line] = []
    for pool in screen.pools:
        name = fit(pool.name, 8)
        held = pool.host + pool.device
        whole = pool.capacity or max(1, held + pool.others)
        lines.append(
            Line(name, _bar([(HOST, pool.host), (DEVICE, pool.device), (OTHERS, pool.others)], whole, width - 10))
        )
        words: List[Part] = [(" ", "")]
        if pool.host:
            words += [(HOST, roles.HOST), (f" host {size(pool.host)}  ", "")]
        if pool.device:
            words += [(DEVICE, roles.DEVICE), (f" device {size(pool.device)}  ", "")]
        if pool.others:
            words.append((f"{OTHERS} others {size(pool.others)}  ", ""))
        if pool.capacity:
            free = max(0, pool.capacity - held - pool.others)
            words.append(
                (
                    f"{FREE} free {size(free)} of {size(pool.capacity)}",
                    roles.WARNING if free < 0.05 * pool.capacity else "",
                )
            )
        lines.append(Line(*words))
    return lines


def _owner(row: UsageRow, whole: int, width: int) -> Line:
    bar = max(0, width - _NAME - _SIZE - 10)
    text = f"{fit(printable(row.name), _NAME)} {size(row.bytes):>{_SIZE}} {percent(row.bytes, whole):>7}"
    if bar < _LEAST_BAR:
        return Line(fit(text, width))
    return Line(text, " ", _bar([(HOST, row.usage.host_bytes), (DEVICE, row.usage.device_bytes)], whole, bar - 2))


def _owners(screen: Screen, width: int, height: int) -> List[Line]:
    """As many as there is room for; the smallest are one row."""
    rows = list(screen.owners)
    whole = sum(row.bytes for row in rows)
    room = max(1, height - 1)
    if len(rows) > room:
        small = rows[room - 1 :]
        rows = rows[: room - 1] + [UsageRow(f"{len(small)} smaller", sum_of(row.usage for row in small))]
    heading = Line((fit(f"{fit('OWNER', _NAME)} {'TOTAL':>{_SIZE}} {'SHARE':>7}", width), roles.HEADING))
    return [heading] + [_owner(row, whole, width) for row in rows]


def _graph(screen: Screen, width: int, height: int) -> List[Line]:
    held, when = screen.peak
    caption = f"peak {size(held)} at {moment(when, screen.unit)}" if held else "TIMELINE"
    lines = [Line((fit(caption, width), roles.HEADING))]
    if not screen.points or height < 3:
        return lines
    rows = height - 2
    for bar in columns_of(screen.points, width - 1, rows):
        lines.append(Line(" ", bar))
    begin, end = (moment(screen.points[at].time, screen.unit) for at in (0, -1))
    lines.append(Line(f" {begin}{end:>{max(1, width - 1 - len(begin))}}"))
    return lines


def _ladder(screen: Screen, width: int, height: int) -> List[Line]:
    """The device's and the host's one after the other; their ends where there is little room."""
    lines: List[Line] = []
    for title, rows in screen.ladders:
        room = max(3, height // len(screen.ladders))
        lines.append(Line((fit(title, width), roles.HEADING)))
        dropped = max(0, len(rows) + 1 - room)
        for row in rows[:1] + rows[1 + dropped :]:
            text = f"{fit(row.label, max(1, width - _SIZE))}{row.number:>{_SIZE},}"
            lines.append(Line((text, roles.SUM if row.is_sum else "")))
    return lines[:height]


def _middle(screen: Screen, width: int, height: int) -> List[Line]:
    """The ladder or, without one, the owners; beside it the timeline."""
    draw_left = _ladder if screen.ladders else _owners
    if width < _WITH_GRAPH:
        return draw_left(screen, width, height)
    left_width = int(width * _OWNERS_SHARE)
    left = draw_left(screen, left_width, height)
    right = _graph(screen, width - left_width - 2, height)
    lines = []
    for at in range(max(len(left), len(right))):
        first = left[at] if at < len(left) else Line(" " * left_width)
        gap = " " * (left_width + 2 - width_of(first))
        lines.append(Line(first, gap, right[at] if at < len(right) else Line("")))
    return lines


def _lines(screen: Screen, width: int, height: int) -> List[Line]:
    has_device = any(row.usage.device_bytes for row in screen.owners)
    columns: List[Tuple[str, Callable[[LineUsage], str]]] = [("TOTAL", lambda row: size(row.bytes))]
    if has_device:
        columns += [("HOST", lambda row: size(row.host)), ("DEVICE", lambda row: size(row.device))]
    if screen.unit == "ms":
        columns.append(("+10 s", lambda row: growth(row.grown)))
    if width < 60:
        columns = columns[:1]
    heads = " ".join(f"{head:>{_SIZE}}" for head, _ in columns)
    by = {"held": "", "grown": ", by growth", "device": ", by device", "host": ", by host"}[screen.order]
    lines = [Line((fit(f"{heads}  LINE{by}", width), roles.HEADING))]
    for row in screen.lines[screen.offset : screen.offset + height - 1]:
        figures = " ".join(f"{show(row):>{_SIZE}}" for _, show in columns)
        lines.append(Line(figures, "  ", (row.name, roles.PYTHON if ".py:" in row.name else "")))
    return lines


def _events(screen: Screen, width: int, height: int) -> List[Line]:
    lines = [Line((fit("EVENTS", width), roles.HEADING))]
    for event in list(reversed(screen.events))[: height - 1]:
        role = roles.WARNING if event.kind == MEMORY else ""
        lines.append(Line(f"{moment(event.time, screen.unit):>{_SIZE}}  ", (event.text, role)))
    return lines


def _processes(screen: Screen, width: int, height: int) -> List[Line]:
    """Always with the chosen one."""
    room = max(1, height - 1)
    begin = max(0, min(screen.chosen - room // 2, len(screen.processes) - room))
    shown = screen.processes[begin : begin + room]
    more = f", {len(screen.processes)} of them" if len(shown) < len(screen.processes) else ""
    more += f", {screen.n_left_out} more are not followed" if screen.n_left_out else ""
    lines = [Line((fit(f"{'PROCESS':>9} {'TOTAL':>{_SIZE}}  COMMAND{more}", width), roles.HEADING))]
    for at, process in enumerate(shown, begin):
        mark = ">" if at == screen.chosen else " "
        text = f"{mark}{process.pid:>8} {size(process.held):>{_SIZE}}  {process.state}: {process.text}"
        lines.append(Line((text, roles.SUM if at == screen.chosen else "")))
    return lines


def _help(screen: Screen, width: int, height: int) -> List[Line]:
    keys = [Line(f"  {key:<10} {what}") for key, what in KEYS]
    bars = [
        Line(""),
        Line(
            "  ",
            (HOST, roles.HOST),
            " host memory   ",
            (DEVICE, roles.DEVICE),
            f" device memory   {OTHERS} used by others   {FREE} free",
        ),
        Line("  +10 s: growth of a line in the run's last ten seconds"),
    ]
    return [Line((fit("KEYS", width), roles.HEADING)), *keys, *bars]


# ---- all of it ---------------------------------------------------------------------------------------


class _Part(NamedTuple):
    least: int  # rows
    most: int
    draw: Callable[[Screen, int, int], List[Line]]


def _parts(screen: Screen) -> List[Tuple[int, _Part]]:
    """From top to bottom, each with its worth: a part of more worth stays longer and gets more rows."""
    if screen.is_help:
        return [(1, _Part(2, 100, _help))]
    n_middle = sum(1 + len(ladder.rows) for ladder in screen.ladders) or min(14, len(screen.owners) + 1)
    found = [(4, _Part(4, max(9, n_middle), _middle)), (3, _Part(3, 1 + max(2, len(screen.lines)), _lines))]
    if screen.ladders and screen.owners:
        found.insert(1, (1, _Part(4, min(10, 1 + len(screen.owners)), _owners)))
    if screen.processes:
        found.insert(0, (5, _Part(3, min(6, 1 + len(screen.processes)), _processes)))
    if screen.events:
        found.append((2, _Part(2, min(7, 1 + len(screen.events)), _events)))
    return found


def _heights(parts: Sequence[Tuple[int, _Part]], room: int) -> List[int]:
    """Rows for each part; 0 for one that does not fit."""
    heights = [part.least for _, part in parts]
    by_worth = sorted(range(len(parts)), key=lambda at: parts[at][0])
    for at in by_worth:
        if sum(heights) > room:
            heights[at] = 0
    # A row each in turn, so that none starves; what is worth more first.
    growing = [at for at in reversed(by_worth) if heights[at]]
    while growing and sum(heights) < room:
        for at in list(growing):
            if heights[at] >= parts[at][1].most:
                growing.remove(at)
            elif sum(heights) < room:
                heights[at] += 1
    return heights


def draw(screen: Screen, width: int, height: int) -> List[Line]:
    """No more than `height` lines of no more than `width` columns."""
    above = _title(screen, width) + _pools(screen, width)
    below: List[Line] = [
        Line((fit(screen.note or _SHORT_KEYS, width), roles.WARNING if screen.note else roles.HEADING))
    ]
    if height < len(above) + len(below):
        return [cut(line, width) for line in above[:height]]
    parts = _parts(screen)
    heights = _heights(parts, height - len(above) - len(below))
    middle: List[Line] = []
    for (_, part), rows in zip(parts, heights):
        if rows:
            middle += (part.draw(screen, width, rows) + [Line("")] * rows)[:rows]
    middle += [Line("")] * (height - len(above) - len(below) - len(middle))
    return [cut(line, width) for line in above + middle + below]


def frame(screen: Screen, width: int, height: int) -> List[Line]:
    """A screen to print: without the keys, and without empty lines at its end."""
    lines = draw(screen, width, height)
    lines = lines if screen.note else lines[:-1]
    while lines and not lines[-1].strip():
        lines.pop()
    return lines
