# SPDX-License-Identifier: GPL-2.0-or-later
"""A comparison of groups in sentences, as text, Markdown and JSON, and as an HTML page that draws the distributions."""

import json
from html import escape
from itertools import chain, groupby
from typing import Any, Collection, Dict, Iterator, List, Tuple

from jmassif.export.csv import line
from jmassif.export.json import data
from jmassif.fleet import TOTAL, VIEWS
from jmassif.fleet.compare import Comparison, Frame
from jmassif.fleet.database import RUN
from jmassif.html.cells import Columns, all_shown, shown
from jmassif.html.data import RunData
from jmassif.html.head import FleetPage, FleetRuns, Packed, ReadyTable, TableCell
from jmassif.html.page import fill_page, pack
from jmassif.render.diff_tables import escaped, markdown_table, text_table
from jmassif.render.layout import cut, heading, paragraph
from jmassif.units import count, growth, percent, printable, size

# ---- sentences ----

_MOST_NAMED = 3


def _largest_changes(found: Comparison, group: int) -> str:
    """Name changes of the first view that has any."""
    rows = found.rows[found.rows["is_change"] & (found.rows["group"] == group) & (found.rows["view"] != TOTAL)]
    if rows.empty:
        return ""
    by = rows["view"].iloc[0]
    rows = rows[rows["view"] == by].sort_values("bytes", key=lambda of: -of.abs(), kind="stable")
    named = ", ".join(f"{printable(row.name)} {growth(row.bytes)}" for row in rows.head(_MOST_NAMED).itertuples())
    more = f" and {len(rows) - _MOST_NAMED} more" if len(rows) > _MOST_NAMED else ""
    return f" By {by.replace('-', ' ')}: {named}{more}."


def _sentence(found: Comparison, group: int) -> str:
    base, now = found.groups.iloc[found.base], found.groups.iloc[group]
    change, medians = found.rows.iloc[group], [int(found.rows["median"][place]) for place in (found.base, group)]
    sizes, runs = " → ".join(map(size, medians)), f"{count(now['runs'], 'run')} against {base['runs']:,}"
    if change["interval"] is None:
        return f"Not enough runs to compare {now['label']} with {base['label']} ({runs}): {sizes} at the peak."
    memory = "" if found.pool == "bytes" else f" of {found.pool} memory"
    between = " to ".join(map(growth, change["interval"]))
    parts, n_bytes = _largest_changes(found, group), abs(int(change["bytes"]))
    if change["is_change"]:
        more = f"{size(n_bytes)}{memory} {'more' if change['bytes'] > 0 else 'less'}"
        sizes = f"({between}): {sizes}, {percent(n_bytes, medians[0])}"
        return f"{now['label']} needs {more} than {base['label']} at the peak {sizes}, medians of {runs}.{parts}"
    return (
        f"No significant difference between {now['label']} and {base['label']} at the peak{memory}, {runs}: {sizes}"
        f" ({between}).{parts or ' No part differs significantly.'}"
    )


def headline(found: Comparison) -> List[str]:
    """Sentences that are safe to show, of the newest group first."""
    return [_sentence(found, group) for group in reversed(range(len(found.groups))) if group != found.base]


def method(found: Comparison) -> str:
    """The statistical method, and the runs that are left out."""
    left_out = f" Left out: {count(found.left_out, 'run')} without an end (--incomplete includes them)."
    test = (
        f" A change is significant by the Mann-Whitney U test, at {100 * found.level:.6g} % for all {found.compared:,} comparisons"
        f" together (Holm). From and to: a {100 * (1 - found.level):.6g} % confidence interval of the change."
    )
    return (
        f"Changes are of medians, against {found.groups['label'][found.base]}.{test * (found.compared > 0)} Spread: between the"
        f" quartiles.{left_out * (found.left_out > 0)}"
    )


# ---- data ----


def _by_part(found: Comparison) -> Iterator[Tuple[str, str, List[Any]]]:
    """View and name of each part, and its row in each group."""
    rows, n = found.rows.to_dict("records"), len(found.groups)
    yield from ((rows[at]["view"], rows[at]["name"], rows[at : at + n]) for at in range(0, len(rows), n))


