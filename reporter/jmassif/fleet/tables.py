# SPDX-License-Identifier: GPL-2.0-or-later
"""A comparison of groups in sentences, as text, Markdown and JSON, and as an HTML page that draws the distributions."""

import json
from html import escape
from itertools import chain, compress, groupby
from operator import not_
from typing import Any, Collection, Dict, Iterator, List

from sqlalchemy import select

from jmassif.export.csv import line
from jmassif.export.json import data
from jmassif.fleet import TOTAL, VIEWS
from jmassif.fleet.compare import FleetDifference, FleetRow, Frame, frame
from jmassif.fleet.database import FIGURE, PART, RUN
from jmassif.html.cells import Columns, all_shown, shown
from jmassif.html.data import RunData
from jmassif.html.head import FleetPage, FleetPart, FleetRuns, Packed, ReadyTable, TableCell
from jmassif.html.page import fill_page, pack
from jmassif.render.diff_tables import escaped, markdown_table, text_table
from jmassif.render.layout import cut, heading, paragraph
from jmassif.units import count, growth, percent, printable, size

# ---- sentences ----

_MOST_NAMED = 3


def _largest_changes(found: FleetDifference, group: int) -> str:
    """Of the first view that has any."""
    changes = [(row.view, row.name, row.changes[group]) for row in found.rows if row.view != TOTAL]
    significant = [(view, name, change.bytes) for view, name, change in changes if change and change.is_change]
    if not significant:
        return ""
    by = significant[0][0]
    of = sorted((-abs(n_bytes), printable(name), growth(n_bytes)) for view, name, n_bytes in significant if view == by)
    more = f" and {len(of) - _MOST_NAMED} more" if len(of) > _MOST_NAMED else ""
    named = ", ".join(f"{name} {change}" for _, name, change in of[:_MOST_NAMED])
    return f" By {by.replace('-', ' ')}: {named}{more}."


def _sentence(found: FleetDifference, group: int) -> str:
    base, now, total = found.groups[found.base], found.groups[group], found.rows[0]
    medians = [total.groups[place].median for place in (found.base, group)]
    sizes = " → ".join(map(size, medians))
    change = total.changes[group]
    assert change
    runs = f"{count(now.runs, 'run')} against {base.runs:,}"
    if change.interval is None:
        return f"Not enough runs to compare {now.label} with {base.label} ({runs}): {sizes} at the peak."
    memory = "" if found.pool == "bytes" else f" of {found.pool} memory"
    between = " to ".join(map(growth, change.interval))
    parts = _largest_changes(found, group)
    if change.is_change:
        more = f"{size(abs(change.bytes))}{memory} {'more' if change.bytes > 0 else 'less'}"
        share = percent(abs(change.bytes), medians[0])
        return f"{now.label} needs {more} than {base.label} at the peak ({between}): {sizes}, {share}, medians of {runs}.{parts}"
    return (
        f"No significant difference between {now.label} and {base.label} at the peak{memory}, {runs}: {sizes} ({between})."
        f"{parts or ' No part differs significantly.'}"
    )


def headline(found: FleetDifference) -> List[str]:
    """Sentences that are safe to show, of the newest group first."""
    return [_sentence(found, group) for group in reversed(range(len(found.groups))) if group != found.base]


def method(found: FleetDifference) -> str:
    """The statistical method, and the runs that are left out."""
    left_out = f" Left out: {count(found.left_out, 'run')} without an end (--incomplete includes them)."
    test = (
        f" A change is significant by the Mann-Whitney U test, at {100 * found.level:.6g} % for all {found.compared:,} comparisons"
        f" together (Holm). From and to: a {100 * (1 - found.level):.6g} % confidence interval of the change."
    )
    return (
        f"Changes are of medians, against {found.groups[found.base].label}.{test * (found.compared > 0)} Spread: between the"
        f" quartiles.{left_out * (found.left_out > 0)}"
    )


# ---- data ----


def _data(found: FleetDifference) -> Dict[str, Any]:
    head = {"format": "jmassif-fleet-difference", "version": 2, "headline": headline(found), "method": method(found)}
    members = {name: data(member) for name, member in found._asdict().items() if name not in ("runs", "values")}
    return {**head, **members}


def write_json(found: FleetDifference) -> Iterator[str]:
    yield json.dumps(_data(found), indent=1, ensure_ascii=False)


