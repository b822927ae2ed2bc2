# SPDX-License-Identifier: GPL-2.0-or-later
"""Who holds what, over all processes of a job."""

from array import array
from bisect import bisect_left
from heapq import heappop, heappush
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.analysis.aggregate import Ledger, Usage, UsageRow, ledger, ledger_of_rows
from jmassif.analysis.inherited import bytes_on, fullest_of_own, own_of, sides_of
from jmassif.analysis.moments import Moment
from jmassif.attribution.names import Names
from jmassif.model.processes import Process, tree
from jmassif.model.records import PEAKS, Changes, Composition, side_of
from jmassif.model.run import Profile


# ---- names ----
# Of each process of a job, what its frames are called: made once, when it is first asked for.


class NamesOf:
    def __init__(self, known: Iterable[Tuple[Process, Names]] = ()) -> None:
        self._by_profile: Dict[int, Names] = {id(process.profile): names for process, names in known}

    def __call__(self, process: Process) -> Names:
        key = id(process.profile)
        if key not in self._by_profile:
            self._by_profile[key] = Names(process.profile)
        return self._by_profile[key]


# ---- curves ----
# Bounds over time, and what can be calculated with them: the algebra of sums over processes. Knows nothing of memory.


class Curve(NamedTuple):
    """A bound over time: in the millisecond times[i] it is at[i], from there to the next one after[i]. Zero before."""

    times: List[int]
    at: List[int]
    after: List[int]


Pick = Callable[[Sequence[int]], int]


def curve_of(instants: Sequence[Tuple[int, int]], between: Sequence[int], pick: Pick) -> Curve:
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
    return Curve(times, [pick(members[time]) for time in times], [after[time] for time in times])


def combined(curves: Sequence[Curve], function: Callable[[Sequence[int]], int]) -> Curve:
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
    return Curve(times, at, after)


def added(curves: Sequence[Curve]) -> Curve:
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
    return Curve(times, at, after)


def highest(curves: Sequence[Curve]) -> Curve:
    """The largest of many curves, none of them negative, in one sweep."""
    events = sorted(
        (time, index, place) for index, curve in enumerate(curves) for place, time in enumerate(curve.times)
    )
    # Levels from the last time on, largest first: (-value, curve, which of its levels it was). What is over stays until it is on top.
    levels: List[Tuple[int, int, int]] = []
    newest = [0] * len(curves)
    times: List[int] = []
    at: List[int] = []
    after: List[int] = []
    begin = 0
    while begin < len(events):
        time = events[begin][0]
        end = begin
        while end < len(events) and events[end][0] == time:
            newest[events[end][1]] += 1
            end += 1
        here = events[begin:end]
        at.append(max([_top(levels, newest)] + [curves[index].at[place] for _, index, place in here]))
        for _, index, place in here:
            heappush(levels, (-curves[index].after[place], index, newest[index]))
        after.append(_top(levels, newest))
        times.append(time)
        begin = end
    return Curve(times, at, after)


def _top(levels: List[Tuple[int, int, int]], newest: Sequence[int]) -> int:
    while levels and levels[0][2] != newest[levels[0][1]]:
        heappop(levels)
    return -levels[0][0] if levels else 0


def steps(instants: Sequence[Tuple[int, int]]) -> Curve:
    """A level that stays until the next instant; zero after the last."""
    last = dict(instants)
    times = sorted(last)
    return Curve(times, [last[time] for time in times], [last[time] for time in times[:-1]] + [0] * bool(times))


def values_at(curve: Curve, times: Sequence[int]) -> List[int]:
    """Of the curve at `times`, which are in order."""
    place = bisect_left(curve.times, times[0]) if times else 0
    values, after = [], curve.after[place - 1] if place else 0
    for time in times:
        while place < len(curve.times) and curve.times[place] < time:
            after = curve.after[place]
            place += 1
        is_here = place < len(curve.times) and curve.times[place] == time
        values.append(curve.at[place] if is_here else after)
    return values


def values_after(curve: Curve, times: Sequence[int]) -> List[int]:
    """Of the curve right after each of `times`, which are in order."""
    values, place, after = [], 0, 0
    for time in times:
        while place < len(curve.times) and curve.times[place] <= time:
            after = curve.after[place]
            place += 1
        values.append(after)
    return values


# ---- held ----
# What one process held over time, between the rows of its trace too: bounds for one measure, from its snapshots.

# What a sum can be of: all memory, or one side's.
MEASURES = ("total", "host", "device")


