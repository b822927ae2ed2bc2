# SPDX-License-Identifier: GPL-2.0-or-later
"""Several traces as one: the processes of a job, who started whom, and what they held together.

Times are put on one clock: milliseconds since the first of the processes started, from `start-unix-ms` of the manifests.
A forked child's times go on from its parent's, to the millisecond; clocks of processes that were started separately agree
to two milliseconds on one machine, and as well as the machines' clocks do on several. Traces in another unit than
milliseconds have no common clock.

A trace tells exact totals at its rows and, between two rows, the largest total only. So a sum over processes lies between
two bounds:

- at most: between two rows each process holds what its trace says it reached there;
- at least: what was freed between two snapshots, by each account and in all, is known; at worst it was freed before
  anything was allocated.

Memory that a fork shares is counted once. A forked child begins with all that its parent held (its *opening* balances);
those pages are the parent's until one of the two writes to them, which no trace tells. What the child inherited counts with
the parent for as long as the parent has it, and once with the parent's children where the parent has freed it or has ended.
Of an account that frees and allocates it is not known which of its blocks are the inherited ones; the bounds take both ends.
"""

import os
from array import array
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from jmassif.profile import Composition, Profile, side_of

# What a sum can be of: all memory, or one side's.
MEASURES = ("total", "host", "device")

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
    def inherited_bytes(self) -> int:
        """What it began with, which its parent had allocated."""
        first = self.profile.snapshots[0] if self.is_fork and self.profile.snapshots else None
        return first.host + first.device if first else 0

    @property
    def is_fork(self) -> bool:
        return "forked-from" in self.profile.manifest

    def peak(self, measure: str) -> int:
        """The most it held, in bytes, with what it inherited."""
        peak = self.profile.peaks.get(measure)
        if peak:
            return {"total": peak.host + peak.device, "host": peak.host, "device": peak.device}[measure]
        if self.profile.peaks:  # of the other side only
            return 0
        told = self.profile.timeline  # killed before a snapshot
        return max({"total": told.maximum, "host": told.host, "device": told.device}[measure], default=0)


class Peak(NamedTuple):
    """The largest sum over all processes, in bytes: no less than `at_least`, which it was at `time`; no more than `at_most`."""

    at_least: int
    at_most: int
    time: int


class Row(NamedTuple):
    """One moment of the sum: what the processes hold from here on, as they last told, and the most since the row before."""

    time: int
    host: int
    device: int
    maximum: int


class _Curve(NamedTuple):
    """A bound over time: in the millisecond times[i] it is at[i], from there to the next one after[i]. Zero before."""

    times: List[int]
    at: List[int]
    after: List[int]


_Pick = Callable[[Sequence[int]], int]


def _curve(instants: Sequence[Tuple[int, int]], between: Sequence[int], pick: _Pick) -> _Curve:
    """From values at instants, in order, and a bound between each two of them; `pick` is min or max."""
    members: Dict[int, List[int]] = {}
    for time, value in instants:
        members.setdefault(time, []).append(value)
    after = dict.fromkeys(members, 0)
    for (time, _), (later, _), value in zip(instants, instants[1:], between):
        members[time].append(value)
        members[later].append(value)
        if later > time:
            after[time] = value
    times = sorted(members)
    return _Curve(times, [pick(members[time]) for time in times], [after[time] for time in times])


def _combined(curves: Sequence[_Curve], function: Callable[[Sequence[int]], int]) -> _Curve:
    """`function` of the values of all curves, at every time of one of them."""
    times = sorted({time for curve in curves for time in curve.times})
    now = [0] * len(curves)
    places = [0] * len(curves)
    at, after = [], []
    for time in times:
        here = list(now)
        for index, curve in enumerate(curves):
            place = places[index]
            if place < len(curve.times) and curve.times[place] == time:
                here[index], now[index] = curve.at[place], curve.after[place]
                places[index] = place + 1
        at.append(function(here))
        after.append(function(now))
    return _Curve(times, at, after)


