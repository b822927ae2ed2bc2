# SPDX-License-Identifier: GPL-2.0-or-later
"""The first sentences of a comparison of groups: what has changed, by how much, and how sure that is."""

from typing import List

from jmassif.fleet.compare import FleetDifference, FleetRow
from jmassif.fleet.statistics import Interval
from jmassif.units import count, growth, percent, printable, size

_NAMED = 3


def surely(level: float) -> str:
    """0.01 → "99 %"."""
    return f"{100 * (1 - level):.6g} %"


def between(interval: Interval) -> str:
    return f"{growth(interval[0])} to {growth(interval[1])}"


def memory(found: FleetDifference) -> str:
    return "" if found.pool == "bytes" else f" of {found.pool} memory"


def _most(found: FleetDifference, group: int, view: str) -> str:
    def by(row: FleetRow) -> int:
        change = row.changes[group]
        return change.bytes if change and change.is_change else 0

    changed = sorted((row for row in found.rows if row.view == view and by(row)), key=lambda row: -abs(by(row)))
    if not changed:
        return ""
    named = [f"{printable(row.name)} {growth(by(row))}" for row in changed[:_NAMED]]
    more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
    return f" By {view.replace('-', ' ')}: {', '.join(named)}{more}."


def _sentence(found: FleetDifference, group: int, views: List[str]) -> str:
    now, before = found.groups[group], found.groups[found.base]
    total = found.total
    change = total.changes[group]
    assert change
    medians = f"{size(total.groups[found.base].median)} → {size(total.groups[group].median)}"
    n = f"{count(len(now.runs), 'run')} against {len(before.runs):,}"
    if change.interval is None:
        text = f"Of {n} nothing can be said of {now.label} against {before.label} at {surely(found.level)}: {medians} at the peak."
        return text
    if change.is_change:
        more = "more" if change.bytes > 0 else "less"
        share = percent(abs(change.bytes), total.groups[found.base].median)
        text = (
            f"{now.label} holds {size(abs(change.bytes))}{memory(found)} {more} than {before.label} at the peak"
            f" ({between(change.interval)}): {medians}, {share}, medians of {n}."
        )
    else:
        text = (
            f"{now.label} holds as much{memory(found)} as {before.label} at the peak, as far as {n} tell: {medians}"
            f" ({between(change.interval)})."
        )
    parts = [_most(found, group, view) for view in views]
    return text + (next(filter(None, parts), "") or ("" if change.is_change else " No part of it has changed."))


def fleet_headline(found: FleetDifference) -> List[str]:
    """Sentences that are safe to show, of the group that differs most first."""
    views = list(dict.fromkeys(row.view for row in found.rows[1:]))

    def rank(group: int) -> int:
        changes = [row.changes[group] for row in found.rows]
        return -max(abs(change.bytes) if change and change.is_change else 0 for change in changes)

    others = [group for group in range(len(found.groups)) if group != found.base]
    return [_sentence(found, group, views) for group in sorted(others, key=lambda group: (rank(group), group))]


def method(found: FleetDifference) -> str:
    """How this is known, in words."""
    return (
        f"Changes are of medians, against {found.groups[found.base].label}; their intervals follow from the order of the runs (binomial"
        f" distribution, any shape of costs). What is called a change holds for all {found.n_compared:,} comparisons together at"
        f" {surely(found.level)} (Holm). Spread is between the quartiles."
    )


def left_out(found: FleetDifference) -> str:
    n = found.n_left_out
    if not n:
        return ""
    return (
        f"Left out: {count(n, 'run')} that did not come to an end (killed, or still running); --incomplete counts them."
    )
