# SPDX-License-Identifier: GPL-2.0-or-later
"""The section on what other tools showed at a moment, and what each leaves out."""

from jmassif.model.profile import Profile
from jmassif.questions.moments import Moment
from jmassif.questions.others import others
from jmassif.questions.overlay import overlay_at
from jmassif.units import moment, size
from jmassif.writers.text.layout import Lines, heading, paragraph
from jmassif.writers.text.table import Column, Table

_TABLE = Table(
    Column("", 30, align="<"), Column("showed", 10), Column("sampled at", 12), Column("and leaves out", gap=3)
)


def others_section(profile: Profile, chosen: Moment) -> Lines:
    """Empty where the trace has nothing that another tool shows."""
    rows = others(profile, chosen)
    if not rows:
        return []
    unit = profile.time_unit
    lines = heading(f"What the others showed, at {chosen.name} ({moment(chosen.time, unit)})") + [_TABLE.head]
    for row in rows:
        when = "" if row.sampled_at is None else moment(row.sampled_at, unit)
        text, _, more = row.leaves_out.partition("; ")
        lines.append(_TABLE.row(f"{row.tool}: {row.figure}", size(row.bytes), when, text).rstrip())
        if more:
            lines.append(f"  ({more})")
    told = overlay_at(profile, chosen)
    return lines + (paragraph(told) if told else [])
