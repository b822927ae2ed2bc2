# SPDX-License-Identifier: GPL-2.0-or-later
"""A comparison of groups as JSON, CSV, text, Markdown, and an HTML page that draws the distributions from every run's figures."""

import json
from html import escape
from itertools import chain
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence

from jmassif.export.csv import line
from jmassif.fleet.compare import FleetDifference, FleetRow, FleetRun, Outside, fleet_headline, left_out, method
from jmassif.fleet.database import RUN, SCOPE, TOTAL, Database
from jmassif.html.cells import Columns, all_shown, shown
from jmassif.html.data import RunData
from jmassif.html.page import fill_page, pack
from jmassif.render.diff_tables import escaped, markdown_table, text_table
from jmassif.render.layout import heading, paragraph
from jmassif.units import growth, printable, size, unicode_text


# ---- data ----
# A comparison of groups for programs: docs/fleet.md describes the JSON.

FORMAT, VERSION = "jmassif-fleet-difference", 1
_MOST_OUTLIERS = 1000


def as_json(found: FleetDifference) -> Dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "headline": fleet_headline(found),
        "method": method(found),
        "key": found.key,
        "pool": found.pool,
        "level": found.level,
        "base": found.base,
        "compared": found.n_compared,
        "left_out": found.n_left_out,
        "groups": [{"value": unicode_text(g.value), "label": g.label, "runs": len(g.runs)} for g in found.groups],
        "rows": [
            {
                "view": row.view,
                "name": row.name,
                "groups": [of._asdict() for of in row.groups],
                "changes": [
                    change
                    and {
                        "bytes": change.bytes,
                        "interval": change.interval and list(change.interval),
                        "error": change.allowed,
                        "is_change": change.is_change,
                    }
                    for change in row.changes
                ],
            }
            for row in found.rows
        ],
        "n_outside": len(found.outside),
        "outside": [
            {
                "run": each.run.fields["id"],
                "file": each.run.fields["file"],
                "host": each.run.fields["host"],
                "group": each.group,
                "view": each.view,
                "name": each.name,
                "bytes": each.bytes,
                "median": each.median,
            }
            for each in found.outside[:_MOST_OUTLIERS]
        ],
        "facts": [
            {"key": fact.key, "label": fact.label, "values": [{"value": v, "runs": n} for v, n in fact.values]}
            for fact in found.facts
        ],
    }


def write_json(found: FleetDifference) -> Iterator[str]:
    yield json.dumps(as_json(found), indent=1, ensure_ascii=False)


# ---- export ----
# Runs and their figures as tables for other programs: CSV, or a line of JSON each.

RUN_FIELDS = [name for name, _ in RUN.columns if name != "setup"]
FIGURE_FIELDS = ["run", "view", "name", "host", "device", "number"]
_RUNS_AT_ONCE = 500


def figures(database: Database, runs: Sequence[FleetRun]) -> Iterator[List[Any]]:
    """Rows of FIGURE_FIELDS, run by run."""
    for begin in range(0, len(runs), _RUNS_AT_ONCE):
        numbers = [run.number for run in runs[begin : begin + _RUNS_AT_ONCE]]
        ids = {run.number: run.fields["id"] for run in runs[begin : begin + _RUNS_AT_ONCE]}
        sql = (
            "SELECT f.run, p.view, p.name, f.host, f.device, f.number FROM figure f JOIN part p ON p.part = f.part"
            f" WHERE f.run IN ({','.join('?' * len(numbers))}) ORDER BY f.run, p.view, p.name"
        )
        for run, *rest in database.rows(sql, numbers):
            yield [ids[run], *rest]


def run_rows(runs: Sequence[FleetRun]) -> Iterator[List[Any]]:
    for run in runs:
        yield [run.fields["id"] if name == "run" else run.fields[name] for name in RUN_FIELDS]


def write_csv(heads: Sequence[str], rows: Iterator[List[Any]]) -> Iterator[str]:
    yield line(heads)
    for row in rows:
        yield line(row)


def write_jsonl(heads: Sequence[str], rows: Iterator[List[Any]]) -> Iterator[str]:
    for row in rows:
        found: Dict[str, Any] = dict(zip(heads, row))
        yield json.dumps(found, ensure_ascii=False)


