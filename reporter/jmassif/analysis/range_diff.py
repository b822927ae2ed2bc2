# SPDX-License-Identifier: GPL-2.0-or-later
"""A range: memory held at its end minus memory held at its beginning, and memory allocated and freed in between.

A place is a stack, a kind and an owner; roles of tensors may change in a range, so they are no part of it. All figures are exact
from snapshot to snapshot. The totals of allocations are recorded at snapshots alone: where an end is a peak between two of
them, those of the snapshot before it stand in.

Over several processes a range goes from one moment of their common clock to another. Each process counts by its last snapshot
before either moment; the process that set a mark has a snapshot of its own there. A process that had not begun held nothing, and
one that has ended holds nothing. Inherited memory counts with the parent alone, as long as the child may still have it.
"""

from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

from jmassif.analysis.inherited import beyond, left_at
from jmassif.analysis.moments import EXAMPLES, Moment, SelectionError, mark_snapshots, select, snapshot_by, time_named
from jmassif.analysis.processes import Processes
from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.model.process_tree import REPLACED, Process
from jmassif.model.records import Account, side_of
from jmassif.model.run import Profile
from jmassif.units import moment, printable


class Change(NamedTuple):
    """Bytes, or blocks."""

    before: int = 0  # held at the first moment
    after: int = 0  # held at the second
    new: int = 0  # held at the second beyond what the same place held at the first
    gone: int = 0  # the opposite
    allocated: int = 0  # in between, whatever became of it
    freed: int = 0

    def __add__(self, other: "Change") -> "Change":  # type: ignore[override]
        return Change(*(mine + more for mine, more in zip(self, other)))


NO_CHANGE = Change()


def _change(before: int, after: int, allocated: int) -> Change:
    # A part that a cache takes back comes to it without being allocated.
    allocated = max(allocated, after - before, 0)
    return Change(before, after, max(0, after - before), max(0, before - after), allocated, before + allocated - after)


class RangeRow(NamedTuple):
    """A place, or the sum of places under one name."""

    name: str  # "" of a place
    host: Change = NO_CHANGE  # bytes
    device: Change = NO_CHANGE
    blocks: Change = NO_CHANGE  # of both
    temporaries: int = 0  # blocks that were freed in between before their thread allocated anything else

    def value(self, name: str) -> int:
        """A figure by its name in RANGE_VALUES."""
        figure, _, unit = name.partition("-")
        number: int = getattr(self.on("") if unit == "bytes" else self.blocks if unit else self, figure)
        return number

    def on(self, space: str) -> Change:
        """Bytes on "host" or "device", of both with ""."""
        return self.host + self.device if not space else self.host if space == "host" else self.device

    def __add__(self, other: "RangeRow") -> "RangeRow":  # type: ignore[override]
        host, device, blocks = self.host + other.host, self.device + other.device, self.blocks + other.blocks
        return RangeRow(self.name, host, device, blocks, self.temporaries + other.temporaries)


def _joined(rows: Iterable[RangeRow]) -> List[RangeRow]:
    """Those of one name as one: the largest growth first, then the largest loss."""

    def rank(row: RangeRow) -> Tuple[int, int, int, str]:
        change = row.on("")
        return -change.new, -change.gone, -change.allocated, row.name

    sums: Dict[str, RangeRow] = {}
    for row in rows:
        sums[row.name] = sums[row.name] + row if row.name in sums else row
    return sorted(sums.values(), key=rank)


class RangePart(NamedTuple):
    """The range of one process."""

    process: Process
    names: Names
    first: Moment  # on the trace's clock; "its beginning": the process had not begun
    second: Moment  # "its end": it had ended
    places: Dict[int, RangeRow]  # by the first account of each place that held or allocated anything

    @property
    def new(self) -> Moment:
        """The part of the second moment that was not held at the first."""
        held = {place: (row.on("").new, row.blocks.new) for place, row in self.places.items()}
        name = f"{self.second.name}, of what is new since {self.first.name}"
        return Moment(name, self.second.time, {place: pair for place, pair in held.items() if any(pair)}, None)

    def rows_of(self, name_of: Callable[[int], str]) -> List[RangeRow]:
        """A row a name that `name_of` gives to accounts."""
        return _joined(row._replace(name=name_of(account)) for account, row in self.places.items())

    def rows(self, by: str, is_folded: bool = True) -> List[RangeRow]:
        """By name in a view of attribution.views.naming."""
        return self.rows_of(naming(self.process.profile, self.names, by, is_folded))

    @property
    def total(self) -> RangeRow:
        return sum(self.places.values(), RangeRow("total"))


