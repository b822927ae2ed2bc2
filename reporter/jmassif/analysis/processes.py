# SPDX-License-Identifier: GPL-2.0-or-later
"""Several traces as one job: the memory of its processes at common moments.

A process counts with its proportional share (PSS), as the kernel gave it, and with the memory of its ledger that is in no
process's pages: the device's, and host memory of drivers. The kernel divides a page by the number of processes that have it,
so shares add up where they are read at one moment: a process that samples its pages reads the others' too
(docs/trace-format.md). In between a share is what its ledger makes of the readings before and after, and where they differ
the smaller; without any (recorded with --pages=no, say) a process counts with its ledger, less the memory that it inherited
by fork.

Times are on the common clock (model/process_tree.py).
"""

import signal
from bisect import bisect_left, bisect_right
from statistics import median_low
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from jmassif.analysis.aggregate import Ledger, Usage, UsageRow, ledger, ledger_of_rows
from jmassif.analysis.lines import HotSpot, by_place, hot_spot, sizes_by_label
from jmassif.analysis.inherited import Observed, beyond, observed
from jmassif.analysis.leaks import Growth, find_growth
from jmassif.analysis.oom import NOTE, Incident, Outcome, incidents_of, outcome_of
from jmassif.analysis.regions import NamedRegions, regions_by_name
from jmassif.attribution.names import Names
from jmassif.model.process_tree import Process, tree
from jmassif.model.records import LiveBytesByAccount
from jmassif.model.run import Profile
from jmassif.model.run_info import recorder, used_sides

# A sum is of all memory, or of one memory space.
MEASURES = ("total", "host", "device")


# ---- proportional shares ---------------------------------------------------------------------


def _apart(run: Profile, time: int) -> int:
    """What another process reads of this one besides its share: CUDA's blocks in its pages, which the ledger has as the device's,
    and a native recorder's memory, which no other process can tell from the program's."""
    blocks, custom, recorder_s = (
        run.system_at(figure, time) or 0 for figure in ("resident-blocks", "custom-blocks", "resident-valgrind")
    )
    return max(0, blocks - custom) + (recorder_s if recorder(run) == "native" else 0)


def _readings(members: Sequence[Process]) -> List[Dict[int, int]]:
    """A process's shares as read by itself and by others, in bytes by time, for each process.

    A process that reads itself while another waits changes the other's share. Where the other was never read in its life, its
    own readings count the memory of both once more: without them it counts with its ledger.
    """
    found: List[Dict[int, int]] = [{} for _ in members]
    hosts = [process.profile.manifest.get("host") for process in members]
    called: Dict[Tuple[Optional[str], str], List[int]] = {}  # by host and pid, which may come again
    for index, process in enumerate(members):
        called.setdefault((hosts[index], str(process.pid)), []).append(index)
    for index, process in enumerate(members):
        for figure, (times, values) in process.profile.system.items():
            name, _, pid = figure.partition(".")
            read = [each for each in called.get((hosts[index], pid), ()) if each != index] if pid else [index]
            for at, share in zip((time + process.offset for time in times), values) if name == "pss" else ():
                for number in read:
                    of = members[number]
                    if number == index:
                        found[index][at] = share
                    elif of.begin <= at <= of.end:
                        found[number].setdefault(at, max(0, share - _apart(of.profile, at - of.offset)))
    read_at = [sorted(shares) for shares in found]

    def is_alone(index: int) -> bool:
        begin, end = members[index].begin, members[index].end
        return any(
            times
            and other.begin <= begin
            and other.end >= end
            and bisect_left(times, begin) == bisect_right(times, end)
            for other, times, host in zip(members, read_at, hosts)
            if host == hosts[index]
        )

    return [{} if shares and is_alone(index) else shares for index, shares in enumerate(found)]


class _Point(NamedTuple):
    """A moment of one process; bytes."""

    time: int
    observed: Observed  # the last by then
    share: Optional[int]  # None before the first reading
    unwritten: int = 0  # of its blocks


