# SPDX-License-Identifier: GPL-2.0-or-later
"""A difference as tables: in text for a terminal, or in Markdown for a merge request."""

import os
import re
from typing import Callable, Iterator, List, NamedTuple

from jmassif.analysis.compare import (
    POOLS,
    SCOPE,
    Column,
    Difference,
    DifferenceRow,
    PartFigures,
    View,
    difference_headline,
)
from jmassif.analysis.run_info import is_told_by_others, label
from jmassif.render.layout import Column as TableColumn, Table, heading, paragraph
from jmassif.units import count, growth, printable, size


_MAX_NAME = 60
_MAX_HEAD = 16
_MAX_FACT = 60
_MAX_FILES = 3


class Section(NamedTuple):
    title: str
    heads: List[str]  # of the columns after the first, which holds names
    rows: List[List[str]]  # the name, and a cell a column; the last row is the total


class _Column(NamedTuple):
    head: str
    text: Callable[[DifferenceRow], str]


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _exact(n_bytes: int) -> str:
    return f"{n_bytes:,}"


def _exact_change(n_bytes: int) -> str:
    return f"{n_bytes:+,}" if n_bytes else "0"


def _percent(before: int, now: int) -> str:
    """ "+12.5 %", "new", "gone", or nothing to speak of. What calls have freed has no percentage."""
    if not before or not now:
        return "new" if now else "gone" if before else ""
    text = f"{100 * (now - before) / before:+.1f} %" if before > 0 else ""
    return "" if text in ("+0.0 %", "-0.0 %") else text


def _columns(difference: Difference, view: View, pool: str, is_exact: bool) -> List[_Column]:
    """The columns of a table about one pool. What compares, compares the last column with the first."""
    pick = POOLS[pool]
    amount, change = (_exact, _exact_change) if is_exact else (size, growth)

    def held(number: int) -> Callable[[DifferenceRow], str]:
        return lambda row: amount(pick(row.cells[number].figures))

    def spread(number: int) -> Callable[[DifferenceRow], str]:
        return lambda row: amount(row.cells[number].ranges[pool][1] - row.cells[number].ranges[pool][0])

    def changed(of: Callable[[PartFigures], int]) -> Callable[[DifferenceRow], str]:
        return lambda row: change(of(row.cells[-1].change))

    def percent(row: DifferenceRow) -> str:
        return "" if row is view.remainder else _percent(*(pick(row.cells[n].figures) for n in (0, -1)))

    columns = [(number, _short(printable(column.label), _MAX_HEAD)) for number, column in enumerate(difference.columns)]
    found = [_Column(head, held(number)) for number, head in columns]
    repeated = [(number, head) for number, head in columns if len(difference.columns[number].runs) > 1]
    found += [_Column(f"{head} spread", spread(number)) for number, head in repeated]
    if len(columns) == 1:
        return found
    found += [_Column("change", changed(pick)), _Column("%", percent)]
    if difference.has_ranges:
        found.append(_Column("beyond", lambda row: "yes" if row.cells[-1].is_beyond else ""))
    sides = [POOLS["host"], POOLS["device"]]
    if pool == "bytes" and all(any(side(cell.figures) for cell in view.total.cells) for side in sides):
        found += [_Column(f"{name} change", changed(side)) for name, side in zip(("host", "device"), sides)]
    if pool == "bytes":  # those of either side are not known
        found.append(_Column(view.counts, lambda row: f"{row.cells[-1].change.number:+,}".replace("+0", "")))
    return found


def _pools(difference: Difference, view: View) -> List[str]:
    """What may be added up: both sides of unified boards, or each of a discrete GPU."""
    has_device = any(cell.ranges["device"] != (0, 0) for cell in view.total.cells)
    return ["host", "device"] if difference.is_discrete and has_device else ["bytes"]


def _is_in(row: DifferenceRow, pool: str) -> bool:
    return pool == "bytes" or any(cell.ranges[pool] != (0, 0) for cell in row.cells)


def _name(row: DifferenceRow) -> str:
    return "  " * len(row.path) + row.name + (": further calls, in no sum" if row.is_listed else "")


def _title(difference: Difference, view: View, pool: str) -> str:
    title = "What calls have cost" if view.by == SCOPE else f"By {view.by.replace('-', ' ')}, at {difference.moment}"
    return title if pool == "bytes" else f"{title}: {pool} memory"


