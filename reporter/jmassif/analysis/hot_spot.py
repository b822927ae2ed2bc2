# SPDX-License-Identifier: GPL-2.0-or-later
"""The line to look at first: a place to look, not a culprit.

A person can change what is theirs. So the place with most memory of their own counts, as long as it is worth a look; else the
largest of all, which is as a rule an import. What imports leave is not theirs, and may be most of all: it has words of its own.
"""

from array import array
from typing import Dict, List, NamedTuple, Optional, Tuple, Union

from jmassif.analysis.leaks import NOT_FREED, importing
from jmassif.attribution.names import Names
from jmassif.attribution.packages import OWN
from jmassif.model.records import Composition, side_of
from jmassif.model.run import Profile
from jmassif.units import percent, size


# Groups whose memory a line of the user's own can do something about.
_MINE = ("yours", "cached")
# Of the pool: what is less is not worth being looked at first.
_LEAST_SHARE = 0.01
# Likewise: of less than that imports take nobody is surprised.
_LEAST_IMPORTED = 0.25
_OWNERS_NAMED = 3
# Of what is told: a smaller owner would be a distraction.
_LEAST_OWNER = 0.01


class Imports(NamedTuple):
    """What the imports of the program's own lines hold."""

    bytes: int
    is_one: bool  # as good as all of it
    label: str  # of the largest, safe to show


# Of the libraries that every program is linked with, and what starts it.
_EVERYONES = "loader"


class HotSpot(NamedTuple):
    """The memory that one Python line or, without Python, one frame is to blame for."""

    label: str  # the frame, in words that are safe to show
    bytes: int
    whole: int  # bytes of the pool that it is in
    pool: str  # "host", "device", or "" where they are one
    of: str  # the pool in words: "its device memory"
    owners: List[Tuple[str, int]]  # the largest first
    is_yours: bool  # the memory is of an owner of yours, or cached for one
    is_own_line: bool  # the place is a line of the program's own
    is_import: bool  # most of its memory is what importing left
    imports: Optional[Imports]  # elsewhere, if that is much
    is_allocated: bool  # anything in the pool, by the program and its libraries


class _Sum:
    """What one place holds."""

    __slots__ = ("by_owner", "first", "largest", "largest_bytes", "imported")

    def __init__(self, account: int) -> None:
        self.by_owner: Dict[str, int] = {}
        self.first = account  # that was known
        self.largest = account  # of its accounts
        self.largest_bytes = 0
        self.imported = 0  # bytes that importing left

    def add(self, account: int, owner: str, n_bytes: int, is_imported: bool) -> None:
        self.imported += n_bytes if is_imported else 0
        self.by_owner[owner] = self.by_owner.get(owner, 0) + n_bytes
        if n_bytes > self.largest_bytes:
            self.largest, self.largest_bytes = account, n_bytes

    @property
    def bytes(self) -> int:
        return sum(self.by_owner.values())


_Key = Union[int, str]


def _largest(sums: Dict[_Key, _Sum]) -> Optional[_Sum]:
    """Of several that are alike the one that was known first, so that a run has one answer."""
    return max(sums.values(), key=lambda sum_: (sum_.bytes, -sum_.first)) if sums else None


def lines_to_blame(names: Names) -> "array[int]":
    """By account: the Python frame to blame: one of the user's own, else of a package, else of Python itself; 0: none."""
    return names.once(_lines_to_blame)


def _lines_to_blame(profile: Profile, names: Names) -> "array[int]":
    return array("I", [own or any_ for own, any_ in zip(names.charges(), names.charges(False))])


class _Traits(NamedTuple):
    """Of memory of some kind and owner."""

    is_counted: bool  # in the pool
    is_allocated: bool  # by the program and its libraries
    is_mine: bool


def _traits(profile: Profile, kind: str, owner: str, pool: str) -> _Traits:
    side = side_of(kind)
    group = profile.group_of.get(owner)
    is_page = kind in NOT_FREED
    # The loader asks for memory in every program. A program's own file is nothing that a line of it can change.
    return _Traits(
        bool(side) and pool in ("", side), not is_page and group != "runtime", group in _MINE and not is_page
    )


def _imports(names: Names, by_line: Dict[_Key, int], least: float) -> Optional[Imports]:
    """None if they hold no more than `least` bytes."""
    n_bytes = sum(by_line.values())
    if n_bytes <= least:
        return None
    largest = max(by_line, key=lambda line: (by_line[line], -int(line)))
    is_one = by_line[largest] >= (1 - _LEAST_OWNER) * n_bytes
    return Imports(n_bytes, is_one, names.frame(int(largest)))


def _called(pool: str, is_of_own: bool) -> str:
    if is_of_own:
        return f"its own {pool} memory" if pool else "its own memory"
    return f"its {pool} memory" if pool else "all it held"


