# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs side by side: figures by owner, library, call and so on, under names that mean the same in every run.

A *part* is a name with its figures; the parts of a view add up to the run's total, to the byte. A *column* is one run, or
repeated runs with their medians; every column is compared with the first. Rows that differ too little are summed in the row
`other`, and the row `rounding` makes medians add up. Calls may be nested: their figures are part of the outer call's.
"""

from array import array
from typing import Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from jmassif.analysis.aggregate import Usage, aggregate, ledger, sum_of
from jmassif.analysis.calltree import from_outer
from jmassif.analysis.held_twice import held_twice
from jmassif.analysis.lines import lines_to_blame
from jmassif.analysis.ladder import LESS, SHOWN, Ladder, Rung, ladders
from jmassif.analysis.moments import SelectionError, select
from jmassif.attribution import names as alignment
from jmassif.attribution.blame import NO_STACK, NO_SYMBOLS, base_name
from jmassif.attribution.names import Names
from jmassif.attribution.views import LINE_VIEWS, charges, naming
from jmassif.model.records import AccountType, Changes, Growth, LiveBytesByAccount, Snapshot, growth_by_side
from jmassif.model.run import Profile
from jmassif.model.run_info import facts, grouped_by, is_redundant, label, suggestions
from jmassif.units import printable

# Views of memory at a moment; SCOPE is the cost of calls instead.
SCOPE = "scope"
TWICE = "held-twice"  # host memory that is in a device copy too, not all of it
HELD = ("owner", "group", "kind", "role", "part", "thread", "library", "function") + tuple(LINE_VIEWS)
VIEWS = HELD + (SCOPE, TWICE)

# Calls nested deeper than any real ones are in the figures of those around them alone.
_MAX_DEPTH = 16


def median(numbers: Sequence[int]) -> int:
    """The lower one of an even count: a figure of some run."""
    return sorted(numbers)[(len(numbers) - 1) // 2]


class Key(NamedTuple):
    """The name of a part in every run."""

    name: str
    inside: Tuple[str, ...] = ()  # the calls around it, in the view by scope
    is_listed: bool = False  # further calls, nested in unknown ones

    @property
    def is_counted(self) -> bool:
        """Is in the total; calls within calls are not."""
        return not self.is_listed and not self.inside


Parts = Dict[Key, Usage]


def frame_name(profile: Profile, names: Names, frame_id: int) -> str:
    """The function of a frame and its library or, of Python, its file. Safe to show."""
    frame = profile.frame(frame_id)
    if frame.type == "p":
        return printable(f"{frame.function or '?'} ({names.file(frame_id)})")
    if frame.type == "t":
        return names.frame(frame_id)
    name = printable(alignment.function(frame.function)) or NO_SYMBOLS
    library = alignment.library(printable(base_name(frame.object or frame.file)) or "(no object file)")
    return f"{library} {name}" if name == NO_SYMBOLS else f"{name} ({library})"


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
        return (
            lambda account: frame_name(profile, names, names.site_id(account)) if names.site_id(account) else NO_STACK
        )
    return naming(profile, names, view)


def spent(profile: Profile) -> Parts:
    """The cost of calls: the net growth by the time they returned, over the whole run."""
    by_id = {scope.id: scope for scope in profile.scopes}
    parents = {scope.id: scope.parent if scope.parent in by_id else 0 for scope in profile.scopes}
    paths: Dict[int, Tuple[str, ...]] = {0: ()}

    def path(around: Tuple[str, ...], id_: int) -> Tuple[str, ...]:
        return (around + (printable(alignment.scope(by_id[id_].name)),))[: _MAX_DEPTH + 1]

    parts: Parts = {}

    def add(key: Key, growths: Tuple[Growth, ...], calls: int) -> None:
        host, device = growth_by_side(growths)
        parts[key] = parts.get(key, Usage()) + Usage(host, calls, device)

    for scope in profile.scopes:
        *inside, name = from_outer(parents, paths, scope.id, path)
        if len(inside) < _MAX_DEPTH:
            add(Key(name, tuple(inside)), scope.growths, 1)
    for rest in profile.scope_sums.values():
        add(Key(printable(alignment.scope(rest.name)), is_listed=True), rest.growths, rest.calls)
    return parts


def total(parts: Parts) -> Usage:
    return sum_of(figures for key, figures in parts.items() if key.is_counted)


# ---- lines -----------------------------------------------------------------------------------

# A label that is safe to show, and the memory, for each function (named by frame_name) and line (0: unknown).
Places = Dict[str, Dict[int, Tuple[str, Usage]]]
_Pick = Callable[[Usage], int]
_MOST_LINES = 50  # of a function: the largest lines show how far all have moved


def places_of(profile: Profile, names: Names, composition: LiveBytesByAccount) -> Places:
    """The memory of each Python line to blame or, without Python, frame."""
    to_blame = lines_to_blame(names)

    def frame_to_blame(account: int) -> Optional[int]:
        return to_blame[account] or names.site_id(account) or None

    found: Places = {}
    for frame, usage in aggregate(profile, composition, frame_to_blame).items():
        lines = found.setdefault(frame_name(profile, names, frame), {})
        line = profile.frame(frame).line
        label, before = lines.get(line, (names.frame(frame), Usage()))
        lines[line] = label, before + usage
    return found


class Moved(NamedTuple):
    """A line, or a function without one such line, with more bytes than before, or fewer."""

    label: str
    is_line: bool
    before: int
    now: int

    @property
    def change(self) -> int:
        return self.now - self.before


def _bytes_of(runs: Sequence[Places], function: str, of: _Pick) -> Dict[int, int]:
    """Medians of some runs by line of a function."""
    found = [{line: of(usage) for line, (_, usage) in run.get(function, {}).items()} for run in runs]
    return {line: median([run.get(line, 0) for run in found]) for line in {line for run in found for line in run}}


def _distance(before: Dict[int, int], now: Dict[int, int]) -> int:
    """The number of lines by which an edit has moved those of the first runs: at that distance most of them meet one."""
    if before.keys() <= now.keys() or now.keys() <= before.keys():
        return 0

    def fit(distance: int) -> Tuple[int, int, int]:
        met = [line for line in before if line + distance in now]
        return len(met), sum(before[line] == now[line + distance] for line in met), -abs(distance)

    largest, to = (sorted(lines, key=lambda line: -lines[line])[:_MOST_LINES] for lines in (before, now))
    return max(sorted({there - line for line in largest for there in to}), key=fit)


def most_moved(first: Sequence[Places], last: Sequence[Places], of: _Pick, sign: int, least: float) -> Optional[Moved]:
    """The line with the most growth (of `sign` -1: the most shrinking); None if that is no more than `least`.

    A function is the same in two runs by its name. Its lines move with every edit above them, and mostly together.
    """

    def sum_of(runs: Sequence[Places], function: str) -> int:
        return median([sum(of(usage) for _, usage in run.get(function, {}).values()) for run in runs])

    functions = dict.fromkeys(function for run in [*last, *first] for function in run)
    sums = {function: (sum_of(first, function), sum_of(last, function)) for function in functions}
    best = max(sums, key=lambda function: sign * (sums[function][1] - sums[function][0]), default="")
    of_all = Moved(best, False, *sums.get(best, (0, 0)))
    if sign * of_all.change <= least:
        return None
    before, now = _bytes_of(first, best, of), _bytes_of(last, best, of)
    distance = _distance(before, now)
    before = {line + distance: n_bytes for line, n_bytes in before.items()}
    line = max({**before, **now}, key=lambda line: sign * (now.get(line, 0) - before.get(line, 0)))
    spots = [run.get(best, {}).get(line) for run in last] + [run.get(best, {}).get(line - distance) for run in first]
    found = Moved(next(spot[0] for spot in spots if spot), True, before.get(line, 0), now.get(line, 0))
    return found if sign * found.change > least else of_all


# ---- stacks ----------------------------------------------------------------------------------


class Stacks(Profile):
    """The stacks of several runs as those of one run: frames and accounts that go by one name in all of them are one."""

    def __init__(self) -> None:
        super().__init__()
        self.labels = [""]  # by frame; safe to show
        self.packages = [""]  # by frame; "" for user code
        self.libraries = [""]  # by account
        self._frame_of: Dict[Tuple[str, bool, str], int] = {}
        self._node_of: Dict[int, int] = {}  # by parent and frame
        self._account_of: Dict[Tuple[int, AccountType, str], int] = {}
        self._types: Dict[AccountType, int] = {}

    def role(self, account: int) -> None:
        """Roles are not compared by stack."""

    def _frame(self, profile: Profile, names: Names, frame_id: int) -> int:
        is_python = profile.frame(frame_id).type == "p"
        package = alignment.library(names.folding.internal(frame_id).package)
        label = frame_name(profile, names, frame_id)
        frame = self._frame_of.setdefault((label, is_python, package), len(self.labels))
        if frame == len(self.labels):
            self.labels.append(label)
            self.packages.append(package)
            self.frames[frame] = ("p" if is_python else "n", 0, 0, 0, 0, 0)
        return frame

    def _node(self, parent: int, frame: int) -> int:
        node = self._node_of.setdefault(parent << 32 | frame, len(self.node_parent))
        if node == len(self.node_parent):
            self.node_parent.append(parent)
            self.node_frame.append(frame)
        return node

    def _account(self, node: int, type_: AccountType, library: str) -> int:
        account = self._account_of.setdefault((node, type_, library), len(self.libraries))
        if account == len(self.libraries):
            number = self._types.setdefault(type_, len(self._types) + 1)
            if number == len(self.accounts.types):
                self.accounts.types.append(type_)
            self.accounts.nodes.append(node)
            self.accounts.type_numbers.append(number)
            self.libraries.append(library)
        return account

    def add(self, profile: Profile, names: Names, composition: LiveBytesByAccount) -> Changes:
        """The memory of a run, but for kinds that are only listed, by account of this one."""
        self.group_of.update(profile.group_of)
        frame_of: Dict[int, int] = {}
        node_of = {0: 0}  # by node of the profile's own trie

        def aligned(outer: int, node: int) -> int:
            frame_id = profile.node_frame[node]
            if frame_id not in frame_of:
                frame_of[frame_id] = self._frame(profile, names, frame_id)
            return self._node(outer, frame_of[frame_id])

        def account(own: int) -> int:
            node, kind, owner = profile.accounts[own]
            node = from_outer(profile.node_parent, node_of, node, aligned)
            return self._account(node, AccountType(kind, owner), alignment.library(names.library(own)))

        usages = aggregate(profile, composition, account)
        return _changes_to({of: (usage.bytes, usage.blocks) for of, usage in usages.items()})

    def show(self, columns: Sequence[Changes]) -> None:
        """Make a snapshot of the memory of each of these."""
        before: LiveBytesByAccount = {}
        self.snapshots = []
        for column in columns:
            now = dict(zip(column.account, zip(column.bytes, column.blocks)))
            changes = _changes_to({**dict.fromkeys(before, (0, 0)), **now})
            self.snapshots.append(Snapshot(0, 0, "column", {}, changes))
            before = now


def _changes_to(composition: LiveBytesByAccount) -> Changes:
    """Nothing is known of earlier memory."""
    found = Changes()
    found.extend(array("Q", [n for account, held in composition.items() for n in (account, *held, 0, 0, 0)]))
    return found


# ---- difference ------------------------------------------------------------------------------

# The memory space, or the sum of both.
POOLS: Mapping[str, _Pick] = {
    "host": lambda figures: figures.host_bytes,
    "device": lambda figures: figures.device_bytes,
    "bytes": lambda figures: figures.bytes,
}


class Run(NamedTuple):
    """The compared figures of one run."""

    name: str  # of the trace's file
    facts: Dict[str, str]
    is_complete: bool
    is_discrete: bool
    moment: str  # "the peak"
    bytes: int  # at that moment
    views: Dict[str, Parts]
    ladders: Sequence[Ladder] = ()
    held: Optional[Changes] = None  # by account of Stacks, where that was asked for
    places: Optional[Places] = None  # by line, where that was asked for

    @property
    def largest(self) -> int:
        """The largest total of a view: bytes."""
        return max((total(parts).bytes for parts in self.views.values()), default=0)


class Column(NamedTuple):
    label: str
    runs: List[Run]  # at least one

    @property
    def typical(self) -> Run:
        """The run with the median of the bytes."""
        return sorted(self.runs, key=lambda run: run.bytes)[(len(self.runs) - 1) // 2]

    @staticmethod
    def by_fact(key: str, runs: Sequence[Run]) -> "List[Column]":
        """A column for each value of a fact, in the order of versions. Raises SelectionError if no run has the fact."""
        known = sorted({name for run in runs for name, value in run.facts.items() if value})
        if key not in known:
            near = suggestions(key, known)
            raise SelectionError(f'no trace has the key "{key}": {f"try {near}" if near else "they have no keys"}')
        return [Column(name, found) for _, name, found in grouped_by(key, runs, lambda run: run.facts.get(key, ""))]


class Cell(NamedTuple):
    """A part in one column."""

    figures: Usage  # of repeated runs the median; of an even number the lower one of the middle two
    change: Usage  # against the first column
    is_beyond_noise: Optional[bool]  # no run of either column reaches the other's; None: no repeated runs


def _largest(usages: Iterable[Usage]) -> int:
    return max(abs(of(usage)) for usage in usages for of in POOLS.values())


class DifferenceRow(NamedTuple):
    key: Key
    cells: List[Cell]  # one a column

    @property
    def change(self) -> int:
        """The largest of any column, in any pool: bytes."""
        return _largest(cell.change for cell in self.cells)

    @property
    def size(self) -> int:
        return _largest(cell.figures for cell in self.cells)


class View(NamedTuple):
    by: str  # one of VIEWS
    counts: str  # meaning of figures' blocks: "blocks" or "calls"
    rows: List[DifferenceRow]  # the largest difference first; a nested call after the one around it
    n_other: int
    other: Optional[DifferenceRow]  # the sum of `n_other` rows that differ too little
    rounding: Optional[DifferenceRow]  # makes medians add up
    total: DifferenceRow


class Fact(NamedTuple):
    key: str
    label: str
    values: List[str]  # one a column, "" where it is not known

    @property
    def is_redundant(self) -> bool:
        """Others imply it."""
        return is_redundant(self.key)


class NamedChange(NamedTuple):
    name: str
    change: int  # bytes


class Step(NamedTuple):
    key: str  # of a rung
    change: int  # bytes


class Finding(NamedTuple):
    """The change of one pool from the first column to the last."""

    pool: str  # one of POOLS
    before: int
    now: int
    most: Optional[Moved]  # the line with more than half of the change
    against: Optional[Moved]  # the line that moved most the other way, where `most` alone exceeds the change
    step: Optional[Step]  # of the ladder, with more than half of the change
    by: str  # the view of `largest`
    largest: List[NamedChange]  # the largest first
    is_beyond_noise: Optional[bool]


class Difference(NamedTuple):
    columns: List[Column]
    moment: str
    facts: List[Fact]  # those that differ
    ladders: List[List[Ladder]]  # of each pool those of the typical runs, with the same rungs
    views: List[View]
    findings: List[Finding]
    min_bytes: int  # rows that differ by less are in `other`

    @property
    def is_discrete(self) -> bool:
        """Host and device are two pools in some run, and must not be added up."""
        return any(run.is_discrete for column in self.columns for run in column.runs)

    @property
    def has_repeats(self) -> bool:
        return any(len(column.runs) > 1 for column in self.columns)


def measure(
    name: str,
    profile: Profile,
    views: Sequence[str],
    at: str,
    stacks: Optional[Stacks] = None,
    with_lines: bool = False,
) -> Run:
    """The figures of a run by views of VIEWS, at a moment. Raises SelectionError.

    Its memory is added to `stacks` by call stack. `with_lines`: by line too, so that a finding can name one.
    """
    moment = select(profile, at)
    live, names = moment.composition, Names(profile)
    found: Dict[str, Parts] = {}
    for view in views:
        if view == SCOPE:
            found[view] = spent(profile)
        elif view == TWICE:
            rows = held_twice(profile, names, moment).rows
            found[view] = {}
            for row in rows:
                key = Key(f"{row.allocated}, copied by {row.copied}")
                found[view][key] = found[view].get(key, Usage()) + Usage(row.bytes, row.copies)
        else:
            usages = aggregate(profile, live, namer(profile, names, view))
            found[view] = {Key(part): usage for part, usage in usages.items()}
    return Run(
        name,
        facts(profile),
        profile.is_complete,
        profile.is_discrete,
        moment.name,
        ledger(profile, live).total.bytes,
        found,
        ladders(profile, moment),
        stacks.add(profile, names, live) if stacks is not None else None,
        places_of(profile, names, live) if with_lines else None,
    )


def _medians(runs: Sequence[Usage]) -> Usage:
    return Usage(*(median(numbers) for numbers in zip(*runs)))


def _are_apart(one: Sequence[Usage], other: Sequence[Usage]) -> bool:
    pairs = [([of(figures) for figures in one], [of(figures) for figures in other]) for of in POOLS.values()]
    return any(max(a) < min(b) or max(b) < min(a) for a, b in pairs)


def _row(key: Key, columns: Sequence[Sequence[Usage]]) -> DifferenceRow:
    """From the figures of each run of each column."""
    has_repeats = any(len(runs) > 1 for runs in columns)
    first, cells = _medians(columns[0]), []
    for runs in columns:
        figures = _medians(runs)
        cells.append(Cell(figures, figures - first, _are_apart(columns[0], runs) if has_repeats else None))
    return DifferenceRow(key, cells)


def _nested(rows: List[DifferenceRow]) -> List[DifferenceRow]:
    """The largest change first, each row after the one it is nested in; rows without their outer one are left out."""
    inside: Dict[Tuple[str, ...], List[DifferenceRow]] = {}
    for row in sorted(rows, key=lambda row: (-row.change, -row.size, row.key.name), reverse=True):
        inside.setdefault(row.key.inside, []).append(row)
    found: List[DifferenceRow] = []
    pending = inside.get((), [])
    while pending:
        row = pending.pop()
        found.append(row)
        if not row.key.is_listed:
            pending += inside.get(row.key.inside + (row.key.name,), [])
    return found


def _compare(by: str, columns: Sequence[Column], min_bytes: int) -> View:
    runs = [[run.views[by] for run in column.runs] for column in columns]
    shown: List[DifferenceRow] = []
    small: List[Key] = []
    for key in dict.fromkeys(key for parts in runs for run in parts for key in run):
        row = _row(key, [[run.get(key, Usage()) for run in parts] for parts in runs])
        if (row.change if len(columns) > 1 else row.size) >= min_bytes:
            shown.append(row)
        elif key.is_counted:
            small.append(key)

    def sums(name: str, of: Callable[[Parts], Usage]) -> DifferenceRow:
        return _row(Key(name), [[of(run) for run in parts] for parts in runs])

    all_rows = sums("total", total)
    other = sums("other", lambda run: total({key: run[key] for key in small if key in run})) if small else None
    counted = [row for row in shown if row.key.is_counted] + ([other] if other else [])
    shares = [sum_of(row.cells[number].figures for row in counted) for number in range(len(columns))]
    missing = [[cell.figures - share] for cell, share in zip(all_rows.cells, shares)]
    rounding = _row(Key("rounding"), missing) if any(any(usage) for (usage,) in missing) else None
    return View(by, "calls" if by == SCOPE else "blocks", _nested(shown), len(small), other, rounding, all_rows)


# The order of rungs, where two ladders have not the same ones.
_RUNGS = (
    "jtop htop highest nvidia-smi before profiler unused others unexplained files unwritten program runtime libraries"
    " cache other own own-code allocated"
).split()


def _compare_ladders(columns: Sequence[Column]) -> List[List[Ladder]]:
    """None where runs differ in their memory spaces."""
    sides = [column.typical.ladders for column in columns]
    pools = [[ladder.pool for ladder in side] for side in sides]
    return [_aligned(pool) for pool in zip(*sides)] if all(each == pools[0] for each in pools) else []


def _aligned(sides: Sequence[Ladder]) -> List[Ladder]:
    """Ladders from other figures have the program at their top; to other ones, what is allocated at their bottom."""
    rungs_of = [ladder.rungs for ladder in sides]
    if len({rungs[0].key for rungs in rungs_of}) > 1:
        rungs_of = [rungs[[rung.key for rung in rungs].index("program") :] for rungs in rungs_of]
    if len({rungs[-1].key for rungs in rungs_of}) > 1:
        rungs_of = [_down_to_allocated(rungs) for rungs in rungs_of]
    by_key = [{rung.key: rung for rung in rungs} for rungs in rungs_of]
    found: List[List[Rung]] = [[] for _ in sides]
    for key in sorted({key for rungs in by_key for key in rungs}, key=_RUNGS.index):
        there = [rungs[key] for rungs in by_key if key in rungs]
        role = LESS if any(rung.role == LESS for rung in there) else there[0].role
        nothing = Rung(key, role, 0)
        for rungs, aligned in zip(by_key, found):
            signed = rungs.get(key, nothing).signed
            aligned.append(Rung(key, role, -signed if role == LESS else signed, any(rung.is_about for rung in there)))
    return [ladder._replace(rungs=rungs) for ladder, rungs in zip(sides, found)]


def _down_to_allocated(rungs: List[Rung]) -> List[Rung]:
    if rungs[-1].key == "allocated":
        return rungs
    return [*rungs[:-1], rungs[-1]._replace(key="own", role=LESS), Rung("allocated", SHOWN, 0)]


def _facts(columns: Sequence[Column]) -> List[Fact]:
    found = []
    for key in dict.fromkeys(key for column in columns for run in column.runs for key in run.facts):
        values = [sorted({run.facts.get(key, "") for run in column.runs}) for column in columns]
        if any(value != values[0] for value in values):
            texts = [", ".join(value or "?" for value in each) if any(each) else "" for each in values]
            found.append(Fact(key, label(key), texts))
    return found


# A line, or a step of the ladder, is named with more than that of the change. A line with more than all of it is named with
# the one that moved most the other way.
_MOST, MORE_THAN_ALL = 0.5, 1.05
_NAMED = 3


def _moved(columns: Sequence[Column], pool: str, change: int) -> Tuple[Optional[Moved], Optional[Moved]]:
    first, last = ([run.places for run in columns[number].runs if run.places is not None] for number in (0, -1))
    if len(first) + len(last) < len(columns[0].runs) + len(columns[-1].runs):
        return None, None
    sign = 1 if change > 0 else -1
    most = most_moved(first, last, POOLS[pool], sign, _MOST * abs(change))
    if most is None or abs(most.change) <= MORE_THAN_ALL * abs(change):
        return most, None
    return most, most_moved(first, last, POOLS[pool], -sign, _MOST * abs(change))


def _findings(columns: Sequence[Column], views: Sequence[View], pools: Sequence[List[Ladder]]) -> List[Finding]:
    """One for each pool; none where no memory is compared, or with nothing."""
    view = next((view for view in views if view.by not in (SCOPE, TWICE)), None)
    if view is None or len(columns) < 2:
        return []
    is_discrete = any(run.is_discrete for column in columns for run in column.runs)
    found = []
    for pool in ("device", "host") if is_discrete else ("bytes",):
        of = POOLS[pool]
        if not any(of(cell.figures) for cell in view.total.cells):
            continue
        first, last = view.total.cells[0], view.total.cells[-1]
        change = of(last.change)
        most, against = _moved(columns, pool, change) if change else (None, None)
        changes = [NamedChange(row.key.name, of(row.cells[-1].change)) for row in view.rows if row.key.is_counted]
        largest = sorted((each for each in changes if each.change), key=lambda each: (-abs(each.change), each.name))
        steps: List[Step] = next((_steps(sides) for sides in pools if sides[0].pool in ("", pool)), [])
        sign = 1 if change > 0 else -1
        step = max(steps, key=lambda step: sign * step.change, default=None)
        if step and sign * step.change <= _MOST * abs(change):
            step = None
        numbers = of(first.figures), of(last.figures)
        found.append(Finding(pool, *numbers, most, against, step, view.by, largest[:_NAMED], last.is_beyond_noise))
    return found


def _steps(sides: List[Ladder]) -> List[Step]:
    """Changes below the program."""
    steps = [Step(now.key, now.bytes - before.bytes) for before, now in zip(sides[0].rungs, sides[-1].rungs)]
    return steps[[step.key for step in steps].index("program") + 1 :]


def compare(columns: Sequence[Column], views: Sequence[str], min_bytes: int = 0) -> Difference:
    """Lays columns side by side; `views` are among those that their runs were measured by.

    Rows of which no column differs from the first by `min_bytes` are in the row `other`; of a single column those that
    are smaller than that. With 0 there is none.
    """
    moments = {run.moment: None for column in columns for run in column.runs}
    compared = [_compare(by, columns, min_bytes) for by in views]
    found = _compare_ladders(columns)
    findings = _findings(columns, compared, found)
    return Difference(list(columns), " or ".join(moments), _facts(columns), found, compared, findings, min_bytes)
