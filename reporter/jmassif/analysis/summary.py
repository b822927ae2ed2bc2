# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of a run at one moment, as numbers and keys: the one entry of everything that renders.

`build_report` computes each analysis once; those that few outputs show are computed when a Report is asked for them. Text,
JSON and page are made of a Report; sentences stand in render/summary.py and render/words.py. Sizes are bytes, times are in the
unit of `run.time_unit`. Labels are safe to show.
"""

from typing import Callable, Dict, Generic, Iterator, List, NamedTuple, Optional, Tuple, TypeVar

from jmassif.analysis.advice import CacheCause, ResidentLater, cause_of_cache, hints_at, resident_later
from jmassif.analysis.aggregate import Ledger, Usage, UsageRow, ledger, roles
from jmassif.analysis.balance import (
    DeviceBalance,
    MemoryBalance,
    balance_at,
    device_balance,
    ledger_of_balance,
    memory_balance,
    nearest_sampled,
    sampled,
    sampled_before,
)
from jmassif.analysis.blocks import Blocks, blocks
from jmassif.analysis.device_memory import Fragmentation, Layout, layout_at, layouts, over_time
from jmassif.analysis.held_twice import Twice, held_twice
from jmassif.analysis.inherited import Inherited, inherited_at
from jmassif.analysis.ladder import Ladder, ladders
from jmassif.analysis.leaks import (
    Growth,
    Keeper,
    LeakedPlace,
    callers,
    NotCounted,
    find_growth,
    held_at_end,
    keepers,
    leaked_places,
)
from jmassif.analysis.lines import HotSpot, LineTable, LineUsage, by_place, hot_spot, largest_lines, line_table
from jmassif.analysis.loading import Loading, find_loading
from jmassif.analysis.moments import Moment, select, whole_at
from jmassif.analysis.oom import ALARM, NOTE, Hint, Incident, Outcome, incidents_of, outcome_of, select_device
from jmassif.analysis.other_tools import Counted, Series, Shown, counted, is_board, others, sampled_series
from jmassif.analysis.regions import NamedRegions, Waterfall, regions_by_name, waterfall
from jmassif.analysis.system import copied_files, Figure, History, Library, Mapped, Pool, fullest, histories, libraries
from jmassif.analysis.system import machine, mappings, pools, sources, total_memory
from jmassif.attribution.names import Names
from jmassif.model.records import Peak
from jmassif.model.run import Profile
from jmassif.model.run_info import about, is_pytorch, labels_of_run, recorder, run_id, short_command, used_sides

_LINES = 12
_MOST_TEMPORARIES = 100
_MIN_TEMPORARIES = 1000  # fewer cost nothing that a person would notice


class RunFacts(NamedTuple):
    """The run as a whole."""

    id: str  # the same for each reading of the trace
    labels: Dict[str, str]
    name: str  # the command without its interpreter, cut; safe to show
    time_unit: str
    memory: str  # "unified", "discrete" or ""
    recorder: str  # "native", "valgrind" or ""
    is_complete: bool
    is_discrete: bool  # host and device are two pools, which must not be added up
    is_board: bool
    is_pytorch: bool
    has_python: bool  # stacks have Python frames
    sides: List[str]  # memory spaces in use: "host", "device"
    capacity: Optional[int]  # bytes of the machine's memory
    n_snapshots: int
    facts: List[Tuple[str, str]]  # (name, text) of the header
    manifest: Dict[str, str]


class MomentFacts(NamedTuple):
    name: str  # "the peak", "snapshot 7"
    time: int
    snapshot: Optional[int]  # its number, where it is one
    is_peak: bool
    pages_of: Optional[int] = None  # when resident pages were sampled, if that was before a snapshot


class PeakFacts(NamedTuple):
    """The peak of the pool that the report is about."""

    time: int
    bytes: int


class Whole(NamedTuple):
    """A denominator of shares: the program's memory at the moment, or each pool of a discrete GPU."""

    of: str  # "program", or "host" and "device"
    space: str  # "", "host" or "device"
    bytes: int


