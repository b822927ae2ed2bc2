# SPDX-License-Identifier: GPL-2.0-or-later
"""The report on a range over several processes: of all of them, of each, and by owner and by line."""

from typing import Callable, Iterator, List, Tuple

from jmassif.model.job import FORKED, Process
from jmassif.model.profile import Profile
from jmassif.questions.about import used_sides
from jmassif.questions.between import RangeRow, new_of, total_of
from jmassif.questions.job.headline import called
from jmassif.questions.job.instants import Instant
from jmassif.questions.job.names import NamesOf
from jmassif.questions.job.processes import Processes
from jmassif.questions.job.range import JobRange, Part, job_range
from jmassif.units import moment, printable, size
from jmassif.whose.views import naming
from jmassif.writers.text.layout import Lines, heading, paragraph
from jmassif.writers.text.range import Pool, cut, in_blocks, mend, pools_of, sentences, table_of
from jmassif.writers.text.roles import SUM, Line
from jmassif.writers.text.stacks import trees
from jmassif.writers.text.table import Column, Table
from jmassif.writers.view import View

_COMMAND = 40
_EXACT = " All of this is exact to the byte, from snapshot to snapshot of each."
_Naming = Callable[[Process], Callable[[int], str]]


def _pools(job: Processes, found: JobRange) -> List[Pool]:
    used = {side for part in found.parts for side in used_sides(part.process.profile)} or {"host"}
    return pools_of([side for side in ("host", "device") if side in used], job.is_discrete)


def _when(at: Instant) -> str:
    when = moment(at.time, "ms")
    return at.name if at.name == when else f"{at.name} ({when})"


def _at(part: Part, is_first: bool) -> str:
    """Which moment of its own trace stands for an end of the range."""
    found = part.first if is_first else part.second
    if found is None:
        return "not begun" if is_first else "ended"
    return moment(found.time + part.process.offset, "ms")


def _table_of_processes(found: JobRange, total: RangeRow, pool: Pool, is_uncertain: bool) -> Lines:
    figures = ["before", "new", "freed", "passing"] + ["uncertain"] * is_uncertain + ["after"]
    heads = [f"held {head}" if head in ("before", "after") else head for head in figures]
    columns = [Column("told at", 12), Column("and at", 12), *(Column(head, max(11, len(head) + 1)) for head in heads)]
    table = Table(Column("pid", 9), *columns, Column("new (B)", 15), Column("blocks", 9), Column("command", gap=2))

    def line(name: str, row: RangeRow, ends: Tuple[str, str], what: str) -> str:
        flow = pool.pick(row)
        cells = [size(getattr(flow, figure)) if getattr(flow, figure) else "-" for figure in figures]
        return table.row(name, *ends, *cells, f"{flow.new:,}", f"{row.blocks.new:,}", what).rstrip()

    lines = [table.head.rstrip()]
    for part in found.parts:
        process = part.process
        words = printable(process.profile.manifest.get("command", "") or process.name)
        words = words if len(words) <= _COMMAND else f"{words[: _COMMAND - 1]}…"
        how = "fork: " if process.relation == FORKED else ""
        ends = _at(part, True), _at(part, False)
        lines.append(line(str(process.pid or "?"), part.total(""), ends, f"{'  ' * process.depth}{how}{words}"))
    return lines + [Line((line("sum", total, ("", ""), ""), SUM))]


def _how(job: Processes, found: JobRange) -> str:
    """How the figures of processes go together."""
    text = (
        "Times are those of the clock that all processes share. Of each process counts its last snapshot by either moment;"
        " what had not begun held nothing, and what has ended has freed all it held. Where a process sets a mark itself it is told exactly."
    )
    if any(part.process.relation == FORKED for part in found.parts):
        text += " What a fork inherited counts with the parent alone, whatever the child does with it."
    if len(job.machines) > 1:
        text += f" The clocks of {len(job.machines)} machines are taken to agree."
    return text


def _views(found: JobRange, names: NamesOf, view: View) -> List[Tuple[str, _Naming]]:
    if view.by == "stack":
        return [
            ("owner", lambda process: lambda account: process.profile.accounts[account].owner),
            ("line", lambda process: names(process).line),
        ]

    def by(process: Process) -> Callable[[int], str]:
        return naming(process.profile, names(process), view.by, view.fold != "none")

    return [(view.by.replace("python-", "Python "), by)]


def _tables(found: JobRange, pools: List[Pool], names: NamesOf, view: View) -> Lines:
    lines: Lines = []
    for by, name_of in _views(found, names, view):
        rows = found.rows(name_of)
        total = total_of(rows)
        for pool in pools:
            of = f", {pool.name} memory" if pool.name else ""
            lines += heading(f"What came and went by {by}{of}")
            lines += table_of(cut(rows) if view.is_brief else rows, total, pool, bool(total.both.uncertain))
    return lines


def write(job: Processes, view_of: Callable[[Profile], View], is_each: bool = False) -> Iterator[str]:
    """The report's lines; with `is_each` tables of each process too. Raises SelectionError."""
    view = view_of(job.members[0].profile)
    assert view.range is not None
    found = job_range(job, *view.range)
    names = NamesOf()
    total = total_of([part.total("") for part in found.parts])
    pools = _pools(job, found)
    yield from heading(f"From {_when(found.first)} to {_when(found.second)}, in all processes")[1:]
    for pool in pools:
        unsure = next((part for part in found.parts if part.found.total.uncertain), None)
        yield from paragraph(
            sentences(
                pool,
                total,
                lambda: mend(unsure.process.profile, unsure.found) if unsure else "",
                found.is_vague,
                _EXACT,
            )
        )
    yield from paragraph(_how(job, found))
    for pool in pools:
        yield from heading(f"What came and went by process{f', {pool.name} memory' if pool.name else ''}")
        yield from _table_of_processes(found, total, pool, bool(total.both.uncertain))
    yield from _tables(found, pools, names, view)
    for part in found.parts if is_each or view.with_stacks else ():
        if not any(part.total("").both):
            continue
        if is_each:
            yield from heading(f"{called(part.process).capitalize()} alone")
            yield from _tables(found._replace(parts=[part]), pools, names, view)
        if view.with_stacks:
            at = new_of(part.found)._replace(name=f"{found.second.name}, of what is new, in {called(part.process)}")
            yield from trees(part.process.profile, names(part.process), at, view)
    yield ""
    yield from paragraph(in_blocks(total.blocks))