class _Change(NamedTuple):
    """What happened between two snapshots, in bytes."""

    dip: int  # how far below the first one the sum may have been
    allocated: int
    freed: int


class Balances:
    """Walks the snapshots of a trace, and keeps each account's live and total bytes."""

    def __init__(self, profile: Profile, measure: str) -> None:
        self.live = array("Q", bytes(8 * len(profile.accounts)))
        self.total = array("Q", self.live)
        self.counts = [
            bool(side_of(account.kind)) and measure in ("total", side_of(account.kind)) for account in profile.accounts
        ]

    def apply(self, rows: Changes) -> "_Change":
        """Goes on by a snapshot's changes."""
        dip, freed, allocated = 0, 0, 0
        for account, live, total in zip(rows.account, rows.bytes, rows.all_bytes):
            if self.counts[account]:
                before = self.live[account]
                new = max(0, total - self.total[account])
                dip += before - min(before, max(0, live - new))
                allocated += max(new, live - before)
                freed += max(new, live - before) + before - live
            self.live[account] = live
            self.total[account] = total
        return _Change(dip, allocated, freed)


class Told(NamedTuple):
    """What a trace tells of one measure over time, on the common clock."""

    least: Curve
    most: Curve
    instants: List[Tuple[int, int]]  # (time, bytes), exact: the rows, and the peak
    rows: List[Tuple[int, int]]


def _values(profile: Profile, measure: str) -> List[int]:
    line = profile.timeline
    if measure == "total":
        return [host + device for host, device in zip(line.host, line.device)]
    return (line.host if measure == "host" else line.device).tolist()


def told_of(process: Process, measure: str) -> Told:
    profile = process.profile
    line = profile.timeline
    values = _values(profile, measure)
    known = profile.peaks.get(measure)
    ceiling = process.peak(measure)
    last_snapshot = profile.snapshots[-1].time if profile.snapshots else -1

    balances = Balances(profile, measure)
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
    floor_curve = curve_of(instants, least[1:], min)
    for edge in (0, -1) if instants else ():
        floor_curve.at[edge] = 0  # in its first and last millisecond it was not always there
    return Told(floor_curve, curve_of(instants, most[1:], max), instants, told)


# ---- forks ----
# What a fork shares, which counts once.
#
# A forked child begins with all that its parent held (its *opening* balances); those pages are the parent's until one of the
# two writes to them, which no trace tells. What the child inherited counts with the parent for as long as the parent has it, and
# once with the parent's children where the parent has freed it or has ended. Of an account that frees and allocates it is not
# known which of its blocks are the inherited ones; the bounds take both ends. A page of a file is the same for all who map it: a
# child gets it when it touches it, and has none right after the fork. Of the mapping's pages, whichever they are, it has at
# least as many in common with what was there at the fork as both together are more than it is long.


class Opening(NamedTuple):
    """The balances that a forked child began with, by account."""

    live: "array[int]"
    total: "array[int]"
    bytes: int


def opening_of(process: Process, measure: str) -> Opening:
    balances = Balances(process.profile, measure)
    for snapshot in process.profile.snapshots[:1]:
        balances.apply(snapshot.changes)
    held = sum(live for account, live in enumerate(balances.live) if balances.counts[account])
    return Opening(balances.live, balances.total, held)


class Left(NamedTuple):
    """Of what a process holds after a fork, over time: how much of the opening balances; and what is new, at most."""

    least: Curve
    most: Curve
    new: Curve


_UNKNOWN = 1 << 64  # more than any sum


