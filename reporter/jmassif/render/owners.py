# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory by owner, role and thread: bytes and blocks in each memory space that the program used."""

from typing import List, NamedTuple, Sequence

from jmassif.analysis.aggregate import Ledger, Usage, UsageRow, by_name, sum_of
from jmassif.analysis.summary import Report
from jmassif.attribution.parts import NO_PART
from jmassif.attribution.views import NO_THREAD, Threads, naming, parts
from jmassif.render.layout import SUM, Column, Line, Lines, Table, heading, paragraph
from jmassif.render.summary import where_arenas_are
from jmassif.render.view import View
from jmassif.render.words import GROUP_NAMES, OWNERS
from jmassif.units import count, moment, percent, size

# Share of all memory: owners with less are one row of a short report.
LEAST_OWNER = 0.01
_THREADS_SHOWN = 40  # where they are asked for


class _Row(NamedTuple):
    label: str
    usage: Usage
    role: str = ""
    more: Sequence[str] = ()  # cells of further columns


def _table(
    sides: Sequence[str], is_sum: bool, rows: Sequence[_Row], total: Usage, more: Sequence[Column] = ()
) -> Lines:
    """Where the memory spaces add up (`is_sum`), the sum in bytes and its share follow; else each space has its shares."""
    width = max([12] + [len(row.label) + 1 for row in rows])
    share = Column("share", 9)
    columns = [Column("", width, align="<")]
    for side in sides:
        columns += [Column(side, 9), Column("blocks", 11)] + ([] if is_sum else [share])
    if is_sum:
        columns += [Column("bytes" if len(sides) == 1 else "total (bytes)", 17), share]
    table = Table(*columns, *more)

    def line(row: _Row) -> str:
        cells = [row.label]
        for side in sides:
            n_bytes, blocks = row.usage.on(side), row.usage.blocks_on(side)
            cells += [size(n_bytes) if n_bytes or blocks else "-", f"{blocks:,}" if blocks else ""]
            if not is_sum:
                cells.append(percent(n_bytes, total.on(side)) if n_bytes else "")
        if is_sum:
            cells += [f"{row.usage.bytes:,}", percent(row.usage.bytes, total.bytes)]
        return Line((table.row(*cells, *row.more), row.role))

    return [table.head, *map(line, rows)]


def _merged(owners: Sequence[UsageRow], least: float) -> List[UsageRow]:
    """Those below `least` bytes, if there are several, are one row."""
    small = [owner for owner in owners if owner.bytes < least]
    if len(small) < 2:
        return list(owners)
    rest = UsageRow(f"{len(small)} smaller", sum_of(owner.usage for owner in small))
    return [owner for owner in owners if owner.bytes >= least] + [rest]


def groups_table(sides: Sequence[str], is_sum: bool, ledger: Ledger, least_share: float = 0.0) -> Lines:
    """Groups, and below each its owners; those with less than a share of all are one row."""
    rows: List[_Row] = []
    for group in ledger.groups:
        rows.append(_Row(GROUP_NAMES[group.name], group.usage, SUM))
        rows += [_Row(f"  {name}", usage) for name, usage in _merged(group.owners, least_share * ledger.total.bytes)]
    return _table(sides, is_sum, rows + [_Row("total", ledger.total, SUM)], ledger.total)


def by_owner(report: Report, view: View) -> Lines:
    """The ledger: owners by group."""
    table, is_full = report.ledger, not view.is_brief or report.filter is not None
    if not table.groups and not table.imported_blocks:
        return []
    lines = heading(f"By owner, at {report.moment.name}")
    lines += groups_table(report.run.sides, len(report.wholes) == 1, table, 0.0 if is_full else LEAST_OWNER)
    if table.imported_bytes or table.imported_blocks:
        imported = f"{size(table.imported_bytes)} in {count(table.imported_blocks, 'block')}"
        lines.append(f"Not counted: {imported} imported from other processes.")
    if report.moment.pages_of is not None:
        when = moment(report.moment.pages_of, report.run.time_unit)
        lines += paragraph(f"Pages of files and mappings are those of {when}, when they were sampled last.")
    owners = sorted(table.owners, key=lambda owner: -owner.bytes)
    known = [owner.name for owner in owners if owner.name in OWNERS and owner.bytes >= LEAST_OWNER * table.total.bytes]
    texts = [f"{name}: {OWNERS[name]}" for name in (known if is_full else known[: view.most()])]
    lines += paragraph(f"{'; '.join(texts)}.") if texts else []
    return lines + (paragraph(where_arenas_are(report.profile)) if is_full and report.filter is None else [])


def by_role(report: Report, view: View) -> Lines:
    if not report.roles:
        return []
    total = sum_of(row.usage for row in report.roles)
    rows = [_Row(*row) for row in report.roles] + [_Row("all tensors", total)]
    title = heading(f"Tensors by role, at {report.moment.name}")
    return title + _table(report.run.sides, len(report.wholes) == 1, rows, total)


def by_part(report: Report, view: View) -> Lines:
    """Empty if the program has neither elements of GStreamer, nodes of ROS nor TensorRT."""
    if not report.names.once(parts).has_any:
        return []
    rows = by_name(report.profile, report.at.composition, naming(report.profile, report.names, "part"))
    entries = [_Row(row.name, row.held) for row in rows if row.name != NO_PART]
    total = sum_of(row.usage for row in entries)
    title = heading(f"By element, node or phase, at {report.at.name}")
    return title + _table(report.run.sides, len(report.wholes) == 1, entries, total) if entries else []


def by_thread(report: Report, view: View) -> Lines:
    """A row a name; with --fold=none a row a thread. Empty without threads in the trace, or if one alone did everything."""
    profile, is_together = report.profile, view.fold != "none"
    if not profile.has_threads:
        return []
    threads = Threads(profile)
    rows = by_name(profile, report.at.composition, naming(profile, report.names, "thread", is_together))
    if not rows:
        return []
    most = _THREADS_SHOWN if view.by == "thread" and view.is_brief else view.most()
    shown = rows[:most] if len(rows) > most + 1 else rows
    entries = []
    for row in shown:
        sharing = threads.sharing[row.name] if is_together else 0
        entries.append(
            _Row(row.name, row.held, "", (f"{sharing:,}" if sharing > 1 else "", f"{row.allocated.bytes:,}"))
        )
    columns = (Column("threads", 9), Column("allocated in all", 18))
    lines = heading(f"By thread, at {report.at.name}")
    lines += _table(report.run.sides, len(report.wholes) == 1, entries, sum_of(row.held for row in rows), columns)
    if len(rows) > len(shown):
        left_out = sum(row.held.bytes for row in rows[len(shown) :])
        lines.append(f"and {len(rows) - len(shown):,} more that hold {size(left_out)}{view.hint}")
    text = "what was mapped before the program began, and what malloc's blocks take beside what was asked for"
    return lines + (paragraph(f"{NO_THREAD}: {text}.") if any(row.name == NO_THREAD for row in shown) else [])
