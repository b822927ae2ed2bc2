# SPDX-License-Identifier: GPL-2.0-or-later
"""The section on the whole board: where all of its memory was, in a sum that adds up."""

from typing import List

from jmassif.profile import Profile
from jmassif.reconciliation import Books, books, fullest, nearest
from jmassif.summary import Moment
from jmassif.units import count, growth, moment, percent, size
from jmassif.writers.layout import Lines, heading, paragraph

# Owners that hold less than this share of the process are one row.
_LEAST_SHARE = 0.02
# What others do on a board at rest.
_QUIET_BYTES = 16 << 20


def _row(label: str, n_bytes: int, whole: int, note: str = "") -> str:
    return f"{label:<27}{size(n_bytes):>10}{percent(n_bytes, whole):>9}{'   ' if note else ''}{note}"


def _owners(made: Books) -> List[str]:
    rows = sorted((row for _, owners in made.ledger.groups for row in owners), key=lambda row: (-row.bytes, row.name))
    shown = [row for row in rows if row.bytes >= _LEAST_SHARE * made.process]
    rest = sum(row.bytes for row in rows) - sum(row.bytes for row in shown)
    lines = [_row(f"  {row.name}", row.bytes, made.board) for row in shown]
    if rest:
        lines.append(_row(f"  {count(len(rows) - len(shown), 'smaller owner')}", rest, made.board))
    return lines


def doubts(made: Books) -> List[str]:
    """What a reader should know of the rows that nobody can explain, in sentences."""
    found = []
    if made.is_off:
        found.append(
            f"Unaccounted are {size(made.unaccounted)}, more than 5 % of the process: it may have mapped or freed much while"
            " its pages were being sampled, or mapped a device's memory whose driver jmassif does not know."
        )
    if abs(made.elsewhere) > max(_QUIET_BYTES, made.process // 20):
        text = (
            f"Elsewhere, {size(abs(made.elsewhere))} {'more' if made.elsewhere > 0 else 'less'} than at the start are"
        )
        text += (
            " in use: by other programs, by the kernel, or by a driver for this process without a call that shows it."
        )
        if made.nvmap is not None:
            text += f" NvMap's use has changed by {growth(made.nvmap)}."
        found.append(text)
    return found


def reconciliation_section(profile: Profile, chosen: Moment) -> Lines:
    """Empty where the trace has no sample of the process's pages."""
    is_peak = chosen.snapshot is None
    snapshot = fullest(profile) if is_peak else nearest(profile, chosen.time)
    if snapshot is None:
        return []
    made = books(profile, snapshot)
    time = profile.snapshots[snapshot].time
    lines = heading(f"All {size(made.board)} of the machine's memory, at {moment(time, profile.time_unit)}")
    if is_peak and made.share_of_peak < 0.995:
        lines += paragraph(
            f"When pages were last sampled near the peak; the ledger held {made.share_of_peak:.1%} of that.".replace(
                "%", " %"
            )
        )
    whole = made.board
    lines.append(_row("before the start", made.before, whole, "the system and other programs"))
    lines.append(_row("this process", made.held, whole, "the ledger, by owner:"))
    lines += _owners(made)
    lines.append(_row("its allocators", made.allocators, whole, "kept free, less never touched"))
    lines.append(_row("Valgrind and jmassif", made.valgrind, whole, "the price of profiling"))
    lines.append(_row("unaccounted", made.unaccounted, whole, "its pages that nothing explains"))
    lines.append(_row("elsewhere, since the start", made.elsewhere, whole, "other programs and the kernel"))
    lines.append(_row("free", made.free, whole, "what the kernel could still give"))
    lines.append(_row("together", whole, whole))
    for doubt in doubts(made):
        lines += paragraph(doubt)
    return lines
