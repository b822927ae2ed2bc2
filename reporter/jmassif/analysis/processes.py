# SPDX-License-Identifier: GPL-2.0-or-later
"""Several traces as one job: the memory of its processes at common moments.

A process counts with its proportional share (PSS), as the kernel gave it, and with the memory of its ledger that is in no
process's pages: the device's, and host memory of drivers. The kernel divides a page by the number of processes that have it,
so shares add up where they are read at one moment: a process that samples its pages reads the others' too
(docs/trace-format.md). In between each process has its last share; without any (recorded with --pages=no, say) it counts
with its ledger, less the memory that it inherited by fork.

Times are on the common clock (model/processes.py).
"""

from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.analysis.aggregate import Ledger, Usage, UsageRow, ledger, ledger_of_rows
from jmassif.analysis.lines import HotSpot, by_place, hot_spot
from jmassif.analysis.inherited import OF_DRIVERS, OwnBytes, own_of
from jmassif.analysis.leaks import Growth, find_growth
from jmassif.analysis.oom import Incident, incidents_of
from jmassif.analysis.run_info import used_sides
from jmassif.analysis.run_outcome import Outcome, outcome_of
from jmassif.attribution.names import Names
from jmassif.model.processes import Process, tree
from jmassif.model.records import PEAKS, Composition
from jmassif.model.run import Profile

# A sum is of all memory, or of one memory space.
MEASURES = ("total", "host", "device")


class NamesOf:
    """The names of each process's frames, made when they are first asked for."""

    def __init__(self, known: Iterable[Tuple[Process, Names]] = ()) -> None:
        self._by_run: Dict[int, Names] = {id(process.profile): names for process, names in known}

    def __call__(self, process: Process) -> Names:
        key = id(process.profile)
        if key not in self._by_run:
            self._by_run[key] = Names(process.profile)
        return self._by_run[key]


# ---- one process over time -------------------------------------------------------------------


class Observed(NamedTuple):
    """A snapshot or peak of one process. Bytes are of its ledger, without memory that it inherited by fork."""

    time: int
    snapshot: Optional[int]  # index
    peak: str  # one of PEAKS; "" with a snapshot
    host: int
    device: int
    drivers: int  # part of `host`: memory that is in no process's pages

    def composition(self, process: Process) -> Composition:
        """The accounts, without inherited memory."""
        run = process.profile
        whole = run.peak_composition(self.peak) if self.snapshot is None else run.composition(self.snapshot)
        return own_of(run, whole) if process.shares else whole


def observed(process: Process) -> List[Observed]:
    """All snapshots and peaks in order of time, a peak before the snapshot with which it was recorded."""
    run = process.profile
    opening = run.composition(0) if process.shares and run.snapshots else {}
    is_plain = not opening and not any(account.kind in OF_DRIVERS for account in run.accounts)
    sums = OwnBytes(run, opening)
    latest = run.snapshots[0].time if run.snapshots else 0
    found: List[Observed] = []
    for index, snapshot in enumerate(run.snapshots):
        peaks = [peak for peak in run.peaks.values() if peak.snapshot == index and peak.which in PEAKS]
        for peak in sorted(peaks, key=lambda peak: (peak.time, PEAKS.index(peak.which))):
            latest = max(latest, peak.time)
            figures = peak.host, peak.device, 0
            if not is_plain:
                at_peak = OwnBytes(run, opening)
                for account, (n_bytes, _) in run.peak_composition(peak.which).items():
                    at_peak.set(account, n_bytes)
                figures = at_peak.host, at_peak.device, at_peak.drivers
            found.append(Observed(latest + process.offset, None, peak.which, *figures))
        latest = max(latest, snapshot.time)
        figures = snapshot.host, snapshot.device, 0
        if not is_plain:
            for account, n_bytes in zip(snapshot.changes.account, snapshot.changes.bytes):
                sums.set(account, n_bytes)
            figures = sums.host, sums.device, sums.drivers
        found.append(Observed(latest + process.offset, index, "", *figures))
    return found


# ---- proportional shares ---------------------------------------------------------------------


class _Reading(NamedTuple):
    """Shares of several processes at one moment."""

    time: int
    shares: Dict[int, int]  # by member, in bytes


def _blocks_in_pages(run: Profile, time: int) -> int:
    """CUDA's blocks in the process's own pages: the ledger has them as the device's."""
    return max(0, (run.system_at("resident-blocks", time) or 0) - (run.system_at("custom-blocks", time) or 0))


