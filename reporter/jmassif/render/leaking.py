# SPDX-License-Identifier: GPL-2.0-or-later
"""Leaks as sections of the text report: lines that were still growing, and memory that was still allocated at exit, by owner.

Where no line is known to grow, the lines that held most at exit follow: a leak of a short part of the run is among them.
"""

from typing import Sequence

from jmassif.analysis.summary import Growth, Leaks, Report
from jmassif.render.layout import FULL, Column, Extent, Lines, Table, heading, paragraph
from jmassif.render.owners import groups_table
from jmassif.render.summary import rate
from jmassif.render.words import NOT_COUNTED
from jmassif.units import count, moment, size

_MOST_LINES = 10
_LINES = Table(
    Column("grown by", 10),
    Column("since", 10, gap=1),
    Column("at exit", 10, gap=1),
    Column("owner", 10, align="<", gap=2),
    Column("line", gap=2),
)
_MOST_HELD = 4
_HELD = Table(
    Column("bytes", 10), Column("blocks", 10, gap=1), Column("owner", 10, align="<", gap=2), Column("line", gap=2)
)


def unknown(growth: Growth) -> str:
    """Why it is unknown whether the run leaks; "" if it is known."""
    few = {
        "few-steps": f'"{growth.step}" came {growth.n_found} times',
        "few-snapshots": f"{count(growth.n_found, 'snapshot')} after the start",
    }
    if growth.unknown in few:
        return f"{few[growth.unknown]}, {growth.n_needed} are needed"
    return "the trace has no snapshot" if growth.unknown else ""


def _more(left_out: Sequence[int], extent: Extent) -> Lines:
    """A line on the bytes of lines that are not shown."""
    return [f"and {count(len(left_out), 'more line')}, {size(sum(left_out))}{extent.hint}"] if left_out else []


def growing_section(report: Report, extent: Extent = FULL) -> Lines:
    """Empty if nothing grows."""
    growth, unit = report.growth, report.run.time_unit
    if growth is None or not growth.lines:
        return []
    lines = heading("Still growing at the end") + [_LINES.head]
    most = extent.of(_MOST_LINES)
    for leak in growth.lines[:most]:
        where = f"{leak.label}, {rate(growth, leak, unit)}"
        lines.append(_LINES.row(size(leak.grown), moment(leak.since, unit), size(leak.held), leak.owner, where))
    return lines + _more([leak.grown for leak in growth.lines[most:]], extent)


def held_section(report: Report, extent: Extent = FULL) -> Lines:
    """Memory at exit, before an interpreter cleans up."""
    leaks, growth = report.leaks, report.growth
    if leaks is None or growth is None or not leaks.is_at_exit or not leaks.bytes:
        return []
    cleaned = ", before the interpreter's clean-up" if leaks.is_before_cleanup else ""
    text = f"{size(leaks.bytes)} was not freed at {moment(leaks.time, report.run.time_unit)}{cleaned}"
    if leaks.expected:
        other = f", {size(leaks.bytes - leaks.expected)} other" if leaks.expected < leaks.bytes else ""
        text += f": {size(leaks.expected)} model and optimizer (expected){other}"
    counted = [f"{NOT_COUNTED.get(key, key)} {size(n_bytes)}" for key, n_bytes in leaks.not_counted]
    if counted:
        text += f". Not counted: {', '.join(counted)}; pages of files and stacks"
    if growth.unknown:
        text += f". Growth is unknown: {unknown(growth)}"
    lines = heading("Still allocated at exit") + paragraph(f"{text}.")
    if not growth.lines:
        lines += _places(leaks, extent)
    if leaks.ledger.groups and extent is FULL:
        sides = report.run.sides
        lines += [""] + groups_table(sides, len(sides) == 1 or not report.run.is_discrete, leaks.ledger)
    return lines


def _places(leaks: Leaks, extent: Extent) -> Lines:
    most = extent.of(_MOST_HELD)
    lines = [_HELD.head] + [
        _HELD.row(size(place.bytes), f"{place.blocks:,}", place.owner, place.label) for place in leaks.places[:most]
    ]
    return lines + _more([place.bytes for place in leaks.places[most:]], extent)
