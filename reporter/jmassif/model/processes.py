# SPDX-License-Identifier: GPL-2.0-or-later
"""The processes of a job, from their traces: the tree in which they started each other, on one clock.

Times are milliseconds since the first of the processes started, from `start-unix-ms` of the manifests. A forked child's times
go on from its parent's, to the millisecond; clocks of processes that were started separately agree to two milliseconds on one
machine, and as well as the machines' clocks do on several. Traces in another unit than milliseconds have no common clock.
"""

import signal
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.model.run import Profile
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

    @property
    def called(self) -> str:
        return f"process {self.pid}" if self.pid else printable(self.name)

    @property
    def is_fork(self) -> bool:
        return "forked-from" in self.profile.manifest

    @property
    def shares(self) -> bool:
        """Its inherited memory counts with its parent, which is among the processes."""
        return self.relation == FORKED and self.parent is not None

    def peak(self, measure: str) -> int:
        """The peak of its ledger in bytes, inherited memory included."""
        peak = self.profile.peaks.get(measure)
        if peak:
            return {"total": peak.host + peak.device, "host": peak.host, "device": peak.device}[measure]
        if self.profile.peaks:  # of the other space only
            return 0
        totals = self.profile.timeline  # killed before a snapshot
        return max({"total": totals.maximum, "host": totals.host, "device": totals.device}[measure], default=0)


def _no_clock(profiles: Sequence[Profile]) -> str:
    units = {profile.time_unit for profile in profiles}
    if units != {"ms"}:
        return "their times are not all in milliseconds (--time-unit=ms)"
    if any(profile.number("start-unix-ms") is None for profile in profiles):
        return "not all of them have the time of their start"
    return ""


def _last_time(profile: Profile) -> int:
    times = [profile.end.time] if profile.end else []
    return max(times + profile.timeline.time[-1:].tolist(), default=0)


def first_time(profile: Profile) -> int:
    return profile.timeline.time[0] if profile.timeline.time and "forked-from" in profile.manifest else 0


_ByPid = Dict[Tuple[Optional[str], int], List[int]]


def _by_pid(processes: Sequence[Process]) -> _ByPid:
    """Indices of the processes by host and pid: a pid may come again."""
    found: _ByPid = {}
    for index, process in enumerate(processes):
        found.setdefault((process.profile.manifest.get("host"), process.pid), []).append(index)
    return found


def _parent(processes: Sequence[Process], by_pid: _ByPid, index: int) -> Tuple[Optional[int], str]:
    """The index of the process that started this one, and the relation to it."""
    process = processes[index]
    manifest = process.profile.manifest

    def last(pid: Optional[int], fits: Callable[[Process], bool]) -> Optional[int]:
        candidates = by_pid.get((manifest.get("host"), pid), []) if pid else []
        found = [
            other
            for other in candidates
            if other != index and processes[other].begin <= process.begin and fits(processes[other])
        ]
        return max(found, key=lambda other: processes[other].begin) if found else None

    if process.is_fork:
        start = manifest.get("start-unix-ms")
        pid = process.profile.number("forked-from")
        return last(pid, lambda other: other.profile.manifest.get("start-unix-ms") == start), FORKED
    before = last(process.pid, lambda other: became_another(other.profile))
    if before is not None:
        return before, REPLACED
    return last(process.profile.number("ppid"), lambda other: True), SPAWNED


def became_another(profile: Profile) -> bool:
    """The trace ends with exec."""
    return bool(profile.snapshots) and profile.snapshots[-1].reason == "exec"


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
        begin, end = first_time(profile) + offset, _last_time(profile) + offset
        found.append(Process(name, profile, profile.number("pid") or 0, None, "", 0, offset, begin, end))
    by_pid = _by_pid(found)
    parents = [_parent(found, by_pid, index) for index in range(len(found))]
    for process, (above, _) in zip(found, parents):
        process.profile.was_dismissed = above is not None and _was_dismissed(process, found[above])

    children: Dict[Optional[int], List[int]] = {}
    for index, (parent, _) in enumerate(parents):
        children.setdefault(parent, []).append(index)
    for siblings in children.values():
        siblings.sort(key=lambda index: (found[index].begin, found[index].pid, index))
    members: List[Process] = []
    placed: Dict[int, int] = {}  # index in `found`: in `members`

    def place(root: int) -> None:
        pending = [(root, 0)]
        while pending:
            index, depth = pending.pop()
            if index in placed:
                continue
            parent, relation = parents[index]
            at = placed.get(parent) if parent is not None else None
            placed[index] = len(members)
            members.append(found[index]._replace(parent=at, relation=relation if at is not None else "", depth=depth))
            pending += [(child, depth + 1) for child in reversed(children.get(index, []))]

    for root in children.get(None, []):
        place(root)
    for index in range(len(found)):  # manifests that name each other as the parent
        place(index)
    return members, no_clock
