# SPDX-License-Identifier: GPL-2.0-or-later
"""The timeline as a picture: stacked areas by owner (or what --by says), exact at snapshots and peaks, and the line of the most.

On a discrete GPU host and device are two pools that do not add up: there each has a plot of its own.
"""

from typing import Callable, Dict, Iterator, List, NamedTuple, Sequence

from jmassif.model.kinds import OTHER
from jmassif.model.profile import Profile
from jmassif.questions.about import used_sides
from jmassif.questions.areas import History, Pair, Point, Told, history, stacked
from jmassif.questions.exhaustion import incidents_of
from jmassif.questions.headline import headline
from jmassif.questions.moments import main_peak
from jmassif.units import moment, size
from jmassif.whose.names import Names
from jmassif.whose.views import naming
from jmassif.writers.picture import svg
from jmassif.writers.picture.axes import ticks
from jmassif.writers.picture.colours import REST, list_colour, owner_colour
from jmassif.writers.picture.words import command, sentences
from jmassif.writers.view import FormatError, View

_MOST_AREAS = 12
_LEFT, _RIGHT = 92.0, svg.WIDTH - 24.0
_HEIGHT = 330.0
# Of the axis, beyond the most that is shown: there the peak has its name.
_ABOVE = 1.1
# What lies closer together than so many pixels is shown by the fullest of it.
_COLUMN = 1.5
_MOST_FAILURES = 3
_MEASURED = "exact at the peaks and at {:,} snapshots"
_BY = {"python-line": "Python line", "python-function": "Python function"}


class _Area(NamedTuple):
    name: str
    names: List[str]
    colour: str


class _Drawn(NamedTuple):
    parts: List[str]
    bottom: float  # where they end


class _Plot(NamedTuple):
    """A pool's."""

    title: str  # "" where there is but one
    peak: str  # one of kinds.PEAKS
    side: Callable[[Pair], int]


def _plots(profile: Profile) -> List[_Plot]:
    sides = used_sides(profile)
    by_side = {
        "host": _Plot("Host memory", "host", lambda pair: pair[0]),
        "device": _Plot("Device memory", "device", lambda pair: pair[1]),
    }
    if profile.is_discrete and len(sides) > 1:
        return [by_side[side] for side in sides]
    return [_Plot("", main_peak(profile), sum)]


def _colours(profile: Profile, made: History, by: str) -> Dict[str, str]:
    """As on the page: an owner has a shade of its group's, by its rank there."""
    if by != "owner":
        return {name: list_colour(place) for place, name in enumerate(made.names)}
    ranks: Dict[str, int] = {}
    found = {}
    for name in made.names:
        group = profile.group_of.get(name, OTHER)
        found[name] = owner_colour(group, ranks.setdefault(group, 0))
        ranks[group] += 1
    return found


def _areas(made: History, plot: _Plot, colours: Dict[str, str]) -> List[_Area]:
    """Those that matter most in the pool, the largest first, and the rest as one."""

    def held(name: str) -> int:
        return max(plot.side(told.held.get(name, (0, 0))) for told in made.moments)

    most = {name: held(name) for name in made.names}
    names = sorted((name for name in made.names if most[name]), key=lambda name: -most[name])
    found = [_Area(name, [name], colours[name]) for name in names[:_MOST_AREAS]]
    rest = names[_MOST_AREAS:]
    if rest:
        found.append(_Area(f"{len(rest)} other{'s' if len(rest) > 1 else ''}", rest, REST))
    return found


def _chosen(points: Sequence[Point], plot: _Plot, column_of: Callable[[int], int]) -> List[Point]:
    """Of each column of pixels the first point, the fullest and the last."""
    kept: List[Point] = []
    run: List[Point] = []

    def close() -> None:
        if run:
            fullest = max(range(len(run)), key=lambda i: plot.side((run[i].host, run[i].device)))
            kept.extend(run[i] for i in sorted({0, fullest, len(run) - 1}))
            run.clear()

    for point in points:
        if run and column_of(point.time) != column_of(run[-1].time):
            close()
        run.append(point)
    close()
    return kept


class _Scale(NamedTuple):
    begin: int
    end: int
    most: float  # bytes at the top
    top: float

    def x(self, time: float) -> float:
        return _LEFT + (time - self.begin) / max(1, self.end - self.begin) * (_RIGHT - _LEFT)

    def y(self, n_bytes: float) -> float:
        return self.top + _HEIGHT * (1 - n_bytes / self.most)


def _axes(scale: _Scale, unit: str) -> List[str]:
    parts = []
    for value, label in ticks("B", 0, scale.most, 7):
        y = scale.y(value)
        parts += [svg.line(_LEFT, y, _RIGHT, y, svg.GRID), svg.text(_LEFT - 8, y + 4, label, 12, svg.QUIET, "end")]
    bottom = scale.y(0)
    for value, label in ticks(unit, scale.begin, scale.end, 10):
        x = scale.x(value)
        anchor = "end" if x > _RIGHT - 20 else "middle"
        parts += [svg.line(x, bottom, x, bottom + 5, svg.QUIET), svg.text(x, bottom + 19, label, 12, svg.QUIET, anchor)]
    return parts + [svg.line(_LEFT, bottom, _RIGHT, bottom, svg.QUIET)]


