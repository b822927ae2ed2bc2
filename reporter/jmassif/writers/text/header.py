# SPDX-License-Identifier: GPL-2.0-or-later
"""The head of a text report: what ran, where, and how it ended."""

from textwrap import wrap

from jmassif.model.profile import Profile
from jmassif.questions.about import about
from jmassif.units import printable
from jmassif.writers.text.layout import PAGE, Lines


def header(profile: Profile) -> Lines:
    """A line, or more, a fact."""
    lines = []
    for name, text in about(profile):
        wrapped = wrap(printable(text), PAGE - 13, break_on_hyphens=False) or [""]
        lines += [f"{name + ':':<13}{wrapped[0]}"] + [" " * 13 + rest for rest in wrapped[1:]]
    return lines