def _members(row: Dict[str, Any], names: str) -> Dict[str, Any]:
    return {name: row[name] for name in names.split()}


def write_json(found: Comparison) -> Iterator[str]:
    rows = []
    for view, name, of in _by_part(found):
        groups = [_members(row, "n median spread low high") for row in of]
        changes = [None if row["group"] == found.base else _members(row, "bytes interval p is_change") for row in of]
        rows.append({"view": view, "name": name, "groups": groups, "changes": changes})
    head = {"format": "jmassif-fleet-difference", "version": 2, "headline": headline(found), "method": method(found)}
    members: Dict[str, Any] = {**head, **found._asdict(), "rows": rows}
    del members["runs"], members["values"]
    members.update({name: members[name].to_dict("records") for name in ("groups", "outliers", "facts")})
    yield json.dumps(data(members), indent=1, ensure_ascii=False)


def write_runs(runs: Frame, is_csv: bool) -> Iterator[str]:
    """Runs as a list for a terminal, or all columns of the table `run` as CSV."""
    if is_csv:
        names = [name for name in RUN.columns.keys() if name not in ("run", "id", "setup")]
        yield from map(line, [["run", *names], *runs[["id", *names]].itertuples(index=False)])
        return
    columns = [(head, "") for head in ("start", "host", "board", "JetPack", "PyTorch", "ended")]
    names = ["start", "host", "board", "jetpack", "pytorch", "ended", "peak_total", "file"]
    rows = runs[names].fillna("").to_numpy().tolist()
    yield from _lines(_table("runs", "", [*columns, ("peak", "bytes"), ("trace", "long")], rows), len(rows), False)


# ---- tables ----

_MAX_NAME = 60
_TITLES = {view: f"By {view.replace('-', ' ')}, at the peak" for view in VIEWS}
_TITLES.update({TOTAL: "Memory at the peak", "scope": "Cost by call"})
_MOST_ROWS = 25
_SIZES = [(head, "bytes") for head in ("median", "spread", "5 %", "95 %")]
_CHANGE = [("change", "growth"), ("from … to", ""), ("significant", "")]
_PARTS = [("name", ""), ("group", ""), ("runs", "number"), *_SIZES, *_CHANGE]
_FACTS = "Facts that differ between most runs of the groups"


def _table(view: str, title: str, columns: List[Tuple[str, str]], rows: List[List[TableCell]]) -> ReadyTable:
    return ReadyTable(view, title, "", _MOST_ROWS, columns, rows, [])


def _interval(row: Dict[str, Any]) -> str:
    """ "-1.82 … +2.86 MiB" """
    if not row["interval"]:
        return "too few runs"
    low, high = map(growth, row["interval"])
    unit = high[len(high.split()[0]) :]
    return f"{low[: -len(unit)] if unit and low.endswith(unit) else low} … {high}"


def _change(row: Dict[str, Any]) -> List[TableCell]:
    return [row["bytes"], _interval(row), "yes" if row["is_change"] else ""]


def _parts(found: Comparison, is_all: bool) -> Iterator[ReadyTable]:
    """A row for each part and group; the note counts parts that are left out."""
    for view, parts in groupby(_by_part(found), lambda part: part[0]):
        rows: List[List[TableCell]] = []
        left_out = {"without a significant difference": 0, "with too few runs to compare": 0}
        for _, name, of in parts:
            others = [row for row in of if row["group"] != found.base]
            if not (is_all or view == TOTAL or any(row["is_change"] for row in others)):
                left_out[list(left_out)[not any(row["interval"] for row in others)]] += 1
                continue
            for label, row in zip(found.groups["label"], of):
                change = _change(row) if row["group"] != found.base else [""] * len(_CHANGE)
                rows.append([name, label, *_members(row, "n median spread low high").values(), *change])
        note = ", ".join(f"{n} {text}" for text, n in left_out.items() if n)
        yield _table(f"by-{view}", _TITLES[view], _PARTS, rows)._replace(note=note)


