# SPDX-License-Identifier: GPL-2.0-or-later
"""Leaks: lines of which memory kept rising until the program ended, or its last functions returned, and memory that was still
allocated at exit.

*Still allocated* is read before an interpreter cleans up, since that frees objects that a script has kept for no use. It leaves
out memory that nobody means to free: of imports, the interpreter's own tables, pages of files and stacks, the heap's overhead,
and what a forked child was born with. Reserves of caching allocators and the runtime's own memory are held until the end on
purpose: they are not counted, but have names of their own.

*Rising* is the part of a line's memory that is *retained*: of each account at each moment, as much as it never again holds less of
until the end. That only rises, and a leak makes it rise again and again, whatever comes and goes beside it. So a line leaks if, over
at least a third of the run after its imports,

- it rises from beginning to end, without a pause of a quarter of that time; a list made once, a warm-up, a cache that is
  full rise and then stay;
- in its last third it rises by no less than a fraction of what it rose by in the first, or it is a cache filling up;
- a few rises are not nearly all of it: a buffer that was made anew a few times, larger each time, is none, nor is what the
  runtime and libraries took in one call of theirs, as for a context: that is one rise;
- if it rises a few times only, the counts of allocated bytes prove that memory of earlier steps is still alive. They do not for
  inputs that are larger in each step: all that a line holds then it allocated in the last step. Below a hundredth of all memory it
  may be a cache all the same, so that it leaks is not known then.

The run is measured in iterations (regions or marks of one name) where the program has any, else in time.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from functools import lru_cache
from itertools import accumulate, compress
from operator import add, and_
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, TypeVar

from jmassif.analysis.aggregate import aggregate
from jmassif.analysis.blocks import live_sizes
from jmassif.analysis.inherited import left_at
from jmassif.analysis.moments import Moment, before_clean_up, last_before_the_fall, snapshot_by
from jmassif.attribution.blame import Innermost
from jmassif.attribution.names import Names
from jmassif.attribution.packages import OWN
from jmassif.model.records import PAGE_KINDS, AccountType, Container, LiveBytesByAccount, Mark, Region, side_of
from jmassif.model.run import Profile
from jmassif.model.run_info import has_arenas
from jmassif.units import printable

NOT_FREED = ("file", "stack")  # kinds of pages
_ON_PURPOSE = ("cached", "runtime")  # groups
_OF_CALLS = ("runtime", "libraries")
_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"


# ---- retained memory ---------------------------------------------------------------------------


class Rise(NamedTuple):
    """Retained memory that an account gained."""

    account: int
    sample: int  # index of a snapshot among those that are looked at; their number: after the last of them
    bytes: int
    proven: int  # bytes; what a line retains may be of other blocks at each sample, this was never freed


def rises_of(
    profile: Profile, samples: Sequence[int], end: int, live: LiveBytesByAccount, counts: Sequence[int]
) -> Iterator[Rise]:
    """The rises of accounts that count (1 in `counts`) and hold something at the snapshot `end` (`live`), the latest first.

    The walk goes backwards through the changes: an account retains the least that it holds from there on. Of what it holds in the
    end at least so much is older than a sample as it has not allocated since.
    """
    least = array("q", bytes(8 * len(profile.accounts)))
    is_open = bytearray(len(profile.accounts))
    for account, (n_bytes, _) in live.items():
        least[account] = n_bytes
        is_open[account] = counts[account] and n_bytes > 0
    old = least[:]
    allocated = array("Q", bytes(8 * len(least)))  # until the end
    since = array("q", [-1]) * len(least)  # the sample at which the account is known to retain this much
    begins = [0, *(sample + 1 for sample in samples)]
    for sample, (begin, until) in reversed(list(enumerate(zip(begins, [*samples, end])))):
        for snapshot in reversed(profile.snapshots[begin : until + 1]):
            rows, accounts = snapshot.changes, snapshot.changes.account
            changes = zip(accounts, rows.bytes, rows.all_bytes)
            for account, n_bytes, all_bytes in compress(changes, map(is_open.__getitem__, accounts)):
                if since[account] == sample:
                    continue  # a later change of this sample
                if since[account] < 0:
                    allocated[account] = all_bytes
                n_old = min(n_bytes, old[account], max(0, live[account][0] - (allocated[account] - all_bytes)))
                n_bytes = min(n_bytes, least[account])
                if n_bytes < least[account] or n_old < old[account]:
                    yield Rise(account, since[account], least[account] - n_bytes, old[account] - n_old)
                    least[account], old[account] = n_bytes, n_old
                    is_open[account] = n_bytes > 0
                since[account] = sample
    for account in compress(range(len(least)), is_open):
        yield Rise(account, since[account], least[account], old[account])


# ---- iterations --------------------------------------------------------------------------------

# Fewer say nothing of what goes on: the first is the warm-up, and the last is cut short.
LEAST = 5
# Regions of one name are all recorded up to so many; from there on half as many in each doubling of their number.
_ALL_RECORDED = 256
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:\s*/\s*\d+)?")


class Iterations(NamedTuple):
    """Regions or marks of one name, or of names that differ in numbers only: "epoch 1", "epoch 2"."""

    name: str  # safe to show
    n: int
    # Columns: when so many of them were over. Neither decreases.
    times: Sequence[int]
    counts: Sequence[int]
    snapshots: Sequence[int] = ()  # of marks: the indices of theirs, if each has one

    def at(self, time: int) -> float:
        """How many were over then, with what part of the one under way."""
        after = bisect_right(self.times, time)
        if not 0 < after < len(self.times):
            return float(self.counts[-1 if after else 0])
        passed = (time - self.times[after - 1]) / (self.times[after] - self.times[after - 1])
        return self.counts[after - 1] + passed * (self.counts[after] - self.counts[after - 1])


def _pattern(text: str) -> str:
    return " ".join(_NUMBER.sub("", text).split()).rstrip(" :#=([-/") or text


_Event = TypeVar("_Event", Mark, Region)


def _recorded(n: int) -> List[int]:
    """The numbers, from 0, of the first `n` regions of a name that are recorded (docs/trace-format.md)."""
    found: List[int] = []
    number, step = 0, 1
    while len(found) < n:
        while number // step >= _ALL_RECORDED:
            step *= 2
        found.append(number)
        number += step
    return found


def _by_name(events: Iterable[_Event]) -> Iterable[List[_Event]]:
    named: Dict[str, List[_Event]] = defaultdict(list)
    for event in events:
        named[_pattern(event.text)].append(event)
    return named.values()


def _of_regions(profile: Profile, regions: List[Region], until: int) -> Iterations:
    text, numbers, n = regions[0].text, list(range(len(regions))), len(regions)
    if all(region.text == text for region in regions):
        numbers = _recorded(n)
        n = numbers[-1] + 1
        if text in profile.region_sums:
            n = max(n, profile.region_sums[text].calls)
    times = [region.begin for region in regions]
    last = max(until if region.end is None else region.end for region in regions)
    return Iterations(printable(_pattern(text)), n, times + [max(last, times[-1])], numbers + [n])


def _of_marks(marks: List[Mark]) -> Iterations:
    times = [mark.time for mark in marks]
    snapshots = [mark.snapshot for mark in marks if mark.snapshot is not None]
    at_marks = snapshots if len(snapshots) == len(marks) else []
    return Iterations(printable(_pattern(marks[0].text)), len(marks), times, range(len(marks)), at_marks)


def iterations(profile: Profile, until: int) -> Optional[Iterations]:
    """The outermost that came often enough up to that time; if none did what came most often; None if nothing came twice.

    Marks that stand beside regions are passed over only if they come less often than is enough.
    """
    found = [(0, _of_marks(marks)) for marks in _by_name(mark for mark in profile.marks if mark.time <= until)]
    for regions in _by_name(region for region in profile.regions if region.begin <= until):
        found.append((min(region.depth for region in regions), _of_regions(profile, regions, until)))
    found = [row for row in found if row[1].n >= 2]
    enough = [row for row in found if row[1].n >= LEAST]
    if not enough:
        return max(found, key=lambda row: row[1].n)[1] if found else None
    return min(enough, key=lambda row: (row[0], -row[1].n))[1]


# ---- growth ------------------------------------------------------------------------------------

# Parts of the run.
_LEAST_WINDOW = 1 / 3
_LONGEST_PAUSE = 0.25
_BEGINNINGS = 16  # how many are tried
_LAST = 1 / 10  # of the window, left out of the slope
_LEAST_RISES = 4
# So many rises tell by themselves. With fewer the memory must be proven to be old; and below this share of all that is held in the
# end it is only suspect, for libraries keep something small for each new shape of an input.
_ENOUGH_RISES = 16
_LEAST_SHARE_OF_FEW = 0.01
# Parts of the growth in the window.
_NEARLY_ALL = 0.95
_SLOWED_DOWN = 0.3  # the last third against the first
# Times the usual distance between two rises: a longer pause before the end is an end of growing.
_USUAL_PAUSES = 3
_SHORT_PAUSE = 1 / 20  # of the window: it may pause so long in any case
_LEAST_SAMPLES = 6
# Smaller rises are not worth a reader's time: Python's own small tables have them.
_LEAST_BYTES = 8 << 10
_LEAST_SHARE = 0.0001  # of all that is held in the end
# This part of all that imports allocate: later imports, of a few small modules, are not waited for.
_IMPORTED = 0.99
_FREED = 10  # times what is left at the end


class Leak(NamedTuple):
    """A line that was still growing."""

    label: str  # the Python line or, without one, the place that allocated; safe to show
    frame: int  # its id
    caller: int  # likewise, of native code's caller in the label; else 0
    owner: str
    bytes_per_step: float  # where Growth.step is "" by unit of time
    n_steps: int  # in which it grew; where Growth.step is "" how often it was seen to rise
    grown: int  # bytes, in these
    held: int  # bytes, at the end
    since: int  # time
    blocks: int  # that it held at the end; 0 where any of it are pages, which are no blocks of its own
    largest_block: int  # bytes; 0: no block of it has a record
    at_exit: int  # bytes: what destructors, or a script's last functions, have not freed

    @property
    def is_freed(self) -> bool:
        """Nearly all of it, before the end: what a function kept while it ran."""
        return _FREED * self.at_exit < self.held


class Growth(NamedTuple):
    lines: List[Leak]  # what grew most first
    step: str  # the name of the program's iterations; "": it has none, and time is all there is
    n_steps: int
    end: int = 0  # time of the moment for which `held` is
    # Why nothing is known: "no-snapshot", "few-steps", "few-snapshots", "few-rises", "alone" (no other line allocated meanwhile);
    # "": what is not in `lines` does not grow.
    unknown: str = ""
    n_found: int = 0  # of steps, snapshots or rises that count, where they are too few
    n_needed: int = 0
    suspect: Optional[Leak] = None  # with "few-rises" and "alone": the line that grew most

    @property
    def grown(self) -> int:
        return sum(line.grown for line in self.lines)


def importing(profile: Profile, names: Names) -> bytearray:
    """1 for each account that an import left: the import system comes before any line of the program's own."""
    return names.once(_importing)


