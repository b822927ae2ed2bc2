# SPDX-License-Identifier: GPL-2.0-or-later
"""A range over the processes of a job, from one moment of the clock that they share to another.

A time, a mark, and the end of the process that started the others are moments of all processes. A moment of one process is named
with its pid or its trace: "12-of-4711", "12-of-jmassif.out.4711.2".

Each process counts by its last snapshot before either moment; a moment of its own (a mark that it set) is exact. A process that had
not begun held nothing, and one that has ended holds nothing. Inherited memory counts with the parent alone, as long as the child
may still have it.
"""

import os
import re
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from jmassif.analysis.inherited import left_at
from jmassif.analysis.moments import EXAMPLES, Moment, SelectionError, mark_snapshots, select, snapshot_by, time_named
from jmassif.analysis.processes import Processes
from jmassif.analysis.range_diff import Range, RangeRow, joined, range_of, rows_of, total_of
from jmassif.model.processes import FORKED, REPLACED, Process
from jmassif.model.records import Composition
from jmassif.units import moment, printable

# ---- moments ---------------------------------------------------------------------------------

_OF_ONE = re.compile(r"(.+)-of-(.+)", re.DOTALL)
_PEAKS = {"peak": "", "peak-host": "host", "peak-device": "device"}
_MAX_MARKS = 10
_MAX_MARK = 60  # characters


class Instant(NamedTuple):
    name: str
    time: int  # on the common clock
    moments: Dict[int, Moment]  # by member that ran then, on the clock of its trace


def _main(job: Processes) -> int:
    """The first process of the tree; after exec, the program that it became last."""
    members = job.members

    def is_main(process: Process) -> bool:
        while process.parent is not None and process.relation == REPLACED:
            process = members[process.parent]
        return process.parent is None

    found = [index for index, process in enumerate(members) if is_main(process) and process.profile.snapshots]
    return max(found or range(len(members)), key=lambda index: members[index].end)


def _at(job: Processes, name: str, time: int, known: Dict[int, Moment]) -> Instant:
    """At the last snapshot of each process by then, but for those in `known`."""
    found = dict(known)
    for index, process in enumerate(job.members):
        profile = process.profile
        if index not in found and profile.snapshots and process.begin <= time <= process.end:
            place = snapshot_by(profile, time - process.offset)
            last = profile.snapshots[place]
            found[index] = Moment(f"snapshot {last.id}", last.time, profile.composition(place), place)
    return Instant(name, time, found)


def _of(job: Processes, index: int, selector: str) -> Instant:
    """A moment of one process."""
    process = job.members[index]
    found = select(process.profile, selector)
    name = f"{found.name} of process {process.pid}"
    return _at(job, name, max(process.begin, found.time + process.offset), {index: found})


def _mark(job: Processes, text: str) -> Optional[Instant]:
    """Where any of the processes set it last."""
    found: List[Tuple[int, int]] = []
    for index, process in enumerate(job.members):
        snapshot = mark_snapshots(process.profile).get(text)
        if snapshot is not None:
            found.append((process.profile.snapshots[snapshot].time + process.offset, index))
    return _of(job, max(found)[1], text) if found else None


def _member(job: Processes, text: str) -> int:
    """By pid, or by the name of its trace. Raises SelectionError."""
    found = [index for index, process in enumerate(job.members) if str(process.pid) == text]
    named = [index for index, process in enumerate(job.members) if text in (process.name, _trace(process))]
    if len(found) == 1 or len(named) == 1:
        return found[0] if len(found) == 1 else named[0]
    if found:
        traces = ", ".join(printable(_trace(job.members[index])) for index in found[:20])
        raise SelectionError(f"process {text} has several traces: name one of them, as in 12-of-{traces}")
    pids = ", ".join(str(process.pid) for process in job.members[:20])
    raise SelectionError(f'no process or trace is called "{printable(text[:_MAX_MARK])}": there are {pids}')


def _trace(process: Process) -> str:
    return os.path.basename(process.name)


def _instant(job: Processes, selector: str) -> Instant:
    marked = _mark(job, selector)
    if marked is not None:
        return marked
    of_one = _OF_ONE.fullmatch(selector)
    if of_one:
        return _of(job, _member(job, of_one.group(2)), of_one.group(1))
    if selector == "start":
        return _at(job, "the start", min(process.begin for process in job.members), {})
    if selector in ("end", "last"):
        return _of(job, _main(job), selector)
    if selector in _PEAKS:
        at = job.peak(_PEAKS[selector] or job.measures[-1])
        return _at(job, f"the {'' if selector == 'peak' else f'{_PEAKS[selector]} '}peak of the sum", at.time, {})
    time_ = time_named(selector, "ms", max(process.end for process in job.members))
    if time_ is not None:
        return _at(job, moment(time_, "ms"), time_, {})
    raise SelectionError(_unknown(job, selector))


