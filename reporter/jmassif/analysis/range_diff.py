# SPDX-License-Identifier: GPL-2.0-or-later
"""A range of a run: memory held at its end minus memory held at its beginning, and memory allocated and freed in between.

A place is a stack, a kind and an owner; roles of tensors may change in a range, so they are no part of it. All figures are exact
from snapshot to snapshot. The totals of allocations are recorded at snapshots alone: where an end is a peak between two of
them, those of the snapshot before it stand in.

Over several processes a range goes from one moment of their common clock to another. Each process counts by its last snapshot
before either moment; the process that set a mark has a snapshot of its own there. A process that had not begun held nothing, and
one that has ended holds nothing. Inherited memory counts with the parent alone, as long as the child may still have it.
"""

from bisect import bisect_right
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

from jmassif.analysis.inherited import beyond, left_at
from jmassif.analysis.moments import EXAMPLES, Moment, SelectionError, mark_snapshots, select, snapshot_by, time_named
from jmassif.analysis.processes import Processes
from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.model.process_tree import REPLACED, Process
from jmassif.model.records import side_of
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


class PlaceChange(NamedTuple):
    bytes: Change
    blocks: Change
    temporaries: int  # blocks that were freed in between before their thread allocated anything else


class Range(NamedTuple):
    first: Moment
    second: Moment
    places: Dict[int, PlaceChange]  # by the first account of each place that held or allocated anything
    is_exact: bool  # what was allocated is known at both ends

    def values(self, value: str) -> Dict[int, int]:
        """A figure, by its name in RANGE_VALUES, of each account."""
        if value == "temporaries":
            found = {account: change.temporaries for account, change in self.places.items()}
        else:
            figure, unit = value.split("-")
            found = {account: getattr(getattr(change, unit), figure) for account, change in self.places.items()}
        return {account: number for account, number in found.items() if number}

    @property
    def new(self) -> Moment:
        """The part of the second moment that was not held at the first."""
        held = {place: (change.bytes.new, change.blocks.new) for place, change in self.places.items()}
        composition = {place: row for place, row in held.items() if any(row)}
        return Moment(
            f"{self.second.name}, of what is new since {self.first.name}", self.second.time, composition, None
        )


# ---- its ends ----------------------------------------------------------------------------------


def _settled(profile: Profile, moment: Moment) -> Moment:
    """The moment as a snapshot, where it is one: a peak may be."""
    if moment.snapshot is None:
        for index, snapshot in enumerate(profile.snapshots):
            if snapshot.time == moment.time and profile.composition(index) == moment.composition:
                return moment._replace(snapshot=index)
    return moment


def _order(moment: Moment) -> Tuple[int, int]:
    # A peak comes between the snapshots before its time and those of that time.
    return moment.time, -1 if moment.snapshot is None else moment.snapshot


def _check_range(asked: str, first: str, second: str, is_empty: bool, is_backwards: bool) -> None:
    if is_empty:
        raise SelectionError(f"a range from {asked} is empty: both are {first}")
    if is_backwards:
        raise SelectionError(f"a range from {asked} goes backwards: {first} is not before {second}")


def moments_of(profile: Profile, begin: str, end: str) -> Tuple[Moment, Moment]:
    """The two moments, in their order. Raises SelectionError."""
    if not profile.snapshots:
        raise SelectionError("the trace has no complete snapshot, so no range")
    first, second = _settled(profile, select(profile, begin)), _settled(profile, select(profile, end))
    is_empty = first.snapshot is not None and first.snapshot == second.snapshot
    _check_range(f'"{begin}" to "{end}"', first.name, second.name, is_empty, _order(first) >= _order(second))
    return first, second


def _snapshot_by(profile: Profile, moment: Moment) -> int:
    """The index of the last snapshot that is no later; -1: there is none."""
    if moment.snapshot is not None:
        return moment.snapshot
    return bisect_right([snapshot.time for snapshot in profile.snapshots], moment.time) - 1


# ---- the range ---------------------------------------------------------------------------------


def between(profile: Profile, begin: str, end: str) -> Range:
    """From one moment to another, as moments.select takes them. Raises SelectionError."""
    return range_of(profile, *moments_of(profile, begin, end))