def hot_spot(
    profile: Profile, names: Names, composition: Composition, pool: str = "", is_of_own: bool = False
) -> Optional[HotSpot]:
    """The place in a pool ("host", "device", or "" for both); None if all its memory is without a stack.

    `is_of_own`: the composition is what of a forked child is its own.
    """
    mine: Dict[_Key, _Sum] = {}
    everything: Dict[_Key, _Sum] = {}
    imported: Dict[_Key, int] = {}
    is_import, lines, own_lines = importing(profile, names), lines_to_blame(names), names.charges()
    nodes, numbers, types = profile.accounts.nodes, profile.accounts.type_numbers, profile.accounts.types
    traits = [_traits(profile, type_.kind, type_.owner, pool) for type_ in types]
    whole = allocated = 0
    # In the order of accounts, so that the first that is seen of a place is its first.
    for account, (n_bytes, _) in composition.items():
        number = numbers[account]
        is_counted, is_allocated, is_mine = traits[number]
        if not is_counted:
            continue
        whole += n_bytes
        if is_allocated:
            allocated += n_bytes
        if not nodes[account] or not n_bytes:
            continue
        key = lines[account] or names.site_frame(account)
        is_imported = bool(is_import[account] and own_lines[account])
        for sums in (everything, mine) if is_mine else (everything,):
            sum_ = sums.get(key)
            if sum_ is None:
                sum_ = sums[key] = _Sum(account)
            sum_.add(account, types[number].owner, n_bytes, is_imported)
        if is_imported:
            imported[key] = imported.get(key, 0) + n_bytes
    own = _largest(mine)
    is_yours = own is not None and own.bytes >= _LEAST_SHARE * whole
    largest = _largest(everything)
    if largest is None:
        return None
    found = own if own is not None and is_yours else largest
    account = found.largest
    line = lines[account]
    # A line that calls what imports late may hold much of both.
    of_imports = found.imported > found.bytes / 2
    elsewhere = None if of_imports else _imports(names, imported, max(found.bytes, _LEAST_IMPORTED * whole))
    return HotSpot(
        label=names.frame(line) if line else names.site_frame(account),
        bytes=found.bytes,
        whole=whole,
        pool=pool,
        of=_called(pool, is_of_own),
        owners=sorted(found.by_owner.items(), key=lambda item: (-item[1], item[0])),
        is_yours=is_yours,
        is_own_line=bool(line) and names.folding.internal(line).rank == OWN,
        is_import=of_imports,
        imports=elsewhere,
        is_allocated=bool(allocated),
    )


def share_of(place: HotSpot) -> str:
    """ "84.0 MiB, 93.8 % of its device memory" """
    return f"{size(place.bytes)}, {percent(place.bytes, place.whole)} of {place.of}"


def name_owners(owners: List[Tuple[str, int]]) -> str:
    """ "tensor 1.00 GiB, data 36.0 MiB, …": the first of some, which hold something and are sorted, without the tiny."""
    whole = sum(n_bytes for _, n_bytes in owners)
    large = [row for row in owners if row[1] >= _LEAST_OWNER * whole]
    named = [f"{owner} {size(n_bytes)}" for owner, n_bytes in large[:_OWNERS_NAMED]]
    return ", ".join(named) + (", …" if len(large) > _OWNERS_NAMED else "")


def owners_of(place: HotSpot) -> str:
    """ "tensor", or "tensor 1.00 GiB, data 36.0 MiB, …" """
    if place.owners[0][1] > (1 - _LEAST_OWNER) * place.bytes:
        return place.owners[0][0]
    return name_owners(place.owners)


def _imports_sentence(place: HotSpot) -> str:
    """What imports hold beside the place to look at; "" if that is not much."""
    imports = place.imports
    if imports is None:
        return ""
    held = f"{size(imports.bytes)} ({percent(imports.bytes, place.whole)})"
    if imports.is_one and imports.label == place.label:
        return f" What it imports holds {held} more."
    if imports.is_one:
        return f" The import at {imports.label} holds {held}."
    return f" Imports hold {held}, most of it that at {imports.label}."


def place_sentence(place: HotSpot) -> str:
    """A sentence that says where to look, and how much is there; and one on imports that hold more."""
    if place.is_import:
        where = "The largest place is the import at"
    elif place.is_yours or place.is_own_line:
        where = "Look first at"
    else:
        where = "The largest place is"
    if not place.is_allocated:
        everyones = ": this is what every program holds" if place.owners[0][0] == _EVERYONES else ""
        where = f"It held nothing that it had allocated{everyones}. {where}"
    return f"{where} {place.label}: {share_of(place)} ({owners_of(place)}).{_imports_sentence(place)}"
