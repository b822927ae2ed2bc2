# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory by Python line, function or module: what each held at the peak, what is left of it, and all it ever allocated.

Every account is charged to one row (see blame.py), so the rows add up to the totals, to the byte.
"""

from array import array
from collections import Counter
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from jmassif.analysis.aggregate import Usage, aggregate, columns_by, sum_of
from jmassif.analysis.leaks import NOT_FREED, find_growth, importing
from jmassif.analysis.moments import Moment, select
from jmassif.analysis.other_tools import ALLOCATED_OWNERS
from jmassif.attribution.names import Names
from jmassif.attribution.views import Location, charges, totals
from jmassif.model.records import LiveBytesByAccount
from jmassif.model.run import Profile
from jmassif.model.run_info import used_sides


class LineRow(NamedTuple):
    """A line, a function or a module, and its memory."""

    charged: Location
    held: Usage = Usage()  # at the peak, by itself: where it is the innermost place
    growth: Usage = Usage()  # bytes, net, from the start to the moment that was chosen
    allocated: Usage = Usage()  # bytes, in the whole run
    total: Usage = Usage()  # at the peak, with all that it called: rows share it, and it does not add up


def line_rows(
    profile: Profile, charged: Callable[[int], Location], at_peak: LiveBytesByAccount, now: LiveBytesByAccount
) -> List[LineRow]:
    """The rows without their totals, in no order. Memory of kinds that are only listed is left out."""
    known: Dict[str, Location] = {}

    def label(account: int) -> str:
        to = charged(account)
        return known.setdefault(to.label, to).label

    allocated = {account: (n_bytes, 0) for account, n_bytes in enumerate(profile.lifetime().bytes) if n_bytes}
    columns = columns_by(profile, (at_peak, now, allocated), label)
    return [LineRow(known[name], *usages) for name, usages in columns.items()]


def with_totals(
    profile: Profile, rows: Sequence[LineRow], through: Callable[[int], Sequence[Location]], at_peak: LiveBytesByAccount
) -> List[LineRow]:
    """The rows with their totals, and rows for places that only call others. `through` is that of views.totals."""
    # Accounts by the thousand are called through the same places.
    alike: Dict[int, Sequence[Location]] = {}

    def passed(account: int) -> int:
        places = through(account)
        alike[id(places)] = places
        return id(places)

    known = {row.charged.label: row for row in rows}
    sums: Dict[str, Usage] = {}
    for key, usage in aggregate(profile, at_peak, passed).items():
        for to in alike[key]:
            known.setdefault(to.label, LineRow(to))
            sums[to.label] = sums.get(to.label, Usage()) + usage
    # Memory without a line to blame has called nothing.
    return [row._replace(total=sums.get(label, row.held)) for label, row in known.items()]


def total(rows: Sequence[LineRow]) -> LineRow:
    """The sum of the rows; of their totals, which share bytes, what all rows hold by themselves."""
    held, grown, allocated = (
        sum_of(getattr(row, figure) for row in rows) for figure in ("held", "growth", "allocated")
    )
    return LineRow(Location("total", 0, False), held, grown, allocated, held)


class LineTable(NamedTuple):
    """A row a place, and rows of what has no place; together they are the total."""

    peak: Moment
    now: Moment  # up to which memory has grown
    spaces: List[str]  # with sums of their own: "" for both of a unified board, or each of a discrete GPU
    shown: List[LineRow]  # the largest first
    n_small: int  # places below the threshold
    small: LineRow  # their sum
    nowhere: List[LineRow]
    total: LineRow


def line_table(
    run: Profile, names: Names, by: str, is_folded: bool, selector: Optional[str], threshold: float
) -> LineTable:
    """By one of views.LINE_VIEWS. Shown are the places with `threshold` percent of any figure.

    The largest come first; with a selector, lines that leak, then those that grew most up to then.
    """
    leaking = {leak.frame for leak in find_growth(run, names).lines} if selector else set()
    peak, now = select(run, "peak"), select(run, selector or "end")
    own = line_rows(run, charges(run, names, by, is_folded), peak.composition, now.composition)
    rows = with_totals(run, own, totals(run, names, by, is_folded), peak.composition)
    sum_, sides = total(rows), used_sides(run)
    spaces = sides if len(sides) == 1 or run.is_discrete else [""]

    def share(row: LineRow, figure: str) -> float:
        """The row's part of the sum, in percent; the larger one where there are two pools."""
        part: Usage = getattr(row, figure)
        whole: Usage = getattr(sum_, figure)
        return max(100 * part.on(space) / whole.on(space) if whole.on(space) else 0.0 for space in spaces)

    def order(row: LineRow) -> Tuple[bool, float, float, str]:
        grown = -share(row, "growth" if selector else "held")
        return row.charged.frame not in leaking, grown, -share(row, "total"), row.charged.label

    def is_worth(row: LineRow) -> bool:
        return row.charged.frame in leaking or any(share(row, figure) >= threshold for figure in LineRow._fields[1:])

    places = sorted((row for row in rows if row.charged.is_place), key=order)
    shown = [row for row in places if is_worth(row)]
    small = [row for row in places if not is_worth(row)]
    nowhere = sorted((row for row in rows if not row.charged.is_place), key=lambda row: row.charged.label)
    return LineTable(peak, now, spaces, shown, len(small), total(small), nowhere, sum_)


