# SPDX-License-Identifier: GPL-2.0-or-later
"""The processes of a job, from their traces: the tree in which they started each other, on one clock.

Times are milliseconds since the first of the processes started, from `start-unix-ms` of the manifests. A forked child's times
go on from its parent's, to the millisecond; clocks of processes that were started separately agree to two milliseconds on one
machine, and as well as the machines' clocks do on several. Traces in another unit than milliseconds have no common clock.
"""

import signal
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.model.run import Profile
from jmassif.model.run_info import Rank, ranks_of, run_id
from jmassif.units import printable


FORKED = "forked"
SPAWNED = "spawned"
REPLACED = "replaced by exec"


class Process(NamedTuple):
    """One trace. Times are milliseconds on the common clock, or the trace's own where there is none."""

    name: str  # of the file
    profile: Profile
    pid: int  # 0: not on record
    parent: Optional[int]  # index of the process that started it
    relation: str  # to the parent: FORKED, SPAWNED or REPLACED; "" without
    depth: int  # in the tree of processes
    offset: int  # to be added to the trace's times
    begin: int
    end: int
    rank: Optional[Rank] = None  # in a distributed job; None: it has none, or is a helper of the rank's process

    @property
    def called(self) -> str:
        if self.rank is not None:
            return f"rank {self.rank.number}"
        return f"process {self.pid}" if self.pid else printable(self.name)

    @property
    def command(self) -> str:
        return self.profile.manifest.get("command", "")

    @property
    def run_id(self) -> str:
        return run_id(self.profile)

    @property
    def is_fork(self) -> bool:
        return "forked-from" in self.profile.manifest

    @property
    def shares(self) -> bool:
        """Its inherited memory counts with its parent, which is among the processes."""
        return self.relation == FORKED

    def peak(self, measure: str) -> int:
        """The peak of its ledger in bytes, inherited memory included."""
        peak = self.profile.peaks.get(measure)
        if peak:
            return peak.bytes
        # Killed before a snapshot.
        return max(getattr(self.profile.timeline, "maximum" if measure == "total" else measure), default=0)


def _no_clock(profiles: Sequence[Profile]) -> str:
    units = {profile.time_unit for profile in profiles}
    if units != {"ms"}:
        return "their times are not all in milliseconds (--time-unit=ms)"
    if any(profile.number("start-unix-ms") is None for profile in profiles):
        return "not all of them have the time of their start"
    return ""


def _parent(processes: Sequence[Process], index: int) -> Tuple[Optional[int], str]:
    """The index of the process that started this one, which is before it, and the relation to it."""
    process = processes[index]
    manifest = process.profile.manifest

    def last(pid: Optional[int], fits: Callable[[Profile], bool]) -> Optional[int]:
        """A pid may come again."""
        for other in range(index - 1, -1, -1):
            run = processes[other].profile
            if pid and processes[other].pid == pid and run.manifest.get("host") == manifest.get("host") and fits(run):
                return other
        return None

    if process.is_fork:
        start = manifest.get("start-unix-ms")
        pid = process.profile.number("forked-from")
        return last(pid, lambda run: run.manifest.get("start-unix-ms") == start), FORKED
    before = last(process.pid, lambda run: bool(run.snapshots) and run.snapshots[-1].reason == "exec")
    if before is not None:
        return before, REPLACED
    return last(process.profile.number("ppid"), lambda run: True), SPAWNED


def _was_dismissed(process: Process, parent: Process) -> bool:
    """A worker that got SIGTERM after its work: the parent went on and ended with status 0."""
    end, after = process.profile.end, parent.profile.end
    is_asked = end is not None and (end.reason, end.code) == ("signal", signal.SIGTERM)
    return is_asked and after is not None and (after.reason, after.code) == ("exit", 0) and parent.end >= process.end


def twice(traces: Sequence[Tuple[str, Profile]]) -> Optional[Tuple[str, str]]:
    """Names of two traces of one process, which would count twice: a trace and its copy."""
    seen: Dict[Tuple[Optional[str], ...], str] = {}
    for name, profile in traces:
        key = tuple(profile.manifest.get(fact) for fact in ("pid", "host", "start-unix-ms", "forked-from"))
        if key[0] is not None:
            if key in seen:
                return seen[key], name
            seen[key] = name
    return None


def _with_ranks(members: List[Process]) -> List[Process]:
    """The largest process of each rank has it: not its forks, nor a shell that started it."""
    ranks = ranks_of([member.profile for member in members])
    first: List[int] = []  # by member, the first process of its rank
    largest: Dict[int, int] = {}
    for index, (member, rank) in enumerate(zip(members, ranks)):
        is_helper = member.parent is not None and ranks[member.parent] == rank
        first.append(first[member.parent or 0] if is_helper else index)
        if rank is not None and not (is_helper and member.shares):
            before = largest.setdefault(first[index], index)
            if member.peak("total") > members[before].peak("total"):
                largest[first[index]] = index
    return [m._replace(rank=ranks[n] if largest.get(first[n]) == n else None) for n, m in enumerate(members)]


def tree(traces: Sequence[Tuple[str, Profile]]) -> Tuple[List[Process], str]:
    """The processes of these traces (name of the file, profile), each before those that it started.

    The text says why there is no common clock; "" if there is one.
    """
    no_clock = _no_clock([profile for _, profile in traces])
    starts = [0 if no_clock else profile.number("start-unix-ms") or 0 for _, profile in traces]
    first = min(starts, default=0)
    found = []
    for (name, profile), start in zip(traces, starts):
        offset = start - first
        first_time = profile.timeline.time[0] if profile.timeline.time and "forked-from" in profile.manifest else 0
        begin, end = first_time + offset, profile.last_time + offset
        found.append(Process(name, profile, profile.number("pid") or 0, None, "", 0, offset, begin, end))
    found.sort(key=lambda each: (each.begin, each.pid))
    parents = [_parent(found, index) for index in range(len(found))]
    children: Dict[Optional[int], List[int]] = {}
    for index, (above, _) in enumerate(parents):
        children.setdefault(above, []).append(index)
        found[index].profile.was_dismissed = above is not None and _was_dismissed(found[index], found[above])
    members: List[Process] = []
    placed: Dict[Optional[int], int] = {}  # index in `found`: in `members`
    pending = children.get(None, [])[::-1]
    while pending:
        index = pending.pop()
        above, relation = parents[index]
        at = placed.get(above)
        placed[index] = len(members)
        depth = 0 if at is None else members[at].depth + 1
        members.append(found[index]._replace(parent=at, relation=relation if depth else "", depth=depth))
        pending += children.get(index, [])[::-1]
    return _with_ranks(members), no_clock


def newest_run(members: Sequence[Process]) -> List[Process]:
    """The last of several runs in a row: trees of processes, of one machine, that ran at the same time; all of a distributed job."""
    machines = {member.profile.manifest.get("host") for member in members}
    if len(machines) > 1 or any(member.rank for member in members):
        return list(members)
    trees: List[List[Process]] = []
    for member in members:
        if member.depth == 0:
            trees.append([])
        trees[-1].append(member)
    newest: List[Process] = []
    end = 0
    # A fork's offset is that of its parent, whether that has a trace here or not.
    for tree_ in sorted(trees, key=lambda each: each[0].offset):
        newest = (newest if tree_[0].offset <= end else []) + tree_
        end = max([end, *(member.end for member in tree_)])
    return newest
