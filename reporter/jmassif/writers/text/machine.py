# SPDX-License-Identifier: GPL-2.0-or-later
"""The section on the machine around the program: how much memory was left, and whether it ran short."""

from typing import Optional

from jmassif.model.profile import Profile
from jmassif.questions.machine import machine, sources, total_memory, was_short
from jmassif.units import count, moment, size
from jmassif.writers.text.layout import FULL, Extent, Lines, heading, paragraph
from jmassif.writers.text.table import Column, Table


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