def left_of(process: Process, opening: Opening, fork: int, measure: str) -> Left:
    """`process` is the child itself or its parent; `fork` is when, on the common clock."""
    least_of, most_of = array("Q", opening.live), array("Q", opening.live)
    since_of = array("Q", bytes(8 * len(process.profile.accounts)))
    new_of = array("Q", since_of)
    counts = Balances(process.profile, measure).counts
    is_file = [account.kind == "file" for account in process.profile.accounts]
    length_of = array("Q", since_of)  # of its mappings
    n_opening = len(opening.live)
    least, most, new = opening.bytes, opening.bytes, 0
    instants = [(fork, least, most, new)]
    new_between: List[int] = []
    for snapshot in process.profile.snapshots:
        time = snapshot.time + process.offset
        for account, length in zip(snapshot.pages.account, snapshot.pages.virtual):
            length_of[account] = length
        if time < fork:
            continue
        rows = snapshot.changes
        allocated = 0
        for account, live, total in zip(rows.account, rows.bytes, rows.all_bytes):
            if not counts[account]:
                continue
            opened, total_then = (opening.live[account], opening.total[account]) if account < n_opening else (0, 0)
            if is_file[account]:
                high = min(opened, live)
                low = min(high, max(0, opened + live - length_of[account]))
                since = live - low
            else:
                since = max(0, total - total_then)
                # Of its blocks the inherited ones may have been freed first, or last. What is gone stays gone.
                low = min(least_of[account], max(0, live - since)) if opened else 0
                high = min(most_of[account], live) if opened else 0
            allocated += max(0, since - since_of[account])
            since_of[account] = since
            new += min(live, since) - new_of[account]
            new_of[account] = min(live, since)
            if opened:
                least += low - least_of[account]
                most += high - most_of[account]
                least_of[account], most_of[account] = low, high
        new_between.append(instants[-1][3] + allocated)
        instants.append((time, least, most, new))
    if process.end > instants[-1][0]:
        is_told = process.profile.end is not None
        new_between.append(new if is_told else _UNKNOWN)
        instants.append((process.end, least if is_told else 0, most, new))
    return Left(
        curve_of([(i[0], i[1]) for i in instants], [min(i[1], j[1]) for i, j in zip(instants, instants[1:])], min),
        curve_of([(i[0], i[2]) for i in instants], [max(i[2], j[2]) for i, j in zip(instants, instants[1:])], max),
        curve_of([(i[0], i[3]) for i in instants], new_between, max),
    )


def let_go(children: Sequence[Tuple[Opening, Left, Left]], parents_own: int, parent_most: Curve) -> Tuple[Curve, Curve]:
    """What children of one parent still have of what it had, and it has no more: at least and at most.

    `parents_own` is what the parent inherited itself, which may be with its own parent still; `parent_most` is what counts
    for the parent in the sum.
    """
    # All that any of the children got: what the first one did, and what the parent has allocated until the last one.
    first, last = children[0][0], children[-1][0]
    n_first = len(first.total)
    everything = first.bytes + sum(
        max(0, total - (first.total[account] if account < n_first else 0)) for account, total in enumerate(last.total)
    )
    new = children[0][2].new
    # From the first fork until the parent has ended.
    is_after = Curve([new.times[0], new.times[-1]], [1, 1], [1, 0])

    def is_let_go(values: Sequence[int]) -> int:
        in_child, in_parent = values
        return max(0, in_child - in_parent - parents_own)

    def may_be_let_go(opening: Opening) -> Callable[[Sequence[int]], int]:
        return lambda values: min(values[0], opening.bytes - values[1])

    def most(values: Sequence[int]) -> int:
        of_each, in_parent, new_in_parent, is_after_fork = values
        bound = min(of_each, everything)
        # Whatever the parent frees in between is not in it any more.
        return min(bound, max(0, everything + new_in_parent - in_parent)) if is_after_fork else bound

    # Child by child, so that the work grows with their number and not with its square.
    least = highest([combined([own.least, parents.most], is_let_go) for _, own, parents in children])
    each = [combined([own.most, parents.least], may_be_let_go(opening)) for opening, own, parents in children]
    return least, combined([added(each), parent_most, new, is_after], most)


# ---- moments ----
# What the processes of a job held at one moment of the common clock, each of them as its trace last told.
#
# A trace tells all that its process held at its snapshots and peaks. Between them it holds what it held last, nothing before its
# beginning, and nothing after its end. In one millisecond several processes may tell something, one after the other; then the
# fullest of these moments stands for it. The page follows the same rule (findPeaks in runs/sum.js), so what it shows as the peak
# is what the headline and the text tell of.


class _Told(NamedTuple):
    """What a process held from `time` on, on the common clock."""

    time: int
    snapshot: Optional[int]  # index
    peak: str  # one of PEAKS; "" with a snapshot, and at the end, when it held nothing any more

    @property
    def is_end(self) -> bool:
        return self.snapshot is None and not self.peak


class _Holds(NamedTuple):
    told: _Told
    own: Composition  # without what was inherited


def _told(process: Process) -> List[_Told]:
    """In order: peaks before the snapshot that they are told against, and no time before the one that was told before."""
    profile = process.profile
    latest = profile.snapshots[0].time if profile.snapshots else 0
    found: List[_Told] = []
    for index, snapshot in enumerate(profile.snapshots):
        peaks = [peak for peak in profile.peaks.values() if peak.snapshot == index and peak.which in PEAKS]
        for peak in sorted(peaks, key=lambda peak: (peak.time, PEAKS.index(peak.which))):
            latest = max(latest, peak.time)
            found.append(_Told(latest + process.offset, None, peak.which))
        latest = max(latest, snapshot.time)
        found.append(_Told(latest + process.offset, index, ""))
    return found + ([_Told(max(latest + process.offset, process.end), None, "")] if found else [])


