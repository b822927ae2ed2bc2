# SPDX-License-Identifier: GPL-2.0-or-later
"""The report on a range, of one process or of several: held before and after, and what was allocated and freed in between."""

from typing import Callable, Iterator, Sequence, Union

from jmassif.analysis.processes import Processes
from jmassif.analysis.range_diff import Instant, Range, RangePart, RangeRow, between
from jmassif.model.process_tree import FORKED, REPLACED, Process
from jmassif.model.run import Profile
from jmassif.render.layout import SUM, Column, Line, Lines, Table, heading, paragraph
from jmassif.render.lines import cut, trees
from jmassif.render.view import View
from jmassif.units import count, growth, moment, printable, size

_MAX_LABEL = 28
_ROWS = 12  # of a table in the short report
_FIGURES = ("before", "new", "gone", "after", "allocated", "freed")
_HOW = {FORKED: "fork: ", REPLACED: "exec: "}


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

    def line(row: RangeRow) -> str:
        change = row.on(space)
        cells = [size(n_bytes) if n_bytes else "-" for n_bytes in (getattr(change, figure) for figure in _FIGURES)]
        return table.row(cut(row.name, width - 1), *cells, f"{change.new:,}")

    return [table.head, *map(line, shown), Line((line(sum(rows, RangeRow("total"))), SUM))]


def _tables(of: Union[Range, RangePart], spaces: Sequence[str], view: View) -> Lines:
    lines: Lines = []
    for by in ("owner", "line") if view.by == "stack" else (view.by,):
        rows = of.rows(by, view.fold != "none")
        for space in spaces:
            lines += heading(f"Allocated and freed by {by.replace('python-', 'Python ')}{_of(space)}")
            lines += _table_of(rows, space, view.is_brief)
    return lines


def _when(at: Instant, time_unit: str) -> str:
    when = moment(at.time, time_unit)
    return at.name if at.name == when else f"{at.name} ({when})"


def command_of(process: Process, width: int) -> str:
    """With its relation to its parent, below which it is indented."""
    command = cut(printable(process.command or process.name), width)
    return f"{'  ' * process.depth}{_HOW.get(process.relation, '')}{command}"


def _by_process(job: Processes, found: Range, spaces: Sequence[str], is_brief: bool) -> Lines:
    text = "Times are those of the clock that all processes share. Each process counts by its last snapshot before either moment."
    if any(part.process.relation == FORKED for part in found.parts):
        text += " Inherited memory counts with the parent alone."
    if len(job.machines) > 1:
        text += f" The clocks of {len(job.machines)} machines are taken to agree."
    lines = paragraph(text)
    rows = [
        part.total._replace(name=f"{part.process.pid or '?'} {command_of(part.process, _MAX_LABEL)}")
        for part in found.parts
    ]
    for space in spaces:
        lines += heading(f"Allocated and freed by process{_of(space)}") + _table_of(rows, space, is_brief)
    return lines


def write_range(job: Processes, view: View, is_each: bool = False) -> Lines:
    """The report's lines below its head; with `is_each` tables of each process too. Raises SelectionError."""
    assert view.range is not None
    found = between(job, *view.range)
    is_several = len(job.members) > 1
    ends = [_when(at, job.members[0].profile.time_unit) for at in (found.first, found.second)]
    lines = heading(f"From {ends[0]} to {ends[1]}{', in all processes' if is_several else ''}")
    spaces = ["device", "host"] if job.is_discrete and len(job.sides) > 1 else [""]
    for space in spaces:
        lines += paragraph(_sentence(space, found.total, found.is_exact))
    lines += _by_process(job, found, spaces, view.is_brief) if is_several else []
    lines += _tables(found, spaces, view)
    for part in found.parts:
        name = f", in {part.process.called}" if is_several else ""
        if is_each and is_several and any(part.total.on("")):
            lines += heading(f"{part.process.called.capitalize()} alone") + _tables(part, spaces, view)
        if view.with_stacks and (any(part.total.on("")) or not is_several):
            at = part.new._replace(name=part.new.name + name)
            lines += trees(part.process.profile, part.names, at, view)
    return lines


def write(job: Processes, view_of: Callable[[Profile], View], is_each: bool = False) -> Iterator[str]:
    """The report on several processes. Raises SelectionError."""
    yield from write_range(job, view_of(job.members[0].profile), is_each)[1:]
