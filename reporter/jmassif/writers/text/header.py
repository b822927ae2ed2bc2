# SPDX-License-Identifier: GPL-2.0-or-later
"""The head of a text report: what ran, where, and how it ended."""

from typing import Iterable, Tuple

from jmassif.model.profile import Profile
from jmassif.questions.about import about
from jmassif.units import printable
from jmassif.writers.text.layout import PAGE, Lines, heading, wrapped
from jmassif.writers.text.roles import LABEL, WARNING, Line

_WARNINGS = ("Stopped", "Truncated")
# What a reader wants to be sure of before anything else.
_FIRST = ("Command", "Run") + _WARNINGS
# What --all adds to the other facts.
_LONG = ("Packages", "Environment")


def _facts(facts: Iterable[Tuple[str, str]]) -> Lines:
    """A line, or more, a fact."""
    lines: Lines = []
    for name, text in facts:
        rows = wrapped(printable(text), PAGE - 13) or [""]
        role = WARNING if name in _WARNINGS else ""
        lines.append(Line((f"{name + ':':<13}", LABEL), (rows[0], role)))
        lines += [" " * 13 + rest for rest in rows[1:]]
    return lines


def header(profile: Profile) -> Lines:
    return _facts(about(profile))


def short_header(profile: Profile) -> Lines:
    return _facts((name, text) for name, text in about(profile) if name in _FIRST)


def other_facts(profile: Profile) -> Lines:
    """The section with what a short header leaves out."""
    lines = _facts((name, text) for name, text in about(profile) if name not in _FIRST + _LONG)
    return heading("Machine and software") + lines if lines else []
