# SPDX-License-Identifier: GPL-2.0-or-later
"""The report on a range over several processes: of all of them, of each, and by owner and by line."""

from typing import Callable, Collection, Iterator, List, NamedTuple, Sequence, Tuple

from jmassif.analysis.moments import Moment
from jmassif.analysis.processes import NamesOf, Processes
from jmassif.analysis.processes_headline import Instant, called
from jmassif.analysis.processes_range import JobRange, Part, job_range
from jmassif.analysis.range_diff import Flow, Range, RangeRow, between, new_of, rows_of, total_of
from jmassif.analysis.run_info import used_sides
from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.model.processes import FORKED, Process
from jmassif.model.run import Profile
from jmassif.render.layout import SUM, Column, Line, Lines, Table, heading, paragraph
from jmassif.render.stacks import trees
from jmassif.render.view import View
from jmassif.units import count, moment, printable, size


# ---- range ----
# The report on a range of the run: what came to stay between two moments, what went, and what was only passing.

_MAX_LABEL = 44
_ROWS = 12  # of a table that is not asked for in full

# From a row to a side's flow, or to that of both where they add up.
_Pick = Callable[[RangeRow], Flow]


class Pool(NamedTuple):
    name: str  # "" where there is one
    pick: _Pick


def pools_of(sides: Collection[str], is_discrete: bool) -> List[Pool]:
    """`sides` are those that hold anything."""
    if len(sides) > 1 and not is_discrete:
        return [Pool("", lambda row: row.both)]
    picks: List[Tuple[str, _Pick]] = [("device", lambda row: row.device), ("host", lambda row: row.host)]
    found = [Pool(name, pick) for name, pick in picks if name in sides]
    return found if len(found) > 1 else [Pool("", found[0].pick)]


def sentences(pool: Pool, total: RangeRow, mend: Callable[[], str], is_most: bool = False, exact: str = "") -> str:
    """What the figures say; `mend` is what would have told more, `is_most`: less may have been allocated;
    `exact` what to say where nothing is open, unless it is that of one process.
    """
    flow = pool.pick(total)
    of = f" of {pool.name} memory" if pool.name else ""
    least = "At least " if flow.untold else "Up to " if is_most else ""
    text = (
        f"{least}{size(flow.allocated)}{of} {'was' if least else 'were'} allocated in between. Of that {size(flow.new)} were still"
        f" held at the second moment (new), and {size(flow.passing)} were not (passing). Of the {size(flow.before)} held at"
        f" the first {size(flow.freed)} were gone (freed)."
    )
    if flow.uncertain:
        text += (
            f" {size(flow.uncertain)} more are uncertain: in the same places others were freed meanwhile, so they are either new"
            f" too, and as much more was freed, or they were passing. {mend()}"
        )
    if flow.untold:
        text += (
            f" Up to {size(flow.untold)} more may have been passing: what has been allocated is told at snapshots, and an end of"
            " this range is none. From a snapshot to a snapshot nothing of that is open."
        )
    if not flow.uncertain and not flow.untold:
        text += exact or " All of this is exact to the byte."
    return text


def mend(profile: Profile, found: Range) -> str:
    """What would have told more."""
    unsure = {profile.accounts[account].kind for account, (n_bytes, _) in found.flows.items() if n_bytes.uncertain}
    if unsure <= {"heap-overhead"}:
        return "They are what the heap adds around blocks, of which a trace tells sums by owner."
    if profile.manifest.get("option.large") == "0":
        return "They are in no blocks that have records."
    return "A trace tells which of blocks with records: recorded with --large=0 all blocks have them."


def _is_still(row: RangeRow) -> bool:
    """Nothing happened there."""
    flow = row.both
    return not (flow.allocated or flow.freed or flow.untold)