def _importing(profile: Profile, names: Names) -> bytearray:
    of_imports, own = set(), set()
    for id_ in profile.python_frames:
        if profile.strings[profile.frames[id_][3]] == _IMPORT_SYSTEM:
            of_imports.add(id_)
        elif names.folding.internal(id_).rank == OWN:
            own.add(id_)
    first = Innermost(profile, of_imports | own).of_accounts()
    return bytearray(map(of_imports.__contains__, first))


def _started(profile: Profile, is_import: bytearray, end: int) -> int:
    """The index of the first snapshot that has nearly all of the imports' allocations behind it, or of a program without
    imports the last one before it allocates: until then its libraries are loaded.
    """
    exact = bytearray(profile.accounts.by_type(lambda type_: not profile.is_sampled(type_.kind)))
    imports = bytearray(map(and_, exact, is_import))
    allocated: Dict[int, int] = defaultdict(int)  # by account
    so_far, sums, idle = 0, [], 0
    for index, snapshot in enumerate(profile.snapshots[: end + 1]):
        accounts = snapshot.changes.account
        for account, n_bytes in compress(zip(accounts, snapshot.changes.all_bytes), map(imports.__getitem__, accounts)):
            so_far += n_bytes - allocated[account]
            allocated[account] = n_bytes
        idle = idle or (index if any(map(exact.__getitem__, accounts)) else 0)
        sums.append(so_far)
    return max(idle - 1, next(index for index, sum_ in enumerate(sums) if sum_ >= _IMPORTED * so_far))


