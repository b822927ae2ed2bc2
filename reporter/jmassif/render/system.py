# SPDX-License-Identifier: GPL-2.0-or-later
"""The section on the whole board: where all of its memory was, in a sum that adds up."""

from functools import partial
from typing import Callable, Dict, Iterable, List, Optional, Tuple

from jmassif.analysis.balance import (
    BEFORE,
    BESIDE_LEDGER,
    BESIDE_PROCESS,
    Books,
    Row,
    books,
    device_books,
    doubts,
    nearest_to,
    whose,
)
from jmassif.analysis.mappings import Library, libraries, mappings
from jmassif.analysis.moments import Moment
from jmassif.analysis.other_tools import others, overlay_at
from jmassif.analysis.system import machine, sources, total_memory, was_short
from jmassif.attribution.names import Names
from jmassif.model.records import DEVICE_KINDS, HOST_KINDS
from jmassif.model.run import Profile
from jmassif.render.layout import FULL, Column, Extent, Lines, Table, heading, paragraph
from jmassif.units import count, moment, percent, size


# ---- machine ----
# The section on the machine around the program: how much memory was left, and whether it ran short.


def _shown(n_bytes: Optional[int]) -> str:
    return "" if n_bytes is None else size(n_bytes)


def machine_section(profile: Profile, chosen_name: str, chosen_time: int, extent: Extent = FULL) -> Lines:
    """Empty where the trace tells nothing of the machine."""
    figures = machine(profile, chosen_time)
    if not figures:
        return []
    unit = profile.time_unit
    total = total_memory(profile)
    lines = heading("The machine" if total is None else f"The machine, with {size(total)} of memory")
    short = was_short(profile)
    if short is not None:
        text = f"Memory ran short {moment(short, unit)} after the start."
        if not profile.is_complete:
            text += " The program has no end on record, so it was probably killed for it; this is what was told before."
        lines += paragraph(text) + [""]
    heads = ("at first", chosen_name.replace("the ", "at "), "at last", "at worst")
    table = Table(Column("", 34, align="<"), *(Column(head, 10, gap=1) for head in heads))
    lines.append(table.head)
    shown_rows = figures[: extent.rows]
    for figure in shown_rows:
        shown = (_shown(n_bytes) for n_bytes in (figure.first, figure.chosen, figure.last, figure.worst))
        lines.append(table.row(figure.label, *shown))
    if len(figures) > len(shown_rows):
        return lines + [f"and {count(len(figures) - len(shown_rows), 'more figure')}{extent.hint}"]
    return lines if extent is not FULL else lines + paragraph(f"Told by {', '.join(sources(profile))}.")


# ---- mapped ----
# The sections of a text report on mapped memory: what is resident of it, and what each library holds in all.

_MAPPED_SHOWN = 12
_LIBRARIES_SHOWN = 24


_MAPPED = Table(
    Column("resident", 10),
    Column("virtual", 10, gap=1),
    Column("its share", 10, gap=1),
    Column("swapped", 10, gap=1),
    Column("kind", 5, gap=2, align="<"),
    Column("file, or who mapped it", gap=2),
)


def mapped(profile: Profile, names: Names, chosen: Moment, extent: Extent = FULL) -> Lines:
    """Resident against virtual; empty for a trace without pages."""
    rows = mappings(profile, names, chosen)
    if not rows:
        return []
    lines = heading(f"Mapped memory besides the heap, at {chosen.name}") + [_MAPPED.head]

    def line(resident: int, virtual: int, shared: int, swapped: int, kind: str, name: str) -> str:
        swap = size(swapped) if swapped else "-"
        return _MAPPED.row(size(resident), size(virtual), size(shared), swap, kind, name).rstrip()

    most = extent.of(_MAPPED_SHOWN)
    for row in rows[:most]:
        lines.append(line(row.resident, row.pages.virtual, row.pages.shared, row.pages.swapped, row.kind, row.name))
    rest = rows[most:]
    if rest:
        totals = [sum(column) for column in zip(*((row.resident,) + row.pages for row in rest))]
        lines.append(line(totals[0], totals[1], totals[2], totals[3], "", f"{len(rest):,} others{extent.hint}"))
    return lines


_HOST_COLUMNS: Dict[str, Tuple[str, ...]] = {
    "file": ("file",),
    "anon": ("anon", "stack"),
    "heap": ("heap", "heap-overhead", "pinned"),
}
# The kinds that a column stands for; a column that nobody has anything in is left out. Together they are all of both sides.
_COLUMNS: Dict[str, Tuple[str, ...]] = {
    **_HOST_COLUMNS,
    "other": tuple(kind for kind in HOST_KINDS if not any(kind in kinds for kinds in _HOST_COLUMNS.values())),
    "device": DEVICE_KINDS,
}


