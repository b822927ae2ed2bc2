# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory by line, and by call stack."""

import re
from typing import Callable, Iterator, List, Optional, Sequence, Tuple

from jmassif.analysis.aggregate import Usage
from jmassif.analysis.calltree import ROOT, BottomUp, Shape
from jmassif.analysis.lines import LineRow, LineTable, LineUsage
from jmassif.analysis.moments import Moment
from jmassif.analysis.summary import Report
from jmassif.attribution.names import Names
from jmassif.attribution.views import LINE_VIEWS, naming
from jmassif.model.records import side_of
from jmassif.model.run import Profile
from jmassif.render.layout import PYTHON, SHARE, Column, Line, Lines, Table, cut, heading, paragraph
from jmassif.render.sources import Sources, sources_of
from jmassif.render.summary import growth_text, where_arenas_are, whole_percent
from jmassif.render.view import View
from jmassif.units import count, growth, moment, percent, size

# ---- the largest lines -----------------------------------------------------------------------

_LINES_SHOWN = 5
_LEAST_SHARE = 0.01
_WIDTH = 100
_MAX_PLACE = 44


def _cut_function(label: str, width: int) -> str:
    """A label of a native frame keeps its file and line."""
    place = re.search(r" \([^()]+:\d+\)$", label)
    if place is None or len(place.group()) >= width:
        return cut(label, width)
    return cut(label[: place.start()], width - len(place.group())) + place.group()


def lines_section(report: Report, sources: Optional[Sources]) -> Lines:
    """The largest lines with their tensors, cache, other memory and total; empty where no memory has a stack."""
    space, whole = report.wholes[0].space, report.wholes[0].bytes
    shown = [row for row in report.lines[:_LINES_SHOWN] if row.usage.on(space) >= _LEAST_SHARE * whole]
    if not shown:
        return []
    columns = {"tensors": [row.tensors for row in shown], "cache": [row.cache for row in shown]}
    columns = {head: figures for head, figures in columns.items() if any(figures)}
    if columns and len(report.wholes) == 1:
        rest = [row.usage.on(space) - row.tensors - row.cache for row in shown]
        rest = [n_bytes if n_bytes >= 1024 else 0 for n_bytes in rest]  # an allocator rounds tensors up
        columns.update({"other": rest} if any(n_bytes >= _LEAST_SHARE * whole for n_bytes in rest) else {})
    if len(report.wholes) > 1:
        columns["host"] = [row.usage.host_bytes for row in shown]
    columns[space or "total"] = [row.usage.on(space) for row in shown]
    texts = [sources.line(row.path, row.number) if sources and row.path else "" for row in shown]
    width = min(_MAX_PLACE, max(len(row.label) for row in shown))
    longest = min(max(map(len, texts)), _WIDTH - 10 * len(columns) - 7 - width - 2)
    place = Column("", width if longest > 0 else max(width, 20), align="<")
    text = [Column("", longest, gap=2, align="<")] if longest > 0 else []
    table = Table(place, *text, *(Column(head, 9, gap=1) for head in columns), Column("", 7))

    def cells(row: LineUsage, text: str, figures: Sequence[int]) -> List[str]:
        source = [cut(text, longest)] if longest > 0 else []
        share = whole_percent(row.usage.on(space), whole)
        return [
            _cut_function(row.label, width),
            *source,
            *(size(figure) if figure else "-" for figure in figures),
            share,
        ]

    return table.section(f"Largest lines, at {report.moment.name}", map(cells, shown, texts, zip(*columns.values())))


# ---- lines -----------------------------------------------------------------------------------
# Python lines, functions or modules: what each held at the peak, and what it has left behind.
#
# Sorted by what a row held at the peak or, where a moment is asked for, by its growth up to that: --snapshot=end has on
# top what the program never let go of.

_MAX_LABEL = 44


def _cells(table: LineTable, sides: Sequence[str], row: LineRow) -> List[Tuple[str, str]]:
    """The head of each column, and its text. `sides` are those in use."""
    is_split = len(table.spaces) > 1

    def of_spaces(head: str, text: Callable[[int], str], usage: Usage) -> List[Tuple[str, str]]:
        return [(f"{space} {head}" if is_split else head, text(usage.on(space))) for space in table.spaces]

    cells: List[Tuple[str, str]] = []
    for side in sides:
        held = size(row.held.on(side)) if row.held.on(side) or row.held.blocks_on(side) else "-"
        cells.append((f"self {side}" if len(sides) > 1 else "self", held))
        if is_split or side == sides[-1]:
            space = side if is_split else table.spaces[0]
            cells.append(("share", percent(row.held.on(space), table.total.held.on(space))))
    cells += of_spaces("total", size, row.total) + [("blocks", f"{row.held.blocks:,}")]
    return cells + of_spaces("growth", growth, row.growth) + of_spaces("allocated", size, row.allocated)


def _explanation(report: Report, view: View, table: LineTable) -> str:
    noun, unit = LINE_VIEWS[view.by], report.run.time_unit
    text = (
        f"Self: caused by each {noun} of your code, also in packages that it called; total: with all {noun}s of your code"
        " that it called."
    )
    if view.fold == "none":
        text = (
            f"Self: allocated by each Python {noun} itself, internal ones too; total: with everything that it called."
        )
    text += (
        f" Both at {table.peak.name} ({moment(table.peak.time, unit)}); growth: the part of self that is left at"
        f" {table.now.name} ({moment(table.now.time, unit)}); allocated: in the whole run."
    )
    text += " Sorted by growth." if view.selector else " Sorted by self; --snapshot=end sorts by growth."
    if not report.run.has_python:
        text += " This trace has no Python frames: not a Python program, or recorded with --python=no."
    return text