def _without_inherited(process: Process, composition: Composition) -> Composition:
    if not process.shares or not process.profile.snapshots:
        return composition
    return own_of(process.profile, composition)


def _composition(process: Process, told: _Told) -> Composition:
    profile = process.profile
    return profile.composition(told.snapshot) if told.snapshot is not None else profile.peak_composition(told.peak)


def _holds(process: Process, told: _Told) -> _Holds:
    return _Holds(told, _without_inherited(process, _composition(process, told)))


def _bytes(process: Process, composition: Composition, measure: str) -> int:
    return bytes_on(process.profile, composition, sides_of(measure))


def _held_at(members: Sequence[Process], time: int, measure: str) -> Dict[int, _Holds]:
    """By member, of those that ran at `time`; `measure` is what makes a moment the fullest."""
    now: Dict[int, _Holds] = {}
    steps: List[Tuple[int, _Told]] = []
    for index, process in enumerate(members):
        told = _told(process)
        before = [each for each in told if each.time < time]
        if before and not before[-1].is_end:
            now[index] = _holds(process, before[-1])
        steps += [(index, each) for each in told if each.time == time]
    fullest, most = dict(now), -1
    held = {index: _bytes(members[index], holds.own, measure) for index, holds in now.items()}
    for index, told_ in steps:
        now.pop(index, None)
        held.pop(index, None)
        if not told_.is_end:
            now[index] = _holds(members[index], told_)
            held[index] = _bytes(members[index], now[index].own, measure)
        if sum(held.values()) > most:
            fullest, most = dict(now), sum(held.values())
    return fullest


def compositions_at(members: Sequence[Process], time: int, measure: str) -> List[Tuple[Process, Composition]]:
    """What each process that ran at `time` held, without what it inherited; `measure` is what makes a moment the fullest."""
    held = _held_at(members, time, measure)
    return [(members[index], held[index].own) for index in sorted(held)]


def moments_at(members: Sequence[Process], time: int, measure: str) -> Dict[int, Moment]:
    """By member, the same moments, each on the clock of its trace, with all that the process held."""
    found = {}
    for index, (told, _) in _held_at(members, time, measure).items():
        process = members[index]
        name = f"its {told.peak} peak" if told.peak else f"snapshot {process.profile.snapshots[told.snapshot or 0].id}"
        at = process.profile.peaks[told.peak].time if told.peak else told.time - process.offset
        found[index] = Moment(name, at, _composition(process, told), told.snapshot)
    return found


# ---- processes ----
# Several traces as one: what the processes of a job held together.
#
# Times are on the common clock (model/processes.py).
#
# A trace tells exact totals at its rows and, between two rows, the largest total only. So a sum over processes lies between
# two bounds:
#
# - at most: between two rows each process holds what its trace says it reached there;
# - at least: what was freed between two snapshots, by each account and in all, is known; at worst it was freed before
#   anything was allocated.
#
# Memory that a fork shares is counted once; forks.py tells how.


class Peak(NamedTuple):
    """The largest sum over all processes, in bytes: no less than `at_least`, which it was at `time`; no more than `at_most`."""

    at_least: int
    at_most: int
    time: int


class TimelineRow(NamedTuple):
    """One moment of the sum: what the processes hold from here on, as they last told, and the most since the row before."""

    time: int
    host: int
    device: int
    maximum: int


# ---- the sum ---------------------------------------------------------------------------------


class _Part(NamedTuple):
    """What counts for one process in the sum."""

    least: Curve
    most: Curve
    instants: List[Tuple[int, int]]  # (time, at least)
    told: Curve  # as it was last told