def _flag(x: float, y: float, bottom: float, words: str, colour: str) -> List[str]:
    """A line down from a name, which stands on the side that has room."""
    is_left = x + svg.width_of(words, 12) + 12 > _RIGHT
    return [
        svg.line(x, y - 9, x, bottom, colour, ' stroke-dasharray="4 3"'),
        svg.text(x + (-6 if is_left else 6), y, words, 12, colour, "end" if is_left else "start", is_bold=True),
    ]


def _drawn(made: History, plot: _Plot, areas: Sequence[_Area], scale: _Scale) -> List[str]:
    """The areas, the last on top first: each reaches down to zero, below those that lie lower. And the line of the most."""
    points = _chosen(made.points, plot, lambda time: int(scale.x(time) / _COLUMN))
    parts = []
    for area, edge in reversed(list(zip(areas, stacked(made, points, [area.names for area in areas], plot.side)))):
        line = [(scale.x(point.time), scale.y(value)) for point, value in zip(points, edge)]
        shape = svg.path([(line[0][0], scale.y(0)), *line, (line[-1][0], scale.y(0))])
        said = svg.title(area.name)
        parts.append(f'<path d="{shape}Z" fill="{area.colour}" stroke="{svg.BACK}" stroke-width="0.5">{said}</path>')
    tops = [_top(point, plot) for point in points]
    outline = svg.path([(scale.x(point.time), scale.y(value)) for point, value in zip(points, tops)])
    said = svg.title("the most held since the total told before")
    return parts + [f'<path d="{outline}" fill="none" stroke="{svg.TEXT}">{said}</path>']


def _top(point: Point, plot: _Plot) -> int:
    """The most that the pool is known to have held there; of a sum also between two totals."""
    held = plot.side((point.host, point.device))
    return held if plot.title else max(held, point.maximum)


def _flags(profile: Profile, names: Names, plot: _Plot, scale: _Scale) -> List[str]:
    """The peak, and where memory ran out."""
    parts = []
    peak = profile.peaks.get(plot.peak)
    if peak:
        n_bytes = plot.side((peak.host, peak.device))
        words = f"peak: {size(n_bytes)} at {moment(peak.time, profile.time_unit)}"
        parts += _flag(scale.x(peak.time), scale.top + 10, scale.y(n_bytes), words, svg.TEXT)
    failed = [incident.last.time for incident in incidents_of(profile, names) if not incident.is_resolved]
    for time in failed[-_MOST_FAILURES:]:
        parts += _flag(scale.x(time), scale.top + 26, scale.y(0), "out of memory", svg.ALARM)
    return parts


def _fullest(made: History, plot: _Plot) -> Told:
    """The peak, which is exact; the fullest snapshot of a run without one on record."""

    def held(told: Told) -> int:
        return sum(map(plot.side, told.held.values()))

    peaks = [told for told in made.moments if told.peak == plot.peak]
    return max(peaks or made.moments, key=held)


def _legend(profile: Profile, made: History, plot: _Plot, areas: Sequence[_Area], top: float) -> _Drawn:
    """The areas' names, with what each held at the peak."""
    told = _fullest(made, plot)
    of = "total " if plot.peak == "total" and profile.is_discrete else f"{plot.peak} " if plot.title else ""
    when = f"the {of}peak" if told.peak else "the fullest snapshot"
    words = f"Held at {when} ({moment(told.time, profile.time_unit)}):"
    keys = []
    for area in areas:
        n_bytes = sum(plot.side(told.held.get(name, (0, 0))) for name in area.names)
        keys.append(svg.Key(area.colour, area.name, size(n_bytes)))
    parts, bottom = svg.legend(keys, top + 22)
    return _Drawn([svg.text(svg.MARGIN, top + 12, words, 13, svg.QUIET)] + parts, bottom)


def _pool(profile: Profile, names: Names, made: History, plot: _Plot, by: str, top: float) -> _Drawn:
    """A pool's plot with its legend."""
    areas = _areas(made, plot, _colours(profile, made, by))
    parts = []
    if plot.title:
        parts.append(svg.text(svg.MARGIN, top + 12, plot.title, 14, is_bold=True))
        top += 22
    most = max([1, *(_top(point, plot) for point in made.points)])
    scale = _Scale(made.points[0].time, made.points[-1].time, most * _ABOVE, top)
    parts += _axes(scale, profile.time_unit) + _drawn(made, plot, areas, scale) + _flags(profile, names, plot, scale)
    legend = _legend(profile, made, plot, areas, scale.y(0) + 30)
    return _Drawn(parts + legend.parts, legend.bottom + 14)


def write(profile: Profile, view: View) -> Iterator[str]:
    """The lines of the file. Raises view.FormatError."""
    names = Names(profile)
    made = history(profile, naming(profile, names, view.by, view.fold != "none"))
    if not made.moments:
        raise FormatError("a picture needs a snapshot, and the trace has no complete one")
    name = command(profile)
    what = f"Memory over time by {_BY.get(view.by, view.by)} · {_MEASURED.format(len(profile.snapshots))}"
    parts, top = svg.head(name, what, sentences(headline(profile, names)))
    for plot in _plots(profile):
        drawn = _pool(profile, names, made, plot, view.by, top + 4)
        parts, top = parts + drawn.parts, drawn.bottom
    yield from svg.document(f"{name}: memory over time", top, parts)
