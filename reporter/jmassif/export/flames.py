# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks for programs that draw flame graphs: folded, a line a stack ("main;train;malloc 4096"), or a speedscope file.

Folded stacks have no escaping: a frame ends at a semicolon, and the value stands behind the last space of the line. A
semicolon in a name is written as \\x3b, as control characters are everywhere. A leaf never ends in a number (its name
ends in a parenthesis), which flamegraph.pl would take for the first of two values.

A speedscope file is one profile of stacks weighted by bytes or counts. JSON has its own escaping for control characters;
bytes that were no UTF-8 have been written as \\xHH before, since JSON has nothing for them.
"""

import json
from typing import Any, Callable, Dict, Iterable, Iterator, NamedTuple

from jmassif.analysis.aggregate import RANGE_VALUES, VALUES, samples
from jmassif.analysis.calltree import ROOT, CallTree, Label, top_down
from jmassif.analysis.moments import select
from jmassif.analysis.processes import Processes
from jmassif.analysis.range_diff import between, job_range, moments_of
from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.model.run import Profile
from jmassif.render.view import View
from jmassif.units import moment, printable
from jmassif.version import __version__

_MOST_COMMAND = 100
_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


class _Flames(NamedTuple):
    tree: CallTree
    view: View
    name: str
    when: str


def _add(tree: CallTree, above: int, names: Names, view: View, values: Dict[int, int]) -> None:
    level = None if view.by == "stack" else naming(names.profile, names, view.by, view.fold != "none")
    top_down(tree, above, names, values.items(), level, view.fold == "internal")


def _of_run(profile: Profile, view: View) -> _Flames:
    """Raises moments.SelectionError."""
    tree, when = CallTree(), ""
    if view.range is not None:
        values = between(profile, *view.range).values(view.value)
        when = ", from {} to {}".format(*(at.name for at in moments_of(profile, *view.range)))
    else:
        at = select(profile, view.selector or "peak")
        column = list(VALUES).index(view.value)
        values = {account: figures[column] for account, figures in samples(profile, at.composition) if figures[column]}
        when = f", {at.name} ({moment(at.time, profile.time_unit)})" if view.value.startswith("live") else ""
    _add(tree, ROOT, Names(profile), view, values)
    return _Flames(tree, view, printable(profile.manifest.get("command", "")) or "(unknown command)", when)


def _of_job(job: Processes, view_of: Callable[[Profile], View]) -> _Flames:
    """A range over several processes, each below a node of its own. Raises SelectionError."""
    view, tree = view_of(job.members[0].profile), CallTree()
    assert view.range is not None
    found = job_range(job, *view.range)
    for part in found.parts:
        values = part.found.values(view.value)
        if values:
            command = printable(part.process.profile.manifest.get("command", "")[:_MOST_COMMAND])
            above = tree.add(ROOT, tree.label_of(f"{part.process.called} ({command})"))
            _add(tree, above, part.names, view, values)
    when = f", from {found.first.name} to {found.second.name}"
    return _Flames(tree, view, f"{len(job.members)} processes", when)


def write_folded(profile: Profile, view: View) -> Iterator[str]:
    """The lines. Raises moments.SelectionError."""
    yield from _folded(_of_run(profile, view))


def write_folded_range(job: Processes, view_of: Callable[[Profile], View], is_each: bool = False) -> Iterator[str]:
    yield from _folded(_of_job(job, view_of))


def write_speedscope(profile: Profile, view: View) -> Iterator[str]:
    """The file, a few lines a stack. Raises moments.SelectionError."""
    yield from _speedscope(_of_run(profile, view))


def write_speedscope_range(job: Processes, view_of: Callable[[Profile], View], is_each: bool = False) -> Iterator[str]:
    yield from _speedscope(_of_job(job, view_of))


def _folded(flames: _Flames) -> Iterator[str]:
    labels = flames.tree.labels
    for path, value in flames.tree.stacks(flames.view.threshold):
        yield ";".join(labels[label].text.replace(";", "\\x3b") for label in path) + f" {value}"


def _frame(label: Label) -> Dict[str, object]:
    frame: Dict[str, object] = {"name": label.text}
    if label.names is not None:
        fields = label.names.profile.frame(label.frame)
        if fields.file or fields.object:
            frame["file"] = printable(fields.file or fields.object)
        if fields.line:
            frame["line"] = fields.line
    return frame


def _speedscope(flames: _Flames) -> Iterator[str]:
    tree, view, name, when = flames
    # The node of what is below the threshold is a label too, from here on.
    total = sum(weight for _, weight in tree.stacks(view.threshold))
    what, unit = {**VALUES, **RANGE_VALUES}[view.value]
    head = {"$schema": _SCHEMA, "exporter": f"jmassif {__version__}", "name": name, "activeProfileIndex": 0}
    yield json.dumps(head)[:-1] + ', "shared": {"frames": ['
    yield from _members(map(_frame, tree.labels))
    one: Dict[str, Any] = {"type": "sampled", "name": f"{what}{when}", "unit": "bytes" if unit == "bytes" else "none"}
    one.update(startValue=0, endValue=total)
    yield ']}, "profiles": [' + json.dumps(one)[:-1] + ', "samples": ['
    yield from _members(path for path, _ in tree.stacks(view.threshold))
    yield '], "weights": ['
    yield from _members(weight for _, weight in tree.stacks(view.threshold))
    yield "]}]}"


def _members(values: Iterable[object]) -> Iterator[str]:
    comma = ""
    for value in values:
        yield comma + json.dumps(value)
        comma = ","
