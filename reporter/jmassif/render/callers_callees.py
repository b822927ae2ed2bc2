# SPDX-License-Identifier: GPL-2.0-or-later
"""The report on one function or line: who calls it, and whom it calls, with what they hold."""

from typing import List, Tuple

from jmassif.analysis.callers_callees import ITSELF, Figures, NoSuchPlace, neighbours
from jmassif.analysis.moments import select
from jmassif.attribution.names import Names
from jmassif.model.run import Profile
from jmassif.render.layout import SUM, Column, Line, Lines, Table, heading, paragraph
from jmassif.render.view import FormatError, View
from jmassif.units import moment, percent, size


_ROWS = 20

_TABLE = Table(
    Column("held", 11),
    Column("share", 9),
    Column("blocks", 11),
    Column("bytes", 17),
    Column("allocated", 12),
    Column("", gap=2),
)


def _table(rows: List[Tuple[str, Figures]], total: Figures, most: int) -> Lines:
    if len(rows) > most + 1:
        rest = Figures()
        for _, figures in rows[most:]:
            rest = rest.plus(figures)
        rows = rows[:most] + [(f"{len(rows) - most:,} more", rest)]

    def line(name: str, of: Figures) -> str:
        cells = (size(of.bytes), percent(of.bytes, total.bytes), f"{of.blocks:,}", f"{of.bytes:,}", size(of.allocated))
        return _TABLE.row(*cells, name)

    return [_TABLE.head.rstrip()] + [line(*row) for row in rows] + [Line((line("total", total), SUM))]


def write_neighbours(profile: Profile, names: Names, view: View) -> Lines:
    """The report's lines below its head. Raises moments.SelectionError and FormatError."""
    at = select(profile, view.selector or "peak")
    try:
        found = neighbours(profile, names, at.composition, view.calls_of or "")
    except NoSuchPlace as error:
        raise FormatError(str(error))
    most = _ROWS if view.is_brief else 1 << 30
    lines = heading(f"{found.name}, at {at.name} ({moment(at.time, profile.time_unit)})")
    own = next((figures for name, figures in found.callees if name == ITSELF), Figures())
    lines += paragraph(
        f"Stacks through it held {size(found.total.bytes)}, of which it allocated {size(own.bytes)} itself. Where it calls itself, its"
        " caller is that of the outermost call, and its callee that of the innermost. Allocated: in the whole run."
    )
    lines += heading("Who calls it") + _table(found.callers, found.total, most)
    return lines + heading("Whom it calls") + _table(found.callees, found.total, most)
