# SPDX-License-Identifier: GPL-2.0-or-later
"""A comparison of groups as tables: in text for a terminal, in Markdown for a merge request."""

from typing import Dict, Iterator, List, NamedTuple

from jmassif.fleet.compare import FleetDifference, FleetRow, Outside
from jmassif.fleet.headline import fleet_headline, left_out, method
from jmassif.fleet.schema import SCOPE, TOTAL
from jmassif.units import growth, printable, size
from jmassif.writers.compare.tables import escaped
from jmassif.writers.text.layout import heading, paragraph
from jmassif.writers.text.table import Column, Table

_MAX_NAME = 60
_MOST_OUTSIDE = 10
_MOST_FACTS = 30


class Section(NamedTuple):
    title: str
    heads: List[str]  # the first is of names
    rows: List[List[str]]
    note: str = ""


def _short(text: str) -> str:
    return text if len(text) <= _MAX_NAME else f"{text[: _MAX_NAME - 1]}…"


def _row(found: FleetDifference, row: FleetRow) -> Iterator[List[str]]:
    """A line with the name, and one for each group."""
    yield [_short(printable(row.name))] + [""] * 8
    for group, of, change in zip(found.groups, row.groups, row.changes):
        cells = [f"{of.n:,}", size(of.median), size(of.spread), size(of.low), size(of.high)]
        if change is None:
            told = ["", "", ""]
        elif change.interval is None:
            told = [growth(change.bytes), "too few runs", ""]
        else:
            told = [growth(change.bytes), *map(growth, change.interval)]
        yield [f"  {_short(group.label)}", *cells, *told]


_HEADS = ["", "runs", "median", "spread", "5 %", "95 %", "change", "from", "to"]


def _title(view: str) -> str:
    if view == TOTAL:
        return "All that was held, at the peak"
    return "What calls have cost" if view == SCOPE else f"By {view.replace('-', ' ')}, at the peak"


def _views(found: FleetDifference, is_all: bool) -> Iterator[Section]:
    by_view: Dict[str, List[FleetRow]] = {}
    for row in found.rows:
        by_view.setdefault(row.view, []).append(row)
    for view, rows in by_view.items():
        shown = [row for row in rows if is_all or row.has_changed or view == TOTAL]
        same = len(rows) - len(shown)
        note = f"{same} {'have' if same > 1 else 'has'} not changed (--all shows them)." if same else ""
        yield Section(_title(view), _HEADS if shown else [], [line for row in shown for line in _row(found, row)], note)


def run_name(each: Outside) -> str:
    return str(each.run.fields["host"] or each.run.fields["file"])


def _outside(found: FleetDifference, is_all: bool) -> Iterator[Section]:
    if not found.outside:
        return
    shown = found.outside if is_all else found.outside[:_MOST_OUTSIDE]
    rows = [
        [
            _short(printable(run_name(each))),
            found.groups[each.group].label,
            size(each.bytes),
            size(each.median),
            _short(printable(f"{each.view} {each.name}" if each.view != TOTAL else "in all")),
            printable(str(each.run.fields["file"])),
        ]
        for each in shown
    ]
    more = len(found.outside) - len(shown)
    note = f"{more:,} more (--all shows them)." if more else ""
    yield Section(
        "Runs that lie far from their group", ["", "group", "held", "group's median", "of what", "trace"], rows, note
    )


def _facts(found: FleetDifference, is_all: bool) -> Iterator[Section]:
    if not found.facts:
        return
    shown = found.facts if is_all else found.facts[:_MOST_FACTS]

    def cell(value: str, n: int, n_runs: int) -> str:
        return _short(printable(value or "?")) + ("" if n == n_runs else f" ({100 * n // n_runs} %)")

    rows = [
        [
            _short(printable(fact.label)),
            *(cell(value, n, len(group.runs)) for (value, n), group in zip(fact.values, found.groups)),
        ]
        for fact in shown
    ]
    more = len(found.facts) - len(shown)
    note = f"{more:,} more (--all shows them)." if more else ""
    yield Section("What else differs, as most runs have it", ["", *(group.label for group in found.groups)], rows, note)


def _sections(found: FleetDifference, is_all: bool) -> Iterator[Section]:
    yield from _views(found, is_all)
    yield from _outside(found, is_all)
    yield from _facts(found, is_all)


def write_text(found: FleetDifference, is_all: bool) -> Iterator[str]:
    """For a terminal."""
    for sentence in fleet_headline(found):
        yield from paragraph(sentence) + [""]
    for text in filter(None, (method(found), left_out(found))):
        yield from paragraph(text)
    for section in _sections(found, is_all):
        yield from heading(section.title)
        if section.rows:
            lines = [section.heads] + section.rows
            is_words = section.heads is not _HEADS
            first, *others = [max(len(line[n]) for line in lines) for n in range(len(section.heads))]
            align = "<" if is_words else ">"
            table = Table(Column("", first, align="<"), *(Column("", max(w, 6), align=align, gap=2) for w in others))
            for line in lines:
                yield table.row(*line).rstrip()
        if section.note:
            yield section.note


def write_markdown(found: FleetDifference, is_all: bool) -> Iterator[str]:
    """Pipe tables, as GitHub and GitLab have them."""
    for sentence in fleet_headline(found):
        yield from [escaped(sentence), ""]
    for text in filter(None, (method(found), left_out(found))):
        yield from [escaped(text), ""]
    for section in _sections(found, is_all):
        yield from [f"### {escaped(section.title)}", ""]
        if section.rows:
            yield f"| | {' | '.join(escaped(head) for head in section.heads[1:])} |"
            is_words = section.heads is not _HEADS
            yield "|:--|" + (":--|" if is_words else "--:|") * (len(section.heads) - 1)
            for line in section.rows:
                name = line[0].lstrip(" ")
                indent = "&nbsp;" * (len(line[0]) - len(name))
                yield f"| {indent}{' | '.join([escaped(name)] + [escaped(cell) for cell in line[1:]])} |"
            yield ""
        if section.note:
            yield from [section.note, ""]