def _unknown(job: Processes, selector: str) -> str:
    if selector.isdecimal():
        pid = job.members[0].pid
        return f'snapshot "{selector}" is of one process: name it with that, as {selector}-of-{pid}'
    marks = dict.fromkeys(text for process in job.members for text in mark_snapshots(process.profile))
    named = ["start", "end", "last", *_PEAKS] + [f'"{text[:_MAX_MARK]}"' for text in list(marks)[:_MAX_MARKS]]
    return (
        f'no moment "{printable(selector[:_MAX_MARK])}" of several processes: there are {", ".join(named)}, times such as'
        f" {EXAMPLES['ms']} or 40%, and those of one process, as end-of-{job.members[0].pid}"
    )


def instants(job: Processes, begin: str, end: str) -> Tuple[Instant, Instant]:
    """The two ends of a range, in their order. Raises SelectionError."""
    if job.no_clock:
        raise SelectionError(f"processes have no range in common, because {job.no_clock}: name one trace")
    if not any(process.profile.snapshots for process in job.members):
        raise SelectionError("the traces have no complete snapshot, so no range")
    first, second = _instant(job, begin), _instant(job, end)
    pairs = [(first.moments[index], second.moments[index]) for index in first.moments.keys() & second.moments.keys()]
    if first.time > second.time or any(_is_after(one, other) for one, other in pairs):
        raise SelectionError(
            f'a range from "{begin}" to "{end}" goes backwards: {first.name} is not before {second.name}'
        )
    is_same = all((one.time, one.snapshot) == (other.time, other.snapshot) for one, other in pairs)
    if first.time == second.time and is_same and first.moments.keys() == second.moments.keys():
        raise SelectionError(f'a range from "{begin}" to "{end}" is empty: both are {first.name}')
    return first, second


def _is_after(one: Moment, other: Moment) -> bool:
    has_both = one.snapshot is not None and other.snapshot is not None
    return one.time > other.time or (has_both and one.time == other.time and one.snapshot > other.snapshot)  # type: ignore[operator]


# ---- the range -------------------------------------------------------------------------------


class RangePart(NamedTuple):
    """Of one process."""

    process: Process
    first: Optional[Moment]  # on the trace's clock; None: it had not begun
    second: Optional[Moment]  # None: it had ended
    found: Range

    def rows(self, name_of: Callable[[int], str]) -> List[RangeRow]:
        return rows_of(self.process.profile, self.found, name_of)

    def total(self, name: str) -> RangeRow:
        return total_of(self.rows(lambda account: ""), name)


class JobRange(NamedTuple):
    first: Instant
    second: Instant
    parts: List[RangePart]  # of processes that ran in it

    def rows(self, naming: Callable[[Process], Callable[[int], str]]) -> List[RangeRow]:
        """Of all of them, by name."""
        return joined(row for part in self.parts for row in part.rows(naming(part.process)))


def _own(process: Process, at: Moment) -> Moment:
    """Without memory that a forked child may still have of its parent's."""
    if process.relation != FORKED or process.parent is None or at.snapshot is None:
        return at
    left = left_at(process.profile, at.snapshot)
    own: Composition = {}
    for account, (n_bytes, blocks) in at.composition.items():
        inherited = left.get(account, (0, 0))
        own[account] = max(0, n_bytes - inherited[0]), max(0, blocks - inherited[1])
    return at._replace(composition=own)


def _range(process: Process, first: Optional[Moment], second: Optional[Moment]) -> Range:
    profile = process.profile
    # An orphan counts with all that it was born with, from its beginning on.
    opening = {} if process.relation == FORKED and process.parent is not None else profile.composition(0)
    begin = Moment("its beginning", profile.snapshots[0].time, opening, 0)
    if first is None and not process.is_fork:
        begin = begin._replace(composition={}, snapshot=-1)
    end = Moment("its end", profile.snapshots[-1].time, {}, len(profile.snapshots) - 1)
    return range_of(profile, _own(process, first) if first else begin, _own(process, second) if second else end)


def job_range(job: Processes, begin: str, end: str) -> JobRange:
    """From one moment to another, as `instants` takes them. Raises SelectionError."""
    first, second = instants(job, begin, end)
    parts = []
    for index, process in enumerate(job.members):
        if process.profile.snapshots and process.end >= first.time and process.begin <= second.time:
            at = first.moments.get(index), second.moments.get(index)
            parts.append(RangePart(process, *at, _range(process, *at)))
    return JobRange(first, second, parts)