class Filter(NamedTuple):
    """A report on a part of the memory."""

    options: str
    bytes: int
    of_bytes: int  # everything at the moment


class Temporaries(NamedTuple):
    """A line that allocates and frees at once."""

    label: str
    temporaries: int
    blocks: int  # allocated in the whole run
    bytes: int


class Leaks(NamedTuple):
    """Memory that was still allocated at exit, before an interpreter cleans up."""

    time: int
    is_at_exit: bool  # the program ended by itself
    is_before_cleanup: bool
    bytes: int
    expected: int  # bytes of it: parameters, gradients and optimizer state of a model that is still alive
    ledger: Ledger
    places: List[LeakedPlace]  # the largest first
    not_counted: List[NotCounted]  # kept on purpose
    keepers: List[Keeper]


class Numbers(NamedTuple):
    """What every report has, and JSON writes."""

    run: RunFacts
    moment: MomentFacts
    outcome: Outcome
    filter: Optional[Filter]  # then all that is of the whole run is empty
    peak: PeakFacts
    wholes: List[Whole]
    pool: Optional[Pool]  # the fullest
    pools: List[Pool]
    ladders: List[Ladder]
    ledger: Ledger
    roles: List[UsageRow]
    lines: List[LineUsage]  # the largest first
    hot_spot: Optional[HotSpot]
    hints: List[Hint]  # of the failure that ended the run, else of the moment; the largest first
    inherited: Optional[Inherited]  # of a forked child
    growth: Optional[Growth]
    leaks: Optional[Leaks]
    out_of_memory: List[Incident]
    balance: Optional[MemoryBalance]
    device_balance: Optional[DeviceBalance]
    others: List[Shown]
    machine: List[Figure]
    machine_sources: List[str]
    mappings: List[Mapped]
    temporaries: List[Temporaries]
    held_twice: Optional[Twice]
    loading: Optional[Loading]


_Result = TypeVar("_Result")


class once(Generic[_Result]):
    """A property of a Report, computed when it is first asked for. (functools.cached_property came with Python 3.8.)"""

    def __init__(self, compute: "Callable[[Report], _Result]") -> None:
        self._compute = compute

    def __get__(self, report: "Report", _class: object = None) -> _Result:
        result = report.__dict__[self._compute.__name__] = self._compute(report)
        return result