# Runs, in columns of the table `run` that are the run's.
_RUN_FIELDS = [name for name in RUN.columns.keys() if name not in ("run", "id", "setup")]


def write_runs(connection: Any, runs: Frame, is_csv: bool, of_figures: bool) -> Iterator[str]:
    """Runs under their ids, or their figures, as CSV or a line of JSON each."""
    rows = runs[["id", *_RUN_FIELDS]]
    if of_figures:
        of_run = select(FIGURE.c.run, PART.c.view, PART.c.name, FIGURE.c.host, FIGURE.c.device, FIGURE.c.number)
        figures = frame(connection, of_run.join(PART, FIGURE.c.part == PART.c.part)).sort_values(["view", "name"])
        rows = runs[["run", "id"]].merge(figures, on="run").drop(columns="run")
    heads = ["run", *rows.columns[1:]]
    if is_csv:
        yield from map(line, chain([heads], rows.itertuples(index=False)))
    else:
        yield from (json.dumps(dict(zip(heads, row)), ensure_ascii=False) for row in rows.itertuples(index=False))


# ---- tables ----
# For a terminal, and in Markdown for a merge request.

_MAX_NAME = 60
_TITLES = {view: f"By {view.replace('-', ' ')}, at the peak" for view in VIEWS}
_TITLES.update({TOTAL: "Memory at the peak", "scope": "Cost by call"})
_LAST_TITLES = "Outliers", "Facts that differ between most runs of the groups"
_MOST_ROWS = 20  # of outliers, and of facts
_HEADS = ["", "runs", "median", "spread", "5 %", "95 %", "change", "from", "to"]


def _short(text: str) -> str:
    return cut(printable(text), _MAX_NAME)


def _lines(found: FleetDifference, row: FleetRow) -> Iterator[List[str]]:
    """A line with the name, and one for each group."""
    yield [_short(row.name)] + [""] * (len(_HEADS) - 1)
    for group, of, change in zip(found.groups, row.groups, row.changes):
        cells = [f"{of.n:,}", *map(size, of[1:]), growth(change.bytes) if change else ""]
        if change:
            cells += map(growth, change.interval) if change.interval else ["too few runs"]
        yield [f"  {_short(group.label)}", *cells] + [""] * (len(_HEADS) - 1 - len(cells))


def _outliers(found: FleetDifference) -> Iterator[Any]:
    for each in found.outliers:
        part = "total" if each.view == TOTAL else f"{each.view} {each.name}"
        yield [each.host or each.file, found.groups[each.group].label, each.bytes, each.median, part, each.file]