def _added(curves: Sequence[_Curve]) -> _Curve:
    """The sum of many curves, in one sweep."""
    events = sorted(
        (time, index, place) for index, curve in enumerate(curves) for place, time in enumerate(curve.times)
    )
    now = [0] * len(curves)
    level = 0
    times: List[int] = []
    at: List[int] = []
    after: List[int] = []
    for time, index, place in events:
        curve = curves[index]
        if not times or times[-1] != time:
            times.append(time)
            at.append(level)
            after.append(level)
        at[-1] += curve.at[place] - now[index]
        level += curve.after[place] - now[index]
        after[-1] = level
        now[index] = curve.after[place]
    return _Curve(times, at, after)


# ---- what one process held -------------------------------------------------------------------


class _Change(NamedTuple):
    """What happened between two snapshots, in bytes."""

    dip: int  # how far below the first one the sum may have been
    allocated: int
    freed: int


class _Balances:
    """Walks the snapshots of a trace, and keeps each account's live and total bytes."""

    def __init__(self, profile: Profile, measure: str) -> None:
        self.live = array("Q", bytes(8 * len(profile.accounts)))
        self.total = array("Q", self.live)
        self.counts = [
            bool(side_of(account.kind)) and measure in ("total", side_of(account.kind)) for account in profile.accounts
        ]

    def apply(self, rows: "array[int]") -> "_Change":
        """Goes on by a snapshot's changes."""
        dip, freed, allocated = 0, 0, 0
        for account, live, total in zip(rows[0::6], rows[1::6], rows[3::6]):
            if self.counts[account]:
                before = self.live[account]
                new = max(0, total - self.total[account])
                dip += before - min(before, max(0, live - new))
                allocated += max(new, live - before)
                freed += max(new, live - before) + before - live
            self.live[account] = live
            self.total[account] = total
        return _Change(dip, allocated, freed)


class _Told(NamedTuple):
    """What a trace tells of one measure over time, on the common clock."""

    least: _Curve
    most: _Curve
    instants: List[Tuple[int, int]]  # (time, bytes), exact: the rows, and the peak
    rows: List[Tuple[int, int]]


def _values(profile: Profile, measure: str) -> List[int]:
    line = profile.timeline
    if measure == "total":
        return [host + device for host, device in zip(line.host, line.device)]
    return (line.host if measure == "host" else line.device).tolist()


def _told(process: Process, measure: str) -> _Told:
    profile = process.profile
    line = profile.timeline
    values = _values(profile, measure)
    known = profile.peaks.get(measure)
    ceiling = process.peak(measure)
    last_snapshot = profile.snapshots[-1].time if profile.snapshots else -1

    balances = _Balances(profile, measure)
    spans: List[Tuple[int, int, _Change]] = []  # (time of the snapshot that ends it, bytes at the one before, change)
    level = 0
    for snapshot in profile.snapshots:
        spans.append((snapshot.time, level, balances.apply(snapshot.changes)))
        level = {"total": snapshot.host + snapshot.device, "host": snapshot.host, "device": snapshot.device}[measure]

    rows: List[Tuple[int, int]] = []  # (time, bytes)
    most: List[int] = []  # since the row before
    least: List[int] = []
    span = 0
    for time, value, maximum in zip(line.time, values, line.maximum):
        while span < len(spans) and spans[span][0] < time:
            span += 1
        is_covered = bool(profile.peaks) and time <= last_snapshot
        last_time, last_value = rows[-1] if rows else (time, value)
        # Of one side, the peak of that side is often closer than the largest sum of both.
        most.append(max(last_value, value, min(maximum, ceiling) if is_covered else maximum))
        floors = [value]
        for end, before, change in spans[span:] or [(time, 0, _Change(0, value, last_value))]:
            floors.append(max(0, before - change.dip, last_value - change.freed, value - change.allocated))
            # Within a millisecond any of the snapshots taken in it may have come first.
            if end > time or last_time < time:
                break
        least.append(min(floors))
        rows.append((time, value))
    told = [(time + process.offset, value) for time, value in rows]
    if known and any(time > known.time for time, _ in rows[1:]) and rows[0][0] <= known.time:
        after = next(index for index, (time, _) in enumerate(rows) if time > known.time)
        rows.insert(after, (known.time, ceiling))
        most.insert(after, max(most[after], ceiling))
        least.insert(after, least[after])
    instants = [(time + process.offset, value) for time, value in rows]
    if instants and process.end > instants[-1][0]:
        instants.append((process.end, instants[-1][1]))
        most.append(instants[-1][1])
        least.append(instants[-1][1])
        told.append(instants[-1])
    floor_curve = _curve(instants, least[1:], min)
    for edge in (0, -1) if instants else ():
        floor_curve.at[edge] = 0  # in its first and last millisecond it was not always there
    return _Told(floor_curve, _curve(instants, most[1:], max), instants, told)