def _changed(report: Report, rows: Sequence[LineRow], sources: Sources) -> Lines:
    """Sentences on files that are not what ran."""
    frame_of = {report.profile.frame(row.charged.frame).file: row.charged.frame for row in rows if row.charged.frame}
    texts = (
        (sources.changed, "so the text may be another line's", ""),
        (sources.left_out, "and left out", "; --source=DIRECTORY shows the text as it is now"),
    )
    lines: Lines = []
    for paths, how, mend in texts:
        files = sorted({report.names.file(frame) for path, frame in frame_of.items() if path in paths})
        lines += paragraph(f"Changed since the run, {how}: {', '.join(files)}{mend}.") if files else []
    return lines


def _table_of(report: Report, table: LineTable, rows: Sequence[LineRow], sources: Optional[Sources]) -> Lines:
    """A row a place, with its text unless `sources` is None."""
    width = min(_MAX_LABEL, max(len(row.charged.label) for row in (*rows, table.total)))
    heads = [head for head, _ in _cells(table, report.run.sides, table.total)]
    columns = (Column(head, max(10, len(head) + 1)) for head in heads)
    form = Table(Column("", width, align="<"), *columns, Column("", gap=2))

    def cells(row: LineRow) -> List[str]:
        frame = report.profile.frame(row.charged.frame) if row.charged.frame else None
        text = sources.line(frame.file, frame.line) if frame and sources else ""
        return [row.charged.label, *(cell for _, cell in _cells(table, report.run.sides, row)), text]

    return [form.head, *(form.row(*cells(row)) for row in rows), form.sum(*cells(table.total))]


def write_lines(report: Report, view: View) -> Lines:
    """The section for a view of LINE_VIEWS. Raises moments.SelectionError."""
    table = report.lines_by(view.by, view.fold != "none", view.selector, view.threshold)
    label = f"{count(table.n_small, f'more {LINE_VIEWS[view.by]}')} below {view.threshold:g} %"
    small = table.small._replace(charged=table.small.charged._replace(label=label))
    rows = table.shown + ([small] if table.n_small else []) + table.nowhere
    lines = heading(f"Memory by {view.by.replace('python-', 'Python ')}")
    lines += paragraph(_explanation(report, view, table)) + paragraph(where_arenas_are(report.profile))
    if report.growth and report.growth.lines:
        lines += paragraph(growth_text(report.growth, report.run.time_unit))
    sources = sources_of(report.profile, view.source)
    lines += [""] + _table_of(report, table, rows, sources)
    return lines + (_changed(report, rows, sources) if sources else [])


# ---- stacks ----
# Call stacks as trees, indented by how deep they branch.


def _tags(tree: BottomUp, node: int, parent: int) -> str:
    """Kind and owner of all memory in a branch, where the branch around it is of several."""
    tags = []
    for of in (tree.kind, tree.owner):
        name = of(node)
        if name and name != tree.text(node) and (parent < 0 or not of(parent)):
            tags.append(name)
    return f" of {', '.join(tags)}" if tags else ""


def _tree_lines(tree: BottomUp, n_levels: int, threshold: float) -> Iterator[str]:
    """A paragraph a branch, indented by how deep it branches; the first `n_levels` levels are no frames.

    Frames that pass all their memory on stand below each other without numbers of their own.
    """
    (n_bytes, n_blocks), children = tree.totals(), tree.children()
    pending: List[Tuple[int, int, str]] = [(ROOT, 0, "")]
    while pending:
        node, depth, indent = pending.pop()
        label = tree.text(node)
        share = percent(n_bytes[node], n_bytes[ROOT])
        head = Line(f"{indent}{' ' * (7 - len(share))}", (share, SHARE), f" {n_bytes[node]:,} B")
        head = Line(head, f" in {count(n_blocks[node], 'block')}" if n_blocks[node] else "")
        if node in tree.places:
            yield Line(head, f", in {count(tree.places[node], 'place')} below {threshold:g} %")
            yield ""
            continue
        tags = _tags(tree, node, tree.parent[node])
        if depth <= n_levels:
            yield Line(head, f"{tags}: {label}" if label else tags)
        else:
            yield Line(head, tags)
            yield Line(f"{indent}{' ' * 8}", label)
        while depth > n_levels and len(children[node]) == 1 and children[node][0] not in tree.places:
            node = children[node][0]
            yield Line(f"{indent}{' ' * 8}", tree.text(node))
        yield ""
        inner = indent + ("  " if depth else "")
        pending.extend((child, depth + 1, inner) for child in reversed(children[node]))


def trees(profile: Profile, names: Names, at: Moment, view: View) -> Lines:
    """Call stacks of all memory at a moment; on a discrete GPU, of each memory space."""

    def label(frame: int) -> str:
        text, fields = names.frame(frame), profile.frame(frame)
        return Line((text, PYTHON)) if fields.type == "p" and fields.file.endswith(".py") else text

    levels = [] if view.by == "stack" else [naming(profile, names, view.by, view.fold != "none")]  # above the stacks
    is_folded = view.fold == "internal"
    shape = Shape(levels, label, names.folding, view.threshold, is_folded)
    side = list(profile.accounts.by_type(lambda type_: side_of(type_.kind)))
    lines: Lines = []
    for space in ("device", "host") if profile.is_discrete else ("all",):
        wanted = ("device", "host") if space == "all" else (space,)
        live = {account: held for account, held in at.composition.items() if side[account] in wanted}
        if live:
            by = f"by {view.by}, then call stack" if levels else "by call stack"
            folded = ", internal frames folded" if is_folded else ""
            lines += heading(f"{space.capitalize()} memory {by}, at {at.name}{folded}")
            tree = BottomUp(profile, live, shape, "")
            lines += list(_tree_lines(tree, len(levels), view.threshold))[:-1]
    return lines