def _others(found: Comparison) -> Iterator[ReadyTable]:
    """Tables of outliers and facts."""
    labels = list(found.groups["label"])
    rows: List[List[TableCell]] = []
    for of in found.outliers.itertuples():
        part = "total" if of.view == TOTAL else f"{of.view} {of.name}"
        rows.append([of.host or of.file, labels[of.group], of.bytes, of.median, part, of.file])
    heads = [("run", ""), ("group", ""), ("bytes", "bytes"), ("median", "bytes"), ("part", ""), ("trace", "long")]
    yield _table("outliers", "Outliers", heads, rows)
    rows = []
    for of in found.facts.itertuples():
        shares = [100 * each["runs"] // n for each, n in zip(of.values, found.groups["runs"])]
        texts = (_text(each["value"] or "?") for each in of.values)
        rows.append([of.label, *(f"{text} ({n} %)" if n < 100 else text for text, n in zip(texts, shares))])
    yield _table("facts", _FACTS, [("name", ""), *((label, "") for label in labels)], rows)


def _text(cell: TableCell, kind: str = "") -> str:
    if isinstance(cell, str):
        return printable(cell) if kind == "long" else cut(printable(cell), _MAX_NAME)
    number = int(cell)
    return size(number) if kind == "bytes" else growth(number) if kind == "growth" else f"{number:,}"


def _lines(table: ReadyTable, n: int, is_markdown: bool) -> Iterator[str]:
    heads = [head for head, _ in table.columns]
    rows = [[_text(cell, kind) for cell, (_, kind) in zip(row, table.columns)] for row in table.rows[:n]]
    is_numbers = table.view.startswith("by-")
    if is_markdown:
        return markdown_table(heads, rows, "--:" if is_numbers else ":--")
    return text_table([heads, *rows], ">" if is_numbers else "<")


def write_tables(found: Comparison, is_all: bool, is_markdown: bool) -> Iterator[str]:
    """For a terminal, or in Markdown for a merge request."""
    for at, text in enumerate([*headline(found), method(found)]):
        yield from [*[""] * (at > 0), *([escaped(text)] if is_markdown else paragraph(text))]
    for table in chain(_parts(found, is_all), _others(found)):
        n = len(table.rows) if is_all or table.view.startswith("by-") else min(len(table.rows), table.limit)
        left_out = table.note or f"{len(table.rows) - n:,} more" * (n < len(table.rows))
        if n or left_out:
            yield from ["", f"### {escaped(table.caption)}", ""] if is_markdown else heading(table.caption)
        if n:
            yield from _lines(table, n, is_markdown)
        if left_out:
            yield from [*[""] * (is_markdown and n > 0), f"{left_out} (--all shows them)."]


# ---- the page ----


def write_page(found: Comparison, links: str = "", served: Collection[str] = ()) -> Iterator[str]:
    """As HTML, with the runs of each group, in columns, and the figures of each. Raises FormatError.

    `links`: markup; `served`: ids of the runs whose report the page's server has.
    """
    runs = []
    for of_group in found.runs:
        texts = [[text or "" for text in of_group[name]] for name in ("host", "board", "file", "start")]
        texts.append([f"run-{id_}" if id_ in served else "" for id_ in of_group["id"]] if served else [])
        runs.append(FleetRuns(*texts))
    groups = list(found.groups["label"])
    parts = ["Total" if view == TOTAL else f"{view.replace('-', ' ')} {name}" for view, name, _ in _by_part(found)]
    others = [table for table in _others(found) if table.rows]
    page = FleetPage(groups, parts, runs, [*_parts(found, True), *others])
    packed = Columns()
    for part in range(len(parts)):
        for group, values in enumerate(found.values):
            packed.add(f"{part}.{group}", values.iloc[:, part].tolist(), "signed")
    title = shown(" → ".join(groups))
    first = links + "".join(f'<p class="statement">{escape(text)}</p>' for text in headline(found))
    first += f'<p class="quiet">{escape(method(found))}</p>'
    columns = RunData(data(Packed(packed.specs)), packed.bytes())
    yield from fill_page(title, first, pack([columns], title, fleet=all_shown(data(page))), script="fleet.js")