# ---- what a fork shares ----------------------------------------------------------------------


class _Opening(NamedTuple):
    """The balances that a forked child began with, by account."""

    live: "array[int]"
    total: "array[int]"
    bytes: int


def _opening(process: Process, measure: str) -> _Opening:
    balances = _Balances(process.profile, measure)
    for snapshot in process.profile.snapshots[:1]:
        balances.apply(snapshot.changes)
    held = sum(live for account, live in enumerate(balances.live) if balances.counts[account])
    return _Opening(balances.live, balances.total, held)


class _Left(NamedTuple):
    """Of what a process holds after a fork, over time: how much of the opening balances; and what is new, at most."""

    least: _Curve
    most: _Curve
    new: _Curve


_UNKNOWN = 1 << 64  # more than any sum


def _left(process: Process, opening: _Opening, fork: int, measure: str) -> _Left:
    """`process` is the child itself or its parent; `fork` is when, on the common clock."""
    least_of, most_of = array("Q", opening.live), array("Q", opening.live)
    since_of = array("Q", bytes(8 * len(process.profile.accounts)))
    new_of = array("Q", since_of)
    counts = _Balances(process.profile, measure).counts
    n_opening = len(opening.live)
    least, most, new = opening.bytes, opening.bytes, 0
    instants = [(fork, least, most, new)]
    new_between: List[int] = []
    for snapshot in process.profile.snapshots:
        time = snapshot.time + process.offset
        if time < fork:
            continue
        rows = snapshot.changes
        allocated = 0
        for account, live, total in zip(rows[0::6], rows[1::6], rows[3::6]):
            if not counts[account]:
                continue
            since = max(0, total - opening.total[account]) if account < n_opening else total
            allocated += since - since_of[account]
            since_of[account] = since
            new += min(live, since) - new_of[account]
            new_of[account] = min(live, since)
            if account < n_opening and most_of[account]:
                # Of its blocks the inherited ones may have been freed first, or last. What is gone stays gone.
                low = min(least_of[account], max(0, live - since))
                high = min(most_of[account], live)
                least += low - least_of[account]
                most += high - most_of[account]
                least_of[account], most_of[account] = low, high
        new_between.append(instants[-1][3] + allocated)
        instants.append((time, least, most, new))
    if process.end > instants[-1][0]:
        is_told = process.profile.end is not None
        new_between.append(new if is_told else _UNKNOWN)
        instants.append((process.end, least if is_told else 0, most, new))
    return _Left(
        _curve([(i[0], i[1]) for i in instants], [i[1] for i in instants[1:]], min),
        _curve([(i[0], i[2]) for i in instants], [i[2] for i in instants[:-1]], max),
        _curve([(i[0], i[3]) for i in instants], new_between, max),
    )


# ---- the sum ---------------------------------------------------------------------------------


class _Part(NamedTuple):
    """What counts for one process in the sum."""

    least: _Curve
    most: _Curve
    instants: List[Tuple[int, int]]  # (time, at least)
    told: _Curve  # as it was last told


