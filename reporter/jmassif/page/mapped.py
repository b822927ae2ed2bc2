# SPDX-License-Identifier: GPL-2.0-or-later
"""Mapped memory besides the heap, by library and kind: what is resident of it, and how much address space it takes.

Figures are those of jmassif.mappings at every moment of a page, told as changes.
"""

from typing import Dict, Iterator, List, NamedTuple, Set, Tuple

from jmassif.page.cells import Cells
from jmassif.profile import Pages, Profile

_NOTHING = Pages(0, 0, 0)

Name = Tuple[str, str]  # library, as the cells have it, and kind


class Figures(NamedTuple):
    """Bytes; see profile.Pages."""

    resident: int
    virtual: int
    shared: int
    swapped: int


class Changes(NamedTuple):
    names: List[Name]
    n_rows: List[int]  # by moment
    # By row, moment after moment.
    name: List[int]  # index in `names`
    figures: List[Figures]  # as they are from then on


class _Mappings:
    """Follows the accounts whose pages are sampled."""

    def __init__(self, profile: Profile, accounts: Set[int]) -> None:
        self._profile = profile
        self._accounts = accounts
        self._n_read = 0  # snapshots
        self._resident: Dict[int, int] = {}
        self._pages: Dict[int, Pages] = {}

    def read(self, snapshot: int) -> None:
        for index in range(self._n_read, snapshot + 1):
            told = self._profile.snapshots[index]
            for account, n_bytes in zip(told.changes[0::6], told.changes[1::6]):
                if account in self._accounts:
                    self._resident[account] = n_bytes
            rows = told.pages
            for account, *numbers in zip(rows[0::4], rows[1::4], rows[2::4], rows[3::4]):
                if account in self._accounts:
                    self._pages[account] = Pages(*numbers)
        self._n_read = max(self._n_read, snapshot + 1)

    def held(self, peak: str) -> Iterator[Tuple[int, Figures]]:
        """By account; at a peak that is told against the snapshot which was read last, unless that is ""."""
        differences = self._profile.peaks[peak].differences if peak else ()
        then = dict(zip(differences[0::3], differences[1::3]))
        for account in self._accounts:
            resident = then.get(account, self._resident.get(account, 0))
            pages = self._pages.get(account, _NOTHING)
            yield account, Figures(resident, max(pages.virtual, resident), pages.shared, pages.swapped)


def mapped(profile: Profile, found: Cells) -> Changes:
    """Empty for a trace without pages."""
    accounts = {
        id_ for id_, account in enumerate(profile.accounts) if account.kind and profile.is_sampled(account.kind)
    }
    changes = Changes([], [], [], [])
    places: Dict[Name, int] = {}
    name_of = {}
    for account in accounts:
        attributes = found.attributes[found.cells[found.cell_of[account]].attributes]
        name_of[account] = places.setdefault((attributes.library, attributes.kind), len(places))
    changes.names.extend(places)
    mappings = _Mappings(profile, accounts)
    known = [Figures(0, 0, 0, 0)] * len(places)
    for moment in found.moments:
        mappings.read(profile.peaks[moment.peak].snapshot if moment.snapshot is None else moment.snapshot)
        sums = [[0, 0, 0, 0] for _ in places]
        for account, figures in mappings.held(moment.peak):
            sum_ = sums[name_of[account]]
            for place, number in enumerate(figures):
                sum_[place] += number
        now = [Figures(*numbers) for numbers in sums]
        changed = [name for name, figures in enumerate(now) if figures != known[name]]
        changes.n_rows.append(len(changed))
        changes.name.extend(changed)
        changes.figures.extend(now[name] for name in changed)
        known = now
    return changes
