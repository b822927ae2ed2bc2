# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine as text: its figures, mapped memory, other tools, and the balance of all memory."""

from typing import Dict, List, NamedTuple, Tuple

from jmassif.analysis.balance import DeviceBalance, MemoryBalance
from jmassif.analysis.summary import Report
from jmassif.model.records import DEVICE_KINDS
from jmassif.render.layout import Column, Lines, Table, heading, paragraph, rest
from jmassif.render.view import View
from jmassif.units import count, growth, moment, percent, size

# ---- machine ---------------------------------------------------------------------------------


# Figures that a board could give back.
_BOARDS_OWN = ("page cache (Cached)", "CMA free", "swap in use")


def _boards_own(report: Report) -> Lines:
    found = [f"{row.label} {size(row.chosen)}" for row in report.machine if row.label in _BOARDS_OWN and row.chosen]
    if not found or not report.run.is_board:
        return []
    more = "jmassif doctor on the board names them and others as they are now, with what gives them back"
    return paragraph(f"The board's own bytes then: {', '.join(found)}; {more}.")


def machine(report: Report, view: View) -> Lines:
    """How much of the machine's memory was left, and whether it ran short."""
    if not report.machine:
        return []
    total, unit = report.run.capacity, report.run.time_unit
    lines = heading("The machine" if total is None else f"The machine, with {size(total)} of memory")
    if report.outcome.short_at is not None:
        lines += paragraph(f"Memory ran short {moment(report.outcome.short_at, unit)} after the start.") + [""]
    heads = ("start", report.moment.name.replace("the ", "at "), "end", "min or max")
    table = Table(Column("", 34, align="<"), *(Column(head, 10, gap=1) for head in heads))
    lines.append(table.head)
    for figure in report.machine[: view.most()]:
        values = (figure.first, figure.chosen, figure.last, figure.worst)
        lines.append(table.row(figure.label, *("" if n_bytes is None else size(n_bytes) for n_bytes in values)))
    lines += rest(len(report.machine) - view.most(), "more figure", view.hint)
    lines += _boards_own(report)
    return lines if view.is_brief else lines + paragraph(f"Source: {', '.join(report.machine_sources)}.")


# ---- mapped memory ---------------------------------------------------------------------------

_MAPPED_SHOWN = 12
_LIBRARIES_SHOWN = 24

_MAPPED = Table(
    Column("resident", 10),
    Column("virtual", 10, gap=1),
    Column("PSS", 10, gap=1),
    Column("swapped", 10, gap=1),
    Column("kind", 5, gap=2, align="<"),
    Column("mapping", gap=2),
)


def mapped(report: Report, view: View) -> Lines:
    """Resident against virtual; with --by=library what each library holds in all."""
    if view.by == "library":
        return _by_library(report)
    most = view.most(_MAPPED_SHOWN)
    rows = [([row.resident, *row.pages], row.kind, row.name) for row in report.mappings]
    if len(rows) > most:
        sums = [sum(column) for column in zip(*(figures for figures, _, _ in rows[most:]))]
        rows[most:] = [(sums, "", f"{len(rows) - most:,} others{view.hint}")]
    # Resident pages have a share: without one the mapping was gone before the next sample.
    cells = (
        [*map(size, of[:2]), *(size(figure) if figure else "-" for figure in of[2:]), kind, name]
        for of, kind, name in rows
    )
    return _MAPPED.section(f"Other mapped memory, at {report.moment.name}", cells)


# The kinds that a column stands for; columns without memory are left out. Together they are all of both sides.
_COLUMNS: Dict[str, Tuple[str, ...]] = {
    "file": ("file",),
    "anon": ("anon", "stack"),
    "heap": ("heap", "heap-overhead", "pinned"),
    "other": ("driver-host",),
    "device": DEVICE_KINDS,
}


def _by_library(report: Report) -> Lines:
    """The memory of each library: pages of its file, heap and device memory that it allocated."""
    names = [row.name for row in report.libraries]
    columns = {"together": [row.bytes for row in report.libraries]}
    for column, kinds in _COLUMNS.items():
        columns[column] = [sum(row.by_kind.get(kind, 0) for kind in kinds) for row in report.libraries]
    columns["(virtual)"] = [row.virtual for row in report.libraries]
    used = {column: values for column, values in columns.items() if any(values)}
    if len(names) > _LIBRARIES_SHOWN:
        names[_LIBRARIES_SHOWN:] = [f"{len(names) - _LIBRARIES_SHOWN:,} others"]
        for values in used.values():
            values[_LIBRARIES_SHOWN:] = [sum(values[_LIBRARIES_SHOWN:])]
    table = Table(*(Column(column, 10) for column in used), Column("library", gap=2))
    figures = ([size(n_bytes) if n_bytes else "-" for n_bytes in row] for row in zip(*used.values()))
    # An owner can be another: what a library allocated for your code is yours.
    return table.section(
        f"By calling library, at {report.at.name}", ([*row, name] for row, name in zip(figures, names))
    )


# ---- other tools -----------------------------------------------------------------------------

_TOOLS = Table(
    Column("", 30, align="<"), Column("value", 10), Column("sampled at", 12), Column("does not include", gap=3)
)