def _sections(difference: Difference, is_exact: bool) -> Iterator[Section]:
    for view in difference.views:
        for pool in _pools(difference, view):
            columns = _columns(difference, view, pool, is_exact)
            rows = [(_name(row), row) for row in view.rows if _is_in(row, pool)]
            if view.other:
                rows.append((f"{view.n_other:,} more below {size(difference.min_bytes)}", view.other))
            if view.remainder:
                rows.append(("(medians do not add up)", view.remainder))
            rows.append(("total", view.total))
            cells = [[name] + [column.text(row) for column in columns] for name, row in rows]
            yield Section(_title(difference, view, pool), [column.head for column in columns], cells)


def _files(column: Column) -> str:
    names = [run.name if run.is_complete else f"{run.name} (truncated)" for run in column.runs]
    more = f" and {count(len(names) - _MAX_FILES, 'more run')}" if len(names) > _MAX_FILES else ""
    return ", ".join(names[:_MAX_FILES]) + more


def _without_beginning(values: List[str]) -> List[str]:
    """Values that are too long, from the word on in which they begin to differ."""
    if max(map(len, values)) <= _MAX_FACT:
        return values
    same = os.path.commonprefix(values)
    begin = same.rfind(" ") + 1
    return [_short(f"… {value[begin:]}" if begin else value, _MAX_FACT) for value in values]


def _facts(difference: Difference) -> List[List[str]]:
    """What is compared, and what differs in software and machine: a name and a text."""
    found = [[column.label, _files(column)] for column in difference.columns]
    for fact in (fact for fact in difference.facts if not is_told_by_others(fact.key)):
        found.append([label(fact.key), " → ".join(value or "?" for value in _without_beginning(fact.values))])
    return [[printable(_short(name, _MAX_NAME)), printable(text)] for name, text in found]


def _notes(difference: Difference) -> List[str]:
    notes = []
    if difference.has_ranges:
        notes.append(
            "Figures are medians of runs. Spread is between the smallest and the largest; beyond is what differs by more:"
            " the ranges of first and last column have nothing in common."
        )
    if any(row.path for view in difference.views for row in view.rows):
        notes.append("Calls beneath others were made in them, and are in their figures and not in the total.")
    if len(difference.columns) > 2:
        notes.append("Change is from the first column to the last.")
    return notes


def write_text(difference: Difference, is_exact: bool) -> Iterator[str]:
    """For a terminal. Sizes are in units or, if `is_exact`, bytes."""
    for sentence in difference_headline(difference):
        yield from paragraph(sentence) + [""]
    facts = _facts(difference)
    width = max(len(name) for name, _ in facts) + 2
    for name, text in facts:
        yield f"{name + ':':<{width}}{text}"
    for note in _notes(difference):
        yield from [""] + paragraph(note)
    for section in _sections(difference, is_exact):
        yield from heading(section.title)
        rows = [[_short(row[0], _MAX_NAME)] + row[1:] for row in [[""] + section.heads] + section.rows]
        first, *others = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
        table = Table(TableColumn("", first, align="<"), *(TableColumn("", max(w, 8), gap=2) for w in others))
        for row in rows:
            yield table.row(*row).rstrip()


# What Markdown, or the HTML that may stand in it, would act on.
_ACTIVE = re.compile(r"[\\`*_\[\]<>#!|~&@$]|:(?=//)")


def escaped(text: str) -> str:
    return _ACTIVE.sub(lambda found: f"&#{ord(found.group())};", text)


def write_markdown(difference: Difference, is_exact: bool) -> Iterator[str]:
    """Pipe tables, as GitHub and GitLab have them."""
    for sentence in difference_headline(difference):
        yield from [escaped(sentence), ""]
    yield "| | |"
    yield "|:--|:--|"
    for name, text in _facts(difference):
        yield f"| {escaped(name)} | {escaped(text)} |"
    for note in _notes(difference):
        yield from ["", note]
    for section in _sections(difference, is_exact):
        yield from ["", f"### {escaped(section.title)}", ""]
        yield f"| | {' | '.join(escaped(head) for head in section.heads)} |"
        yield "|:--|" + "--:|" * len(section.heads)
        for row in section.rows:
            name = row[0].lstrip(" ")
            indent = "&nbsp;" * (len(row[0]) - len(name))
            cells = [indent + escaped(_short(name, _MAX_NAME))] + row[1:]
            if row is section.rows[-1]:
                cells = [f"**{cell}**" if cell else "" for cell in cells]
            yield f"| {' | '.join(cells)} |"
