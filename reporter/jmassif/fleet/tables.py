# SPDX-License-Identifier: GPL-2.0-or-later
"""A comparison of groups in sentences, as text and JSON, and as an HTML page that draws the distributions."""

import json
from html import escape
from typing import Any, Collection, Dict, Iterator, List, Tuple

from jmassif.export.json import data
from jmassif.fleet import TOTAL, VIEWS
from jmassif.fleet.compare import LEVEL, Comparison
from jmassif.html.cells import Columns, all_shown, shown
from jmassif.html.data import RunData
from jmassif.html.head import FleetPage, FleetRuns, Packed, ReadyTable, TableCell
from jmassif.html.page import fill_page, pack
from jmassif.render.diff_tables import text_table, texts
from jmassif.render.layout import cut, heading, paragraph
from jmassif.units import count, growth, percent, printable, size

_MOST_NAMED = 3


def _sentence(found: Comparison, group: int) -> str:
    old, rows = int(found.rows["median"][found.base]), found.rows[found.rows["group"] == group]
    total, owners = rows.iloc[0], rows[rows["is_change"] & (rows["view"] == "owner")]
    (now, n_now), (base, n_base) = (found.groups.loc[of, ["label", "runs"]] for of in (group, found.base))
    sizes, runs = f"{size(old)} → {size(total['median'])}", f"{count(n_now, 'run')} against {n_base:,}"
    if total["interval"] is None:
        return f"Not enough runs to compare {now} with {base} ({runs}): {sizes} at the peak."
    memory = "" if found.pool == "bytes" else f" of {found.pool} memory"
    between, change = " to ".join(map(growth, total["interval"])), int(total["bytes"])
    largest = owners.loc[owners["bytes"].abs().nlargest(_MOST_NAMED).index]
    named = ", ".join(f"{printable(row.name)} {growth(row.bytes)}" for row in largest.itertuples(index=False))
    named += f" and {len(owners) - _MOST_NAMED} more" * (len(owners) > _MOST_NAMED)
    parts = f"By owner: {named}." if named else "No owner differs significantly."
    if not total["is_change"]:
        return f"No significant difference between {now} and {base} at the peak{memory}, {runs}: {sizes} ({between}). {parts}"
    needs = f"{now} needs {size(abs(change))}{memory} {'more' if change > 0 else 'less'} than {base} at the peak"
    return f"{needs} ({between}): {sizes}, {percent(abs(change), old)}, medians of {runs}. {parts}"


def headline(found: Comparison) -> List[str]:
    """Sentences that are safe to show, of the newest group first."""
    return [_sentence(found, group) for group in reversed(range(len(found.groups))) if group != found.base]


def method(found: Comparison) -> str:
    """The statistical method, and the runs that are left out."""
    test = f" A change is significant by the Mann-Whitney U test, at {100 * LEVEL:g} % for all {found.compared:,} comparisons together (Holm)."
    left_out = f" Left out: {count(found.left_out, 'run')} without an end (--where 'is_complete=*' includes them)."
    changes = f"Changes are of medians, against {found.groups['label'][found.base]}.{test * (found.compared > 0)}"
    return f"{changes} Spread: between the quartiles.{left_out * (found.left_out > 0)}"


def write_json(found: Comparison) -> Iterator[str]:
    head = {"format": "jmassif-fleet-difference", "version": 3, "headline": headline(found), "method": method(found)}
    plain = {name: getattr(found, name) for name in ("key", "pool", "base", "compared", "left_out")}
    frames = {name: getattr(found, name).to_dict("records") for name in ("groups", "rows", "outliers", "facts")}
    yield json.dumps(data({**head, **plain, **frames}), indent=1, ensure_ascii=False)


# ---- tables ----

_MAX_NAME = 200
_TITLES = {view: f"By {view.replace('-', ' ')}, at the peak" for view in VIEWS}
_TITLES.update({TOTAL: "Memory at the peak", "scope": "Cost by call"})
_MOST_ROWS = 25
_SIZES = [(head, "bytes") for head in ("median", "spread", "5 %", "95 %")]
_CHANGE = [("change", "growth"), (f"{100 - 100 * LEVEL:g} % interval", ""), ("significant", "")]
_PARTS = [("name", ""), ("group", ""), ("runs", "number"), *_SIZES, *_CHANGE]