def other_tools(report: Report, view: View) -> Lines:
    """Figures of other tools at the moment, and what each leaves out."""
    if not report.others:
        return []
    unit = report.run.time_unit
    title = heading(f"Other tools, at {report.moment.name} ({moment(report.moment.time, unit)})")
    lines = title + [_TOOLS.head]
    for row in report.others:
        when = "" if row.sampled_at is None else moment(row.sampled_at, unit)
        text, _, more = row.leaves_out.partition("; ")
        lines.append(_TOOLS.row(f"{row.tool}: {row.figure}", size(row.bytes), when, text))
        lines += [f"  ({more})"] if more else []
    return lines


# ---- balance ---------------------------------------------------------------------------------
# All memory of the machine, and of a discrete GPU, in a sum that adds up.

# Change by others on a board at rest.
_QUIET_BYTES = 16 << 20
# Owners below this share of the process are one row.
_LEAST_SHARE = 0.02


class Row(NamedTuple):
    """A row of the balance beside the owners."""

    field: str  # of MemoryBalance
    name: str
    note: str = ""
    negative: str = ""  # its name where it is negative
    negative_note: str = ""

    def bytes(self, made: MemoryBalance) -> int:
        found: int = getattr(made, self.field)
        return found

    def named(self, made: MemoryBalance) -> str:
        return self.negative if self.bytes(made) < 0 else self.name

    def noted(self, made: MemoryBalance) -> str:
        return self.negative_note if self.bytes(made) < 0 else self.note


# In the order of the sum; the ledger stands between the first and the second.
BALANCE = (
    Row("before", "used before the run", "the system and other programs", "freed since the start", "available then"),
    # One name whatever the number: runs are compared by it.
    Row("untouched", "allocated, never written", "", "allocated, never written", "taken away: it has no pages"),
    Row("allocators", "free inside malloc"),
    Row("valgrind", "profiler overhead", "the recorder itself"),
    Row("unaccounted", "unexplained", "", "freed meanwhile", "while its pages were counted"),
    Row("elsewhere", "used by others since", "other programs and the kernel", "freed by others since"),
    Row("free", "available", "MemAvailable"),
)


def doubts(made: MemoryBalance) -> List[str]:
    """Sentences on rows that nothing explains."""
    found = []
    if made.is_off:
        found.append(
            f"{size(made.unaccounted)} is unexplained, more than 5 % of the process: mapped or freed while its pages were"
            " counted, or a device's memory with a driver that jmassif does not know."
        )
    if abs(made.elsewhere) > max(_QUIET_BYTES, made.process // 20):
        text = f"Others use {size(-made.elsewhere)} less than at the start."
        if made.elsewhere > 0:
            text = (
                f"Others use {size(made.elsewhere)} more than at the start: other programs, the kernel, or a driver for this"
                " process without a call that shows it."
            )
        elif made.outside > _QUIET_BYTES:
            text += (
                f" Or the kernel does not count {size(made.outside)} of device memory outside of the process as used,"
                " as with a simulated device."
            )
        if made.nvmap is not None:
            text += f" NvMap's use has changed by {growth(made.nvmap)}."
        found.append(text)
    return found


_TABLE = Table(Column("", 27, align="<"), Column("", 10), Column("", 9), Column("", gap=3))


def _row(label: str, n_bytes: int, whole: int, note: str = "") -> str:
    return _TABLE.row(label, size(n_bytes), percent(n_bytes, whole), note)


def _owners(report: Report, made: MemoryBalance) -> Lines:
    rows = sorted(report.balance_owners, key=lambda row: (-row.bytes, row.name))
    shown = [row for row in rows if row.bytes >= _LEAST_SHARE * made.process]
    lines = [_row(f"  {row.name}", row.bytes, made.board) for row in shown]
    left_out = sum(row.bytes for row in rows[len(shown) :])
    if left_out:
        lines.append(_row(f"  {count(len(rows) - len(shown), 'smaller owner')}", left_out, made.board))
    return lines


def _of_machine(report: Report, made: MemoryBalance) -> Lines:
    whole, time = made.board, moment(report.profile.snapshots[made.snapshot].time, report.run.time_unit)
    lines = heading(f"System memory: all {size(whole)}, at {time}")
    if report.moment.is_peak and made.share_of_peak < 0.995:
        share = f"{100 * made.share_of_peak:.0f} % of its peak"
        lines += paragraph(f"Pages were sampled when the process held {share}.")
    before, *others = (_row(of.named(made), of.bytes(made), whole, of.noted(made)) for of in BALANCE)
    lines += [before, _row("this process", made.held, whole, "by owner:"), *_owners(report, made), *others]
    lines.append(_row("total", whole, whole))
    return lines + [line for doubt in doubts(made) for line in paragraph(doubt)]


def _of_device(made: DeviceBalance, unit: str) -> Lines:
    whole = made.board
    unexplained = "freed by others, blocks in older room" if made.unaccounted < 0 else "the driver, other programs"
    return heading(f"GPU memory: all {size(whole)}, at {moment(made.time, unit)}") + [
        _row("used before the first block", made.before, whole, "other programs, contexts"),
        _row("this process", made.held, whole, "at its largest"),
        _row("unexplained, since then", made.unaccounted, whole, unexplained),
        _row("free", made.free, whole),
        _row("total", whole, whole),
    ]


def balance(report: Report, view: View) -> Lines:
    """All of the machine's memory and of a discrete GPU's, as far as the trace has figures for them."""
    lines = _of_machine(report, report.balance) if report.balance is not None else []
    return lines + (_of_device(report.device_balance, report.run.time_unit) if report.device_balance else [])
