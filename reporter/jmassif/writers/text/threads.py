# SPDX-License-Identifier: GPL-2.0-or-later
"""The section on threads: what each held, and what it allocated in all."""

from jmassif.questions.about import used_sides
from jmassif.questions.moments import Moment
from jmassif.questions.samples import SampleRow, by_name, samples
from jmassif.model.profile import Profile
from jmassif.units import percent, size
from jmassif.whose.names import Names
from jmassif.whose.threads import NO_THREAD, Threads
from jmassif.whose.views import naming
from jmassif.writers.text.layout import Extent, Lines, heading, paragraph
from jmassif.writers.text.table import Column, Table

# What NO_THREAD stands for.
_OF_NONE = "what was mapped before the program began, and what malloc's blocks take beside what was asked for"


def _held(row: SampleRow) -> int:
    return row.host[0] + row.device[0]


def threads_section(profile: Profile, names: Names, chosen: Moment, extent: Extent, is_together: bool) -> Lines:
    """A row a name, or unless `is_together` a row a thread. Empty if the trace tells no threads, or one alone did everything."""
    if not profile.has_threads:
        return []
    threads = Threads(profile)
    columns = samples(profile, chosen.composition)
    rows = by_name(profile, columns, naming(profile, names, "thread", is_together))
    if not rows:
        return []
    sides = used_sides(profile)
    total = sum(map(_held, rows))
    shown = rows[: extent.rows] if len(rows) > extent.rows + 1 else rows
    width = max(len(row.name) for row in shown) + 1
    table = Table(
        Column("", max(width, 20), align="<"),
        Column("threads", 8),
        *(column for side in sides for column in (Column(side, 10), Column("blocks", 11))),
        Column("bytes" if len(sides) == 1 else "together (B)", 17),
        Column("share", 9),
        Column("allocated in all", 18),
    )

    def line(row: SampleRow) -> str:
        many = threads.sharing(row.name) if is_together else 0
        cells = [row.name, f"{many:,}" if many > 1 else ""]
        for side in sides:
            figures = row.host if side == "host" else row.device
            cells += [size(figures[0]) if figures[0] else "-", f"{figures[1]:,}" if figures[1] else ""]
        allocated = row.host[2] + row.device[2]
        return table.row(*cells, f"{_held(row):,}", percent(_held(row), total), f"{allocated:,}").rstrip()

    lines = heading(f"By thread, at {chosen.name}") + [table.head] + [line(row) for row in shown]
    if len(rows) > len(shown):
        rest = sum(map(_held, rows[len(shown) :]))
        lines.append(f"and {len(rows) - len(shown):,} more that hold {size(rest)}{extent.hint}")
    if any(row.name == NO_THREAD for row in shown):
        lines += paragraph(f"{NO_THREAD}: {_OF_NONE}.")
    return lines