def table_of(rows: Sequence[RangeRow], total: RangeRow, pool: Pool, is_uncertain: bool) -> Lines:
    shown = [row for row in rows if any(pool.pick(row))]
    width = min(_MAX_LABEL, max([12] + [len(row.name) + 1 for row in shown]))
    figures: List[Tuple[str, Callable[[Flow], int]]] = [
        ("held before", lambda flow: flow.before),
        ("new", lambda flow: flow.new),
        ("freed", lambda flow: flow.freed),
        ("passing", lambda flow: flow.passing),
    ]
    if is_uncertain:
        figures.append(("uncertain", lambda flow: flow.uncertain))
    figures.append(("held after", lambda flow: flow.after))
    columns = [Column(head, max(11, len(head) + 1)) for head, _ in figures]
    table = Table(Column("", width, align="<"), *columns, Column("new (B)", 15), Column("blocks", 9))

    def line(row: RangeRow) -> str:
        flow = pool.pick(row)
        cells = [size(of(flow)) if of(flow) else "-" for _, of in figures]
        return table.row(row.name, *cells, f"{flow.new:,}", f"{row.blocks.new:,}")

    return [table.head] + [line(row) for row in shown] + [Line((line(total), SUM))]


def cut(rows: List[RangeRow], most: int = _ROWS) -> List[RangeRow]:
    still = [row for row in rows if _is_still(row)]
    if len(still) > 1:
        rows = [row for row in rows if not _is_still(row)]
    found = rows[:most]
    if len(rows) > most:
        found.append(total_of(rows[most:], f"{len(rows) - most:,} more"))
    return found + ([total_of(still, f"{len(still):,} as before")] if len(still) > 1 else [])


def _when(profile: Profile, at: Moment) -> str:
    return f"{at.name} ({moment(at.time, profile.time_unit)})"


def write_range(profile: Profile, names: Names, view: View) -> Lines:
    """The report's lines below its head. Raises moments.SelectionError."""
    assert view.range is not None
    found = between(profile, *view.range)
    lines = heading(f"From {_when(profile, found.first)} to {_when(profile, found.second)}")
    is_uncertain = bool(found.total.uncertain)
    accounts = profile.accounts
    views: List[Tuple[str, Callable[[int], str]]]
    if view.by == "stack":
        views = [
            ("owner", lambda account: accounts[account].owner),
            ("line", names.line),
        ]
    else:
        views = [(view.by.replace("python-", "Python "), naming(profile, names, view.by, view.fold != "none"))]
    tables = [(by, rows_of(profile, found, name_of)) for by, name_of in views]
    pools = pools_of(used_sides(profile), profile.is_discrete)
    for pool in pools:
        lines += paragraph(sentences(pool, total_of(tables[0][1]), lambda: mend(profile, found)))
    for by, rows in tables:
        total = total_of(rows)
        for pool in pools:
            of = f", {pool.name} memory" if pool.name else ""
            lines += heading(f"What came and went by {by}{of}")
            lines += table_of(cut(rows) if view.is_brief else rows, total, pool, is_uncertain)
    if view.with_stacks:
        lines += trees(profile, names, new_of(found), view)
    return lines + [""] + paragraph(in_blocks(total_of(tables[0][1]).blocks))


def in_blocks(blocks: Flow) -> str:
    return (
        f"{count(blocks.new, 'block')} are new, {blocks.freed:,} of {blocks.before:,} were freed, {blocks.passing:,} were passing"
        + (f"; {blocks.uncertain:,} are uncertain." if blocks.uncertain else ".")
    )


# ---- ranges ----

_COMMAND = 40
_EXACT = " All of this is exact to the byte, from snapshot to snapshot of each."
_Naming = Callable[[Process], Callable[[int], str]]


def _pools(job: Processes, found: JobRange) -> List[Pool]:
    used = {side for part in found.parts for side in used_sides(part.process.profile)} or {"host"}
    return pools_of([side for side in ("host", "device") if side in used], job.is_discrete)


def _instant(at: Instant) -> str:
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
    yield from heading(f"From {_instant(found.first)} to {_instant(found.second)}, in all processes")[1:]
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