def _readings(members: Sequence[Process]) -> List[_Reading]:
    """In order of time. Where some moments have the shares of all processes that ran on the machine, these alone."""
    hosts = [process.profile.manifest.get("host") for process in members]
    by_pid: Dict[Tuple[Optional[str], str], List[int]] = {}
    for index, process in enumerate(members):
        by_pid.setdefault((hosts[index], str(process.pid)), []).append(index)
    found: Dict[Tuple[Optional[str], int], Dict[int, int]] = {}
    for index, process in enumerate(members):
        for figure, (times, values) in process.profile.system.items():
            name, _, pid = figure.partition(".")
            if name != "pss":
                continue
            for time, share in zip(times, values):
                at = time + process.offset
                shares = found.setdefault((hosts[index], at), {})
                if not pid:
                    shares[index] = share
                    continue
                for other in by_pid.get((hosts[index], pid), ()):
                    if other != index and members[other].begin <= at <= members[other].end:
                        apart = _blocks_in_pages(members[other].profile, at - members[other].offset)
                        shares.setdefault(other, max(0, share - apart))
    known = {index for shares in found.values() for index in shares}
    all_: List[_Reading] = []
    for host in dict.fromkeys(hosts):
        readings = [_Reading(time, shares) for (of, time), shares in found.items() if of == host]
        local = [index for index in known if hosts[index] == host]
        whole = [
            reading
            for reading in readings
            if all(i in reading.shares or not members[i].begin < reading.time < members[i].end for i in local)
        ]
        all_ += whole or readings
    return sorted(all_, key=lambda reading: reading.time)


# ---- the job over time -----------------------------------------------------------------------


class Part(NamedTuple):
    """A process at a moment of the job, in bytes."""

    process: Process
    observed: Observed  # the last by then
    host: int
    device: int
    has_share: bool  # `host` is its proportional share, and drivers' memory; else from its ledger

    def on(self, measure: str) -> int:
        return {"total": self.host + self.device, "host": self.host, "device": self.device}[measure]


class JobMoment(NamedTuple):
    time: int
    parts: List[Part]  # of the processes that ran then

    def on(self, measure: str) -> int:
        """The sum, in bytes."""
        return sum(part.on(measure) for part in self.parts)


class TimelineRow(NamedTuple):
    """The largest sum of a millisecond."""

    time: int
    host: int
    device: int


class Adjustments(NamedTuple):
    """Rows between the ledgers and the sum of shares, in bytes: with them the ledgers add up to it."""

    unwritten: int  # allocated, never written: zero or less
    # The remainder, an estimate. Negative: memory that processes outside the job have too. Positive: pages that forks
    # copied by writing to them, and space inside malloc.
    rest: int


class _Now:
    """The processes that run, and their sums, while time passes."""

    def __init__(self, members: Sequence[Process]) -> None:
        self._members = members
        self._observed: Dict[int, Observed] = {}
        self._shares: Dict[int, int] = {}
        self.host = self.device = 0

    def _part(self, index: int) -> Part:
        seen, share = self._observed[index], self._shares.get(index)
        host = seen.host if share is None else share + seen.drivers
        return Part(self._members[index], seen, host, seen.device, share is not None)

    def _count(self, index: int, sign: int) -> None:
        if index in self._observed:
            part = self._part(index)
            self.host += sign * part.host
            self.device += sign * part.device

    def read(self, shares: Dict[int, int]) -> None:
        for index, share in shares.items():
            self._count(index, -1)
            self._shares[index] = share
            self._count(index, 1)

    def observe(self, index: int, seen: Optional[Observed]) -> None:
        """None: it ended."""
        self._count(index, -1)
        self._observed.pop(index, None)
        if seen is not None:
            self._observed[index] = seen
            self._count(index, 1)

    def moment(self, time: int) -> JobMoment:
        return JobMoment(time, [self._part(index) for index in sorted(self._observed)])


def _moments(members: Sequence[Process]) -> Iterator[Tuple[int, _Now]]:
    """Each change, in order; the page takes them in the same order (steps in runs/sum.js)."""
    events: List[Tuple[int, int, int, Optional[Observed], Dict[int, int]]] = []
    for index, process in enumerate(members):
        seen = observed(process)
        events += [(each.time, index, number, each, {}) for number, each in enumerate(seen)]
        if seen:
            events.append((max(process.end, seen[-1].time), index, len(seen), None, {}))
    events += [(reading.time, -1, number, None, reading.shares) for number, reading in enumerate(_readings(members))]
    now = _Now(members)
    for time, index, _, each, shares in sorted(events, key=lambda event: event[:3]):
        if index < 0:
            now.read(shares)
        else:
            now.observe(index, each)
        yield time, now