class Report(Numbers):
    profile: Profile
    at: Moment
    names: Names

    @once
    def histories(self) -> List[History]:
        """The machine's figures over time."""
        return histories(self.profile)

    @once
    def libraries(self) -> List[Library]:
        """The memory of each library, the largest first."""
        return libraries(self.profile, self.names, self.at.composition, self.mappings)

    @once
    def copied_files(self) -> List[Tuple[str, int]]:
        return copied_files(self.profile, self.at.composition)

    @once
    def regions(self) -> List[NamedRegions]:
        return regions_by_name(self.profile)

    @once
    def balance_owners(self) -> List[UsageRow]:
        """The owners of the balance's process."""
        return ledger_of_balance(self.profile, self.balance).owners if self.balance else []

    def lines_by(self, by: str, is_folded: bool, selector: Optional[str], threshold: float) -> LineTable:
        """Raises moments.SelectionError."""
        return line_table(self.profile, self.names, by, is_folded, selector, threshold)

    def waterfall(self, limit: int) -> Waterfall:
        """The start-up calls that cost most."""
        return waterfall(self.profile, limit)

    def device_layout(self, position: int) -> Layout:
        """Device memory before a row of Profile.blocks."""
        return layout_at(self.profile, position)

    def device_moment(self, number: str, selector: Optional[str]) -> Tuple[Moment, int]:
        """The failed allocation with this number, else the selector's; and its row of Profile.blocks. Raises SelectionError."""
        return select_device(self.profile, self.names, number, selector)

    def fragmentation(self, most: int) -> List[Tuple[int, Fragmentation]]:
        """At the times of snapshots, at most so many."""
        return over_time(self.profile, most)

    @property
    def failure(self) -> Optional[Incident]:
        """The incident that the first screen is about."""
        number = self.outcome.failed
        return self.out_of_memory[number - 1] if self.outcome.is_fatal and number else None

    @property
    def is_of_failure(self) -> bool:
        """The moment is that of `failure`."""
        return self.failure is not None and self.at.snapshot == self.failure.last.snapshot is not None

    def share(self, usage: Usage) -> float:
        """A share of the program or, on a discrete GPU, of its pool with the larger share."""
        return max((usage.on(whole.space) / whole.bytes for whole in self.wholes if whole.bytes), default=0.0)

    def failed_layouts(self) -> Iterator[Tuple[int, Layout]]:
        """Device memory at the last try of each incident, with its number, in the order of the trace."""
        tries = sorted((each.last.position, number) for number, each in enumerate(self.out_of_memory, 1))
        return zip([number for _, number in tries], layouts(self.profile, [position for position, _ in tries]))

    @once
    def growth_callers(self) -> List[str]:
        """Callers of the line that grew most."""
        grown = self.growth
        return callers(self.profile, self.names, grown.lines[0], grown.end) if grown and grown.lines else []

    @once
    def cache_cause(self) -> Optional[CacheCause]:
        """Of the allocator's cache, where a hint is about it."""
        return cause_of_cache(self.profile, self.names, self.at)

    @once
    def resident_later(self) -> Optional[ResidentLater]:
        """None but in a report on the peak of a program without a device."""
        top = self.ladders[0].rungs[0] if self.ladders else None
        is_of_peak = top is not None and top.key in ("htop", "highest") and self.moment.is_peak
        return resident_later(self.profile, top.bytes) if top and is_of_peak else None

    @once
    def balances(self) -> List[MemoryBalance]:
        """Of all snapshots that have one."""
        return [memory_balance(self.profile, snapshot) for snapshot in sampled(self.profile)]

    def balance_for(self, snapshot: Optional[int], time: int) -> Optional[int]:
        """The snapshot of the one for a snapshot, or for a peak (None)."""
        return nearest_sampled(self.profile, snapshot, time)

    @once
    def sampled_by_others(self) -> List[Series]:
        """Figures of other tools over time."""
        return sampled_series(self.profile)

    @once
    def counted_by_others(self) -> List[Counted]:
        return counted(self.profile)

    def blocks(self, limit: int) -> Blocks:
        """The largest blocks that have records."""
        return blocks(self.profile, limit)


def default_moment(run: Profile, names: Names) -> Moment:
    """The failure that ended the run, where it has a snapshot; else the peak."""
    incidents = incidents_of(run, names)
    outcome = outcome_of(run, incidents)
    if outcome.is_fatal and outcome.failed:
        snapshot = incidents[outcome.failed - 1].last.snapshot
        if snapshot is not None:
            return Moment("the failure", run.snapshots[snapshot].time, run.composition(snapshot), snapshot)
    return select(run, "peak")


def moment_of(run: Profile, names: Names, selector: Optional[str]) -> Moment:
    """The moment that a user named. Raises moments.SelectionError."""
    return select(run, selector) if selector else default_moment(run, names)


def _facts(run: Profile) -> RunFacts:
    return RunFacts(
        id=run_id(run),
        labels=dict(labels_of_run(run)),
        name=short_command(run.manifest.get("command", "")),
        time_unit=run.time_unit,
        memory=run.manifest.get("memory", ""),
        recorder=recorder(run),
        is_complete=run.is_complete,
        is_discrete=run.is_discrete,
        is_board=is_board(run),
        is_pytorch=is_pytorch(run),
        has_python=any(frame[0] == "p" for frame in run.frames.values()),
        sides=used_sides(run),
        capacity=total_memory(run),
        n_snapshots=len(run.snapshots),
        facts=about(run),
        manifest=run.manifest,
    )


def _wholes(run: Profile, total: Usage) -> List[Whole]:
    if run.is_discrete and total.device_bytes and total.host_bytes:
        return [Whole("device", "device", total.device_bytes), Whole("host", "host", total.host_bytes)]
    return [Whole("program", "", total.bytes)]


