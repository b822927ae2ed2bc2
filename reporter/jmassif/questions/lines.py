# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory by Python line, function or module: what each held at the peak, what is left of it, and all it ever allocated.

Every account is charged to one row (see charges.py), so the rows add up to the totals, to the byte.
"""

from typing import Callable, Dict, List, NamedTuple, Sequence, Tuple

from jmassif.model.kinds import counted_blocks, side_of
from jmassif.model.profile import Profile
from jmassif.model.records import Composition
from jmassif.whose.lines import Charged


class Figures(NamedTuple):
    """Of one side. Bytes, but for the blocks."""

    held: int  # at the peak
    blocks: int  # likewise
    growth: int  # net, from the start to the moment that was chosen
    allocated: int  # all in all

    def plus(self, other: "Figures") -> "Figures":
        return Figures(*(mine + theirs for mine, theirs in zip(self, other)))


class LineRow(NamedTuple):
    charged: Charged
    host: Figures
    device: Figures


def line_rows(
    profile: Profile, charged: Callable[[int], Charged], at_peak: Composition, now: Composition
) -> List[LineRow]:
    """The rows, in no order. Memory of kinds that are only listed is left out."""
    found: Dict[str, Tuple[Charged, Dict[str, List[int]]]] = {}
    nothing = (0, 0)
    allocated = profile.allocated()
    for account, (_, kind, _) in enumerate(profile.accounts):
        side = side_of(kind)
        held, blocks = at_peak.get(account, nothing)
        grown = now.get(account, nothing)[0]
        if side is None or not (held or blocks or grown or allocated[account]):
            continue
        to = charged(account)
        row = found.get(to.label)
        if row is None:
            row = found[to.label] = (to, {"host": [0] * 4, "device": [0] * 4})
        sums = row[1][side]
        sums[0] += held
        sums[1] += counted_blocks(kind, blocks)
        sums[2] += grown
        sums[3] += allocated[account]
    return [LineRow(to, Figures(*sums["host"]), Figures(*sums["device"])) for to, sums in found.values()]


def total(rows: Sequence[LineRow]) -> LineRow:
    host = device = Figures(0, 0, 0, 0)
    for row in rows:
        host, device = host.plus(row.host), device.plus(row.device)
    return LineRow(Charged("total", 0, False), host, device)
