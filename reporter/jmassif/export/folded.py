# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks for programs that draw flame graphs, a line each: "main;train;malloc 4096".

Folded stacks have no escaping: a frame ends at a semicolon, and the value stands behind the last space of the line. A
semicolon in a name is written as \\x3b, as control characters are everywhere. A leaf never ends in a number (its name
ends in a parenthesis), which flamegraph.pl would take for the first of two values.
"""

from typing import Iterator

from jmassif.analysis.aggregate import VALUES, samples
from jmassif.analysis.calltree import CallTree, top_down
from jmassif.analysis.moments import select
from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.model.run import Profile
from jmassif.render.view import View


def write(run: Profile, view: View) -> Iterator[str]:
    """The lines. Raises moments.SelectionError."""
    tree, names, column = CallTree(), Names(run), list(VALUES).index(view.value)
    level = None if view.by == "stack" else naming(run, names, view.by, view.fold != "none")
    rows = samples(run, select(run, view.selector or "peak").composition)
    values = ((account, figures[column]) for account, figures in rows if figures[column])
    top_down(tree, names, values, level, view.fold == "internal")
    for path, value in tree.stacks(view.threshold):
        yield ";".join(tree.labels[label].replace(";", "\\x3b") for label in path) + f" {value}"
