# SPDX-License-Identifier: GPL-2.0-or-later
"""The headline of a text report: what went wrong stands out, and the rest is a paragraph."""

from typing import List

from jmassif.questions.happened import NOTE
from jmassif.questions.headline import HAPPENED, HELP, LEAK, Headline, words
from jmassif.questions.headline import PLACE, POOL, WHOSE
from jmassif.writers.text.layout import Lines, paragraph
from jmassif.writers.text.roles import WARNING, Line


def _alarm(text: str) -> Lines:
    return [Line((line, WARNING)) for line in paragraph(f"!!! {text}")]


def headline_lines(made: Headline, with_owners: bool = True) -> Lines:
    """Paragraphs: each thing that happened, the answer, what leaks, and what would help.

    `with_owners`: say in words whose the memory is, which the ladder shows in rows.
    """
    lines: List[str] = []
    for statement in made.about(HAPPENED):
        lines += paragraph(statement.text) if statement.severity == NOTE else _alarm(statement.text)
        lines.append("")
    lines += paragraph(words(made, POOL, *((WHOSE,) if with_owners else ()), PLACE))
    for statement in made.about(LEAK):
        lines += [""] + _alarm(statement.text)
    for statement in made.about(HELP):
        lines += [""] + paragraph(statement.text)
    return lines