def _in_pages(at: Observed) -> int:
    return at.host - at.drivers


class _Reading(NamedTuple):
    """A reading of one process; bytes."""

    time: int
    share: int
    ledger: int  # what it had in pages
    unwritten: int  # of its blocks, at its own last reading

    @property
    def other(self) -> int:
        """Pages that are in no block."""
        return self.share + self.unwritten - self.ledger


_Seen = List[Tuple[int, Observed]]  # by time


def _last(rows: Sequence[Any], time: int) -> int:
    """The index of the last row by then, of rows that begin with their time; -1: there is none."""
    return bisect_right(rows, (time + 1,)) - 1


def _points(process: Process, seen: _Seen, shares: Dict[int, int]) -> List[_Point]:
    """Snapshots and peaks, with shares between the readings, and readings by others.

    Between two readings a share changes as the ledger does. Its other pages may change hands then, so the smaller sum of them at
    both counts. Blocks that were not written at a reading of its own, and are at the next, count as written from the first on.
    """
    if not seen:
        return []
    times, run = [time for time, _ in seen], process.profile
    samples = {time + process.offset for time in run.system.get("heap-untouched", ((), ()))[0]}
    points, readings, own, by_others = [], [], [_Reading(-1, 0, 0, 0)], []
    for time in sorted(shares):
        first, end = bisect_left(times, time), bisect_right(times, time)
        near = [each for _, each in seen[first:end] if each.snapshot is not None]
        near = near or [each for _, each in seen[max(0, first - 1) : end + 1]]
        unwritten = run.system_at("heap-untouched", time - process.offset) or 0
        readings.append(_Reading(time, shares[time], max(map(_in_pages, near)), unwritten))
        own += readings[-1:] if time in samples else []
        by_others += [(time, seen[_last(seen, time)][1])] if first == end and first else []
    for n, (time, at) in enumerate([*seen, *by_others]):
        last, its_last = _last(readings, time), _last(own, time)
        if last < 0:
            points.append(_Point(time, at, None))
            continue
        around, its = readings[last : last + 2], own[its_last : its_last + 2]
        left = min(each.unwritten for each in its)
        if time > its[0].time:
            left = max(left, its[-1].unwritten - max(0, its[-1].ledger - _in_pages(at)))
        known = [*its, *around] if time > its[0].time else its[:1]
        other = min(each.other for each in known if each.time >= 0)
        least = shares[time] if n >= len(seen) else 0
        points.append(_Point(time, at, max(least, _in_pages(at) + other - left), left))
    return sorted(points, key=lambda point: point.time)


def _less_of_parents(
    members: Sequence[Process], seen: Sequence[_Seen], shares: Sequence[Dict[int, int]]
) -> List[Dict[int, int]]:
    """The shares, and of parents also what a reading of a child's own says of theirs.

    What a forked child's share gains and its ledger does not are pages of its parent's: pages of a file, say, that it has read.
    The parent's share is less by that from then on, though no reading says so.
    """

    def in_pages(index: int, time: int) -> int:
        last = _last(seen[index], time)
        return _in_pages(seen[index][last][1]) if last >= 0 else 0

    found = [dict(each) for each in shares]
    for index, child in enumerate(members):
        if child.parent is None or not child.shares or not shares[child.parent]:
            continue
        parent, of_parent, at_both = members[child.parent], shares[child.parent], None
        read_at = sorted(of_parent)
        for time in sorted(shares[index]):
            inherited = shares[index][time] - in_pages(index, time)
            n_before = bisect_right(read_at, time)
            if at_both is None or time in of_parent:
                at_both = inherited
            elif inherited > at_both and n_before and time <= parent.end:
                last = read_at[n_before - 1]
                grown = in_pages(child.parent, time) - in_pages(child.parent, last)
                found[child.parent][time] = max(0, of_parent[last] + grown - (inherited - at_both))
    return found


