# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs laid side by side: what differs between them, and by how much.

A *column* is one run, or several runs of the same thing, whose median and range it then shows. Every column is compared
with the first. The rows of a view that count add up to its total in every column, to the byte: what is too small to be
shown is in the row `other`, and where columns are medians, which do not add up by themselves, a row `remainder` makes up
for it.
"""

import sys
from typing import Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from jmassif.model.profile import Profile
from jmassif.questions.between import At, look_at
from jmassif.questions.compare import breakdown
from jmassif.questions.compare.breakdown import PartFigures, Key, Parts, median
from jmassif.questions.compare.places import Places, places_of
from jmassif.questions.compare.stacks import HeldStacks, Stacks
from jmassif.questions.facts import facts
from jmassif.whose.names import Names

# What can be compared of figures: the memory of either side, and of both.
POOLS: Mapping[str, Callable[[PartFigures], int]] = {
    "host": lambda figures: figures.host,
    "device": lambda figures: figures.device,
    "bytes": lambda figures: figures.bytes,
}


class Run(NamedTuple):
    """What of one run is compared."""

    name: str  # of the trace's file
    facts: Dict[str, str]
    is_complete: bool
    is_discrete: bool
    moment: str  # "the peak"
    views: Dict[str, Parts]
    held: Optional[HeldStacks] = None  # by call stack, where that was asked for
    places: Optional[Places] = None  # by line, where that was asked for


class Column(NamedTuple):
    label: str
    runs: List[Run]  # at least one


class Cell(NamedTuple):
    """A part in one column."""

    figures: PartFigures  # the median of the runs; of an even number the lower one of the middle two
    ranges: Dict[str, Tuple[int, int]]  # by pool: the smallest and the largest of any run
    change: PartFigures  # against the first column
    status: str  # "same", "changed", "new" or "gone", against the first column
    is_beyond: Optional[bool]  # the ranges of this and of the first column have nothing in common; None: no ranges


class DifferenceRow(NamedTuple):
    name: str
    path: Tuple[str, ...]  # the calls around it, for a view by scope
    is_counted: bool  # is in the total; calls within calls are not
    is_listed: bool  # further calls, of which it is not known what they were nested in
    cells: List[Cell]  # one a column


class View(NamedTuple):
    by: str  # one of breakdown.VIEWS
    counts: str  # what `number` of figures counts: "blocks" or "calls"
    rows: List[DifferenceRow]  # the largest difference first; a nested call after the one around it
    n_other: int
    other: Optional[DifferenceRow]  # the sum of `n_other` rows that differ too little
    remainder: Optional[DifferenceRow]  # of medians
    total: DifferenceRow


class Fact(NamedTuple):
    key: str
    values: List[str]  # one a column, "" where it is not known


class Difference(NamedTuple):
    columns: List[Column]
    moment: str
    facts: List[Fact]  # those that differ
    views: List[View]
    min_bytes: int  # rows that differ by less are in `other`

    @property
    def is_discrete(self) -> bool:
        """Host and device are two pools in some run, and must not be added up."""
        return any(run.is_discrete for column in self.columns for run in column.runs)

    @property
    def has_ranges(self) -> bool:
        return any(len(column.runs) > 1 for column in self.columns)


# Runs of a fleet have nearly all names in common: each is kept once.
_KEYS: Dict[Key, Key] = {}


def _shared(parts: Parts) -> Parts:
    return {_KEYS.setdefault(key, key): figures for key, figures in parts.items()}


def _shared_facts(profile: Profile) -> Dict[str, str]:
    return {sys.intern(key): sys.intern(value) for key, value in facts(profile).items()}


def measure(
    name: str, profile: Profile, views: Sequence[str], at: At, stacks: Optional[Stacks] = None, with_lines: bool = False
) -> Run:
    """What is compared of a run: views of breakdown.VIEWS, at a moment or of a range. Raises SelectionError.

    What it held is added to `stacks` by call stack. `with_lines`: by line too, so that the headline can name one.
    """
    moment = look_at(profile, at)
    names = Names(profile)

    def parts(view: str) -> Parts:
        if view == breakdown.SCOPE:
            return breakdown.spent(profile)
        if view == breakdown.PROCESS:
            return breakdown.whole_process(profile, moment)
        return breakdown.held(profile, names, view, moment.composition)

    found = {view: _shared(parts(view)) for view in views}
    held = stacks.add(profile, names, moment.composition) if stacks is not None else None
    places = places_of(profile, names, moment.composition) if with_lines else None
    return Run(name, _shared_facts(profile), profile.is_complete, profile.is_discrete, moment.name, found, held, places)


def _medians(runs: Sequence[PartFigures]) -> PartFigures:
    return PartFigures(*(median(numbers) for numbers in zip(*runs)))


_Ranges = Dict[str, Tuple[int, int]]


def _ranges(runs: Sequence[PartFigures]) -> _Ranges:
    numbers = {pool: [pick(figures) for figures in runs] for pool, pick in POOLS.items()}
    return {pool: (min(found), max(found)) for pool, found in numbers.items()}


def _are_apart(one: _Ranges, other: _Ranges) -> bool:
    return any(one[pool][1] < other[pool][0] or other[pool][1] < one[pool][0] for pool in POOLS)


def _status(before: PartFigures, now: PartFigures) -> str:
    nothing = PartFigures()
    if before == now:
        return "same"
    return "new" if before == nothing else "gone" if now == nothing else "changed"


def _cells(columns: Sequence[Sequence[PartFigures]]) -> List[Cell]:
    """From the figures of each run of each column."""
    has_ranges = any(len(runs) > 1 for runs in columns)
    first, first_ranges = _medians(columns[0]), _ranges(columns[0])
    cells = []
    for runs in columns:
        figures, ranges = _medians(runs), _ranges(runs)
        is_beyond = _are_apart(first_ranges, ranges) if has_ranges else None
        cells.append(Cell(figures, ranges, figures.minus(first), _status(first, figures), is_beyond))
    return cells


def _row(name: str, key: Key, columns: Sequence[Sequence[PartFigures]]) -> DifferenceRow:
    return DifferenceRow(name, key.path[:-1], key.is_counted, key.is_listed, _cells(columns))


def _largest(cells: Sequence[Cell], of: Callable[[Cell], PartFigures]) -> int:
    return max(abs(pick(of(cell))) for cell in cells for pick in POOLS.values())


def difference_of(row: DifferenceRow) -> int:
    """The bytes by which a column differs from the first at most, in any pool."""
    return _largest(row.cells, lambda cell: cell.change)


def _size_of(row: DifferenceRow) -> int:
    return _largest(row.cells, lambda cell: cell.figures)


def _rank(row: DifferenceRow) -> Tuple[int, int, str]:
    return (-difference_of(row), -_size_of(row), row.name)


def _nested(rows: List[DifferenceRow]) -> List[DifferenceRow]:
    """Sorted, each row after the one it is nested in. A row whose outer one is not there is left out."""
    inside: Dict[Tuple[str, ...], List[DifferenceRow]] = {}
    for row in sorted(rows, key=_rank, reverse=True):
        inside.setdefault(row.path, []).append(row)
    found: List[DifferenceRow] = []
    pending = list(inside.get((), []))
    while pending:
        row = pending.pop()
        found.append(row)
        if not row.is_listed:
            pending += inside.get(row.path + (row.name,), [])
    return found


def _compare(by: str, columns: Sequence[Column], min_bytes: int) -> View:
    runs = [[run.views[by] for run in column.runs] for column in columns]
    keys = {key: None for parts in runs for run in parts for key in run}
    nothing = PartFigures()
    shown: List[DifferenceRow] = []
    small: List[Key] = []
    for key in keys:
        row = _row(key.path[-1], key, [[run.get(key, nothing) for run in parts] for parts in runs])
        if (difference_of(row) if len(columns) > 1 else _size_of(row)) >= min_bytes:
            shown.append(row)
        elif key.is_counted:
            small.append(key)

    def sums(of: Callable[[Parts], PartFigures]) -> List[List[PartFigures]]:
        return [[of(run) for run in parts] for parts in runs]

    def rest(run: Parts) -> PartFigures:
        return breakdown.total({key: run[key] for key in small if key in run})

    total = _row("total", Key(("total",)), sums(breakdown.total))
    other = _row("other", Key(("other",)), sums(rest)) if small else None
    counted = [row for row in shown if row.is_counted] + ([other] if other else [])
    missing = [
        [cell.figures.minus(_sum(row.cells[number].figures for row in counted))]
        for number, cell in enumerate(total.cells)
    ]
    remainder = None
    if any(column != [nothing] for column in missing):
        remainder = _row("remainder", Key(("remainder",)), missing)
    counts = "calls" if by == breakdown.SCOPE else "blocks"
    return View(by, counts, _nested(shown), len(small), other, remainder, total)


def _sum(figures: Iterable[PartFigures]) -> PartFigures:
    found = PartFigures()
    for each in figures:
        found = found.plus(each)
    return found


def _facts(columns: Sequence[Column]) -> List[Fact]:
    keys = {key: None for column in columns for run in column.runs for key in run.facts}
    found = []
    for key in keys:
        values = [sorted({run.facts.get(key, "") for run in column.runs}) for column in columns]
        if any(value != values[0] for value in values):
            found.append(Fact(key, [", ".join(value or "?" for value in each) if any(each) else "" for each in values]))
    return found


def compare(columns: Sequence[Column], views: Sequence[str], min_bytes: int = 0) -> Difference:
    """Lays columns side by side; `views` are among those that their runs were measured by.

    Rows of which no column differs from the first by `min_bytes` are in the row `other`; of a single column those that
    are smaller than that. With 0 there is none.
    """
    moments = {run.moment: None for column in columns for run in column.runs}
    compared = [_compare(by, columns, min_bytes) for by in views]
    return Difference(list(columns), " or ".join(moments), _facts(columns), compared, min_bytes)
