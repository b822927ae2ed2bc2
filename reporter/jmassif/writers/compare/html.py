# SPDX-License-Identifier: GPL-2.0-or-later
"""A difference as one HTML page: the tables, and a flame graph of what grew and what shrank. See page/html.py."""

from html import escape
from typing import Iterator

from jmassif.questions.compare.breakdown import SCOPE
from jmassif.questions.compare.difference import POOLS, Difference
from jmassif.questions.compare.stacks import Stacks
from jmassif.units import growth, size
from jmassif.writers.compare.page import comparison, stacks_data
from jmassif.writers.page.texts import shown
from jmassif.writers.page.html import fill_page, pack


def _answer(difference: Difference) -> str:
    """How the total has changed, in words."""
    by_moment = [view for view in difference.views if view.by != SCOPE]
    if not by_moment:
        return ""
    view = by_moment[0]
    pools = ("host", "device") if difference.is_discrete else ("bytes",)
    parts = []
    for pool in pools:
        cells = [(POOLS[pool](cell.figures), POOLS[pool](cell.change)) for cell in view.total.cells]
        name = "" if pool == "bytes" else f"{pool}: "
        parts.append(f"{name}{' → '.join(size(held) for held, _ in cells)} ({growth(cells[-1][1])})")
    return f"Total at {difference.moment}: {'; '.join(parts)}."


def write(difference: Difference, stacks: Stacks) -> Iterator[str]:
    """The runs must have been measured with `stacks`. Raises FormatError."""
    title = shown(" → ".join(column.label for column in difference.columns))
    packed = pack([stacks_data(difference, stacks)], title, difference=comparison(difference))
    yield from fill_page(title, f'<p class="statement">{escape(_answer(difference))}</p>', packed)