# ---- the job over time -----------------------------------------------------------------------


def _on(row: "Union[Part, JobMoment, Step]", measure: str) -> int:
    return {"total": row.host + row.device, "host": row.host, "device": row.device}[measure]


class Part(NamedTuple):
    """A process at a moment of the job, in bytes."""

    process: Process
    observed: Observed  # the last by then
    host: int
    device: int
    has_share: bool  # `host` is its proportional share, and drivers' memory; else from its ledger
    unwritten: int = 0  # of its blocks

    def on(self, measure: str) -> int:
        return _on(self, measure)

    def composition(self) -> LiveBytesByAccount:
        """The accounts, without inherited memory."""
        run = self.process.profile
        whole = self.observed.composition(run)
        return beyond(run.composition(0), whole) if self.process.shares else whole


class JobMoment(NamedTuple):
    """The sum of all processes, in bytes."""

    time: int
    host: int = 0
    device: int = 0
    parts: Sequence[Part] = ()  # of the processes that ran at a peak

    def on(self, measure: str) -> int:
        return _on(self, measure)

    def part_of(self, process: Process) -> Optional[Part]:
        return next((part for part in self.parts if part.process is process), None)


class Step(NamedTuple):
    """A snapshot or a peak of one process, or its end. Bytes are of all processes, by their ledgers without inherited memory."""

    time: int
    member: int
    number: Optional[int]  # among its snapshots and peaks; None: it has ended
    host: int
    device: int

    def on(self, measure: str) -> int:
        return _on(self, measure)


def _observed(members: Sequence[Process]) -> Iterator[Tuple[int, int, Optional[int], Optional[Observed]]]:
    """Of each process its moments and its end: time, member, number, and what was observed."""
    for index, process in enumerate(members):
        run, time = process.profile, -1
        inherited = run.composition(0) if process.shares and run.snapshots else {}
        for number, each in enumerate(observed(run, inherited)):
            time = each.time + process.offset
            yield time, index, number, each
        if time >= 0:
            yield max(process.end, time), index, None, None


def _parts_over_time(members: Sequence[Process]) -> Iterator[Tuple[JobMoment, Dict[int, Part]]]:
    """The sum and its parts by member at each change.

    Between two moments of a process the smaller of its shares counts, so that the sum of moments of several is not too large.
    In the millisecond in which a child ends, its parent's moments come after it: what the parent gets back counts once.
    """
    waits: Dict[Tuple[int, int], int] = {}  # by member and time, for the ends of so many generations
    for index, child in reversed(list(enumerate(members))):
        if child.parent is not None:
            its = (child.parent, child.end)
            waits[its] = max(waits.get(its, 0), waits.get((index, child.end), 0) + 1)
    seen: List[_Seen] = [[] for _ in members]
    events: List[Tuple[int, bool, int, Optional[_Point]]] = []  # time, whether after it, member; no point: it has ended
    for time, index, _, each in _observed(members):
        if each:
            seen[index].append((time, each))
        else:
            events.append((time, True, index, None))
    for index, shares in enumerate(_less_of_parents(members, seen, _readings(members))):
        points = _points(members[index], seen[index], shares)
        for point, after in zip(points, [*points[1:], None]):
            events.append((point.time, False, index, point))
            if after and after.time > point.time and point.share is not None and (after.share or 0) < point.share:
                events.append((point.time, True, index, point._replace(share=after.share)))
    parts: Dict[int, Part] = {}
    host = device = 0
    for time, _, index, now in sorted(events, key=lambda at: (at[0], waits.get((at[2], at[0]), 0), at[1])):
        if index in parts:
            before = parts.pop(index)
            host, device = host - before.host, device - before.device
        if now is not None:
            at, share = now.observed, now.share
            of_host = at.host if share is None else share + at.drivers
            parts[index] = Part(members[index], at, of_host, at.device, share is not None, now.unwritten)
            host, device = host + of_host, device + at.device
        yield JobMoment(time, host, device), parts


