# SPDX-License-Identifier: GPL-2.0-or-later
"""The call tree as a picture: callers above, what they call below, each frame as wide as what it counts for.

It is what --format=folded writes, drawn: the same tree, --by, --value and range. Frames that would be no wider than a hair are one
grey one beside their siblings, so that widths add up.
"""

from array import array
from typing import Callable, Dict, Iterator, List, NamedTuple, Tuple

from jmassif.model.profile import Profile
from jmassif.questions.between import moments_of
from jmassif.questions.calltree import CallTree
from jmassif.questions.headline import headline
from jmassif.questions.job.processes import Processes
from jmassif.questions.job.range import job_range
from jmassif.questions.moments import select
from jmassif.questions.samples import RANGE_VALUES, VALUES
from jmassif.units import count, moment, percent, size
from jmassif.whose.folding import OWN
from jmassif.whose.names import Names
from jmassif.writers.folded import call_tree, call_tree_of_job
from jmassif.writers.picture import svg
from jmassif.writers.picture.colours import frame_colour
from jmassif.writers.picture.words import command, sentences
from jmassif.writers.view import FormatError, View

_ROW = 19
_SIZE = 11.5
_NARROWEST = 0.6  # pixels
_MOST_ROWS = 100
_ROOM = svg.WIDTH - 2 * svg.MARGIN
_ALL = "#dfe3e8"
_SMALL = "#e9ebee"
_TYPES = {"python": "Python", "native": "native", "internal": "inside a package"}


class _Frame(NamedTuple):
    x: float
    width: float
    depth: int
    label: str
    type: str  # a key of colours.FRAMES, "all" or "small"
    value: int


def _children(tree: CallTree) -> Dict[int, List[int]]:
    found: Dict[int, List[int]] = {}
    for node in range(1, len(tree.parent)):
        found.setdefault(tree.parent[node], []).append(node)
    return found


def _types(tree: CallTree) -> List[str]:
    """By label."""
    found = []
    for text, frame, names in tree.labels:
        if names is None:
            found.append("internal" if text.startswith("… ") else "note")
        elif names.profile.frame(frame).type == "p":
            found.append("python")
        else:
            found.append("native" if names.folding.internal(frame).rank == OWN else "internal")
    return found


def _laid_out(tree: CallTree, totals: "array[int]", types: List[str], threshold: float) -> List[_Frame]:
    """Every frame that is to be seen, the widest of siblings first."""
    whole = totals[0]
    scale = _ROOM / whole
    least = max(threshold * whole / 100, _NARROWEST / scale)
    children = _children(tree)
    frames = [_Frame(svg.MARGIN, _ROOM, 0, "all", "all", whole)]
    pending: List[Tuple[int, float, int]] = [(0, float(svg.MARGIN), 1)]
    while pending:
        parent, x, depth = pending.pop()
        members = [node for node in children.get(parent, ()) if totals[node]]
        wide = [node for node in members if totals[node] >= least]
        small = sum(totals[node] for node in members) - sum(totals[node] for node in wide)
        if depth >= _MOST_ROWS and wide:
            wide, small = [], sum(totals[node] for node in members)
        for node in sorted(wide, key=lambda each: (-totals[each], tree.labels[tree.label[each]].text)):
            label = tree.label[node]
            width = totals[node] * scale
            frames.append(_Frame(x, width, depth, tree.labels[label].text, types[label], totals[node]))
            pending.append((node, x, depth + 1))
            x += width
        if small * scale >= _NARROWEST:
            said = count(len(members) - len(wide), "place") + " too small to be told apart here"
            frames.append(_Frame(x, small * scale, depth, said, "small", small))
    return frames


def _colour(frame: _Frame) -> str:
    plain = {"all": _ALL, "small": _SMALL}
    return plain[frame.type] if frame.type in plain else frame_colour(frame.type, frame.label)


def _box(frame: _Frame, top: float, whole: int, is_bytes: bool) -> str:
    amount = size(frame.value) if is_bytes else f"{frame.value:,}"
    said = svg.title(f"{frame.label}: {amount}, {percent(frame.value, whole)}")
    y = top + frame.depth * _ROW
    gap = 0.5 if frame.width > 2 else 0.0
    box = svg.rectangle(frame.x, y, frame.width - gap, _ROW - 1, _colour(frame))
    label = f"{frame.label} {amount}" if frame.type == "all" else frame.label
    shown = svg.fitted(label, frame.width - 6, _SIZE) if frame.width > 24 else ""
    words = svg.text(frame.x + 3, y + 13, shown, _SIZE) if shown else ""
    return f"<g>{said}{box}{words}</g>"


def _what(profile: Profile, view: View) -> str:
    """What widths stand for."""
    told = {**VALUES, **RANGE_VALUES}[view.value][0]
    if view.range is not None:
        return "{}, from {} to {}".format(told, *(at.name for at in moments_of(profile, *view.range)))
    if view.value.startswith("live"):
        at = select(profile, view.selector or "peak")
        return f"{view.value[5:]} held at {at.name} ({moment(at.time, profile.time_unit)})"
    return told


def write(profile: Profile, view: View) -> Iterator[str]:
    """The lines of the file. Raises moments.SelectionError and view.FormatError."""
    is_of_peak = view.range is None and (view.selector or "peak") == "peak" and profile.kept is None
    tree = call_tree(profile, view)
    told = sentences(headline(profile, Names(profile))) if is_of_peak and tree.totals()[0] else []
    yield from _picture(tree, view, command(profile), _what(profile, view), told)


def write_range(job: Processes, view_of: Callable[[Profile], View], is_each: bool = False) -> Iterator[str]:
    """Likewise, of a range over several processes."""
    view = view_of(job.members[0].profile)
    assert view.range is not None
    found = job_range(job, *view.range)
    what = f"{RANGE_VALUES[view.value][0]}, from {found.first.name} to {found.second.name}"
    yield from _picture(call_tree_of_job(found, view), view, f"{len(job.members)} processes", what, [])


def _picture(tree: CallTree, view: View, title: str, what: str, told: List[Tuple[str, str]]) -> Iterator[str]:
    totals = tree.totals()
    if not totals[0]:
        raise FormatError("a picture of nothing: what was asked for holds nothing")
    unit = {**VALUES, **RANGE_VALUES}[view.value][1]
    frames = _laid_out(tree, totals, _types(tree), view.threshold)
    parts, top = svg.head(title, f"Flame graph: {what}", told)
    parts += [_box(frame, top, totals[0], unit == "bytes") for frame in frames]
    top += (max(frame.depth for frame in frames) + 1) * _ROW + 10
    found = {frame.type for frame in frames}
    keys = [svg.Key(frame_colour(type_, "a"), name) for type_, name in _TYPES.items() if type_ in found]
    keys += [svg.Key(_SMALL, "too small to be told apart")] if "small" in found else []
    legend, bottom = svg.legend(keys, top)
    yield from svg.document(f"{title}: {what}", bottom + 8, parts + legend)
