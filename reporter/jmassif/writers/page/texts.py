# SPDX-License-Identifier: GPL-2.0-or-later
"""Texts of a trace on their way to the page."""

from jmassif.units import printable

_MAX_TEXT = 400


def shown(text: str) -> str:
    """Fit to be shown, and cut where no person would read on."""
    # What is escaped grows: the rest of a text of a megabyte is not even looked at.
    safe = printable(text[: _MAX_TEXT + 1])
    return safe if len(safe) <= _MAX_TEXT else f"{safe[:_MAX_TEXT]}… ({len(text):,} characters)"