class Processes:
    """The processes of a job, in the order of their tree: each one before those it started."""

    def __init__(self, members: Sequence[Process], no_clock: str) -> None:
        self.members = list(members)
        self.no_clock = no_clock  # why there is no common clock; "" if there is one
        self._timeline: List[JobMoment] = []
        self._peaks: Dict[str, JobMoment] = {}

    @property
    def is_discrete(self) -> bool:
        """Host and device are two pools in one of the processes at least."""
        return any(process.profile.is_discrete for process in self.members)

    @property
    def sides(self) -> List[str]:
        used = {side for process in self.members for side in used_sides(process.profile)}
        return [side for side in ("host", "device") if side in used]

    @property
    def measures(self) -> List[str]:
        """All memory where the pools are one, else each pool; the one that the report is about is the last."""
        return self.sides if self.is_discrete and len(self.sides) > 1 else ["total"]

    @property
    def machines(self) -> List[str]:
        """Their names, where the traces have them."""
        return sorted({process.profile.manifest.get("host", "") for process in self.members} - {""})

    @property
    def orphans(self) -> List[Process]:
        """Forked from a process without a trace here."""
        return [process for process in self.members if process.is_fork and process.parent is None]

    def _walk(self) -> None:
        if self._peaks:
            return
        self._peaks = dict.fromkeys(MEASURES, JobMoment(0))
        for row, parts in [] if self.no_clock else _parts_over_time(self.members):
            if not self._timeline or self._timeline[-1].time != row.time:
                self._timeline.append(row)
            elif row.on("total") > self._timeline[-1].on("total"):
                self._timeline[-1] = row
            for measure, peak in self._peaks.items():
                if row.on(measure) > peak.on(measure):
                    self._peaks[measure] = row._replace(parts=[parts[index] for index in sorted(parts)])

    def peak(self, measure: str = "total") -> JobMoment:
        """The moment of the largest sum; without a common clock one without processes."""
        self._walk()
        return self._peaks[measure]

    @property
    def main_peak(self) -> JobMoment:
        return self.peak(self.measures[-1])

    def timeline(self) -> List[JobMoment]:
        """The largest sum of each millisecond; empty without a common clock."""
        self._walk()
        return self._timeline

    def steps(self) -> List[Step]:
        """The moments of all processes in order."""
        found: List[Step] = []
        held = [(0, 0)] * len(self.members)
        for time, index, number, each in sorted(_observed(self.members), key=lambda event: event[:2]):
            held[index] = (each.host, each.device) if each else (0, 0)
            found.append(Step(time, index, number, *map(sum, zip(*held))))
        return found

    def nearest_step(self, steps: Sequence[Step], measure: str) -> int:
        """The step (index) for the peak: the fullest one of its very millisecond, else the last before it."""
        time = self.peak(measure).time
        among = [n for n, step in enumerate(steps) if step.time == time or self.no_clock]
        among = among or [n for n, step in enumerate(steps) if step.time < time][-1:] or [0]
        return max(among, key=lambda n: steps[n].on(measure))

    def largest(self) -> Process:
        """The process with the most memory at the peak; without a common clock at its own."""
        measure, at = self.measures[-1], self.main_peak

        def sizes_of(process: Process) -> Tuple[int, int]:
            part = at.part_of(process)
            return part.on(measure) if part else 0, process.peak(measure)

        return max(self.members, key=sizes_of)


def join(traces: Sequence[Tuple[str, Profile]]) -> Processes:
    """The processes that left these traces, which are (name of the file, profile)."""
    return Processes(*tree(traces))


# ---- the report ------------------------------------------------------------------------------


