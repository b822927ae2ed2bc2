# SPDX-License-Identifier: GPL-2.0-or-later
"""Folded stacks, for flamegraph.pl and what else draws flame graphs: a line a stack, "main;train;malloc 4096".

The format has no escaping: a frame ends at a semicolon, and the value stands behind the last space of the line. A
semicolon in a name is written as \\x3b, as control characters are everywhere. A leaf never ends in a number (its name
ends in a parenthesis), which flamegraph.pl would take for the first of two values.
"""

from typing import Iterator, Tuple

from jmassif.model.profile import Profile
from jmassif.questions.between import between
from jmassif.questions.calltree import CallTree, build
from jmassif.questions.moments import select
from jmassif.questions.samples import samples
from jmassif.whose.names import Names
from jmassif.whose.views import naming
from jmassif.writers.view import View


def call_tree(profile: Profile, view: View) -> CallTree:
    """The tree that the view asks for. Raises moments.SelectionError."""
    names = Names(profile)
    level = None if view.by == "stack" else naming(profile, names, view.by, view.fold != "none")
    return build(profile, names, _values(profile, view), level, view.fold == "internal")


def _values(profile: Profile, view: View) -> Iterator[Tuple[int, int]]:
    """(account, value) of what is to be shown."""
    if view.range is not None:
        figure, unit = view.value.split("-")
        held = between(profile, *view.range).composition(figure)
        values = {account: pair[0 if unit == "bytes" else 1] for account, pair in held.items()}
        is_block = {account: profile.accounts[account].kind != "heap-overhead" for account in values}
        yield from ((account, n) for account, n in values.items() if n and (unit == "bytes" or is_block[account]))
        return
    figures = samples(profile, select(profile, view.selector or "peak").composition)
    yield from ((account, value) for account, value in enumerate(figures.column(view.value)) if value)


def write(profile: Profile, view: View) -> Iterator[str]:
    """The lines. Raises moments.SelectionError."""
    tree = call_tree(profile, view)
    for path, value in tree.stacks(view.threshold):
        yield ";".join(tree.labels[label].text.replace(";", "\\x3b") for label in path) + f" {value}"
