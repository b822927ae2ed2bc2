# SPDX-License-Identifier: GPL-2.0-or-later
"""What the sections of a text report share: the page, headings and paragraphs."""

from textwrap import wrap
from typing import List

from jmassif.writers.text.roles import HEADING, Line

PAGE = 80

Lines = List[str]


def heading(title: str) -> Lines:
    return ["", Line((f"--- {title} {'-' * max(3, PAGE - len(title) - 5)}", HEADING))]


def paragraph(text: str) -> Lines:
    return wrap(text, PAGE, break_long_words=False, break_on_hyphens=False)