class Ended(NamedTuple):
    process: Process
    at_peak: Optional[Part]  # of the job
    ledger_peak: int  # of its own, in bytes
    outcome: Outcome
    failed: Optional[Incident]  # the last request for memory that failed

    @property
    def is_dismissed(self) -> bool:
        """A worker that its parent ended after its work, and that lacked nothing."""
        return self.process.profile.was_dismissed and self.failed is None


class Adjustments(NamedTuple):
    """Rows between the ledgers and the sum of shares, in bytes: with them the ledgers add up to it."""

    unwritten: int  # allocated, never written: zero or less
    # The remainder, an estimate. Negative: memory that processes outside the job have too. Positive: pages that forks
    # copied by writing to them, and space inside malloc.
    rest: int


class RankRow(NamedTuple):
    """A rank of a distributed job at the peak of its own process, in bytes."""

    ended: Ended
    peak: int
    yours: int
    cached: int
    by_line: Dict[str, int]  # memory by the line to blame; labels are the same in all ranks

    @property
    def rank(self) -> int:
        return self.ended.process.rank.number if self.ended.process.rank else 0

    @property
    def pid(self) -> int:
        return self.ended.process.pid

    @property
    def host(self) -> str:
        return self.ended.process.profile.manifest.get("host", "")


class OddRank(NamedTuple):
    """The rank whose peak is farthest from the median of all ranks."""

    row: RankRow
    median: int
    line: str  # the line, or site, that is farthest from its own median in the same direction; "": none is
    line_bytes: int
    line_median: int


class JobReport(NamedTuple):
    """Numbers on a job that are of several processes' analyses."""

    job: Processes
    ledger: Ledger  # of all processes at the main peak, without inherited memory
    adjustments: Adjustments
    copied: int  # by forks, of what they inherited; at most, in bytes
    ended: List[Ended]  # each of the processes
    failures: List[Ended]  # of these; in a distributed job in their order (_failure_order), else in the tree's
    growing: List[Tuple[Process, Growth]]  # the largest growth first
    hot_spot: Optional[Tuple[Process, HotSpot]]  # the line with the most memory; one of the user's own first
    ranks: List[RankRow]  # in their order; empty of a job that is not distributed
    odd: Optional[OddRank]  # None: all are alike, or fewer than three
    first_failure: Optional[Ended]  # of the ranks
    regions: List[Tuple[Process, NamedRegions]]  # of each process, a row a name


def ledger_of(at: JobMoment) -> Ledger:
    """All processes' ledgers, without inherited memory."""
    owners: Dict[str, Usage] = {}
    group_of: Dict[str, str] = {}
    for part in at.parts:
        group_of.update(part.process.profile.group_of)
        for row in ledger(part.process.profile, part.composition()).owners:
            owners[row.name] = owners.get(row.name, Usage()) + row.usage
    return ledger_of_rows([UsageRow(*owner) for owner in owners.items()], group_of)


def adjustments(at: JobMoment) -> Adjustments:
    """The difference between the sum of shares and the ledgers."""
    unwritten = beyond_ledgers = 0
    for part in at.parts:
        beyond_ledgers += part.host - part.observed.host
        if part.has_share and not part.process.shares:
            unwritten -= min(part.unwritten, part.observed.host)
    return Adjustments(unwritten, beyond_ledgers - unwritten)


def _copied_by_forks(at: JobMoment, rest: int) -> int:
    """Estimate of the inherited pages that forks wrote to: at most what they inherited, and what no ledger has."""
    copied = 0
    for part in at.parts:
        if part.has_share and part.process.shares:
            held = part.process.profile.composition(0).values()
            copied += min(sum(n_bytes for n_bytes, _ in held), max(0, part.host - part.observed.host))
    return max(0, min(copied, rest))


# ---- ranks -----------------------------------------------------------------------------------

# Ranks that differ by less are alike.
_LEAST_ODD_SHARE = 0.05
_LEAST_ODD = 1 << 20


