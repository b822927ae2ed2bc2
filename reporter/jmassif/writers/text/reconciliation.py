# SPDX-License-Identifier: GPL-2.0-or-later
"""The section on the whole board: where all of its memory was, in a sum that adds up."""

from typing import List

from jmassif.model.profile import Profile
from jmassif.questions.moments import Moment
from jmassif.questions.reconciliation import (
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
from jmassif.units import count, moment, percent, size
from jmassif.writers.text.layout import Lines, heading, paragraph
from jmassif.writers.text.table import Column, Table

# Owners that hold less than this share of the process are one row.
_LEAST_SHARE = 0.02


_TABLE = Table(Column("", 27, align="<"), Column("", 10), Column("", 9), Column("", gap=3))


def _row(label: str, n_bytes: int, whole: int, note: str = "") -> str:
    return _TABLE.row(label, size(n_bytes), percent(n_bytes, whole), note).rstrip()


def _told(made: Books, row: Row) -> str:
    return _row(row.named(made), row.bytes(made), made.board, row.told(made))


def _owners(profile: Profile, made: Books) -> List[str]:
    rows = sorted(
        (row for _, owners in whose(profile, made).groups for row in owners), key=lambda row: (-row.bytes, row.name)
    )
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