# ---- whether it grows ------------------------------------------------------------------------

# The rises of a line: the progress of the run, and bytes.
Rises = List[Tuple[float, int]]


def _sum(rises: Rises) -> int:
    return sum(n_bytes for _, n_bytes in rises)


def _is_steady(begin: float, rises: Rises, progress: Sequence[float]) -> bool:
    """It goes on from the beginning to the end."""
    if len(rises) < _LEAST_RISES:
        return False
    end, places = progress[-1], [begin] + [place for place, _ in rises]
    # Between two samples it may have risen at any time: a pause lasts until the last sample that saw no rise.
    pauses = [progress[bisect_left(progress, later) - 1] - place for place, later in zip(places, places[1:])]
    pauses.append(end - places[-1])
    # A temporary that is live at the very end looks like a last rise: before it there must be no long pause either.
    n_before = bisect_left(places, end - _SHORT_PAUSE * (end - begin))
    usual = (places[n_before - 1] - places[1]) / max(1, n_before - 2)
    may_pause = max(_USUAL_PAUSES * usual, _SHORT_PAUSE * (end - begin))
    return max(pauses) <= _LONGEST_PAUSE * (end - begin) and max(pauses[n_before - 1 :]) <= may_pause


def _is_habit(rises: Rises, n_few: int) -> bool:
    """A few rises are not nearly all of it."""
    few = sorted(rises, key=lambda rise: -rise[1])[:n_few]
    return _sum(few) < _NEARLY_ALL * _sum(rises)


