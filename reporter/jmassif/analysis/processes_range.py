# SPDX-License-Identifier: GPL-2.0-or-later
"""A range over the processes of a job, from one moment of the common clock to another.

Each process counts by its last snapshot before either moment; a moment of its own (a mark that it set) is exact. A process that had
not begun held nothing, and one that has ended holds nothing. Inherited memory counts with the parent alone, as long as the child
may still have it.
"""

from typing import Callable, List, NamedTuple, Optional

from jmassif.analysis.inherited import left_at
from jmassif.analysis.moments import Moment
from jmassif.analysis.processes import Processes
from jmassif.analysis.processes_headline import Instant, instants
from jmassif.analysis.range_diff import Range, RangeRow, joined, range_of, rows_of, total_of
from jmassif.model.processes import FORKED, Process
from jmassif.model.records import Composition


class Part(NamedTuple):
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
    parts: List[Part]  # of processes that ran in it

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
            parts.append(Part(process, *at, _range(process, *at)))
    return JobRange(first, second, parts)
