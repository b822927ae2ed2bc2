# SPDX-License-Identifier: GPL-2.0-or-later
"""Who is to blame where a budget is not kept: the lines that hold most of what it counts or, against a baseline, that hold
most more than they did.
"""

from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from jmassif.model.profile import Profile
from jmassif.whose.names import Names

# Bytes by the line that is charged, or what allocated where there is none, and the owner.
Places = Dict[Tuple[str, str], int]

_MOST = 3


class Culprit(NamedTuple):
    label: str  # safe to show
    owner: str
    bytes: int
    before: Optional[int]  # the baseline's
    rate: str = ""  # by how much it grows: "4.00 KiB per step"


def by_place(profile: Profile, names: Names, held: Mapping[int, int]) -> Places:
    """`held` is bytes by account."""
    found: Places = {}
    for account, n_bytes in held.items():
        node, kind, owner = profile.accounts[account]
        frame = (names.charged(account) or names.site_id(account)) if node else 0
        key = (names.frame(frame) if frame else f"({kind}, without a stack)", owner)
        found[key] = found.get(key, 0) + n_bytes
    return found


def largest(now: Places, before: Optional[Places]) -> List[Culprit]:
    """The largest first; against a baseline those that have grown most, of which a line that has moved is new."""
    rows = [Culprit(*key, n_bytes, None if before is None else before.get(key, 0)) for key, n_bytes in now.items()]
    rows = [row for row in rows if row.bytes > (row.before or 0)]
    rows.sort(key=lambda row: (-(row.bytes - (row.before or 0)), row.label, row.owner))
    return rows[:_MOST]
