# SPDX-License-Identifier: GPL-2.0-or-later
"""The first sentences of a difference: how much more or less, whose that is most of all, and whether it may be noise."""

import sys
from array import array
from typing import Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from jmassif.analysis import compare as breakdown
from jmassif.analysis.aggregate import UsageRow, rows_by
from jmassif.analysis.balance import BESIDE_LEDGER, books, nearest_to, whose
from jmassif.analysis.hot_spot import lines_to_blame
from jmassif.analysis.moments import Moment
from jmassif.analysis.range_diff import At, look_at
from jmassif.analysis.regions import growth_by_side
from jmassif.analysis.run_info import facts
from jmassif.attribution import names as alignment
from jmassif.attribution.blame import NO_STACK, base_name
from jmassif.attribution.names import Names
from jmassif.attribution.views import LINE_VIEWS, charges, naming
from jmassif.model.records import Composition, counted_blocks, side_of
from jmassif.model.run import Profile
from jmassif.units import growth, percent, printable, size


# ---- breakdown ----
# What a run held or spent, by owner, by library, by call and so on, under names that mean the same in every run.
#
# A *part* is a name with its figures. The parts of a view add up to the run's total, to the byte. Calls may be nested in
# others: those are told beneath the call they were made in, whose figures include them, and count no second time.

SCOPE = "scope"
PROCESS = "process"
# What is held at a moment; SCOPE is what calls have cost instead, PROCESS all that the process had in memory.
HELD = ("owner", "group", "kind", "role", "thread", "library", "function") + tuple(LINE_VIEWS)
VIEWS = HELD + (PROCESS, SCOPE)

# Calls nested deeper than any real ones are in the figures of those around them alone.
_MAX_DEPTH = 16


class PartFigures(NamedTuple):
    host: int = 0  # bytes, as is the next
    device: int = 0
    number: int = 0  # of blocks; in a view by scope, of calls

    @property
    def bytes(self) -> int:
        return self.host + self.device

    def plus(self, other: "PartFigures") -> "PartFigures":
        return PartFigures(self.host + other.host, self.device + other.device, self.number + other.number)

    def minus(self, other: "PartFigures") -> "PartFigures":
        return PartFigures(self.host - other.host, self.device - other.device, self.number - other.number)


