# SPDX-License-Identifier: GPL-2.0-or-later
"""The report on a range, of one process or of several: held before and after, and what was allocated and freed in between."""

from typing import Callable, Iterator, List, Sequence

from jmassif.analysis.processes import Processes, join
from jmassif.analysis.range_diff import (
    Instant,
    JobRange,
    RangePart,
    RangeRow,
    between,
    job_range,
    joined,
    total_of,
)
from jmassif.attribution.names import Names
from jmassif.model.process_tree import FORKED, REPLACED, Process
from jmassif.model.run import Profile
from jmassif.model.run_info import used_sides
from jmassif.render.layout import SUM, Column, Line, Lines, Table, heading, paragraph
from jmassif.render.lines import cut, trees
from jmassif.render.view import View
from jmassif.units import count, growth, moment, printable, size

_MAX_LABEL = 28
_ROWS = 12  # of a table in the short report
_FIGURES = ("before", "new", "gone", "after", "allocated", "freed")
_HOW = {FORKED: "fork: ", REPLACED: "exec: "}


def _spaces(parts: Sequence[RangePart], is_discrete: bool) -> List[str]:
    """Those that have a table of their own; "" for both in one."""
    used = {side for part in parts for side in used_sides(part.process.profile)}
    return ["device", "host"] if len(used) > 1 and is_discrete else [""]


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
        shown[_ROWS:] = [total_of(shown[_ROWS:], f"{len(shown) - _ROWS:,} more")]
    width = min(_MAX_LABEL, max([12] + [len(row.name) + 1 for row in shown]))
    figures = [Column(figure, 10) for figure in _FIGURES]
    table = Table(Column("", width, align="<"), *figures, Column("new (bytes)", 12))

    def line(row: RangeRow) -> str:
        change = row.on(space)
        cells = [size(n_bytes) if n_bytes else "-" for n_bytes in (getattr(change, figure) for figure in _FIGURES)]
        return table.row(cut(row.name, width - 1), *cells, f"{change.new:,}")

    return [table.head, *map(line, shown), Line((line(total_of(rows)), SUM))]


def _tables(parts: Sequence[RangePart], spaces: Sequence[str], view: View) -> Lines:
    lines: Lines = []
    for by in ("owner", "line") if view.by == "stack" else (view.by,):
        rows = joined(row for part in parts for row in part.rows(by, view.fold != "none"))
        for space in spaces:
            lines += heading(f"Allocated and freed by {by.replace('python-', 'Python ')}{_of(space)}")
            lines += _table_of(rows, space, view.is_brief)
    return lines


def write_range(profile: Profile, names: Names, view: View) -> Lines:
    """The report's lines below its head. Raises moments.SelectionError."""
    assert view.range is not None
    found = between(profile, *view.range)
    part = RangePart(join([("", profile)]).members[0], names, found.first, found.second, found)
    ends = [f"{at.name} ({moment(at.time, profile.time_unit)})" for at in (found.first, found.second)]
    lines = heading(f"From {ends[0]} to {ends[1]}")
    spaces = _spaces([part], profile.is_discrete)
    for space in spaces:
        lines += paragraph(_sentence(space, part.total, found.is_exact))
    return lines + _tables([part], spaces, view) + (trees(profile, names, found.new, view) if view.with_stacks else [])


# ---- of several processes ----------------------------------------------------------------------


def _when(at: Instant) -> str:
    when = moment(at.time, "ms")
    return at.name if at.name == when else f"{at.name} ({when})"


def command_of(process: Process, width: int) -> str:
    """With its relation to its parent, below which it is indented."""
    command = cut(printable(process.profile.manifest.get("command", "") or process.name), width)
    return f"{'  ' * process.depth}{_HOW.get(process.relation, '')}{command}"


def _method(job: Processes, found: JobRange) -> str:
    text = "Times are those of the clock that all processes share. Each process counts by its last snapshot before either moment."
    if any(part.process.relation == FORKED for part in found.parts):
        text += " Inherited memory counts with the parent alone."
    if len(job.machines) > 1:
        text += f" The clocks of {len(job.machines)} machines are taken to agree."
    return text


def write(job: Processes, view_of: Callable[[Profile], View], is_each: bool = False) -> Iterator[str]:
    """The report's lines; with `is_each` tables of each process too. Raises SelectionError."""
    view = view_of(job.members[0].profile)
    assert view.range is not None
    found = job_range(job, *view.range)
    rows = [
        part.total._replace(name=f"{part.process.pid or '?'} {command_of(part.process, _MAX_LABEL)}")
        for part in found.parts
    ]
    spaces = _spaces(found.parts, job.is_discrete)
    yield from heading(f"From {_when(found.first)} to {_when(found.second)}, in all processes")[1:]
    for space in spaces:
        yield from paragraph(_sentence(space, total_of(rows), True))
    yield from paragraph(_method(job, found))
    for space in spaces:
        yield from heading(f"Allocated and freed by process{_of(space)}") + _table_of(rows, space, view.is_brief)
    yield from _tables(found.parts, spaces, view)
    for part in found.parts if is_each or view.with_stacks else ():
        if not any(part.total.on("")):
            continue
        if is_each:
            yield from heading(f"{part.process.called.capitalize()} alone") + _tables([part], spaces, view)
        if view.with_stacks:
            at = part.found.new._replace(name=f"{found.second.name}, of what is new, in {part.process.called}")
            yield from trees(part.process.profile, part.names, at, view)