def _parts(found: Comparison, is_all: bool) -> Iterator[ReadyTable]:
    """A row for each part and group; the note counts parts that are left out."""
    for view, rows in found.rows.groupby("view", sort=False):
        is_shown = rows.groupby("name")["is_change"].transform("any") | is_all | (view == TOTAL)
        cells: List[List[TableCell]] = []
        for row in rows[is_shown].itertuples():
            span = " to ".join(map(growth, row.interval)) if row.interval else "too few runs"
            change = [row.bytes, span, "yes" if row.is_change else ""] if row.group != found.base else ["", "", ""]
            figures = [row.n, row.median, row.spread, row.low, row.high]
            cells.append([row.name, found.groups["label"][row.group], *figures, *change])
        left_out = int((~is_shown).sum()) // len(found.groups)
        note = f"{left_out} without a significant difference" * (left_out > 0)
        yield ReadyTable(f"by-{view}", _TITLES[view], note, _MOST_ROWS, _PARTS, cells, [])


def _others(found: Comparison) -> List[ReadyTable]:
    """Tables of outliers and facts, if there are any."""
    labels = list(found.groups["label"])
    rows: List[List[TableCell]] = []
    for of in found.outliers.itertuples():
        part = "total" if of.view == TOTAL else f"{of.view} {of.name}"
        rows.append([of.host or of.file, labels[of.group], of.bytes, of.median, part, of.file])
    heads = [("run", ""), ("group", ""), ("bytes", "bytes"), ("median", "bytes"), ("part", ""), ("trace", "long")]
    tables = [ReadyTable("outliers", "Outliers", "", _MOST_ROWS, heads, rows, [])]
    rows = []
    for of in found.facts.itertuples():
        shares = [100 * each["runs"] // n for each, n in zip(of.values, found.groups["runs"])]
        values = (each["value"] or "?" for each in of.values)
        rows.append([of.label, *(f"{text} ({n} %)" if n < 100 else text for text, n in zip(values, shares))])
    heads = [("name", ""), *((label, "") for label in labels)]
    title = "Facts that differ between most runs of the groups"
    tables.append(ReadyTable("facts", title, "", _MOST_ROWS, heads, rows, []))
    return [table for table in tables if table.rows]


def write_text(found: Comparison) -> Iterator[str]:
    """For a terminal."""
    for text in headline(found):
        yield from [*paragraph(text), ""]
    yield from paragraph(method(found))
    for table in (*_parts(found, False), *_others(found)):
        n, align = (len(table.rows), ">") if table.view.startswith("by-") else (table.limit, "<")
        rows = [[cut(printable(text), _MAX_NAME) for text in texts(table.columns, row)] for row in table.rows[:n]]
        note = table.note or f"{len(table.rows) - n:,} more (the page has them)" * (len(table.rows) > n)
        yield from heading(table.caption)
        yield from text_table([[head for head, _ in table.columns], *rows], align) if rows else []
        yield from [f"{note}."] * bool(note)


def write_page(found: Comparison, links: str = "", served: Collection[str] = ()) -> Iterator[str]:
    """As HTML, with the runs of each group, in columns, and the figures of each. Raises FormatError.

    `links`: markup; `served`: ids of the runs whose report the page's server has.
    """
    runs = []
    for each in found.runs:
        columns = {name: [text or "" for text in each[name]] for name in ("host", "board", "file", "start")}
        runs.append(FleetRuns(**columns, report=[f"run-{id_}" * (id_ in served) for id_ in each["id"]]))
    groups = list(found.groups["label"])
    of_parts = found.rows[["view", "name"]].drop_duplicates().itertuples(index=False)
    parts = ["Total" if view == TOTAL else f"{view.replace('-', ' ')} {name}" for view, name in of_parts]
    page = FleetPage(groups, parts, runs, [*_parts(found, True), *_others(found)])
    packed = Columns()
    for part in range(len(parts)):
        for group, values in enumerate(found.values):
            packed.add(f"{part}.{group}", values.iloc[:, part].tolist(), "signed")
    title = shown(" → ".join(groups))
    first = links + "".join(f'<p class="statement">{escape(text)}</p>' for text in headline(found))
    first += f'<p class="quiet">{escape(method(found))}</p>'
    of_runs = RunData(data(Packed(packed.specs)), packed.bytes())
    yield from fill_page(title, first, pack([of_runs], title, fleet=all_shown(data(page))), script="fleet.js")
