# SPDX-License-Identifier: GPL-2.0-or-later
"""Leaks as sections of the text report: lines that were still growing, and memory that was still allocated at exit, by owner.

Where no line is known to grow, the lines that held most at exit follow: a leak of a short part of the run is among them.
"""

from jmassif.analysis.aggregate import ledger
from jmassif.analysis.leaks import (
    NOT_COUNTED,
    HeldAtEnd,
    find_growth,
    held_at_end,
    leaked_places,
    not_counted,
    rate,
    unknown_reason,
)
from jmassif.analysis.run_info import used_sides
from jmassif.attribution.names import Names
from jmassif.model.run import Profile
from jmassif.render.layout import FULL, Column, Extent, Lines, Table, heading, paragraph
from jmassif.render.owners import groups_table
from jmassif.units import count, moment, size


_MOST_LINES = 10
_LINES = Table(
    Column("grown by", 10),
    Column("since", 10, gap=1),
    Column("held at the end", 16, gap=1),
    Column("owner", 10, align="<", gap=2),
    Column("line", gap=2),
)
_MOST_HELD = 4
_HELD = Table(
    Column("held", 10), Column("blocks", 10, gap=1), Column("owner", 10, align="<", gap=2), Column("line", gap=2)
)


def growing_section(profile: Profile, names: Names, extent: Extent = FULL) -> Lines:
    """Empty if nothing grows."""
    grown = find_growth(profile, names)
    if not grown.lines:
        return []
    lines = heading("Still growing at the end") + [_LINES.head]
    most = extent.of(_MOST_LINES)
    for line in grown.lines[:most]:
        since = moment(line.since, profile.time_unit)
        where = f"{line.label}, {rate(profile, grown, line)}"
        lines.append(_LINES.row(size(line.grown), since, size(line.held), line.owner, where))
    left_out = grown.lines[most:]
    if left_out:
        lines.append(
            f"and {count(len(left_out), 'more line')}, {size(sum(line.grown for line in left_out))}{extent.hint}"
        )
    return lines


def held_section(profile: Profile, names: Names, extent: Extent = FULL) -> Lines:
    """Memory at exit, before an interpreter cleans up."""
    held = held_at_end(profile, names)
    if held is None or profile.snapshots[-1].reason != "exit" or not held.leaked:
        return []
    when = moment(held.time, profile.time_unit)
    cleaned = " before the interpreter's clean-up," if profile.snapshots[held.snapshot].reason == "end" else ""
    text = f"At {when},{cleaned} the program held {size(held.bytes)} that nobody had freed."
    others = [f"{size(n_bytes)} {NOT_COUNTED[key]}" for key, n_bytes in not_counted(profile, held)]
    if others:
        text += f" Not counted: {', '.join(others)}; pages of files and stacks."
    grown = find_growth(profile, names)
    if grown.unknown:
        text += f" Whether it was still growing cannot be told: {unknown_reason(profile, grown)}."
    lines = heading("Held at the end") + paragraph(text)
    if not grown.lines:
        lines += _held_lines(profile, names, held, extent)
    table = ledger(profile, held.leaked)
    if table.groups and extent is FULL:
        sides = used_sides(profile)
        lines += [""] + groups_table(sides, len(sides) == 1 or not profile.is_discrete, table)
    return lines


def _held_lines(profile: Profile, names: Names, held: HeldAtEnd, extent: Extent) -> Lines:
    places = leaked_places(profile, names, held.leaked)
    most = extent.of(_MOST_HELD)
    lines = [_HELD.head] + [
        _HELD.row(size(place.bytes), f"{place.blocks:,}", place.owner, place.label) for place in places[:most]
    ]
    left_out = places[most:]
    if left_out:
        held_there = size(sum(place.bytes for place in left_out))
        lines.append(f"and {count(len(left_out), 'more line')}, {held_there}{extent.hint}")
    return lines