def range_of(profile: Profile, first: Moment, second: Moment) -> Range:
    """From a moment to a later one. Their compositions may be parts of what was held, and a snapshot of -1 is before the first."""
    begin = profile.lifetime_at(_snapshot_by(profile, first))
    end = profile.lifetime_at(_snapshot_by(profile, second))
    nothing = (0, 0)
    known: Dict[Tuple[int, str, str], int] = {}
    sums: Dict[int, List[int]] = {}
    for account, (node, kind, owner) in enumerate(profile.accounts):
        if side_of(kind) is None:
            continue
        is_block = kind != "heap-overhead"
        before, after = first.composition.get(account, nothing), second.composition.get(account, nothing)
        row = (
            before[0],
            after[0],
            end.bytes[account] - begin.bytes[account],
            before[1] * is_block,
            after[1] * is_block,
            (end.blocks[account] - begin.blocks[account]) * is_block,
            (end.temporaries[account] - begin.temporaries[account]) * is_block,
        )
        if any(row):
            place = known.setdefault((node, kind, owner), account)
            sums[place] = [mine + more for mine, more in zip(sums[place], row)] if place in sums else list(row)
    places = {place: PlaceChange(_change(*row[:3]), _change(*row[3:6]), max(0, row[6])) for place, row in sums.items()}
    is_exact = first.snapshot is not None and second.snapshot is not None
    return Range(first, second, places, is_exact)


# ---- by name -----------------------------------------------------------------------------------


class RangeRow(NamedTuple):
    """The sum of places under one name."""

    name: str
    host: Change = NO_CHANGE  # bytes
    device: Change = NO_CHANGE
    blocks: Change = NO_CHANGE  # of both
    temporaries: int = 0

    def on(self, space: str) -> Change:
        """Bytes on "host" or "device", of both with ""."""
        return self.host + self.device if not space else self.host if space == "host" else self.device


def _rank(row: RangeRow) -> Tuple[int, int, int, str]:
    change = row.on("")
    return -change.new, -change.gone, -change.allocated, row.name


def rows_of(profile: Profile, found: Range, name_of: Callable[[int], str]) -> List[RangeRow]:
    """A row a name that `name_of` gives to accounts: the largest growth first, then the largest loss."""
    rows = []
    for account, change in found.places.items():
        row = RangeRow(name_of(account), blocks=change.blocks, temporaries=change.temporaries)
        is_host = side_of(profile.accounts[account].kind) == "host"
        rows.append(row._replace(host=change.bytes) if is_host else row._replace(device=change.bytes))
    return joined(rows)


def joined(rows: Iterable[RangeRow]) -> List[RangeRow]:
    """Those of one name as one."""
    members: Dict[str, List[RangeRow]] = {}
    for row in rows:
        members.setdefault(row.name, []).append(row)
    return sorted((total_of(alike, name) for name, alike in members.items()), key=_rank)


def total_of(rows: Iterable[RangeRow], name: str = "total") -> RangeRow:
    _, host, device, blocks, temporaries = zip(RangeRow(name), *rows)
    return RangeRow(name, sum(host, NO_CHANGE), sum(device, NO_CHANGE), sum(blocks, NO_CHANGE), sum(temporaries))


# ---- moments of several processes --------------------------------------------------------------

_PEAKS = {"peak": "", "peak-host": "host", "peak-device": "device"}
_MAX_MARKS = 10
_MAX_MARK = 60  # characters


class Instant(NamedTuple):
    name: str
    time: int  # on the common clock
    moments: Dict[int, Moment]  # by member that ran then, on the clock of its trace


def _main(job: Processes) -> int:
    """The first process of the tree; after exec, the program that it became last."""

    def is_main(process: Process) -> bool:
        while process.parent is not None and process.relation == REPLACED:
            process = job.members[process.parent]
        return process.parent is None

    found = [index for index, process in enumerate(job.members) if is_main(process) and process.profile.snapshots]
    return max(found or range(len(job.members)), key=lambda index: job.members[index].end)


def _at(job: Processes, name: str, time: int, known: Optional[Dict[int, Moment]] = None) -> Instant:
    """At the last snapshot of each process by then, but for those in `known`."""
    found = dict(known or {})
    for index, process in enumerate(job.members):
        profile = process.profile
        if index not in found and profile.snapshots and process.begin <= time <= process.end:
            last = profile.snapshots[snapshot_by(profile, time - process.offset)]
            found[index] = select(profile, str(last.id))
    return Instant(name, time, found)