class Processes:
    """The processes of a job, in the order of their tree: each one before those it started."""

    def __init__(self, members: Sequence[Process], no_clock: str) -> None:
        self.members = list(members)
        self.no_clock = no_clock  # why there is no common clock; "" if there is one
        self._timeline: List[TimelineRow] = []
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
        self._peaks = {measure: JobMoment(0, []) for measure in MEASURES}
        most = dict.fromkeys(MEASURES, 0)
        for time, now in [] if self.no_clock else _moments(self.members):
            row = TimelineRow(time, now.host, now.device)
            if not self._timeline or self._timeline[-1].time != time:
                self._timeline.append(row)
            elif row.host + row.device > self._timeline[-1].host + self._timeline[-1].device:
                self._timeline[-1] = row
            for measure, n_bytes in zip(MEASURES, (now.host + now.device, now.host, now.device)):
                if n_bytes > most[measure]:
                    most[measure], self._peaks[measure] = n_bytes, now.moment(time)

    def peak(self, measure: str = "total") -> JobMoment:
        """The moment of the largest sum; without a common clock one without processes."""
        self._walk()
        return self._peaks[measure]

    @property
    def main_peak(self) -> JobMoment:
        return self.peak(self.measures[-1])

    def timeline(self) -> List[TimelineRow]:
        """The sum over time; empty without a common clock."""
        self._walk()
        return self._timeline

    def largest(self) -> Process:
        """The process with the most memory at the peak; without a common clock at its own."""
        measure = self.measures[-1]
        parts = {id(part.process.profile): part.on(measure) for part in self.peak(measure).parts}
        return max(self.members, key=lambda each: (parts.get(id(each.profile), 0), each.peak(measure)))


def join(traces: Sequence[Tuple[str, Profile]]) -> Processes:
    """The processes that left these traces, which are (name of the file, profile)."""
    return Processes(*tree(traces))


# ---- the report ------------------------------------------------------------------------------


class Ended(NamedTuple):
    process: Process
    outcome: Outcome
    failed: Optional[Incident]  # the last request for memory that failed

    @property
    def is_dismissed(self) -> bool:
        """A worker that its parent ended after its work, and that lacked nothing."""
        return self.process.profile.was_dismissed and self.failed is None


class JobReport(NamedTuple):
    """A job in numbers: the parts of its report besides the one of the largest process."""

    job: Processes
    measures: List[str]  # of the sums; the main one is the last
    peaks: Dict[str, JobMoment]  # by measure
    largest: Process
    ledger: Ledger  # of all processes at the main peak, without inherited memory
    adjustments: Adjustments
    ended: List[Ended]  # each of the processes
    growing: List[Tuple[Process, Growth]]  # what grew most first
    hot_spot: Optional[Tuple[Process, HotSpot]]

    @property
    def main_peak(self) -> JobMoment:
        return self.peaks[self.measures[-1]]

    def failures(self, severity: str) -> List[Ended]:
        return [each for each in self.ended if each.outcome.severity == severity and not each.is_dismissed]

    @property
    def dismissed(self) -> List[Process]:
        return [each.process for each in self.ended if each.is_dismissed]


def ledger_of(at: JobMoment) -> Ledger:
    """All processes' ledgers, without inherited memory."""
    owners: Dict[str, Usage] = {}
    group_of: Dict[str, str] = {}
    for part in at.parts:
        for group in ledger(part.process.profile, part.observed.composition(part.process)).groups:
            for row in group.owners:
                group_of[row.name] = group.name
                owners[row.name] = owners.get(row.name, Usage()) + row.usage
    return ledger_of_rows([UsageRow(*owner) for owner in owners.items()], group_of)


def adjustments(at: JobMoment) -> Adjustments:
    """The difference between the sum of shares and the ledgers."""
    unwritten = beyond = 0
    for part in at.parts:
        beyond += part.host - part.observed.host
        if part.has_share and not part.process.shares:
            untouched = part.process.profile.system_at("heap-untouched", at.time - part.process.offset) or 0
            unwritten -= min(untouched, part.observed.host)
    return Adjustments(unwritten, beyond - unwritten)


def _hot_spot(at: JobMoment, space: str, names: NamesOf) -> Optional[Tuple[Process, HotSpot]]:
    """The line with the most memory in any of the processes, one of the user's own first."""
    found = []
    for part in at.parts:
        run, of = part.process.profile, names(part.process)
        spot = hot_spot(run, of, by_place(run, of, part.observed.composition(part.process)), space)
        if spot is not None:
            found.append((part.process, spot))
    return max(found, key=lambda row: (row[1].is_yours, row[1].bytes)) if found else None


def build_job_report(job: Processes, names: Optional[NamesOf] = None) -> JobReport:
    names = names or NamesOf()
    measures = job.measures
    at = job.peak(measures[-1])
    ended = []
    for process in job.members:
        incidents = incidents_of(process.profile, names(process))
        outcome = outcome_of(process.profile, incidents)
        ended.append(Ended(process, outcome, incidents[outcome.failed - 1] if outcome.failed else None))
    growing = [(process, find_growth(process.profile, names(process))) for process in job.members]
    return JobReport(
        job=job,
        measures=measures,
        peaks={measure: job.peak(measure) for measure in MEASURES},
        largest=job.largest(),
        ledger=ledger_of(at),
        adjustments=adjustments(at),
        ended=ended,
        growing=sorted((row for row in growing if row[1].lines), key=lambda row: -row[1].grown),
        hot_spot=_hot_spot(at, "" if measures[-1] == "total" else measures[-1], names),
    )