def _steps(instants: Sequence[Tuple[int, int]]) -> _Curve:
    """A level that stays until the next instant; zero after the last."""
    last = dict(instants)
    times = sorted(last)
    return _Curve(times, [last[time] for time in times], [last[time] for time in times[:-1]] + [0] * bool(times))


def _values_at(curve: _Curve, times: Sequence[int]) -> List[int]:
    """Of the curve at `times`, which are in order."""
    values, place, after = [], 0, 0
    for time in times:
        while place < len(curve.times) and curve.times[place] < time:
            after = curve.after[place]
            place += 1
        is_here = place < len(curve.times) and curve.times[place] == time
        values.append(curve.at[place] if is_here else after)
    return values


def _values_after(curve: _Curve, times: Sequence[int]) -> List[int]:
    """Of the curve right after each of `times`, which are in order."""
    values, place, after = [], 0, 0
    for time in times:
        while place < len(curve.times) and curve.times[place] <= time:
            after = curve.after[place]
            place += 1
        values.append(after)
    return values


class _Sum:
    """The sum of one measure over all processes."""

    def __init__(self, members: Sequence[Process], measure: str) -> None:
        self.parts: List[_Part] = []
        shared_least: List[_Curve] = []
        shared_most: List[_Curve] = []
        families: Dict[int, List[Tuple[_Opening, _Left, _Left]]] = {}
        opened: Dict[int, int] = {}
        for index, process in enumerate(members):
            told = _told(process, measure)
            if process.relation != FORKED or process.parent is None:
                self.parts.append(_Part(told.least, told.most, told.instants, _steps(told.rows)))
                continue
            opening = _opening(process, measure)
            opened[index] = opening.bytes
            own = _left(process, opening, process.begin, measure)
            parents = _left(members[process.parent], opening, process.begin, measure)
            families.setdefault(process.parent, []).append((opening, own, parents))

            def without_inherited(rows: List[Tuple[int, int]], left: _Curve = own.most) -> List[Tuple[int, int]]:
                inherited = _values_at(left, [time for time, _ in rows])
                return [(time, max(0, held - part)) for (time, held), part in zip(rows, inherited)]

            self.parts.append(
                _Part(
                    _combined([told.least, own.most], lambda v: max(0, v[0] - v[1])),
                    _combined([told.most, own.least, own.new], lambda v: min(max(0, v[0] - v[1]), v[2])),
                    without_inherited(told.instants),
                    _steps(without_inherited(told.rows)),
                )
            )
        for parent, children in families.items():
            least, most = _let_go(children, opened.get(parent, 0), self.parts[parent].most)
            shared_least.append(least)
            shared_most.append(most)
        self.least = _added([part.least for part in self.parts] + shared_least)
        self.most = _added([part.most for part in self.parts] + shared_most)
        self.told = _added([part.told for part in self.parts] + shared_least)

    def peak(self) -> Peak:
        """The bounds of the largest sum."""
        # Between two rows of any process, what all hold at the least; and in the milliseconds that have some:
        best, when = max(zip(self.least.after, self.least.times), default=(0, 0), key=lambda bound: bound[0])
        for part in self.parts:
            times = [time for time, _ in part.instants]
            rest = zip(part.instants, _values_at(self.least, times), _values_at(part.least, times))
            for (time, exact), least, own_least in rest:
                # What one process holds at this very moment, and what the others hold in this millisecond at the least.
                at_least = least + max(0, exact - own_least)
                if at_least > best:
                    best, when = at_least, time
        return Peak(best, max(self.most.at, default=0), when)