def _fills_up(begin: float, rises: Rises, end: float) -> bool:
    """It rises ever more slowly, as a cache does that is asked for anything: not what was made at once, early on."""
    third = (end - begin) / 3
    early = [rise for rise in rises if rise[0] <= begin + third]
    late = [rise for rise in rises if rise[0] > end - third]
    return len(early) >= _LEAST_RISES and _sum(late) < _SLOWED_DOWN * _sum(early)


def _longest_growth(progress: Sequence[float], rises: Rises, worth: float) -> Rises:
    """From where on it grows to the end; empty if it does not."""
    begin, end = progress[0], progress[-1]
    if end <= begin or _fills_up(begin, rises, end):
        return []
    for number in range(_BEGINNINGS):
        start = begin + (end - begin) * (1 - _LEAST_WINDOW) * number / (_BEGINNINGS - 1)
        later = [rise for rise in rises if rise[0] > start]
        if _sum(later) < worth:
            return []
        if _is_steady(start, later, progress):
            return later
    return []


def _slope(progress: Sequence[float], rises: Rises) -> float:
    """Bytes by unit of progress: least squares through what stays.

    Without the last tenth, if there is enough before: memory that is held then for a while looks like memory that stays.
    """
    before = [place for place in progress if place <= progress[-1] - _LAST * (progress[-1] - progress[0])]
    progress = before if len(before) >= _LEAST_SAMPLES else progress
    by_place: Dict[float, int] = defaultdict(int)  # several samples may lie at one place
    for place, n_bytes in rises:
        by_place[place] += n_bytes
    totals = list(accumulate(by_place.pop(place, 0) for place in progress))
    mean_x, mean_y = sum(progress) / len(progress), sum(totals) / len(totals)
    spread = sum((x - mean_x) ** 2 for x in progress)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(progress, totals)) / spread if spread else 0.0


