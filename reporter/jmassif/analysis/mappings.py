# SPDX-License-Identifier: GPL-2.0-or-later
"""Resident pages, and what each library holds of every kind: its file's pages, its heap, its device memory."""

from itertools import compress
from typing import Dict, List, NamedTuple, Tuple

from jmassif.analysis.moments import Moment
from jmassif.attribution.names import Names
from jmassif.model.records import Composition, Pages, side_of
from jmassif.model.run import Profile


NO_PAGES = Pages(0, 0, 0)


class Mapped(NamedTuple):
    """All mappings of one kind that one object or data file is, or is to blame for."""

    name: str
    kind: str
    resident: int
    pages: Pages


class Library(NamedTuple):
    name: str
    by_kind: Dict[str, int]  # bytes
    virtual: int  # of its mappings

    @property
    def bytes(self) -> int:
        return sum(n_bytes for kind, n_bytes in self.by_kind.items() if side_of(kind))


def _pages_at(profile: Profile, moment: Moment) -> Dict[int, Pages]:
    """Pages by account. Sizes are recorded at snapshots: a peak has those of the snapshot after it."""
    if not profile.snapshots:
        return {}
    index = moment.snapshot
    if index is None:
        later = (i for i, snapshot in enumerate(profile.snapshots) if snapshot.time >= moment.time)
        index = next(later, len(profile.snapshots) - 1)
    return profile.pages(index)


def _plus(pages: Pages, other: Pages, resident: int) -> Pages:
    """The sum. If the moments differ, a mapping is at least as large as its resident part."""
    virtual = max(other.virtual, resident)
    return Pages(pages.virtual + virtual, pages.shared + other.shared, pages.swapped + other.swapped)


def mappings(profile: Profile, names: Names, moment: Moment) -> List[Mapped]:
    """The largest first."""
    pages = _pages_at(profile, moment)
    found: Dict[Tuple[str, str], Mapped] = {}
    is_sampled = bytearray(profile.accounts.by_type(lambda type_: profile.is_sampled(type_.kind)))
    for account in compress(range(len(is_sampled)), is_sampled):
        if account not in moment.composition and account not in pages:
            continue
        kind = profile.accounts.kind(account)
        resident = moment.composition.get(account, (0, 0))[0]
        name = names.library(account)
        row = found.get((name, kind), Mapped(name, kind, 0, NO_PAGES))
        found[name, kind] = row._replace(
            resident=row.resident + resident, pages=_plus(row.pages, pages.get(account, NO_PAGES), resident)
        )
    return sorted(found.values(), key=lambda row: (-row.resident, -row.pages.virtual, row.name, row.kind))


def libraries(profile: Profile, names: Names, composition: Composition, rows: List[Mapped]) -> List[Library]:
    """The memory of each library, the largest first; `rows` are its mappings."""
    virtual: Dict[str, int] = {}
    for row in rows:
        virtual[row.name] = virtual.get(row.name, 0) + row.pages.virtual
    found: Dict[str, Dict[str, int]] = {}
    for account, (n_bytes, _) in composition.items():
        kind = profile.accounts.kind(account)
        by_kind = found.setdefault(names.library(account), {})
        by_kind[kind] = by_kind.get(kind, 0) + n_bytes
    table = [Library(name, by_kind, virtual.get(name, 0)) for name, by_kind in found.items()]
    return sorted(table, key=lambda library: (-library.bytes, library.name))
