# SPDX-License-Identifier: GPL-2.0-or-later
"""Mapped memory besides the heap, by library and kind: what is resident of it, and how much address space it takes.

Figures are those of questions/mappings.py at every moment of a page, told as changes.
"""

from typing import Dict, Iterator, List, NamedTuple, Set, Tuple

from jmassif.model.kinds import PAGE_KINDS
from jmassif.model.profile import Profile
from jmassif.model.records import Pages
from jmassif.writers.page.cells import Cells

_NOTHING = Pages(0, 0, 0)

Name = Tuple[str, str]  # library, as the cells have it, and kind


class MappedFigures(NamedTuple):
    """Bytes; see records.Pages."""

    resident: int
    virtual: int
    shared: int
    swapped: int


_NO_FIGURES = MappedFigures(0, 0, 0, 0)


class Changes(NamedTuple):
    names: List[Name]
    n_rows: List[int]  # by moment
    # By row, moment after moment.
    name: List[int]  # index in `names`
    figures: List[MappedFigures]  # as they are from then on


class _Mappings:
    """Follows the accounts whose pages are sampled."""

    def __init__(self, profile: Profile, accounts: Set[int]) -> None:
        self._profile = profile
        self._accounts = accounts
        self._n_read = 0  # snapshots
        self._resident: Dict[int, int] = {}
        self._pages: Dict[int, Pages] = {}
        self._then: Dict[int, int] = {}  # by account: what was resident of it at the peak that was last asked for

    def step(self, snapshot: int, peak: str) -> Iterator[Tuple[int, MappedFigures]]:
        """By account that may have changed: what it has at a snapshot, or at a peak that is told against it."""
        changed = set(self._then)
        for index in range(self._n_read, snapshot + 1):
            told = self._profile.snapshots[index]
            for account, n_bytes in zip(told.changes.account, told.changes.bytes):
                if account in self._accounts:
                    self._resident[account] = n_bytes
                    changed.add(account)
            rows = told.pages
            for account, *numbers in zip(rows.account, rows.virtual, rows.shared, rows.swapped):
                if account in self._accounts:
                    self._pages[account] = Pages(*numbers)
                    changed.add(account)
        self._n_read = max(self._n_read, snapshot + 1)
        self._then = {}
        if peak:
            then = self._profile.peaks[peak].differences
            self._then = {a: n for a, n in zip(then.account, then.bytes) if a in self._accounts}
        for account in changed | set(self._then):
            resident = self._then.get(account, self._resident.get(account, 0))
            pages = self._pages.get(account, _NOTHING)
            yield account, MappedFigures(resident, max(pages.virtual, resident), pages.shared, pages.swapped)


def _plus(one: MappedFigures, other: MappedFigures, sign: int) -> MappedFigures:
    return MappedFigures(*(a + sign * b for a, b in zip(one, other)))


def mapped(profile: Profile, found: Cells) -> Changes:
    """Empty for a trace without pages."""
    sampled = {kind for kind in PAGE_KINDS if profile.is_sampled(kind)}
    accounts = {id_ for id_, account in enumerate(profile.accounts) if account.kind in sampled}
    changes = Changes([], [], [], [])
    if not accounts:
        changes.n_rows.extend([0] * len(found.moments))
        return changes
    places: Dict[Name, int] = {}
    name_of = {}
    for account in accounts:
        attributes = found.attributes[found.cells[found.cell_of[account]].attributes]
        name_of[account] = places.setdefault((attributes.library, attributes.kind), len(places))
    changes.names.extend(places)
    mappings = _Mappings(profile, accounts)
    known: Dict[int, MappedFigures] = {}
    sums = [_NO_FIGURES] * len(places)
    for moment in found.moments:
        before = list(sums)
        snapshot = profile.peaks[moment.peak].snapshot if moment.snapshot is None else moment.snapshot
        for account, figures in mappings.step(snapshot, moment.peak):
            name = name_of[account]
            sums[name] = _plus(_plus(sums[name], known.get(account, _NO_FIGURES), -1), figures, 1)
            known[account] = figures
        changed = [name for name, figures in enumerate(sums) if figures != before[name]]
        changes.n_rows.append(len(changed))
        changes.name.extend(changed)
        changes.figures.extend(sums[name] for name in changed)
    return changes