# ---- all lines -------------------------------------------------------------------------------


class _Line(NamedTuple):
    frame: int
    caller: int  # of native code, else 0
    owner: str


def _line(profile: Profile, names: Names, account: int) -> _Line:
    owner = profile.accounts.owner(account)
    line = names.charged(account)
    if line:
        return _Line(line, 0, owner)
    node = names.site_node(account)
    return _Line(profile.node_frame[node], profile.node_frame[profile.node_parent[node]], owner)


def _samples(profile: Profile, first: int, end: int, repeated: Optional[Iterations]) -> Tuple[List[int], List[float]]:
    """Indices of the snapshots that are looked at, and the progress of the run at each."""
    times = [snapshot.time for snapshot in profile.snapshots]
    if not repeated:
        return list(range(first, end + 1)), [float(time) for time in times[first : end + 1]]
    if repeated.snapshots:
        samples = [snapshot for snapshot in repeated.snapshots if snapshot <= end]
        return samples, [float(number) for number in range(len(samples))]
    # Pages are looked at in the end, however long ago that was.
    samples = [i for i in range(end) if repeated.times[0] <= times[i] <= repeated.times[-1]] + [end]
    return samples, [repeated.at(times[sample]) for sample in samples]


def _ends_of_calls(profile: Profile, samples: Sequence[int]) -> List[int]:
    """For each sample the last one that a recorded call of the runtime's lasted until, so that its rises count as one."""
    times = [profile.snapshots[sample].time for sample in samples]
    ends = list(range(len(samples) + 1))
    for scope in profile.scopes:
        # Memory that the call allocated shows in the first sample after it at the latest.
        begin, end = bisect_left(times, scope.begin), min(bisect_left(times, scope.end), len(times) - 1)
        for sample in range(begin, end + 1):
            ends[sample] = max(ends[sample], end)
    return ends


def _of_accounts(profile: Profile, is_import: bytearray) -> bytearray:
    """1 for each account that may leak."""
    known = profile.suppressed or bytearray(len(profile.accounts))

    def may_leak(type_: AccountType) -> bool:
        # The reserve of a caching allocator grows on purpose.
        is_reserve = profile.group_of.get(type_.owner) == "cached"
        return side_of(type_.kind) is not None and not is_reserve and type_.kind not in NOT_FREED

    accounts = profile.accounts
    return bytearray(
        bool(node) and is_leaking and not (is_known or imported)
        for node, is_leaking, is_known, imported in zip(accounts.nodes, accounts.by_type(may_leak), known, is_import)
    )


def _grow_alone(profile: Profile, names: Names, lines: Iterable[Leak], end: int) -> bool:
    """A script that is recorded object by object allocates in no line besides: as one statement does that builds a list, while a
    loop has objects that come and go.
    """
    if not profile.manifest.get("python") or has_arenas(profile):
        return False
    grown, since = {leak.frame for leak in lines}, min(leak.since for leak in lines)
    allocated: Dict[int, int] = {}
    active: Set[int] = set()  # lines; not at the edges, where something else may have ended or begun
    for index, snapshot in enumerate(profile.snapshots[:end]):
        is_inside = index and profile.snapshots[index - 1].time > since
        for account, n_bytes in zip(snapshot.changes.account, snapshot.changes.all_bytes):
            if is_inside and n_bytes > allocated.get(account, 0):
                active.add(names.charged(account))
            allocated[account] = n_bytes
    return grown <= profile.python_frames and grown <= active <= {0, *grown}