# ---- tables ----
# A comparison of groups as tables: in text for a terminal, in Markdown for a merge request.

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


def _note(n_more: int) -> str:
    return f"{n_more:,} more (--all shows them)." if n_more else ""


def _row(found: FleetDifference, row: FleetRow) -> Iterator[List[str]]:
    """A line with the name, and one for each group."""
    yield [_short(printable(row.name))] + [""] * 8
    for group, of, change in zip(found.groups, row.groups, row.changes):
        cells = [f"{of.n:,}", size(of.median), size(of.spread), size(of.low), size(of.high)]
        if change is None:
            cells += ["", "", ""]
        elif change.interval is None:
            cells += [growth(change.bytes), "too few runs", ""]
        else:
            cells += [growth(change.bytes), *map(growth, change.interval)]
        yield [f"  {_short(group.label)}", *cells]


_HEADS = ["", "runs", "median", "spread", "5 %", "95 %", "change", "from", "to"]


def _title(view: str) -> str:
    if view == TOTAL:
        return "Memory at the peak"
    return "Cost by call" if view == SCOPE else f"By {view.replace('-', ' ')}, at the peak"


def _views(found: FleetDifference, is_all: bool) -> Iterator[Section]:
    by_view: Dict[str, List[FleetRow]] = {}
    for row in found.rows:
        by_view.setdefault(row.view, []).append(row)
    for view, rows in by_view.items():
        shown = [row for row in rows if is_all or row.has_changed or view == TOTAL]
        same = len(rows) - len(shown)
        note = f"{same} without a significant difference (--all shows them)." if same else ""
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
            _short(printable(f"{each.view} {each.name}" if each.view != TOTAL else "total")),
            printable(str(each.run.fields["file"])),
        ]
        for each in shown
    ]
    heads = ["", "group", "bytes", "group's median", "part", "trace"]
    yield Section("Outliers", heads, rows, _note(len(found.outside) - len(shown)))


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
    heads = ["", *(group.label for group in found.groups)]
    title = "Facts that differ between most runs of the groups"
    yield Section(title, heads, rows, _note(len(found.facts) - len(shown)))


def _sections(found: FleetDifference, is_all: bool) -> Iterator[Section]:
    return chain(_views(found, is_all), _outside(found, is_all), _facts(found, is_all))


def write_text(found: FleetDifference, is_all: bool) -> Iterator[str]:
    """For a terminal."""
    for sentence in fleet_headline(found):
        yield from paragraph(sentence) + [""]
    for text in filter(None, (method(found), left_out(found))):
        yield from paragraph(text)
    for section in _sections(found, is_all):
        yield from heading(section.title)
        if section.rows:
            yield from text_table([section.heads, *section.rows], ">" if section.heads is _HEADS else "<")
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
            yield from markdown_table(section.heads, section.rows, "--:" if section.heads is _HEADS else ":--")
            yield ""
        if section.note:
            yield from [section.note, ""]


# ---- page ----

SCRIPT = "fleet.js"


def _runs(found: FleetDifference) -> List[Dict[str, List[str]]]:
    """The identity of the runs by group, in columns."""
    names = ("id", "host", "board", "file", "start")
    return [
        {name: [shown(str(run.fields[name] or "")) for run in group.runs] for name in names} for group in found.groups
    ]


def _columns(found: FleetDifference) -> Columns:
    packed = Columns()
    for number, row in enumerate(found.rows):
        for group, values in enumerate(row.values):
            packed.add(f"{number}.{group}", values, "signed")
    return packed


def write(found: FleetDifference) -> Iterator[str]:
    """Raises FormatError."""
    head = all_shown(as_json(found))
    head["runs"] = _runs(found)
    packed = _columns(found)
    title = shown(" → ".join(group.label for group in found.groups))
    statements = [*fleet_headline(found), *filter(None, (left_out(found),))]
    first = "".join(f'<p class="statement">{escape(text)}</p>' for text in statements)
    first += f'<p class="quiet">{escape(method(found))}</p>'
    data = pack([RunData({"columns": packed.specs}, packed.bytes())], title, fleet=head)
    yield from fill_page(title, first, data, script=SCRIPT)
