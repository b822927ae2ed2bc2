# SPDX-License-Identifier: GPL-2.0-or-later
"""Folded stacks, for flamegraph.pl and what else draws flame graphs: a line a stack, "main;train;malloc 4096".

The format has no escaping: a frame ends at a semicolon, and the value stands behind the last space of the line. A
semicolon in a name is written as \\x3b, as control characters are everywhere. A leaf never ends in a number (its name
ends in a parenthesis), which flamegraph.pl would take for the first of two values.
"""

from typing import Callable, Iterator, Tuple

from jmassif.analysis.aggregate import samples
from jmassif.analysis.calltree import ROOT, CallTree, Level, top_down
from jmassif.analysis.moments import select
from jmassif.analysis.processes import Processes
from jmassif.analysis.range_diff import JobRange, between, job_range
from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.model.run import Profile
from jmassif.render.view import View
from jmassif.units import printable


_MOST_COMMAND = 100


def call_tree(profile: Profile, view: View) -> CallTree:
    """The tree that the view asks for. Raises moments.SelectionError."""
    names, tree = Names(profile), CallTree()
    top_down(tree, ROOT, names, _values(profile, view), _level(names, view), view.fold == "internal")
    return tree


def call_tree_of_job(found: JobRange, view: View) -> CallTree:
    """The tree of a range over several processes, each below a node of its own."""
    tree = CallTree()
    for part in found.parts:
        profile = part.process.profile
        values = part.found.values(view.value).items()
        if values:
            command = printable(profile.manifest.get("command", "")[:_MOST_COMMAND])
            above = tree.add(ROOT, tree.label_of(f"{part.process.called} ({command})"))
            top_down(tree, above, part.names, values, _level(part.names, view), view.fold == "internal")
    return tree


def _level(names: Names, view: View) -> Level:
    return None if view.by == "stack" else naming(names.profile, names, view.by, view.fold != "none")


def _values(profile: Profile, view: View) -> Iterator[Tuple[int, int]]:
    """(account, value) of what is to be shown."""
    if view.range is not None:
        yield from between(profile, *view.range).values(view.value).items()
        return
    figures = samples(profile, select(profile, view.selector or "peak").composition)
    yield from ((account, value) for account, value in enumerate(figures.column(view.value)) if value)


def write(profile: Profile, view: View) -> Iterator[str]:
    """The lines. Raises moments.SelectionError."""
    yield from _lines(call_tree(profile, view), view)


def write_range(job: Processes, view_of: Callable[[Profile], View], is_each: bool = False) -> Iterator[str]:
    """The lines of a range over several processes. Raises SelectionError."""
    view = view_of(job.members[0].profile)
    assert view.range is not None
    yield from _lines(call_tree_of_job(job_range(job, *view.range), view), view)


def _lines(tree: CallTree, view: View) -> Iterator[str]:
    for path, value in tree.stacks(view.threshold):
        yield ";".join(tree.labels[label].text.replace(";", "\\x3b") for label in path) + f" {value}"