class Instant(NamedTuple):
    """An end of a range."""

    name: str
    time: int  # on the common clock
    moments: Dict[int, Moment]  # by member that ran then, on the clock of its trace


class Range(NamedTuple):
    first: Instant
    second: Instant
    parts: List[RangePart]  # of processes that ran in it

    @property
    def is_exact(self) -> bool:
        """Allocations are known at both ends."""
        return all(at.snapshot is not None for part in self.parts for at in (part.first, part.second))

    @property
    def total(self) -> RangeRow:
        return sum((part.total for part in self.parts), RangeRow("total"))

    def rows(self, by: str, is_folded: bool = True) -> List[RangeRow]:
        """Of all processes together."""
        return _joined(row for part in self.parts for row in part.rows(by, is_folded))


# ---- its ends ----------------------------------------------------------------------------------

_PEAKS = ("peak", "peak-host", "peak-device")
_MAX_MARKS = 10
_MAX_MARK = 60  # characters


def _in_one(run: Profile, selector: str) -> Instant:
    at = select(run, selector)
    if at.snapshot is None:  # a peak may be a snapshot
        alike = (index for index, snapshot in enumerate(run.snapshots) if snapshot.time == at.time)
        at = at._replace(snapshot=next((n for n in alike if run.composition(n) == at.composition), None))
    return Instant(at.name, at.time, {0: at})


def _main(job: Processes) -> Process:
    """The first process of the tree; after exec, the program that it became last."""
    main: Dict[int, Process] = {}
    for index, process in enumerate(job.members):
        if process.parent is None or (process.relation == REPLACED and process.parent in main):
            main[index] = process
    return max(main.values(), key=lambda process: (bool(process.profile.snapshots), process.end))


def _at(job: Processes, name: str, time: int, known: Optional[Dict[int, Moment]] = None) -> Instant:
    """At the last snapshot of each process by then, but for those in `known`."""
    found = dict(known or {})
    for index, process in enumerate(job.members):
        run = process.profile
        if index not in found and run.snapshots and process.begin <= time <= process.end:
            found[index] = select(run, str(run.snapshots[snapshot_by(run, time - process.offset)].id))
    return Instant(name, time, found)


def _in_several(job: Processes, selector: str) -> Instant:
    marks = [mark_snapshots(process.profile) for process in job.members]
    setters = [process for process, of_one in zip(job.members, marks) if selector in of_one]
    if setters or selector in ("end", "last"):
        found = [(process, select(process.profile, selector)) for process in setters or [_main(job)]]
        # A mark counts where it was set last.
        process, at = max(found, key=lambda row: row[1].time + row[0].offset)
        name = f"{at.name} of process {process.pid}"
        return _at(job, name, max(process.begin, at.time + process.offset), {job.members.index(process): at})
    if selector == "start":
        return _at(job, "the start", min(process.begin for process in job.members))
    if selector in _PEAKS:
        space = selector[len("peak-") :]
        at_peak = job.peak(space) if space else job.main_peak
        return _at(job, f"the {space} peak of the sum" if space else "the peak of the sum", at_peak.time)
    named_time = time_named(selector, "ms", max(process.end for process in job.members))
    if named_time is not None:
        return _at(job, moment(named_time, "ms"), named_time)
    texts = list(dict.fromkeys(text for of_one in marks for text in of_one))[:_MAX_MARKS]
    known = ["start", "end", "last", *_PEAKS] + [f'"{text[:_MAX_MARK]}"' for text in texts]
    raise SelectionError(
        f'no moment "{printable(selector[:_MAX_MARK])}" of several processes: there are {", ".join(known)}, and times such'
        f" as {EXAMPLES['ms']} or 40%"
    )