def median(numbers: Sequence[int]) -> int:
    """Of an even count the lower one: a figure that some run has."""
    return sorted(numbers)[(len(numbers) - 1) // 2]


class Key(NamedTuple):
    """What a part is known by in every run."""

    path: Tuple[str, ...]  # its name, after those of the calls around it
    is_listed: bool = False  # calls of which it is not known what they are nested in: in no sum

    @property
    def is_counted(self) -> bool:
        return not self.is_listed and len(self.path) == 1


Parts = Dict[Key, PartFigures]


def frame_name(profile: Profile, names: Names, frame_id: int) -> str:
    """The function of a frame and its library or, of Python, its file. Safe to show."""
    frame = profile.frame(frame_id)
    if frame.type == "p":
        return printable(f"{frame.function or '?'} ({names.file(frame_id)})")
    if frame.type == "t":
        return names.frame(frame_id)
    name = printable(alignment.function(frame.function)) or "(no name)"
    library = printable(base_name(frame.object or frame.file)) or "(no object file)"
    return f"{name} ({alignment.library(library)})"


def _function(profile: Profile, names: Names, account: int) -> str:
    """The function to blame."""
    frame_id = names.site_id(account)
    return frame_name(profile, names, frame_id) if frame_id else NO_STACK


def namer(profile: Profile, names: Names, view: str) -> Callable[[int], str]:
    """A function from an account to the name that it goes by in a view of HELD; names are safe to show."""
    if view in LINE_VIEWS:
        charged = charges(profile, names, view, True, is_below_cwd=False)
        if view == "module":
            return lambda account: alignment.library(charged(account).label)
        return lambda account: charged(account).label
    if view == "library":
        return lambda account: alignment.library(names.library(account))
    if view == "function":
        return lambda account: _function(profile, names, account)
    return naming(profile, names, view)


def _parts_of(rows: Iterable[UsageRow]) -> Parts:
    return {
        Key((row.name,)): PartFigures(row.usage.host_bytes, row.usage.device_bytes, row.usage.blocks) for row in rows
    }


def held(profile: Profile, names: Names, view: str, composition: Composition) -> Parts:
    """The parts of what was held, by a view of HELD. Memory of kinds that are only listed is left out."""
    return _parts_of(rows_by(profile, composition, namer(profile, names, view)))


def whole_process(profile: Profile, moment: Moment) -> Parts:
    """What the kernel counts as the process's: by owner, and what is beside the ledger. Nothing where it was not sampled."""
    snapshot = nearest_to(profile, moment)
    if snapshot is None:
        return {}
    made = books(profile, snapshot)
    parts = _parts_of(whose(profile, made).owners)
    for row in BESIDE_LEDGER:
        parts[Key((row.name,))] = PartFigures(row.bytes(made))
    return parts


def _add(parts: Parts, key: Key, figures: PartFigures) -> None:
    parts[key] = parts.get(key, PartFigures()).plus(figures)


def spent(profile: Profile) -> Parts:
    """What calls have cost: the net growth by the time they returned, over the whole run."""
    by_id = {scope.id: scope for scope in profile.scopes}
    paths: Dict[int, Tuple[str, ...]] = {}

    def path(id_: int) -> Tuple[str, ...]:
        inner: List[int] = []
        while id_ in by_id and id_ not in paths:
            inner.append(id_)
            id_ = by_id[id_].parent
        found = paths.get(id_, ())
        for each in reversed(inner):
            name = printable(alignment.scope(by_id[each].name))
            found = paths[each] = (found + (name,))[: _MAX_DEPTH + 1]
        return found

    parts: Parts = {}
    for scope in profile.scopes:
        called = path(scope.id)
        if len(called) <= _MAX_DEPTH:
            _add(parts, Key(called), PartFigures(*growth_by_side(scope.growths), 1))
    for rest in profile.scope_sums.values():
        key = Key((printable(alignment.scope(rest.name)),), is_listed=True)
        _add(parts, key, PartFigures(*growth_by_side(rest.growths), rest.calls))
    return parts


def total(parts: Parts) -> PartFigures:
    found = PartFigures()
    for key, figures in parts.items():
        if key.is_counted:
            found = found.plus(figures)
    return found


# ---- places ----
# The one line that accounts for most of a difference, where there is one.
#
# A function is the same in two runs by its name. Its lines move with every edit above them, and mostly together: so the lines of
# the first run are moved by the distance at which most of them meet lines of the last, before they are compared.


class Spot(NamedTuple):
    """What one line of a function holds."""

    label: str  # safe to show
    host: int  # bytes, as is the next
    device: int

    @property
    def figures(self) -> PartFigures:
        return PartFigures(self.host, self.device)


# By function, as frame_name calls it, and line; 0 where lines are not known.
Places = Dict[str, Dict[int, Spot]]
_Lines = Dict[int, int]  # bytes by line
_Pick = Callable[[PartFigures], int]


def places_of(profile: Profile, names: Names, composition: Composition) -> Places:
    """By the Python line to blame or, without Python, the frame: as jm_print's headline has it."""
    found: Places = {}
    to_blame = lines_to_blame(names)
    called: Dict[int, Tuple[str, str]] = {}
    for account, (n_bytes, _) in composition.items():
        node, kind, _ = profile.accounts[account]
        side = side_of(kind)
        if not node or not side or not n_bytes:
            continue
        frame = to_blame[account] or names.site_id(account)
        if frame not in called:  # runs of one program have nearly all of them in common
            called[frame] = sys.intern(frame_name(profile, names, frame)), sys.intern(names.frame(frame))
        function, label = called[frame]
        lines, line = found.setdefault(function, {}), profile.frame(frame).line
        _, host, device = lines.get(line) or (label, 0, 0)
        lines[line] = Spot(label, host + n_bytes, device) if side == "host" else Spot(label, host, device + n_bytes)
    return found


class Moved(NamedTuple):
    """A line, or a function of which no one line does, that holds more than before, or less, in bytes."""

    label: str
    is_line: bool
    before: int
    now: int

    @property
    def change(self) -> int:
        return self.now - self.before


def _lines_of(runs: Sequence[Places], function: str, of: _Pick) -> _Lines:
    """The medians of some runs."""
    found = [run.get(function, {}) for run in runs]
    lines = {line for run in found for line in run}
    return {line: median([of(run[line].figures) if line in run else 0 for run in found]) for line in lines}


def _sum_of(runs: Sequence[Places], function: str, of: _Pick) -> int:
    return median([sum(of(spot.figures) for spot in run.get(function, {}).values()) for run in runs])


# Of a function: so many of its largest lines tell how far all have moved.
_MOST_LINES = 50


def _distance(before: _Lines, now: _Lines) -> int:
    """By how many lines those of the first runs have moved."""
    if before.keys() <= now.keys() or now.keys() <= before.keys():
        return 0

    def fit(distance: int) -> Tuple[int, int, int, int]:
        met = [line for line in before if line + distance in now]
        alike = sum(before[line] == now[line + distance] for line in met)
        return len(met), alike, -abs(distance), distance

    largest = sorted(before, key=lambda line: -before[line])[:_MOST_LINES]
    to = sorted(now, key=lambda line: -now[line])[:_MOST_LINES]
    return max(fit(distance) for distance in {there - line for line in largest for there in to})[3]


def _label(runs: Iterable[Places], function: str, line: int) -> Optional[str]:
    return next((run[function][line].label for run in runs if line in run.get(function, {})), None)


def most_moved(first: Sequence[Places], last: Sequence[Places], of: _Pick, sign: int, least: float) -> Optional[Moved]:
    """What has grown most (of `sign` -1: shrunk) from the first runs to the last, in bytes of a pool; None if by no more than `least`."""
    functions = {function: None for run in [*last, *first] for function in run}
    sums = {function: (_sum_of(first, function, of), _sum_of(last, function, of)) for function in functions}
    best = max(sums, key=lambda function: sign * (sums[function][1] - sums[function][0]), default=None)
    if best is None or sign * (sums[best][1] - sums[best][0]) <= least:
        return None
    now = _lines_of(last, best, of)
    before = _lines_of(first, best, of)
    distance = _distance(before, now)
    before = {line + distance: n_bytes for line, n_bytes in before.items()}
    line = max({**before, **now}, key=lambda line: sign * (now.get(line, 0) - before.get(line, 0)))
    found = Moved("", True, before.get(line, 0), now.get(line, 0))
    label = _label(last, best, line) or _label(first, best, line - distance)
    if label is None or sign * found.change <= least:
        return Moved(best, False, *sums[best])
    return found._replace(label=label)


# ---- stacks ----
# The call stacks of several runs in one trie, under names that mean the same in every run.
#
# A stack of one run and that of another are the same place if their functions have the same names, one after the other,
# without what changes from release to release (alignment.py). Lines are left out: they move with every edit.
#
# Runs are added as they are read and keep three numbers for each place they hold memory at, so that a directory of traces
# needs little more memory than the largest of them.


class Frame(NamedTuple):
    name: str  # safe to show
    is_python: bool
    package: str  # whose internal frame it is; "" for the user's own


class Place(NamedTuple):
    """Memory of one kind that one stack holds."""

    node: int  # innermost; 0: there is no stack
    kind: str
    owner: str
    library: str  # of the frame to blame


class HeldStacks(NamedTuple):
    """What a run held: a row a place."""

    place: "array[int]"  # index in Stacks.places
    bytes: "array[int]"
    blocks: "array[int]"

    @property
    def total(self) -> int:
        return sum(self.bytes)


class Stacks:
    """Node 0 is the root, and a child's index is larger than its parent's."""

    def __init__(self) -> None:
        self.parent = array("Q", [0])
        self.frame = array("Q", [0])  # index in `frames`; of the root without meaning
        self.frames: List[Frame] = []
        self.places: List[Place] = []
        self.group_of: Dict[str, str] = {}  # by owner
        self._nodes: Dict[int, int] = {}  # by parent and frame
        self._known_frames: Dict[Frame, int] = {}
        self._known_places: Dict[Place, int] = {}

    def _node(self, parent: int, frame: int) -> int:
        key = parent << 32 | frame
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = len(self.parent)
            self.parent.append(parent)
            self.frame.append(frame)
        return node

    def _frame(self, profile: Profile, names: Names, frame_id: int) -> int:
        is_python = profile.frame(frame_id).type == "p"
        package = alignment.library(names.folding.internal(frame_id).package)
        frame = Frame(frame_name(profile, names, frame_id), is_python, package)
        index = self._known_frames.setdefault(frame, len(self.frames))
        if index == len(self.frames):
            self.frames.append(frame)
        return index

    def add(self, profile: Profile, names: Names, composition: Composition) -> HeldStacks:
        """What a run held, but for memory of kinds that are only listed."""
        self.group_of.update(profile.group_of)
        frame_of: Dict[int, int] = {}
        node_of = {0: 0}  # by node of the profile's own trie

        def aligned(innermost: int) -> int:
            node, inner = innermost, []
            while node not in node_of:
                inner.append(node)
                node = profile.node_parent[node]
            found = node_of[node]
            for node in reversed(inner):
                frame_id = profile.node_frame[node]
                if frame_id not in frame_of:
                    frame_of[frame_id] = self._frame(profile, names, frame_id)
                found = node_of[node] = self._node(found, frame_of[frame_id])
            return found

        sums: Dict[int, List[int]] = {}
        for account, (n_bytes, blocks) in composition.items():
            node, kind, owner = profile.accounts[account]
            if not side_of(kind):
                continue
            place = Place(aligned(node), kind, owner, alignment.library(names.library(account)))
            index = self._known_places.setdefault(place, len(self.places))
            if index == len(self.places):
                self.places.append(place)
            held = sums.setdefault(index, [0, 0])
            held[0] += n_bytes
            held[1] += counted_blocks(kind, blocks)
        rows = list(sums.values())
        return HeldStacks(array("Q", sums), array("Q", (row[0] for row in rows)), array("Q", (row[1] for row in rows)))


# ---- difference ----
# Runs laid side by side: what differs between them, and by how much.
#
# A *column* is one run, or several runs of the same thing, whose median and range it then shows. Every column is compared
# with the first. The rows of a view that count add up to its total in every column, to the byte: what is too small to be
# shown is in the row `other`, and where columns are medians, which do not add up by themselves, a row `remainder` makes up
# for it.

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


# ---- headline ----

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


# Of the difference: a line that accounts for more of it is named.
_MOST = 0.5
# Likewise: by more than that it has grown as others have shrunk.
_ALL = 1.05


def _told(found: Moved) -> str:
    where = f"at {found.label}" if found.is_line else f"in {found.label}"
    return f"{where}: {growth(found.change)} ({size(found.before)} → {size(found.now)})"


def _line(difference: Difference, pool: str, change: int) -> str:
    """A sentence on the line to look at first; "" where none accounts for most of the change."""
    sides = [difference.columns[number].runs for number in (0, -1)]
    first, last = ([run.places for run in runs if run.places is not None] for runs in sides)
    if len(first) + len(last) < sum(map(len, sides)):
        return ""
    sign = 1 if change > 0 else -1
    found = most_moved(first, last, POOLS[pool], sign, _MOST * abs(change))
    if found is None:
        return ""
    if abs(found.change) <= _ALL * abs(change):
        return f" Most of that is {_told(found)}."
    words = ("grew", "shrank")[::sign]
    against = most_moved(first, last, POOLS[pool], -sign, _MOST * abs(change))
    return f" It {words[0]} most {_told(found)}" + (f", and {words[1]} most {_told(against)}." if against else ".")


def _change(difference: Difference, view: View, pool: str, is_alone: bool) -> str:
    of = POOLS[pool]
    old, new = difference.columns[0].label, difference.columns[-1].label
    before, last = view.total.cells[0], view.total.cells[-1]
    by = of(last.change)
    # Memory of the host has no name where there is no other.
    memory = "" if pool == "bytes" or (pool == "host" and is_alone) else f" of {pool} memory"
    if not by:
        return f"{printable(new)} holds as much{memory} as {printable(old)} at {difference.moment}: {size(of(before.figures))}."
    share = f", {percent(abs(by), of(before.figures))}" if of(before.figures) else ""
    text = f"{printable(new)} holds {size(abs(by))}{memory} {'more' if by > 0 else 'less'} than {printable(old)}"
    text += f" at {difference.moment}: {size(of(before.figures))} → {size(of(last.figures))}{share}."
    text += _line(difference, pool, by)
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
    return [_change(difference, view, pool, len(is_used) == 1) for pool in is_used]