# ---- the largest lines, and the one to start with ---------------------------------------------

# Groups that a line of the user's own can change.
_MINE = ("yours", "cached")
# This share of the memory space: a smaller place is none to start with.
_LEAST_SHARE = 0.01
# Of imports: a smaller part surprises nobody.
_LEAST_IMPORTED = 0.25
_NEARLY_ALL = 0.99


def lines_to_blame(names: Names) -> "array[int]":
    """By account: the Python frame to blame: one of the user's own, else of a package, else of Python itself; 0: none."""
    return names.once(_lines_to_blame)


def _lines_to_blame(profile: Profile, names: Names) -> "array[int]":
    return array("I", [own or any_ for own, any_ in zip(names.charges(), names.charges(False))])


class Part(NamedTuple):
    """Of the memory of a place."""

    owner: str
    is_imported: bool  # left by an import
    is_page: bool  # sampled pages of files and stacks, which nobody frees


Place = Union[int, str]  # a Python frame's id, or a site in words; "": no stack
Places = Dict[Place, Dict[Part, Usage]]


def by_place(profile: Profile, names: Names, live: LiveBytesByAccount) -> Places:
    """All memory by the line to blame or, where there is none, by the site."""
    lines, own, is_import = lines_to_blame(names), names.charges(), importing(profile, names)
    numbers = profile.accounts.type_numbers
    parts = [Part(of.owner, flag, of.kind in NOT_FREED) for of in profile.accounts.types for flag in (False, True)]

    def key(account: int) -> Tuple[Place, int]:
        frame, site = lines[account], names.site_id(account)
        place: Place = frame or (names.frame(site) if site else "")
        return place, 2 * numbers[account] + bool(is_import[account] and own[account])

    found: Places = {}
    for (place, part), usage in aggregate(profile, live, key).items():
        at_place = found.setdefault(place, {})
        at_place[parts[part]] = at_place.get(parts[part], Usage()) + usage
    return found


def _sum(parts: Mapping[Part, Usage], space: str, counts: Callable[[Part], bool] = lambda part: True) -> int:
    return sum(usage.on(space) for part, usage in parts.items() if counts(part))


class LineUsage(NamedTuple):
    """A Python line or, where there is none, a site, and the memory that it caused."""

    label: str  # "train.py:148", "work (x.c:5)"; safe to show
    path: str  # of a Python line's source file, else ""
    number: int  # likewise, its line
    tensors: int  # bytes of tensors and workspaces
    cache: int  # bytes that its allocator keeps unused
    imported: int  # bytes left by imports
    usage: Usage  # of all


