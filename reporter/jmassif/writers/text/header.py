# SPDX-License-Identifier: GPL-2.0-or-later
"""The head of a text report: what ran, where, and how it ended."""

from textwrap import wrap

from jmassif.model.profile import Profile
from jmassif.questions.about import about
from jmassif.units import printable
from jmassif.writers.text.layout import PAGE, Lines
from jmassif.writers.text.roles import LABEL, WARNING, Line

_WARNINGS = ("Stopped", "Truncated")


def header(profile: Profile) -> Lines:
    """A line, or more, a fact."""
    lines: Lines = []
    for name, text in about(profile):
        wrapped = wrap(printable(text), PAGE - 13, break_on_hyphens=False) or [""]
        role = WARNING if name in _WARNINGS else ""
        lines.append(Line((f"{name + ':':<13}", LABEL), (wrapped[0], role)))
        lines += [" " * 13 + rest for rest in wrapped[1:]]
    return lines
