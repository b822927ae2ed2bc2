# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks for programs that draw flame graphs: folded, a line a stack ("main;train;malloc 4096"), or a speedscope file.

Folded stacks have no escaping: a frame ends at a semicolon, and the value stands behind the last space of the line. A
semicolon in a name is written as \\x3b, as control characters are everywhere. A leaf never ends in a number (its name
ends in a parenthesis), which flamegraph.pl would take for the first of two values.

A speedscope file is one profile of stacks weighted by bytes or counts. JSON has its own escaping for control characters;
bytes that were no UTF-8 have been written as \\xHH before, since JSON has nothing for them.
"""

import json
from typing import Any, Callable, Dict, Iterator, Tuple

from jmassif.analysis.aggregate import RANGE_VALUES, VALUES, samples
from jmassif.analysis.calltree import ROOT, CallTree, Label, top_down
from jmassif.analysis.moments import select
from jmassif.analysis.processes import Processes, join
from jmassif.analysis.range_diff import between
from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.export import separated
from jmassif.model.run import Profile
from jmassif.render.view import View
from jmassif.units import moment, printable
from jmassif.version import __version__

_MOST_COMMAND = 100
_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def _command(run: Profile) -> str:
    return printable(run.manifest.get("command", "")) or "(unknown command)"


def _flames(job: Processes, view: View) -> Tuple[CallTree, str, str]:
    """With the name of what ran, and when. Raises moments.SelectionError."""
    tree, run, is_several = CallTree(), job.members[0].profile, len(job.members) > 1

    def add(above: int, names: Names, values: Dict[int, int]) -> None:
        level = None if view.by == "stack" else naming(names.profile, names, view.by, view.fold != "none")
        top_down(tree, above, names, values.items(), level, view.fold == "internal")

    if view.range is None:
        at = select(run, view.selector or "peak")
        column = list(VALUES).index(view.value)
        add(ROOT, Names(run), {a: figures[column] for a, figures in samples(run, at.composition) if figures[column]})
        when = f", {at.name} ({moment(at.time, run.time_unit)})" if view.value.startswith("live") else ""
        return tree, _command(run), when
    found = between(job, *view.range)
    for part in found.parts:
        values = {account: row.value(view.value) for account, row in part.places.items() if row.value(view.value)}
        if values and is_several:
            name = f"{part.process.called} ({_command(part.process.profile)[:_MOST_COMMAND]})"
            add(tree.add(ROOT, tree.label_of(name)), part.names, values)
        elif values:
            add(ROOT, part.names, values)
    name = f"{len(job.members)} processes" if is_several else _command(run)
    return tree, name, f", from {found.first.name} to {found.second.name}"


def write_folded(run: Profile, view: View) -> Iterator[str]:
    """The lines. Raises moments.SelectionError, as the others do."""
    yield from _folded(join([("", run)]), view)


def write_folded_range(job: Processes, view_of: Callable[[Profile], View], is_each: bool = False) -> Iterator[str]:
    yield from _folded(job, view_of(job.members[0].profile))


def write_speedscope(run: Profile, view: View) -> Iterator[str]:
    yield from _speedscope(join([("", run)]), view)


def write_speedscope_range(job: Processes, view_of: Callable[[Profile], View], is_each: bool = False) -> Iterator[str]:
    yield from _speedscope(job, view_of(job.members[0].profile))


def _folded(job: Processes, view: View) -> Iterator[str]:
    tree, _, _ = _flames(job, view)
    for path, value in tree.stacks(view.threshold):
        yield ";".join(tree.labels[label].text.replace(";", "\\x3b") for label in path) + f" {value}"


def _frame(label: Label) -> Dict[str, object]:
    frame: Dict[str, object] = {"name": label.text}
    if label.names is not None:
        fields = label.names.profile.frame(label.frame)
        if fields.file or fields.object:
            frame["file"] = printable(fields.file or fields.object)
        if fields.line:
            frame["line"] = fields.line
    return frame


def _speedscope(job: Processes, view: View) -> Iterator[str]:
    tree, name, when = _flames(job, view)
    # The node of what is below the threshold is a label too, from here on.
    total = sum(weight for _, weight in tree.stacks(view.threshold))
    what, unit = {**VALUES, **RANGE_VALUES}[view.value]
    head = {"$schema": _SCHEMA, "exporter": f"jmassif {__version__}", "name": name, "activeProfileIndex": 0}
    one: Dict[str, Any] = {"type": "sampled", "name": f"{what}{when}", "unit": "bytes" if unit == "bytes" else "none"}
    one.update(startValue=0, endValue=total)
    yield json.dumps(head)[:-1] + ', "shared": {"frames": ['
    yield from separated(json.dumps(_frame(label)) for label in tree.labels)
    yield ']}, "profiles": [' + json.dumps(one)[:-1] + ', "samples": ['
    yield from separated(json.dumps(path) for path, _ in tree.stacks(view.threshold))
    yield '], "weights": ['
    yield from separated(str(weight) for _, weight in tree.stacks(view.threshold))
    yield "]}]}"