def _without_temporaries(live: LiveBytesByAccount, left: LiveBytesByAccount, names: Names) -> LiveBytesByAccount:
    """Live memory less what its lines freed before the exit: temporaries, unless that is most of a line's."""
    charges = names.charges()
    held_by: Dict[int, int] = defaultdict(int)
    left_by: Dict[int, int] = defaultdict(int)
    for account, (n_bytes, _) in live.items():
        line = charges[account] or ~account
        held_by[line] += n_bytes
        left_by[line] += min(n_bytes, left.get(account, (0, 0))[0])
    kept = dict(live)
    for account, (n_bytes, blocks) in live.items():
        line = charges[account] or ~account
        if 2 * left_by[line] >= held_by[line]:
            kept[account] = min(n_bytes, left.get(account, (0, 0))[0]), blocks
    return kept


def _before_failure(profile: Profile, end: int) -> int:
    """The snapshot of a failed request after which the total never rose: a program that gives up does not grow."""
    failed = max((each.snapshot for each in profile.exhaustions.values() if each.snapshot is not None), default=end)
    totals = [snapshot.host + snapshot.device for snapshot in profile.snapshots[: end + 1]]
    return failed if failed < end and max(totals[failed:]) == totals[failed] else end


def find_growth(profile: Profile, names: Names) -> Growth:
    """Lines that were still growing at the end."""
    return names.once(_find_growth)


def _find_growth(profile: Profile, names: Names) -> Growth:
    if not profile.snapshots:
        return Growth([], "", 0, unknown="no-snapshot")
    end, last = last_before_the_fall(profile, before_return=True), before_clean_up(profile)
    end = _before_failure(profile, end)
    at = profile.snapshots[end].time
    is_import = importing(profile, names)
    repeated = iterations(profile, at)
    samples, progress = _samples(profile, _started(profile, is_import, end), end, repeated)
    step, n_steps = (repeated.name, repeated.n) if repeated else ("", 0)
    if repeated and repeated.n < LEAST:
        return Growth([], step, n_steps, at, "few-steps", repeated.n, LEAST)
    least = LEAST if repeated and repeated.snapshots else _LEAST_SAMPLES
    if len(samples) < least:
        return Growth([], step, n_steps, at, "few-snapshots", len(samples), least)
    live, left = profile.composition(end), profile.composition(last)
    kept = _without_temporaries(live, left, names)
    sizes = lru_cache(maxsize=None)(lambda: live_sizes(profile, Moment("the end", at, live, end)))
    # Rises by sample, and the proven part of them.
    sums: Dict[_Line, List[int]] = defaultdict(lambda: [0] * (len(samples) + 1))
    proven: Dict[_Line, List[int]] = defaultdict(lambda: [0] * (len(samples) + 1))
    accounts_of: Dict[_Line, Set[int]] = defaultdict(set)
    line_of = lru_cache(maxsize=None)(lambda account: _line(profile, names, account))
    ends = _ends_of_calls(profile, samples)
    for account, sample, n_bytes, n_proven in rises_of(profile, samples, end, kept, _of_accounts(profile, is_import)):
        line = line_of(account)
        sample = ends[sample] if sample and profile.group_of.get(line.owner) in _OF_CALLS else sample
        if sample:
            sums[line][sample] += n_bytes
            proven[line][sample] += n_proven
            accounts_of[line].add(account)
    whole = profile.snapshots[end].host + profile.snapshots[end].device
    worth = max(_LEAST_BYTES, _LEAST_SHARE * whole)
    n_few = LEAST - 2 if repeated else LEAST - 1  # rises; the first iteration is no growth

    def growth_of(by_sample: List[int]) -> Rises:
        """Empty if it is none, or a few rises are nearly all of it."""
        rises = [(place, n_bytes) for place, n_bytes in zip(progress[1:], by_sample[1:]) if n_bytes]
        rises = _longest_growth(progress, rises, worth)
        return rises if _is_habit(rises, n_few) else []

    def leaking(accounts_of: Dict[_Line, Set[int]]) -> Dict[_Line, Leak]:
        found = {}
        for line, accounts in accounts_of.items():
            rises = growth_of(sums[line])
            are_few = len(rises) < _ENOUGH_RISES
            if not rises or (are_few and not growth_of(proven[line])):
                continue
            begin = progress.index(rises[0][0]) - 1  # between two samples
            has_pages = any(profile.accounts.kind(account) in PAGE_KINDS for account in accounts)
            leak = Leak(
                names.frame(line.frame) + (f", from {names.frame(line.caller)}" if line.caller else ""),
                *line,
                bytes_per_step=_slope(progress[begin:], rises),
                n_steps=round(progress[-1] - progress[begin]) if repeated else len(rises),
                grown=_sum(rises),
                held=sum(live[account][0] for account in accounts),
                since=profile.snapshots[samples[begin]].time,
                blocks=0 if has_pages else sum(live[account][1] for account in accounts),
                largest_block=max((n for account in accounts for n in sizes().get(account, ())), default=0),
                at_exit=sum(left.get(account, (0, 0))[0] for account in accounts),
            )
            if are_few and leak.grown < _LEAST_SHARE_OF_FEW * whole:
                suspects.append((leak, len(rises)))
            else:
                found[line] = leak
        return found

    suspects: List[Tuple[Leak, int]] = []
    leaks = leaking(accounts_of)
    # Lines that grow by little from each of many callers.
    known = {(line.frame, line.owner) for line in leaks}
    for line in [line for line in sums if line.caller and (line.frame, line.owner) not in known]:
        of_all = line._replace(caller=0)
        for bytes_of in (sums, proven):
            bytes_of[of_all] = list(map(add, bytes_of[of_all], bytes_of.pop(line)))
        accounts_of[of_all] |= accounts_of.pop(line)
    leaks.update(leaking({line: accounts for line, accounts in accounts_of.items() if line not in leaks}))
    if suspects and not leaks:
        suspect, n_rises = max(suspects, key=lambda row: (row[0].grown, row[0].label))
        return Growth([], step, n_steps, at, "few-rises", n_rises, _ENOUGH_RISES, suspect)
    found = sorted(leaks.values(), key=lambda leak: (-leak.grown, leak.label, leak.owner))
    if found and not repeated and _grow_alone(profile, names, found, end):
        return Growth([], step, n_steps, at, "alone", suspect=found[0])
    return Growth(found, step, n_steps, at)