def _let_go(
    children: Sequence[Tuple[_Opening, _Left, _Left]], parents_own: int, parent_most: _Curve
) -> Tuple[_Curve, _Curve]:
    """What children of one parent still have of what it had, and it has no more: at least and at most.

    `parents_own` is what the parent inherited itself, which may be with its own parent still; `parent_most` is what counts
    for the parent in the sum.
    """
    n = len(children)
    curves: List[_Curve] = []
    for _, own, parents in children:
        curves += [own.least, own.most, parents.least, parents.most]
    openings = [opening.bytes for opening, _, _ in children]
    # All that any of the children got: what the first one did, and what the parent has allocated until the last one.
    first, last = children[0][0], children[-1][0]
    n_first = len(first.total)
    everything = first.bytes + sum(
        max(0, total - (first.total[account] if account < n_first else 0)) for account, total in enumerate(last.total)
    )
    new = children[0][2].new
    # From the first fork until the parent has ended.
    is_after = _Curve([new.times[0], new.times[-1]], [1, 1], [1, 0])

    def least(values: Sequence[int]) -> int:
        return max(max(0, values[4 * i] - values[4 * i + 3] - parents_own) for i in range(n))

    def most(values: Sequence[int]) -> int:
        each = (min(values[4 * i + 1], openings[i] - values[4 * i + 2]) for i in range(n))
        bound = min(sum(each), everything)
        in_parent, new_in_parent, is_after_fork = values[4 * n :]
        # Whatever the parent frees in between is not in it any more.
        return min(bound, max(0, everything + new_in_parent - in_parent)) if is_after_fork else bound

    return _combined(curves, least), _combined(curves + [parent_most, new, is_after], most)


# ---- the processes ---------------------------------------------------------------------------


class Processes:
    """The processes of a job, in the order of their tree: each one before those it started."""

    @staticmethod
    def load(paths: "Sequence[Union[str, os.PathLike[str]]]") -> "Processes":
        """Reads the traces of a job's processes. Raises jmassif.TraceError, as Profile.load does."""
        return join([(os.fspath(path), Profile.load(path)) for path in paths])

    def __init__(self, members: Sequence[Process], no_clock: str) -> None:
        self.members = list(members)
        self.no_clock = no_clock  # why there is no common clock; "" if there is one
        self._sums: Dict[str, _Sum] = {}

    def _sum(self, measure: str) -> _Sum:
        if measure not in self._sums:
            self._sums[measure] = _Sum(self.members, measure)
        return self._sums[measure]

    @property
    def is_discrete(self) -> bool:
        """Host and device are two pools in one of the processes at least."""
        return any(process.profile.is_discrete for process in self.members)

    @property
    def machines(self) -> List[str]:
        """Their names; without those that the traces do not tell."""
        return sorted({process.profile.manifest.get("host", "") for process in self.members} - {""})

    @property
    def orphans(self) -> List[Process]:
        """Forked from a process whose trace is not here: what they share with it, and each other, counts in each."""
        return [process for process in self.members if process.is_fork and process.parent is None]

    def peak(self, measure: str = "total") -> Peak:
        """The largest sum over all processes. Without a common clock the bounds are far apart, and `time` says nothing."""
        if self.no_clock:
            peaks = [process.peak(measure) for process in self.members]
            return Peak(max(peaks, default=0), sum(peaks), 0)
        return self._sum(measure).peak()

    def timeline(self) -> List[Row]:
        """The sum over time; empty without a common clock."""
        if self.no_clock:
            return []
        most = self._sum("total").most
        levels = [_values_after(self._sum(side).told, most.times) for side in ("host", "device")]
        # What was told at different times may never have been at once.
        return [
            Row(time, min(host, maximum), min(device, max(0, maximum - host)), maximum)
            for time, host, device, maximum in zip(most.times, *levels, most.at)
        ]

    def compositions(self, time: int) -> List[Tuple[Process, Composition]]:
        """What each process that ran at `time` held at its nearest snapshot or peak, without what it inherited."""
        found = []
        for process in self.members:
            if process.begin <= time <= process.end:
                found.append((process, _without_inherited(process, _composition(process, time - process.offset))))
        return found