def _order(at: Moment) -> Tuple[int, int]:
    # A peak comes between the snapshots before its time and those of that time.
    return at.time, -1 if at.snapshot is None else at.snapshot


def _ends(job: Processes, begin: str, end: str) -> Tuple[Instant, Instant]:
    if len(job.members) > 1 and job.no_clock:
        raise SelectionError(f"processes have no range in common, because {job.no_clock}: name one trace")
    if not any(process.profile.snapshots for process in job.members):
        raise SelectionError("no complete snapshot, so no range")
    instants = [
        _in_several(job, each) if len(job.members) > 1 else _in_one(job.members[0].profile, each)
        for each in (begin, end)
    ]
    first, second = instants
    common = first.moments.keys() & second.moments.keys()
    pairs = [(_order(first.moments[index]), _order(second.moments[index])) for index in common]
    is_same = first.time == second.time and first.moments.keys() == second.moments.keys()
    if is_same and all(one == other for one, other in pairs):
        raise SelectionError(f'a range from "{begin}" to "{end}" is empty: both are {first.name}')
    if first.time > second.time or any(one > other for one, other in pairs):
        raise SelectionError(
            f'a range from "{begin}" to "{end}" goes backwards: {first.name} is not before {second.name}'
        )
    return first, second


# ---- the range ---------------------------------------------------------------------------------


def _places(run: Profile, first: Moment, second: Moment) -> Dict[int, RangeRow]:
    # A snapshot of -1 is before the first.
    begin, end = (
        run.lifetime(snapshot_by(run, at.time) if at.snapshot is None else at.snapshot) for at in (first, second)
    )
    nothing = (0, 0)
    first_of: Dict[Account, int] = {}
    sums: Dict[int, List[int]] = {}
    for account, of in enumerate(run.accounts):
        if side_of(of.kind) is None:
            continue
        held = first.composition.get(account, nothing), second.composition.get(account, nothing)
        n_bytes, blocks, temporaries = (after[account] - before[account] for before, after in zip(begin, end))
        row = [held[0][0], held[1][0], n_bytes, held[0][1], held[1][1], blocks, temporaries]
        if of.kind == "heap-overhead":
            row[3:] = [0, 0, 0, 0]
        if any(row):
            place = first_of.setdefault(of, account)
            sums[place] = [mine + more for mine, more in zip(sums.get(place, [0] * len(row)), row)]
    found = {}
    for place, figures in sums.items():
        change, is_host = _change(*figures[:3]), side_of(run.accounts.kind(place)) == "host"
        sides = (change, NO_CHANGE) if is_host else (NO_CHANGE, change)
        found[place] = RangeRow("", *sides, _change(*figures[3:6]), max(0, figures[6]))
    return found


def _part(process: Process, first: Optional[Moment], second: Optional[Moment]) -> RangePart:
    run = process.profile

    def own(at: Moment) -> Moment:
        """Without memory that a forked child may still have of its parent's."""
        if not process.shares or at.snapshot is None:
            return at
        return at._replace(composition=beyond(left_at(run, at.snapshot), at.composition))

    # An orphan counts with all that it was born with, from its beginning on.
    opening = {} if process.shares or not process.is_fork else run.composition(0)
    begin = Moment("its beginning", run.snapshots[0].time, opening, 0 if process.is_fork else -1)
    end = Moment("its end", run.snapshots[-1].time, {}, len(run.snapshots) - 1)
    ends = own(first) if first else begin, own(second) if second else end
    return RangePart(process, Names(run), *ends, _places(run, *ends))


def between(job: Processes, begin: str, end: str) -> Range:
    """From one moment to another, as moments.select takes them. Raises SelectionError.

    Of several processes a moment is a time, a mark, a peak of the sum, or an end of the first process.
    """
    first, second = _ends(job, begin, end)
    parts = [
        _part(process, first.moments.get(index), second.moments.get(index))
        for index, process in enumerate(job.members)
        if process.profile.snapshots and process.end >= first.time and process.begin <= second.time
    ]
    return Range(first, second, parts)