def callers(profile: Profile, names: Names, leak: Leak, time: int) -> List[str]:
    """Own Python lines that called the leak's, the nearest first: of the calls that had allocated most of it by then."""
    held: Dict[Tuple[str, ...], int] = defaultdict(int)
    is_python = leak.frame in profile.python_frames
    live = profile.composition(snapshot_by(profile, time)) if is_python else {}
    for account, (n_bytes, _) in live.items():
        node, owner = profile.accounts.nodes[account], profile.accounts.owner(account)
        if node and owner == leak.owner and names.charged(account) == leak.frame:
            stack = list(profile.stack(node))
            outer = stack[stack.index(leak.frame) + 1 :]
            own = (each for each in outer if each in profile.python_frames and names.folding.internal(each).rank == OWN)
            held[tuple(map(names.frame, own))] += n_bytes
    most: Tuple[str, ...] = max(sorted(held), key=lambda path: held[path], default=())
    return list(most)


# ---- keepers -----------------------------------------------------------------------------------


class Keeper(NamedTuple):
    """A variable of a Python program that keeps elements of a container which grew while the program leaked."""

    objects: int  # elements of the type
    others: int  # elements of other types
    type: str
    container: str  # "list"
    variable: str
    sort: str  # of the holder: "module", "class", "instance" or "function"
    holder: str
    label: str  # the line that made the container larger the last time


# The memory of a container's elements grew by so much while a line leaked, or in the last two thirds of that, and not in the
# last third alone. Sets grow fourfold at once, so two thirds are too short for them.
_LEAST_GROWN = 1.25