def _composition(process: Process, time: int) -> Composition:
    """Who held what at the snapshot or the peak that is nearest to `time`, a time of the trace."""
    profile = process.profile
    snapshots = [(abs(snapshot.time - time), index) for index, snapshot in enumerate(profile.snapshots)]
    peaks = [
        (abs(peak.time - time), which) for which, peak in profile.peaks.items() if peak.time >= _first_time(profile)
    ]
    if peaks and snapshots and min(peaks)[0] <= min(snapshots)[0]:
        return profile.peak_composition(min(peaks)[1])
    return profile.composition(min(snapshots)[1]) if snapshots else {}


def _without_inherited(process: Process, composition: Composition) -> Composition:
    if process.relation != FORKED or process.parent is None or not process.profile.snapshots:
        return composition
    opening = process.profile.composition(0)
    own: Composition = {}
    for account, (n_bytes, blocks) in composition.items():
        bytes_before, blocks_before = opening.get(account, (0, 0))
        if n_bytes > bytes_before or blocks > blocks_before:
            own[account] = (max(0, n_bytes - bytes_before), max(0, blocks - blocks_before))
    return own


def _no_clock(profiles: Sequence[Profile]) -> str:
    units = {profile.time_unit for profile in profiles}
    if units != {"ms"}:
        return "their times are not all in milliseconds (--time-unit=ms)"
    if any(profile.number("start-unix-ms") is None for profile in profiles):
        return "not all of them tell when they started"
    return ""


def _last_time(profile: Profile) -> int:
    times = [profile.end.time] if profile.end else []
    return max(times + profile.timeline.time[-1:].tolist(), default=0)


def _first_time(profile: Profile) -> int:
    return profile.timeline.time[0] if profile.timeline.time and "forked-from" in profile.manifest else 0


def _parent(processes: Sequence[Process], index: int) -> Tuple[Optional[int], str]:
    """Which of them started this one, and how."""
    process = processes[index]
    manifest = process.profile.manifest

    def last(pid: Optional[int], fits: Callable[[Process], bool]) -> Optional[int]:
        found = [
            other
            for other, candidate in enumerate(processes)
            if other != index
            and pid
            and candidate.pid == pid
            and candidate.profile.manifest.get("host") == manifest.get("host")
            and candidate.begin <= process.begin
            and fits(candidate)
        ]
        return max(found, key=lambda other: processes[other].begin) if found else None

    if process.is_fork:
        start = manifest.get("start-unix-ms")
        pid = process.profile.number("forked-from")
        return last(pid, lambda other: other.profile.manifest.get("start-unix-ms") == start), FORKED
    before = last(process.pid, lambda other: _became_another(other.profile))
    if before is not None:
        return before, REPLACED
    return last(process.profile.number("ppid"), lambda other: True), SPAWNED


def _became_another(profile: Profile) -> bool:
    return bool(profile.snapshots) and profile.snapshots[-1].reason == "exec"


def twice(traces: Sequence[Tuple[str, Profile]]) -> Optional[Tuple[str, str]]:
    """The names of two traces that one process left, which would count twice: a trace and a copy of it, say."""
    seen: Dict[Tuple[Optional[str], ...], str] = {}
    for name, profile in traces:
        key = tuple(profile.manifest.get(fact) for fact in ("pid", "host", "start-unix-ms", "forked-from"))
        if key[0] is not None:
            if key in seen:
                return seen[key], name
            seen[key] = name
    return None


def join(traces: Sequence[Tuple[str, Profile]]) -> Processes:
    """The processes that left these traces, which are (name of the file, profile)."""
    no_clock = _no_clock([profile for _, profile in traces])
    starts = [0 if no_clock else profile.number("start-unix-ms") or 0 for _, profile in traces]
    first = min(starts, default=0)
    found = []
    for (name, profile), start in zip(traces, starts):
        offset = start - first
        begin, end = _first_time(profile) + offset, _last_time(profile) + offset
        found.append(Process(name, profile, profile.number("pid") or 0, None, "", 0, offset, begin, end))
    parents = [_parent(found, index) for index in range(len(found))]

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
    return Processes(members, no_clock)
