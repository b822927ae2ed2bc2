# SPDX-License-Identifier: GPL-2.0-or-later
"""Folded stacks, for flamegraph.pl and what else draws flame graphs: a line a stack, "main;train;malloc 4096".

The format has no escaping: a frame ends at a semicolon, and the value stands behind the last space of the line. A
semicolon in a name is written as \\x3b, as control characters are everywhere. A leaf never ends in a number (its name
ends in a parenthesis), which flamegraph.pl would take for the first of two values.
"""

from typing import Iterator

from jmassif.model.profile import Profile
from jmassif.questions.calltree import CallTree, build
from jmassif.questions.moments import select
from jmassif.questions.samples import samples
from jmassif.whose.names import Names
from jmassif.whose.views import naming
from jmassif.writers.view import View


def call_tree(profile: Profile, view: View) -> CallTree:
    """The tree that the view asks for. Raises moments.SelectionError."""
    figures = samples(profile, select(profile, view.selector or "peak").composition)
    names = Names(profile)
    level = None if view.by == "stack" else naming(profile, names, view.by, view.fold != "none")
    values = ((account, value) for account, value in enumerate(figures.column(view.value)) if value)
    return build(profile, names, values, level, view.fold == "internal")


def write(profile: Profile, view: View) -> Iterator[str]:
    """The lines. Raises moments.SelectionError."""
    tree = call_tree(profile, view)
    for path, value in tree.stacks(view.threshold):
        yield ";".join(tree.labels[label].text.replace(";", "\\x3b") for label in path) + f" {value}"
