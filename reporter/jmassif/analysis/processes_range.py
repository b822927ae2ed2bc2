# SPDX-License-Identifier: GPL-2.0-or-later
"""A range over the processes of a job: what came to stay in any of them from one moment of the common clock to another, what went, and
what was only passing.

Each process is looked at by its last snapshot by either moment; a moment that is one of its own (a mark that it set) is exact. What began
in between held nothing before, and what has ended holds nothing any more: all that it held is freed. What a fork inherits is no
allocation of the child's, and its end frees nothing: it counts with the parent, as between.py has it. So of a child that was forked
before the range its *own* memory follows from three ranges: since the fork to either moment, and in between.
"""

from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from jmassif.analysis.moments import Moment
from jmassif.analysis.processes import Processes
from jmassif.analysis.processes_headline import Instant, instants
from jmassif.analysis.range_diff import NOTHING, Flow, Range, RangeRow, joined, range_of, rows_of, total_of
from jmassif.model.processes import FORKED, Process


# Of bytes, and of blocks.
_Pair = Tuple[Flow, Flow]
_NONE: _Pair = (NOTHING, NOTHING)


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

    @property
    def is_vague(self) -> bool:
        """What is uncertain of a child may be from before the range: then less was allocated in it than the figures add up to."""
        forks = [part for part in self.parts if part.process.relation == FORKED and part.first]
        return any(part.found.total.uncertain for part in forks)

    def rows(self, naming: Callable[[Process], Callable[[int], str]]) -> List[RangeRow]:
        """Of all of them, by name."""
        return joined(part.rows(naming(part.process)) for part in self.parts)


def _brought(flow: Flow) -> Flow:
    """Of a process that had not begun."""
    return Flow(0, flow.after, flow.after, 0, flow.before + flow.allocated - flow.after, 0, flow.untold)


def _taken(before: int, flow: Flow, uncertain: int = 0) -> Flow:
    """Of a process that has ended, and held `before`, or more by what is uncertain."""
    return Flow(before, 0, 0, before, flow.allocated, uncertain, flow.untold)


def _of_child(to_first: Flow, to_second: Flow, flow: Flow) -> Flow:
    """Without what it inherited; the first two are since the fork. Where one of the three is uncertain `before` and `after` are the least
    that is certain too, and all of it is uncertain.
    """
    freed = max(0, to_first.new + flow.new - to_second.new - to_second.uncertain)
    uncertain = flow.uncertain + to_first.uncertain + to_second.uncertain
    return Flow(to_first.new, to_second.new, flow.new, freed, flow.passing, uncertain, flow.untold)


def _of_new_child(flow: Flow) -> Flow:
    """Likewise, since the fork."""
    return Flow(0, flow.new, flow.new, 0, flow.passing, flow.uncertain, flow.untold)


def _snapshot(process: Process, index: int) -> Moment:
    snapshots = process.profile.snapshots
    index %= len(snapshots)
    composition = process.profile.composition(index)
    return Moment(f"snapshot {snapshots[index].id}", snapshots[index].time, composition, index)


def _own_flows(process: Process, first: Optional[Moment], second: Optional[Moment]) -> Range:
    """Of a forked child whose parent is here."""
    profile, opening = process.profile, _snapshot(process, 0)
    finish = second or _snapshot(process, -1)
    whole = range_of(profile, first or opening, finish)
    to_first = range_of(profile, opening, first).flows if first else {}
    to_second = range_of(profile, opening, finish).flows if first and second else {}
    flows: Dict[int, _Pair] = {}
    for place in whole.flows.keys() | to_first.keys() | to_second.keys():
        pair = []
        for column in (0, 1):
            before, after, flow = (of.get(place, _NONE)[column] for of in (to_first, to_second, whole.flows))
            if second is None:
                pair.append(_taken(before.new, flow, before.uncertain))
            else:
                pair.append(_of_child(before, after, flow) if first else _of_new_child(flow))
        flows[place] = pair[0], pair[1]
    return Range(whole.first, whole.second, flows)


def _flows(process: Process, first: Optional[Moment], second: Optional[Moment]) -> Range:
    if process.relation == FORKED and process.parent is not None:
        return _own_flows(process, first, second)
    begin = first or _snapshot(process, 0)
    if process.is_fork:
        first = begin  # what it inherited counts with it, for its parent is not here
    found = range_of(process.profile, begin, second or _snapshot(process, -1))

    def own(flow: Flow) -> Flow:
        if first is None:
            flow = _brought(flow)
            return flow if second else Flow(passing=flow.new + flow.passing, untold=flow.untold)
        return flow if second else _taken(flow.before, flow)

    return found._replace(flows={place: (own(pair[0]), own(pair[1])) for place, pair in found.flows.items()})


def job_range(job: Processes, begin: str, end: str) -> JobRange:
    """From one moment to another, as instants.py takes them. Raises SelectionError."""
    first, second = instants(job, begin, end)
    parts = []
    for index, process in enumerate(job.members):
        if process.profile.snapshots and process.end >= first.time and process.begin <= second.time:
            at = first.moments.get(index), second.moments.get(index)
            parts.append(Part(process, *at, _flows(process, *at)))
    return JobRange(first, second, parts)
