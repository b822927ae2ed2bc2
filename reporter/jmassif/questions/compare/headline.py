# SPDX-License-Identifier: GPL-2.0-or-later
"""The first sentences of a difference: how much more or less, whose that is most of all, and whether it may be noise."""

from typing import List, Optional

from jmassif.questions.compare.difference import POOLS, Difference, DifferenceRow, View
from jmassif.questions.compare.places import Moved, most_moved
from jmassif.units import growth, percent, printable, size

_NAMED = 3


def _view(difference: Difference) -> Optional[View]:
    """The first that adds up to all that was held."""
    return next((view for view in difference.views if view.counts == "blocks"), None)


def _noise(difference: Difference, row: DifferenceRow) -> str:
    is_beyond = row.cells[-1].is_beyond
    if is_beyond is None:
        return " Of single runs it is not known what is noise: name repeated ones, with --vs between the sides."
    if is_beyond:
        return " That is beyond what the runs of either side differ by."
    return " That is within what the runs of either side differ by, so it may be noise."


# Of the difference: a line that accounts for more of it is named.
_MOST = 0.5
# Likewise: by more than that it has grown as others have shrunk.
_ALL = 1.05


def _told(found: Moved) -> str:
    where = f"at {found.label}" if found.is_line else f"in {found.label}"
    return f"{where}: {growth(found.change)} ({size(found.before)} → {size(found.now)})"


def _line(difference: Difference, pool: str, change: int) -> str:
    """A sentence on the line to look at first; "" where none accounts for most of the change."""
    sides = [difference.columns[number].runs for number in (0, -1)]
    first, last = ([run.places for run in runs if run.places is not None] for runs in sides)
    if len(first) + len(last) < sum(map(len, sides)):
        return ""
    sign = 1 if change > 0 else -1
    found = most_moved(first, last, POOLS[pool], sign, _MOST * abs(change))
    if found is None:
        return ""
    if abs(found.change) <= _ALL * abs(change):
        return f" Most of that is {_told(found)}."
    words = ("grew", "shrank")[::sign]
    against = most_moved(first, last, POOLS[pool], -sign, _MOST * abs(change))
    return f" It {words[0]} most {_told(found)}" + (f", and {words[1]} most {_told(against)}." if against else ".")


def _change(difference: Difference, view: View, pool: str, is_alone: bool) -> str:
    of = POOLS[pool]
    old, new = difference.columns[0].label, difference.columns[-1].label
    before, last = view.total.cells[0], view.total.cells[-1]
    by = of(last.change)
    # Memory of the host has no name where there is no other.
    memory = "" if pool == "bytes" or (pool == "host" and is_alone) else f" of {pool} memory"
    if not by:
        return f"{printable(new)} holds as much{memory} as {printable(old)} at {difference.moment}: {size(of(before.figures))}."
    share = f", {percent(abs(by), of(before.figures))}" if of(before.figures) else ""
    text = f"{printable(new)} holds {size(abs(by))}{memory} {'more' if by > 0 else 'less'} than {printable(old)}"
    text += f" at {difference.moment}: {size(of(before.figures))} → {size(of(last.figures))}{share}."
    text += _line(difference, pool, by)
    changed = [row for row in view.rows if row.is_counted and of(row.cells[-1].change)]
    changed.sort(key=lambda row: (-abs(of(row.cells[-1].change)), row.name))
    if changed:
        named = [f"{printable(row.name)} {growth(of(row.cells[-1].change))}" for row in changed[:_NAMED]]
        text += f" By {view.by}: most changed {', then '.join(named)}."
    return text + _noise(difference, view.total)


def difference_headline(difference: Difference) -> List[str]:
    """Sentences that are safe to show, one for each pool; none where nothing that was held is compared, or with nothing."""
    view = _view(difference)
    if view is None or len(difference.columns) < 2:
        return []
    pools = ["device", "host"] if difference.is_discrete else ["bytes"]
    is_used = [pool for pool in pools if any(POOLS[pool](cell.figures) for cell in view.total.cells)]
    return [_change(difference, view, pool, len(is_used) == 1) for pool in is_used]