def _rank_row(ended: Ended, names: Names, measure: str) -> RankRow:
    run, space = ended.process.profile, "" if measure == "total" else measure
    at_end = run.composition(len(run.snapshots) - 1) if run.snapshots else {}
    live = run.peak_composition(measure) if measure in run.peaks else at_end
    groups = {group.name: group.usage.on(space) for group in ledger(run, live).groups}
    by_line = sizes_by_label(names, by_place(run, names, live), space)
    return RankRow(ended, ended.ledger_peak, groups.get("yours", 0), groups.get("cached", 0), by_line)


def _has_failed(ended: Ended) -> bool:
    return ended.outcome.severity != NOTE and not ended.is_dismissed


def _failure_order(ended: Ended) -> Tuple[bool, int]:
    """A rank that ran out of memory or was killed comes before those that failed or were ended because of it: these have an
    exit status, or SIGTERM of the launcher. The time of a process without an end record is that of its last record."""
    outcome = ended.outcome
    is_effect = outcome.end == "exit" or (outcome.end, outcome.code) == ("signal", signal.SIGTERM)
    time = ended.failed.last.time if ended.failed is not None and outcome.is_fatal else outcome.time
    return is_effect and not outcome.is_fatal, time + ended.process.offset


def _odd_rank(rows: Sequence[RankRow]) -> Optional[OddRank]:
    if len(rows) < 3:
        return None
    middle = median_low([row.peak for row in rows])
    # A rank that failed may hold less because it ended early.
    compared = [row for row in rows if row.peak > middle or not _has_failed(row.ended)]
    odd = max(compared, key=lambda row: abs(row.peak - middle), default=None)
    if odd is None or abs(odd.peak - middle) < max(_LEAST_ODD, _LEAST_ODD_SHARE * middle):
        return None
    by = 1 if odd.peak > middle else -1
    others = {line: median_low([row.by_line.get(line, 0) for row in rows]) for row in rows for line in row.by_line}
    apart = {line: by * (odd.by_line.get(line, 0) - usual) for line, usual in others.items()}
    line = max(apart, key=lambda line: apart[line], default="")
    line = line if apart.get(line, 0) > 0 else ""
    return OddRank(odd, middle, line, odd.by_line.get(line, 0), others.get(line, 0))


def build_job_report(job: Processes, known: Optional[Sequence[Names]] = None) -> JobReport:
    """`known` are the members' names, where they were made already."""
    at, measure = job.main_peak, job.measures[-1]
    ended, growing, spots, ranks = [], [], [], []
    for process, names in zip(job.members, known or [Names(process.profile) for process in job.members]):
        run, part = process.profile, at.part_of(process)
        incidents = incidents_of(run, names)
        outcome = outcome_of(run, incidents)
        failed = incidents[outcome.failed - 1] if outcome.failed else None
        ended.append(Ended(process, part, process.peak(measure), outcome, failed))
        ranks += [_rank_row(ended[-1], names, measure)] if process.rank else []
        growing.append((process, find_growth(run, names)))
        places = by_place(run, names, part.composition()) if part else {}
        spot = hot_spot(run, names, places, "" if measure == "total" else measure) if places else None
        spots += [(process, spot)] if spot else []
    growing = sorted((row for row in growing if row[1].lines), key=lambda row: -row[1].grown)
    best = max(spots, key=lambda row: (row[1].is_yours, row[1].bytes), default=None)
    ranks.sort(key=lambda row: (row.rank, row.ended.process.begin))
    failures = [each for each in ended if _has_failed(each)]
    failures.sort(key=_failure_order if ranks else lambda each: (False, 0))
    first = next((each for each in failures if each.process.rank), None)
    odd = _odd_rank(ranks)
    regions = [(process, row) for process in job.members for row in regions_by_name(process.profile)]
    rest = adjustments(at)
    copied = _copied_by_forks(at, rest.rest)
    return JobReport(job, ledger_of(at), rest, copied, ended, failures, growing, best, ranks, odd, first, regions)