def _facts(found: FleetDifference) -> Iterator[Any]:
    for fact in found.facts:
        texts = [_short(each["value"] or "?") for each in fact.values]
        shares = [100 * each["runs"] // group.runs for each, group in zip(fact.values, found.groups)]
        cells = [text if share == 100 else f"{text} ({share} %)" for text, share in zip(texts, shares)]
        yield [_short(fact.label), *cells]


def write_tables(found: FleetDifference, is_all: bool, is_markdown: bool) -> Iterator[str]:
    """For a terminal, or in Markdown for a merge request."""

    def section(title: str, heads: List[str], rows: List[List[str]], left_out: str, align: str = "<") -> Iterator[str]:
        yield from ["", f"### {escaped(title)}", ""] if is_markdown else heading(title)
        if rows and is_markdown:
            yield from markdown_table(heads, rows, "--:" if align == ">" else ":--")
        elif rows:
            yield from text_table([heads, *rows], align)
        if left_out:
            yield from [*[""] * (is_markdown and len(rows) > 0), f"{left_out} (--all shows them)."]

    for at, text in enumerate([*headline(found), method(found)]):
        yield from [*[""] * (at > 0), *([escaped(text)] if is_markdown else paragraph(text))]
    for view, group in groupby(found.rows, lambda row: row.view):
        of_view = list(group)
        is_shown = [is_all or row.has_changed or view == TOTAL for row in of_view]
        some = list(compress(of_view, is_shown))
        same = list(compress(of_view, map(not_, is_shown)))
        lines = [line for row in some for line in _lines(found, row)]
        n_compared = sum(any(change and change.interval for change in row.changes) for row in same)
        known = {"without a significant difference": n_compared, "with too few runs to compare": len(same) - n_compared}
        left_out = ", ".join(f"{n} {which}" for which, n in known.items() if n)
        yield from section(_TITLES[view], _HEADS, lines, left_out, ">")
    heads = ["", "group", "bytes", "group's median", "part", "trace"], ["", *(group.label for group in found.groups)]
    outliers = [
        [_short(run), label, *map(size, sizes), _short(part), printable(file)]
        for run, label, *sizes, part, file in _outliers(found)
    ]
    for title, of, rows in zip(_LAST_TITLES, heads, (outliers, list(_facts(found)))):
        n_more = 0 if is_all else max(0, len(rows) - _MOST_ROWS)
        if rows:
            yield from section(title, of, rows[: len(rows) - n_more], f"{n_more:,} more" if n_more else "")


def write_list(runs: Frame) -> Iterator[str]:
    """The runs for a terminal."""
    rows = [["start", "host", "board", "JetPack", "PyTorch", "ended", "peak", "trace"]]
    for run in runs.fillna("").to_dict("records"):
        texts = [_short(run[name]) for name in ("start", "host", "board", "jetpack", "pytorch", "ended")]
        rows.append([*texts, size(run["peak_total"]) if run["peak_total"] != "" else "", printable(run["file"])])
    yield from text_table(rows, "<")


# ---- the page ----


def _part(found: FleetDifference, row: FleetRow) -> FleetPart:
    title = "Total" if row.view == TOTAL else f"{row.view.replace('-', ' ')} {row.name}"
    groups = []
    for of in row.groups:
        median, spread, low, high = map(size, of[1:])
        groups.append(f"{count(of.n, 'run')}: median {median}, spread {spread}, 5 % below {low}, 5 % above {high}")
    return FleetPart(title, groups)


def _part_row(row: FleetRow) -> List[TableCell]:
    cells: List[TableCell] = [row.name, *(of.median for of in row.groups)]
    for change in filter(None, row.changes):
        interval = " … ".join(map(growth, change.interval)) if change.interval else "too few runs"
        cells += [change.bytes, interval, "yes" if change.is_change else ""]
    return cells


def _page_tables(found: FleetDifference) -> Iterator[ReadyTable]:
    labels = [group.label for group in found.groups]
    heads = [("name", ""), *((label, "bytes") for label in labels)]
    for label in (label for n, label in enumerate(labels) if n != found.base):
        heads += [(f"change, {label}", "growth"), ("from … to", ""), ("significant", "")]
    for view, rows in groupby(found.rows, lambda row: row.view):
        yield ReadyTable(f"by-{view}", _TITLES[view], "medians", 25, heads, list(map(_part_row, rows)), [])
    heads = [("run", ""), ("group", ""), ("bytes", "bytes"), ("median", "bytes"), ("part", ""), ("trace", "long")]
    yield ReadyTable("outliers", _LAST_TITLES[0], "", 25, heads, list(_outliers(found)), [])
    heads = [("name", ""), *((label, "") for label in labels)]
    yield ReadyTable("facts", _LAST_TITLES[1], "", 25, heads, list(_facts(found)), [])


def write_page(found: FleetDifference, links: str = "", served: Collection[str] = ()) -> Iterator[str]:
    """As HTML, with the runs of each group, in columns, and the figures of each. Raises FormatError.

    `links`: markup; `served`: ids of the runs whose report the page's server has.
    """
    groups = [group.label for group in found.groups]
    runs = []
    for of_group in found.runs:
        texts = [[text or "" for text in of_group[name]] for name in ("host", "board", "file", "start")]
        texts.append([f"run-{id_}" if id_ in served else "" for id_ in of_group["id"]] if served else [])
        runs.append(FleetRuns(*texts))
    page = FleetPage(groups, [_part(found, row) for row in found.rows], runs, list(_page_tables(found)))
    packed = Columns()
    for row in range(len(found.rows)):
        for group, values in enumerate(found.values):
            packed.add(f"{row}.{group}", values.iloc[:, row].tolist(), "signed")
    title = shown(" → ".join(groups))
    first = links + "".join(f'<p class="statement">{escape(text)}</p>' for text in headline(found))
    first += f'<p class="quiet">{escape(method(found))}</p>'
    columns = RunData(data(Packed(packed.specs)), packed.bytes())
    yield from fill_page(title, first, pack([columns], title, fleet=all_shown(data(page))), script="fleet.js")