def _instant(job: Processes, selector: str) -> Instant:
    marks = [mark_snapshots(process.profile) for process in job.members]
    setters = [index for index, of_one in enumerate(marks) if selector in of_one]
    if setters or selector in ("end", "last"):

        def time_in(index: int) -> Tuple[int, int]:
            process = job.members[index]
            return process.profile.snapshots[marks[index][selector]].time + process.offset, index

        # A mark counts where it was set last.
        index = max(setters, key=time_in) if setters else _main(job)
        process = job.members[index]
        at = select(process.profile, selector)
        name = f"{at.name} of process {process.pid}"
        return _at(job, name, max(process.begin, at.time + process.offset), {index: at})
    if selector == "start":
        return _at(job, "the start", min(process.begin for process in job.members))
    if selector in _PEAKS:
        time = job.peak(_PEAKS[selector] or job.measures[-1]).time
        return _at(job, f"the {'' if selector == 'peak' else f'{_PEAKS[selector]} '}peak of the sum", time)
    named_time = time_named(selector, "ms", max(process.end for process in job.members))
    if named_time is not None:
        return _at(job, moment(named_time, "ms"), named_time)
    texts = list(dict.fromkeys(text for of_one in marks for text in of_one))[:_MAX_MARKS]
    known = ["start", "end", "last", *_PEAKS] + [f'"{text[:_MAX_MARK]}"' for text in texts]
    raise SelectionError(
        f'no moment "{printable(selector[:_MAX_MARK])}" of several processes: there are {", ".join(known)}, and times such'
        f" as {EXAMPLES['ms']} or 40%"
    )


def _instants(job: Processes, begin: str, end: str) -> Tuple[Instant, Instant]:
    """The two ends of a range, in their order. Raises SelectionError."""
    if job.no_clock:
        raise SelectionError(f"processes have no range in common, because {job.no_clock}: name one trace")
    if not any(process.profile.snapshots for process in job.members):
        raise SelectionError("the traces have no complete snapshot, so no range")
    first, second = _instant(job, begin), _instant(job, end)
    indices = first.moments.keys() & second.moments.keys()
    pairs = [(_order(first.moments[index]), _order(second.moments[index])) for index in indices]
    is_empty = (first.time, first.moments.keys()) == (second.time, second.moments.keys())
    is_empty = is_empty and all(one == other for one, other in pairs)
    is_backwards = first.time > second.time or any(one > other for one, other in pairs)
    _check_range(f'"{begin}" to "{end}"', first.name, second.name, is_empty, is_backwards)
    return first, second


# ---- the range of several processes ------------------------------------------------------------


class RangePart(NamedTuple):
    """Of one process."""

    process: Process
    names: Names
    first: Optional[Moment]  # on the trace's clock; None: it had not begun
    second: Optional[Moment]  # None: it had ended
    found: Range

    def rows(self, by: str, is_folded: bool = True) -> List[RangeRow]:
        """By name in a view of attribution.views.naming."""
        profile = self.process.profile
        return rows_of(profile, self.found, naming(profile, self.names, by, is_folded))

    @property
    def total(self) -> RangeRow:
        return total_of(rows_of(self.process.profile, self.found, lambda account: ""))


class JobRange(NamedTuple):
    first: Instant
    second: Instant
    parts: List[RangePart]  # of processes that ran in it


def _range(process: Process, first: Optional[Moment], second: Optional[Moment]) -> Range:
    profile = process.profile

    def own(at: Moment) -> Moment:
        """Without memory that a forked child may still have of its parent's."""
        if not process.shares or at.snapshot is None:
            return at
        return at._replace(composition=beyond(left_at(profile, at.snapshot), at.composition))

    # An orphan counts with all that it was born with, from its beginning on.
    opening = {} if process.shares or not process.is_fork else profile.composition(0)
    begin = Moment("its beginning", profile.snapshots[0].time, opening, 0 if process.is_fork else -1)
    end = Moment("its end", profile.snapshots[-1].time, {}, len(profile.snapshots) - 1)
    return range_of(profile, own(first) if first else begin, own(second) if second else end)


def job_range(job: Processes, begin: str, end: str) -> JobRange:
    """From one moment to another: a time, a mark, a peak of the sum, or an end of the first process. Raises SelectionError."""
    first, second = _instants(job, begin, end)
    parts = []
    for index, process in enumerate(job.members):
        if process.profile.snapshots and process.end >= first.time and process.begin <= second.time:
            at = first.moments.get(index), second.moments.get(index)
            parts.append(RangePart(process, Names(process.profile), *at, _range(process, *at)))
    return JobRange(first, second, parts)
