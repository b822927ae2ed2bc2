# SPDX-License-Identifier: GPL-2.0-or-later
"""The report on a range, of one process or of several: held before and after, and what was allocated and freed in between."""

from typing import Callable, Collection, Iterator, List, NamedTuple, Sequence

from jmassif.analysis.processes import Processes, join
from jmassif.analysis.range_diff import (
    Change,
    Instant,
    JobRange,
    RangePart,
    RangeRow,
    between,
    job_range,
    joined,
    total_of,
)
from jmassif.analysis.run_info import used_sides
from jmassif.attribution.names import Names
from jmassif.model.processes import FORKED, REPLACED, Process
from jmassif.model.run import Profile
from jmassif.render.layout import SUM, Column, Line, Lines, Table, heading, paragraph
from jmassif.render.lines import cut
from jmassif.render.stacks import trees
from jmassif.render.view import View
from jmassif.units import count, growth, moment, printable, size

_MAX_LABEL = 28
_ROWS = 12  # of a table in the short report
_COMMAND = 28
_FIGURES = ("before", "new", "gone", "after", "allocated", "freed")
_HOW = {FORKED: "fork: ", REPLACED: "exec: "}
_OF_PROCESSES = ("before", "after", "allocated", "freed")


class _Pool(NamedTuple):
    of: str  # ", device memory"; "" where one pool is all
    pick: Callable[[RangeRow], Change]


def _pools(sides: Collection[str], is_discrete: bool) -> List[_Pool]:
    """`sides` are those that hold anything."""
    if len(sides) > 1 and is_discrete:
        return [_Pool(", device memory", lambda row: row.device), _Pool(", host memory", lambda row: row.host)]
    return [_Pool("", lambda row: row.both)]


def _sentence(pool: _Pool, total: RangeRow, is_exact: bool) -> str:
    change, blocks = pool.pick(total), total.blocks
    text = (
        f"{size(change.before)} before, {size(change.after)} after ({growth(change.after - change.before)}){pool.of}."
        f" In between {size(change.allocated)} was allocated and {size(change.freed)} was freed."
    )
    if not is_exact:
        text += " An end is a peak between two snapshots: allocated and freed are counted from snapshot to snapshot."
    return (
        f"{text} {count(blocks.allocated, 'block')} allocated, {blocks.freed:,} freed, {total.temporaries:,} of them temporary"
        " (freed before their thread allocated anything else)."
    )


def _columns(figures: Sequence[str]) -> List[Column]:
    return [Column(figure, 10) for figure in figures]


def _cells(change: Change, figures: Sequence[str]) -> List[str]:
    return [size(getattr(change, figure)) if getattr(change, figure) else "-" for figure in figures]


def _is_still(change: Change) -> bool:
    return not (change.allocated or change.freed)


def _table_of(rows: Sequence[RangeRow], pool: _Pool, is_brief: bool) -> Lines:
    shown = [row for row in rows if any(pool.pick(row))]
    if is_brief:
        still = [row for row in shown if _is_still(pool.pick(row))]
        moved = [row for row in shown if not _is_still(pool.pick(row))]
        shown = moved[:_ROWS]
        shown += [total_of(moved[_ROWS:], f"{len(moved) - _ROWS:,} more")] if len(moved) > _ROWS else []
        shown += [total_of(still, f"{len(still):,} unchanged")] if still else []
    width = min(_MAX_LABEL, max([12] + [len(row.name) + 1 for row in shown]))
    table = Table(Column("", width, align="<"), *_columns(_FIGURES), Column("new (bytes)", 12))

    def line(name: str, change: Change) -> str:
        return table.row(cut(name, width - 1), *_cells(change, _FIGURES), f"{change.new:,}")

    lines = [line(row.name, pool.pick(row)) for row in shown]
    return [table.head, *lines, Line((line("total", pool.pick(total_of(rows))), SUM))]


def _tables(parts: Sequence[RangePart], pools: Sequence[_Pool], view: View) -> Lines:
    lines: Lines = []
    for by in ("owner", "line") if view.by == "stack" else (view.by,):
        rows = joined(row for part in parts for row in part.rows(by, view.fold != "none"))
        for pool in pools:
            lines += heading(f"Allocated and freed by {by.replace('python-', 'Python ')}{pool.of}")
            lines += _table_of(rows, pool, view.is_brief)
    return lines


def write_range(profile: Profile, names: Names, view: View) -> Lines:
    """The report's lines below its head. Raises moments.SelectionError."""
    assert view.range is not None
    found = between(profile, *view.range)
    part = RangePart(join([("", profile)]).members[0], names, found.first, found.second, found)
    ends = [f"{at.name} ({moment(at.time, profile.time_unit)})" for at in (found.first, found.second)]
    lines = heading(f"From {ends[0]} to {ends[1]}")
    pools = _pools(used_sides(profile), profile.is_discrete)
    for pool in pools:
        lines += paragraph(_sentence(pool, part.total, found.is_exact))
    return lines + _tables([part], pools, view) + (trees(profile, names, found.new, view) if view.with_stacks else [])


# ---- of several processes ----------------------------------------------------------------------


def _when(at: Instant) -> str:
    when = moment(at.time, "ms")
    return at.name if at.name == when else f"{at.name} ({when})"


def command_of(process: Process, width: int) -> str:
    """With its relation to its parent, below which it is indented."""
    command = cut(printable(process.profile.manifest.get("command", "") or process.name), width)
    return f"{'  ' * process.depth}{_HOW.get(process.relation, '')}{command}"


def _table_of_processes(found: JobRange, total: RangeRow, pool: _Pool) -> Lines:
    ends = [Column("from", 11), Column("to", 11)]
    table = Table(Column("pid", 8), *ends, *_columns(_OF_PROCESSES), Column("command", gap=2))

    def line(pid: str, first: str, second: str, row: RangeRow, command: str) -> str:
        return table.row(pid, first, second, *_cells(pool.pick(row), _OF_PROCESSES), command).rstrip()

    lines: Lines = [table.head]
    for part in found.parts:
        process = part.process
        first = moment(part.first.time + process.offset, "ms") if part.first else "not begun"
        second = moment(part.second.time + process.offset, "ms") if part.second else "ended"
        lines.append(line(str(process.pid or "?"), first, second, part.total, command_of(process, _COMMAND)))
    return lines + [Line((line("sum", "", "", total, ""), SUM))]


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
    total = total_of(part.total for part in found.parts)
    used = {side for part in found.parts for side in used_sides(part.process.profile)}
    pools = _pools(used, job.is_discrete)
    yield from heading(f"From {_when(found.first)} to {_when(found.second)}, in all processes")[1:]
    for pool in pools:
        yield from paragraph(_sentence(pool, total, True))
    yield from paragraph(_method(job, found))
    for pool in pools:
        yield from heading(f"Allocated and freed by process{pool.of}") + _table_of_processes(found, total, pool)
    yield from _tables(found.parts, pools, view)
    for part in found.parts if is_each or view.with_stacks else ():
        if not any(part.total.both):
            continue
        if is_each:
            yield from heading(f"{part.process.called.capitalize()} alone") + _tables([part], pools, view)
        if view.with_stacks:
            at = part.found.new._replace(name=f"{found.second.name}, of what is new, in {part.process.called}")
            yield from trees(part.process.profile, part.names, at, view)