def largest_lines(profile: Profile, names: Names, places: Places, space: str, n: int) -> List[LineUsage]:
    """The n that hold most in "host" or "device" memory, in both with ""; memory without a stack has no line.

    Rows of one line, such as a comprehension and the function around it, have the function in the label.
    """
    group_of = profile.group_of

    def line(place: Place) -> LineUsage:
        parts = places[place]
        tensors = _sum(parts, space, lambda part: part.owner in ALLOCATED_OWNERS)
        cache = _sum(parts, space, lambda part: group_of.get(part.owner) == "cached")
        imported = _sum(parts, space, lambda part: part.is_imported)
        figures = (tensors, cache, imported, sum_of(parts.values()))
        if isinstance(place, str):
            return LineUsage(place, "", 0, *figures)
        fields = profile.frame(place)
        return LineUsage(f"{names.file(place)}:{fields.line}", fields.file, fields.line, *figures)

    def rank(place: Place) -> Tuple[int, str]:
        return -_sum(places[place], space), names.frame(place) if isinstance(place, int) else place

    order = sorted((place for place in places if place), key=rank)[:n]
    rows = [line(place) for place in order]
    times = Counter(row.label for row in rows)
    return [
        row._replace(label=_label(names, place)) if times[row.label] > 1 else row for row, place in zip(rows, order)
    ]


class Imports(NamedTuple):
    """Memory that imports of the program's own lines hold."""

    bytes: int
    is_one: bool  # one of them holds nearly all of it
    label: str  # of the largest; safe to show


class HotSpot(NamedTuple):
    """The line or site to start with: the user's own with most memory that can be changed, else the largest of all."""

    label: str  # safe to show
    bytes: int
    owners: List[Tuple[str, int]]  # the largest first
    is_yours: bool  # the memory is of an owner of yours, or cached for one
    is_import: bool  # most of its memory was left by imports
    imports: Optional[Imports]  # elsewhere, if that is much


def _imports(names: Names, places: Places, space: str, least: float) -> Optional[Imports]:
    """None if they hold no more than `least` bytes."""
    found = {place: _sum(parts, space, lambda part: part.is_imported) for place, parts in places.items()}
    n_bytes = sum(found.values())
    if n_bytes <= least:
        return None
    largest = max(found, key=lambda place: found[place])
    frame = largest if isinstance(largest, int) else 0
    label = f"{names.file(frame)}:{names.profile.frame(frame).line}" if frame else _label(names, largest)
    return Imports(n_bytes, found[largest] >= _NEARLY_ALL * n_bytes, label)


def _label(names: Names, place: Place) -> str:
    return names.frame(place) if isinstance(place, int) else place


def sizes_by_label(names: Names, places: Places, space: str = "") -> Dict[str, int]:
    """Bytes by place, under names that other runs of the program have too; without memory that has no stack."""
    found: Dict[str, int] = {}
    for place, parts in places.items():
        if place:
            label = _label(names, place)
            found[label] = found.get(label, 0) + _sum(parts, space)
    return found


def hot_spot(profile: Profile, names: Names, places: Places, space: str = "") -> Optional[HotSpot]:
    """In "host" or "device" memory, in both with ""; None where no memory has a stack. Of equal ones the first."""

    def is_mine(part: Part) -> bool:
        return profile.group_of.get(part.owner) in _MINE and not part.is_page

    counts: Callable[[Part], bool]
    whole = sum(_sum(parts, space) for parts in places.values())
    for counts, least in ((is_mine, _LEAST_SHARE * whole), (lambda part: True, 0.0)):
        sums = {place: _sum(parts, space, counts) for place, parts in places.items() if place}
        largest = max(sums, key=lambda place: sums[place], default="")
        n_bytes = sums.get(largest, 0)
        if n_bytes and n_bytes >= least:
            break
    else:
        return None
    parts = places[largest]
    owners: Dict[str, int] = {}
    for part, usage in parts.items():
        if counts(part) and usage.on(space):
            owners[part.owner] = owners.get(part.owner, 0) + usage.on(space)
    # A line that calls what imports late may hold much of both.
    is_import = _sum(parts, space, lambda part: part.is_imported and counts(part)) > n_bytes / 2
    return HotSpot(
        label=_label(names, largest),
        bytes=n_bytes,
        owners=sorted(owners.items(), key=lambda item: (-item[1], item[0])),
        is_yours=counts is is_mine,
        is_import=is_import,
        imports=None if is_import else _imports(names, places, space, max(n_bytes, _LEAST_IMPORTED * whole)),
    )
