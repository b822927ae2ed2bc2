# SPDX-License-Identifier: GPL-2.0-or-later
"""The sections of a text report on mapped memory: what is resident of it, and what each library holds in all."""

from functools import partial
from typing import Callable, Dict, Iterable, List, Tuple

from jmassif.model.kinds import DEVICE_KINDS, HOST_KINDS
from jmassif.model.profile import Profile
from jmassif.questions.mappings import Library, libraries, mappings
from jmassif.questions.moments import Moment
from jmassif.units import size
from jmassif.whose.names import Names
from jmassif.writers.text.layout import FULL, Extent, Lines, heading
from jmassif.writers.text.table import Column, Table

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
