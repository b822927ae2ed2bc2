# SPDX-License-Identifier: GPL-2.0-or-later
"""Cells of text in columns."""

import re
from itertools import groupby
from textwrap import wrap
from typing import Iterable, Iterator, List, NamedTuple, Sequence, Tuple, Union

from jmassif.units import count


# ---- roles ----
# Roles of the parts of a line. Renderers mark them; a terminal or a page decides how a role looks.

HEADING = "heading"
LABEL = "label"  # what a fact at the report's head is called
WARNING = "warning"
SUM = "sum"  # a row that others add up to
SHARE = "share"
HOST = "host"
DEVICE = "device"
PYTHON = "python"  # a line of Python in a call stack
ROLES = (HEADING, LABEL, WARNING, SUM, SHARE, HOST, DEVICE, PYTHON)
# A sentence, which may go on in the next line; it looks like any other text.
WORDS = "words"
# A command to be run as it stands: it is never cut.
COMMAND = "command"

Part = Tuple[str, str]  # text, and one of ROLES or ""


class Line(str):
    """A line with parts that have roles; for whoever does not ask for them, a string."""

    parts: Tuple[Part, ...]

    def __new__(cls, *parts: Union[str, Part]) -> "Line":
        """A string has no role, and another Line brings its own."""
        pairs: List[Part] = []
        for part in parts:
            if isinstance(part, Line):
                pairs += part.parts
            else:
                pairs.append((part, "") if isinstance(part, str) else part)
        line = super().__new__(cls, "".join(text for text, _ in pairs))
        line.parts = tuple(pairs)
        return line


# ---- layout ----
# Shared by the sections of a text report: page, headings, paragraphs, width and length.

PAGE = 80
WIDE = 100  # columns of the first screen

Lines = List[str]


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def heading(title: str) -> Lines:
    return ["", Line((f"--- {title} {'-' * max(3, PAGE - len(title) - 5)}", HEADING))]


# A figure and its unit stay together.
_UNIT = re.compile(r"(?<=\d) (?=(?:%|[KMGTPE]?i?B|ms|s|min|h)(?![\w:]))")
_TIED = "\u00a0"


def wrapped(text: str, width: int) -> List[str]:
    """In lines, of which none ends between a figure and its unit."""
    tied = _UNIT.sub(_TIED, text.replace(_TIED, " "))
    lines = wrap(tied, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_TIED, " ") for line in lines]


def paragraph(text: str, width: int = PAGE, role: str = WORDS, indent: str = "") -> Lines:
    return [Line((indent + line, role)) for line in wrapped(text, width)]


def rest(n_left_out: int, noun: str, hint: str) -> Lines:
    """A line on rows that are left out, if there are any."""
    return [f"and {count(n_left_out, noun)}{hint}"] if n_left_out > 0 else []


# ---- as long as the page -----------------------------------------------------------------------


class Section(NamedTuple):
    """A part of a report; those of the highest rank are the first to be left out."""

    rank: int
    lines: Lines

    @property
    def name(self) -> str:
        return re.split("[:,]", self.lines[1].strip("- "))[0] if len(self.lines) > 1 else ""


def bounded(sections: Iterable[Section], room: int) -> Lines:
    """The sections that fit into that many lines, in their order, and the names of those that do not."""
    kept = [section for section in sections if section.lines]
    # The least important go first, and of these the last.
    expendable = sorted(range(len(kept)), key=lambda index: (kept[index].rank, index))
    for n_kept in range(len(kept), -1, -1):
        names = [kept[index].name for index in sorted(expendable[n_kept:])]
        lines = [line for index in sorted(expendable[:n_kept]) for line in kept[index].lines]
        lines += [""] + paragraph(f"With --all also: {'; '.join(names)}.") if names else []
        if len(lines) <= room:
            break
    return lines


# ---- as wide as the page -----------------------------------------------------------------------

# A frame that is cut keeps its place in the source.
_PLACE = re.compile(r" \([^()]*\)$")
_LEAST_WIDTH = 20


def _cut(line: str, width: int) -> str:
    """The line without what is too much of it, before a frame's place; the roles of its parts stay."""
    place = _PLACE.search(line)
    keep = min(len(place.group()) if place else 0, width // 2)
    head = width - keep - 1
    parts = line.parts if isinstance(line, Line) else ((line, ""),)
    letters = [(letter, role) for text, role in parts for letter in text]
    kept = letters[:head] + [("…", letters[head][1])] + letters[len(line) - keep :]
    runs = ((role, "".join(letter for letter, _ in run)) for role, run in groupby(kept, lambda pair: pair[1]))
    return Line(*((text, role) for role, text in runs))


def fitted(lines: Iterable[str], width: int) -> Iterator[str]:
    """No line is wider: sentences go on in the next line, and rows lose their middle. 0: as they are."""
    for line in lines:
        if not width or len(line) <= width:
            yield line
            continue
        roles = {role for _, role in line.parts} if isinstance(line, Line) else set()
        if COMMAND in roles:
            yield line
        elif HEADING in roles:
            yield Line((line[:width], HEADING))
        elif len(roles) == 1 and roles & {WORDS, WARNING}:
            for part in wrapped(line, max(_LEAST_WIDTH, width)):
                yield Line((part, WARNING if WARNING in roles else WORDS))
        else:
            yield _cut(line, max(_LEAST_WIDTH, width))


# ---- table ----


class Column(NamedTuple):
    head: str
    width: int = 0  # at least; 0: as wide as what is in it, for the last column
    gap: int = 0  # spaces before it, which stay where a cell is wider than its column
    align: str = ">"


class Table:
    def __init__(self, *columns: Column) -> None:
        self._form = "".join(f"{' ' * column.gap}{{:{column.align}{column.width or ''}}}" for column in columns)
        self.head = self.row(*(column.head for column in columns))

    def row(self, *cells: str) -> str:
        return self._form.format(*cells).rstrip()

    def sum(self, *cells: str) -> Line:
        """A row that others add up to."""
        return Line((self.row(*cells), SUM))

    def section(self, title: str, rows: Iterable[Sequence[str]]) -> Lines:
        """Empty without rows."""
        lines = [self.row(*cells) for cells in rows]
        return heading(title) + [self.head] + lines if lines else []
