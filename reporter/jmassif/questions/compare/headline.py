# SPDX-License-Identifier: GPL-2.0-or-later
"""The first sentences of a difference: how much more or less, whose that is most of all, and whether it may be noise."""

from typing import List, Optional

from jmassif.questions.compare.difference import POOLS, Difference, DifferenceRow, View
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


def _change(difference: Difference, view: View, pool: str) -> str:
    of = POOLS[pool]
    old, new = difference.columns[0].label, difference.columns[-1].label
    before, last = view.total.cells[0], view.total.cells[-1]
    by = of(last.change)
    memory = "" if pool == "bytes" else f" of {pool} memory"
    if not by:
        return f"{printable(new)} holds as much{memory} as {printable(old)} at {difference.moment}: {size(of(before.figures))}."
    share = f", {percent(abs(by), of(before.figures))}" if of(before.figures) else ""
    text = f"{printable(new)} holds {size(abs(by))}{memory} {'more' if by > 0 else 'less'} than {printable(old)}"
    text += f" at {difference.moment}: {size(of(before.figures))} → {size(of(last.figures))}{share}."
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
    return [_change(difference, view, pool) for pool in is_used]
