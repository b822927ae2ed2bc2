# SPDX-License-Identifier: GPL-2.0-or-later
"""The report on a range of the run: what came to stay between two moments, what went, and what was only passing."""

from typing import Callable, Collection, List, NamedTuple, Sequence, Tuple

from jmassif.model.profile import Profile
from jmassif.questions.about import used_sides
from jmassif.questions.between import Range, RangeRow, between, new_of, rows_of, total_of
from jmassif.questions.flows import Flow
from jmassif.questions.moments import Moment
from jmassif.units import count, moment, size
from jmassif.whose.names import Names
from jmassif.whose.views import naming
from jmassif.writers.text.layout import Lines, heading, paragraph
from jmassif.writers.text.roles import SUM, Line
from jmassif.writers.text.stacks import trees
from jmassif.writers.text.table import Column, Table
from jmassif.writers.view import View

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