def by_library(profile: Profile, names: Names, chosen: Moment) -> Lines:
    """What each library holds: pages of its file, heap and device memory that it allocated."""
    rows = libraries(profile, names, chosen.composition, mappings(profile, names, chosen))
    if not rows:
        return []

    def held(column: str, row: Library) -> int:
        return sum(row.by_kind.get(kind, 0) for kind in _COLUMNS[column])

    columns: List[Tuple[str, Callable[[Library], int]]] = [("together", lambda row: row.bytes)]
    columns += [(name, partial(held, name)) for name in _COLUMNS if any(held(name, row) for row in rows)]
    if any(row.virtual for row in rows):
        columns.append(("(virtual)", lambda row: row.virtual))
    table = Table(*(Column(name, 10) for name, _ in columns), Column("library", gap=2))

    def line(figures: Iterable[int], name: str) -> str:
        return table.row(*(size(n_bytes) if n_bytes else "-" for n_bytes in figures), name)

    lines = heading(f"What each library holds, at {chosen.name}") + [table.head]
    lines += [line((of(row) for _, of in columns), row.name) for row in rows[:_LIBRARIES_SHOWN]]
    rest = rows[_LIBRARIES_SHOWN:]
    if rest:
        lines.append(line((sum(of(row) for row in rest) for _, of in columns), f"{len(rest):,} others"))
    return lines


# ---- others ----
# The section on what other tools showed at a moment, and what each leaves out.

_TOOLS = Table(
    Column("", 30, align="<"), Column("showed", 10), Column("sampled at", 12), Column("and leaves out", gap=3)
)


def others_section(profile: Profile, chosen: Moment) -> Lines:
    """Empty where the trace has nothing that another tool shows."""
    rows = others(profile, chosen)
    if not rows:
        return []
    unit = profile.time_unit
    lines = heading(f"What the others showed, at {chosen.name} ({moment(chosen.time, unit)})") + [_TOOLS.head]
    for row in rows:
        when = "" if row.sampled_at is None else moment(row.sampled_at, unit)
        text, _, more = row.leaves_out.partition("; ")
        lines.append(_TOOLS.row(f"{row.tool}: {row.figure}", size(row.bytes), when, text).rstrip())
        if more:
            lines.append(f"  ({more})")
    told = overlay_at(profile, chosen)
    return lines + (paragraph(told) if told else [])


# ---- reconciliation ----

# Owners that hold less than this share of the process are one row.
_LEAST_SHARE = 0.02


_TABLE = Table(Column("", 27, align="<"), Column("", 10), Column("", 9), Column("", gap=3))


def _row(label: str, n_bytes: int, whole: int, note: str = "") -> str:
    return _TABLE.row(label, size(n_bytes), percent(n_bytes, whole), note).rstrip()


def _told(made: Books, row: Row) -> str:
    return _row(row.named(made), row.bytes(made), made.board, row.told(made))


def _owners(profile: Profile, made: Books) -> List[str]:
    rows = sorted(whose(profile, made).owners, key=lambda row: (-row.bytes, row.name))
    shown = [row for row in rows if row.bytes >= _LEAST_SHARE * made.process]
    rest = sum(row.bytes for row in rows) - sum(row.bytes for row in shown)
    lines = [_row(f"  {row.name}", row.bytes, made.board) for row in shown]
    if rest:
        lines.append(_row(f"  {count(len(rows) - len(shown), 'smaller owner')}", rest, made.board))
    return lines


def _device_section(profile: Profile) -> Lines:
    """Empty where nothing is known of a GPU's own memory."""
    made = device_books(profile)
    if made is None:
        return []
    whole = made.board
    return heading(f"All {size(whole)} of the GPU's memory, at {moment(made.time, profile.time_unit)}") + [
        _row("before the first block", made.before, whole, "other programs, and contexts"),
        _row("this process", made.held, whole, "the ledger, when it held most"),
        _row("unaccounted, since then", made.unaccounted, whole, made.told_of_unaccounted),
        _row("free", made.free, whole, "what the GPU could still give"),
        _row("together", whole, whole),
    ]


def _board_section(profile: Profile, chosen: Moment) -> Lines:
    """Empty where the trace has no sample of the process's pages."""
    is_peak = chosen.snapshot is None
    snapshot = nearest_to(profile, chosen)
    if snapshot is None:
        return []
    made = books(profile, snapshot)
    time = profile.snapshots[snapshot].time
    lines = heading(f"All {size(made.board)} of the machine's memory, at {moment(time, profile.time_unit)}")
    if is_peak and made.share_of_peak < 0.995:
        lines += paragraph(
            f"When pages were last sampled near the peak; the ledger held {100 * made.share_of_peak:.1f} % of that."
        )
    whole = made.board
    lines.append(_told(made, BEFORE))
    lines.append(_row("this process", made.held, whole, "the ledger, by owner:"))
    lines += _owners(profile, made)
    lines += [_told(made, row) for row in BESIDE_LEDGER + BESIDE_PROCESS]
    lines.append(_row("together", whole, whole))
    for doubt in doubts(made):
        lines += paragraph(doubt)
    return lines


def reconciliation_section(profile: Profile, chosen: Moment) -> Lines:
    """The books of the machine's memory and of a discrete GPU's, as far as the trace has figures for them."""
    return _board_section(profile, chosen) + _device_section(profile)