def keepers(profile: Profile, names: Names) -> List[Keeper]:
    """Those with most elements first; empty where no line leaks."""
    growth = find_growth(profile, names)
    if not growth.lines or not profile.containers:
        return []
    since = min(leak.since for leak in growth.lines)
    thirds = [snapshot_by(profile, since + (growth.end - since) * n // 3) for n in range(3)]
    held = list(map(profile.composition, (*thirds, before_clean_up(profile))))
    is_import = importing(profile, names)

    def has_grown(each: Container) -> bool:
        begin, third, late, after = (then.get(each.account, (0, 0))[0] for then in held)
        before = begin if each.container == "set" else third
        return after > _LEAST_GROWN * before and late > _LEAST_GROWN * begin and not is_import[each.account]

    found = [
        Keeper(
            each.of_type,
            each.elements - each.of_type,
            printable(each.type),
            printable(each.container),
            printable(each.variable),
            each.sort,
            printable(each.holder),
            names.line(each.account),
        )
        for each in profile.containers
        if has_grown(each)
    ]
    return sorted(found, key=lambda keeper: (-keeper.objects, keeper))


# ---- still allocated at exit -------------------------------------------------------------------


class NotCounted(NamedTuple):
    key: str  # "inherited", "suppressed", "imports", "interpreter", "cached", "runtime"
    bytes: int


class HeldAtEnd(NamedTuple):
    time: int
    snapshot: int  # index
    leaked: LiveBytesByAccount
    on_purpose: LiveBytesByAccount  # of the groups that keep it
    not_counted: List[NotCounted]


def held_at_end(profile: Profile, names: Names) -> Optional[HeldAtEnd]:
    """None if the trace has no snapshot, or the program executed another, which freed its memory."""
    if not profile.snapshots or profile.snapshots[-1].reason == "exec":
        return None
    index = before_clean_up(profile)
    is_import = importing(profile, names)
    leaked: LiveBytesByAccount = {}
    on_purpose: LiveBytesByAccount = {}
    others = dict.fromkeys(("inherited", "suppressed", "imports", "interpreter", *_ON_PURPOSE), 0)
    known = profile.suppressed or bytearray(len(profile.accounts))
    born_with = left_at(profile, index)
    nodes, numbers, types = profile.accounts.nodes, profile.accounts.type_numbers, profile.accounts.types
    is_freed = [side_of(kind) is not None and kind not in (*NOT_FREED, "heap-overhead") for kind, _ in types]
    for account, held in profile.composition(index).items():
        if not is_freed[numbers[account]]:
            continue
        owner = types[numbers[account]].owner
        if account in born_with:
            n_bytes, blocks = born_with[account]
            others["inherited"] += n_bytes
            held = (held[0] - n_bytes, held[1] - blocks)
            if not any(held):
                continue
        if is_import[account]:
            others["imports"] += held[0]
        elif owner == "python" and nodes[account] and not names.charged(account, False):
            others["interpreter"] += held[0]
        elif profile.group_of.get(owner) in _ON_PURPOSE:
            others[profile.group_of[owner]] += held[0]
            on_purpose[account] = held
        elif known[account]:
            others["suppressed"] += held[0]
        else:
            leaked[account] = held
    not_counted = [NotCounted(key, n_bytes) for key, n_bytes in others.items() if n_bytes]
    return HeldAtEnd(profile.snapshots[index].time, index, leaked, on_purpose, not_counted)


class LeakedPlace(NamedTuple):
    label: str
    owner: str
    kind: str  # several: "heap, device"
    bytes: int
    blocks: int


def leaked_places(profile: Profile, names: Names, composition: LiveBytesByAccount) -> List[LeakedPlace]:
    """A row for each line and owner, as for growth; without a line, the place that allocated. The largest first."""
    kinds: Dict[Tuple[str, str], Dict[str, None]] = defaultdict(dict)

    def key(account: int) -> Tuple[str, str]:
        _, kind, owner = profile.accounts[account]
        place = names.line(account), owner
        kinds[place][kind] = None
        return place

    sums = aggregate(profile, composition, key)
    places = [LeakedPlace(*key, ", ".join(kinds[key]), usage.bytes, usage.blocks) for key, usage in sums.items()]
    return sorted(places, key=lambda place: (-place.bytes, place))
