# SPDX-License-Identifier: GPL-2.0-or-later
"""The report on a range: held before and after, and what was allocated and freed in between."""

from typing import List, Sequence

from jmassif.analysis.moments import Moment
from jmassif.analysis.range_diff import RangeRow, between
from jmassif.model.run import Profile
from jmassif.model.run_info import used_sides
from jmassif.render.layout import Column, Lines, Table, cut, heading, paragraph
from jmassif.render.lines import trees
from jmassif.render.view import View
from jmassif.units import count, growth, moment, size

_MAX_LABEL = 28
_ROWS = 12  # of a table in the short report
_FIGURES = ("before", "new", "gone", "after", "allocated", "freed")


def _of(space: str) -> str:
    return f", {space} memory" if space else ""


def _sentence(space: str, total: RangeRow, is_exact: bool) -> str:
    change, blocks = total.on(space), total.blocks
    text = (
        f"{size(change.before)} before, {size(change.after)} after ({growth(change.after - change.before)}){_of(space)}."
        f" In between {size(change.allocated)} was allocated and {size(change.freed)} was freed."
    )
    if not is_exact:
        text += " An end is a peak between two snapshots: allocated and freed are counted from snapshot to snapshot."
    return (
        f"{text} {count(blocks.allocated, 'block')} allocated, {blocks.freed:,} freed, {total.temporaries:,} of them temporary"
        " (freed before their thread allocated anything else)."
    )


def _table_of(rows: Sequence[RangeRow], space: str, is_brief: bool) -> Lines:
    shown = [row for row in rows if any(row.on(space))]
    if is_brief and len(shown) > _ROWS:
        shown[_ROWS:] = [sum(shown[_ROWS:], RangeRow(f"{len(shown) - _ROWS:,} more"))]
    width = min(_MAX_LABEL, max([12] + [len(row.name) + 1 for row in shown]))
    figures = [Column(figure, 10) for figure in _FIGURES]
    table = Table(Column("", width, align="<"), *figures, Column("new (bytes)", 12))

    def cells(row: RangeRow) -> List[str]:
        change = row.on(space)
        figures = [size(n_bytes) if n_bytes else "-" for n_bytes in (getattr(change, figure) for figure in _FIGURES)]
        return [cut(row.name, width - 1), *figures, f"{change.new:,}"]

    return [table.head, *(table.row(*cells(row)) for row in shown), table.sum(*cells(sum(rows, RangeRow("total"))))]


def _when(at: Moment, time_unit: str) -> str:
    when = moment(at.time, time_unit)
    return at.name if at.name == when else f"{at.name} ({when})"


def write_range(run: Profile, view: View) -> Lines:
    """The report's lines below its head. Raises SelectionError."""
    assert view.range is not None
    found, sides = between(run, *view.range), used_sides(run)
    first, second = (_when(at, run.time_unit) for at in (found.first, found.second))
    lines = heading(f"From {first} to {second}")
    spaces = ["device", "host"] if run.is_discrete and len(sides) > 1 else [""]
    for space in spaces:
        lines += paragraph(_sentence(space, found.total, found.is_exact))
    for by in ("owner", "line") if view.by == "stack" else (view.by,):
        rows = found.rows(by, view.fold != "none")
        for space in spaces:
            lines += heading(f"Allocated and freed by {by.replace('python-', 'Python ')}{_of(space)}")
            lines += _table_of(rows, space, view.is_brief)
    return lines + (trees(run, found.names, found.new, view) if view.with_stacks else [])