def _peak(run: Profile, whole: Whole) -> PeakFacts:
    peak: Optional[Peak] = run.peaks.get(whole.space or "total")
    if peak is not None:
        return PeakFacts(peak.time, peak.bytes)
    at = select(run, "peak")
    return PeakFacts(at.time, ledger(run, at.composition).total.on(whole.space))


def _filter(run: Profile, at: Moment, total: Usage) -> Optional[Filter]:
    return None if run.kept is None else Filter(run.chosen_by, total.bytes, whole_at(run, at))


def hottest_temporaries(run: Profile, names: Names) -> List[Temporaries]:
    """Places of at least a thousand temporary blocks and few others, the most first."""
    found = [
        (account, counts)
        for account, counts in run.counts(_MIN_TEMPORARIES).items()
        if 2 * counts.temporaries >= counts.blocks
    ]
    found.sort(key=lambda row: (-row[1].temporaries, row[0]))
    return [
        Temporaries(names.site(account) or "memory without a stack", counts.temporaries, counts.blocks, counts.bytes)
        for account, counts in found[:_MOST_TEMPORARIES]
    ]


_MODEL_ROLES = ("parameter", "gradient", "optimizer")


def _leaks(run: Profile, names: Names) -> Optional[Leaks]:
    held = held_at_end(run, names)
    if held is None:
        return None
    table = ledger(run, held.leaked)
    return Leaks(
        time=held.time,
        is_at_exit=run.snapshots[-1].reason == "exit",
        is_before_cleanup=run.snapshots[held.snapshot].reason == "end",
        bytes=table.total.bytes,
        expected=sum(row.bytes for row in roles(run, held.leaked) if row.name in _MODEL_ROLES),
        ledger=table,
        places=leaked_places(run, names, held.leaked),
        not_counted=held.not_counted,
        keepers=keepers(run, names),
    )


def build_report(run: Profile, at: Moment, names: Optional[Names] = None) -> Report:
    """The report at one moment. Whole-run analyses are computed once for each Names."""
    names = names or Names(run)
    is_part = run.kept is not None
    incidents = [] if is_part else incidents_of(run, names)
    outcome = outcome_of(run, incidents)
    table = ledger(run, at.composition)
    wholes = _wholes(run, table.total)
    known = [] if is_part else pools(run)
    time = at.time
    if outcome.is_fatal and outcome.failed:
        failed = incidents[outcome.failed - 1]
        hints = failed.hints
        # Its snapshot is a little later.
        time = failed.last.time if at.snapshot == failed.last.snapshot is not None else time
    else:
        hints = [] if is_part else hints_at(run, names, at, table)
    inherited, live = (None, at.composition) if is_part else inherited_at(run, at, wholes[0].space)
    places = by_place(run, names, at.composition)
    own_places = places if live is at.composition else by_place(run, names, live)
    snapshot = None if at.snapshot is None else run.snapshots[at.snapshot].id
    report = Report(
        run=_facts(run),
        moment=MomentFacts(at.name, time, snapshot, at.snapshot is None, sampled_before(run, at)),
        outcome=outcome,
        filter=_filter(run, at, table.total),
        peak=_peak(run, wholes[0]),
        wholes=wholes,
        pool=fullest(known, table.total),
        pools=known,
        ladders=[] if is_part else ladders(run, at, table.owners),
        ledger=table,
        roles=roles(run, at.composition),
        lines=largest_lines(run, names, places, wholes[0].space, _LINES),
        hot_spot=hot_spot(run, names, own_places, wholes[0].space),
        hints=hints,
        inherited=inherited,
        growth=None if is_part else find_growth(run, names),
        leaks=None if is_part else _leaks(run, names),
        out_of_memory=incidents,
        balance=None if is_part else balance_at(run, at),
        device_balance=None if is_part else device_balance(run),
        others=[] if is_part else others(run, at),
        machine=[] if is_part else machine(run, at.time),
        machine_sources=sources(run),
        mappings=mappings(run, names, at),
        temporaries=hottest_temporaries(run, names),
        held_twice=None if is_part else held_twice(run, names, at),
        loading=None if is_part else find_loading(run, names),
    )
    report.profile, report.at, report.names = run, at, names
    return report
