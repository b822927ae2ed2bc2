# SPDX-License-Identifier: GPL-2.0-or-later
"""Formats for other programs."""

from typing import Iterable, Iterator


def separated(texts: Iterable[str]) -> Iterator[str]:
    """The elements of a JSON array, an element a line."""
    before = ""
    for text in texts:
        if before:
            yield before + ","
        before = text
    yield before