class _Sum:
    """The sum of one measure over all processes."""

    def __init__(self, members: Sequence[Process], measure: str) -> None:
        self.parts: List[_Part] = []
        shared_least: List[Curve] = []
        shared_most: List[Curve] = []
        families: Dict[int, List[Tuple[Opening, Left, Left]]] = {}
        opened: Dict[int, int] = {}
        for index, process in enumerate(members):
            told = told_of(process, measure)
            if not process.shares or process.parent is None:
                self.parts.append(_Part(told.least, told.most, told.instants, steps(told.rows)))
                continue
            opening = opening_of(process, measure)
            opened[index] = opening.bytes
            own = left_of(process, opening, process.begin, measure)
            parents = left_of(members[process.parent], opening, process.begin, measure)
            families.setdefault(process.parent, []).append((opening, own, parents))

            def without_inherited(rows: List[Tuple[int, int]], left: Curve = own.most) -> List[Tuple[int, int]]:
                inherited = values_at(left, [time for time, _ in rows])
                return [(time, max(0, held - part)) for (time, held), part in zip(rows, inherited)]

            self.parts.append(
                _Part(
                    combined([told.least, own.most], lambda v: max(0, v[0] - v[1])),
                    combined([told.most, own.least, own.new], lambda v: min(max(0, v[0] - v[1]), v[2])),
                    without_inherited(told.instants),
                    steps(without_inherited(told.rows)),
                )
            )
        for parent, children in families.items():
            least, most = let_go(children, opened.get(parent, 0), self.parts[parent].most)
            shared_least.append(least)
            shared_most.append(most)
        self.least = added([part.least for part in self.parts] + shared_least)
        self.most = added([part.most for part in self.parts] + shared_most)
        self.told = added([part.told for part in self.parts] + shared_least)

    def peak(self) -> Peak:
        """The bounds of the largest sum."""
        # Between two rows of any process, what all hold at the least; and in the milliseconds that have some:
        best, when = max(zip(self.least.after, self.least.times), default=(0, 0), key=lambda bound: bound[0])
        for part in self.parts:
            times = [time for time, _ in part.instants]
            rest = zip(part.instants, values_at(self.least, times), values_at(part.least, times))
            for (time, exact), least, own_least in rest:
                # What one process holds at this very moment, and what the others hold in this millisecond at the least.
                at_least = least + max(0, exact - own_least)
                if at_least > best:
                    best, when = at_least, time
        return Peak(best, max(self.most.at, default=0), when)


# ---- the processes ---------------------------------------------------------------------------


class Processes:
    """The processes of a job, in the order of their tree: each one before those it started."""

    def __init__(self, members: Sequence[Process], no_clock: str) -> None:
        self.members = list(members)
        self.no_clock = no_clock  # why there is no common clock; "" if there is one
        self._sums: Dict[str, _Sum] = {}
        self._own: Dict[Tuple[int, str], int] = {}

    def own_peak(self, process: Process, measure: str) -> int:
        """The most that it is known to have held beside its parent's, in bytes."""
        profile = process.profile
        if not process.shares or not profile.snapshots:
            return process.peak(measure)
        key = id(profile), measure
        if key not in self._own:
            self._own[key] = fullest_of_own(profile, sides_of(measure))[1]
        return self._own[key]

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

    def timeline(self) -> List[TimelineRow]:
        """The sum over time; empty without a common clock."""
        if self.no_clock:
            return []
        most = self._sum("total").most
        levels = [values_after(self._sum(side).told, most.times) for side in ("host", "device")]
        # What was told at different times may never have been at once.
        return [
            TimelineRow(time, min(host, maximum), min(device, max(0, maximum - host)), maximum)
            for time, host, device, maximum in zip(most.times, *levels, most.at)
        ]

    def compositions(
        self, time: int, measure: str = "total", is_whole: bool = False
    ) -> List[Tuple[Process, Composition]]:
        """What each process that ran at `time` held, as it last told; without what it inherited, unless `is_whole`. See
        moments.py."""
        if is_whole:
            moments = moments_at(self.members, time, measure)
            return [(self.members[index], moments[index].composition) for index in sorted(moments)]
        return compositions_at(self.members, time, measure)


def join(traces: Sequence[Tuple[str, Profile]]) -> Processes:
    """The processes that left these traces, which are (name of the file, profile)."""
    return Processes(*tree(traces))


# ---- owners ----


def ledger_of(processes: Processes, time: int, measure: str = "total") -> Ledger:
    """At `time` on the common clock: of each process what it last told, without what it inherited; `measure`: see moments.py."""
    owners: Dict[str, Usage] = {}
    group_of: Dict[str, str] = {}
    for process, composition in processes.compositions(time, measure):
        for group in ledger(process.profile, composition).groups:
            for row in group.owners:
                group_of[row.name] = group.name
                owners[row.name] = owners.get(row.name, Usage()) + row.usage
    return ledger_of_rows([UsageRow(*owner) for owner in owners.items()], group_of)
