# SPDX-License-Identifier: GPL-2.0-or-later
"""Leaks: lines of which memory kept rising until the program ended, and memory that was still allocated at exit.

*Still allocated* is read before an interpreter cleans up, since that frees objects that a script has kept for no use. It leaves
out memory that nobody means to free: of imports, the interpreter's own tables, pages of files and stacks, the heap's overhead,
and what a forked child was born with. Reserves of caching allocators and the runtime's own memory are held until the end on
purpose: they are not counted, but have names of their own.

*Rising* is the part of a line's memory that is *retained*: of each account at each moment, as much as it never again holds less of
until the end. That only rises, and a leak makes it rise again and again, whatever comes and goes beside it. So a line leaks if, over
at least a third of the run after its imports,

- it rises from beginning to end, without a pause of three tenths of that time; a list made once, a warm-up, a cache that is
  full rise and then stay;
- that goes without any single rise that is half of it;
- in its last third it rises by no less than a fraction of what it rose by in the first, or it is a cache filling up;
- it has allocated often enough for a habit: a buffer that was made anew a few times, larger each time, is none.

The run is measured in iterations (regions or marks of one name) where the program has any, else in time.
"""

import re
from array import array
from bisect import bisect_right
from collections import defaultdict
from itertools import accumulate, compress
from operator import add, and_
from typing import Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar

from jmassif.analysis.aggregate import aggregate
from jmassif.analysis.inherited import left_at
from jmassif.analysis.moments import before_clean_up, last_before_the_fall
from jmassif.attribution.blame import NO_STACK, Innermost
from jmassif.attribution.names import Names
from jmassif.attribution.packages import OWN
from jmassif.model.records import PAGE_KINDS, AccountType, LiveBytesByAccount, Mark, Region, side_of
from jmassif.model.run import Profile
from jmassif.units import printable

NOT_FREED = ("file", "stack")  # kinds of pages
_ON_PURPOSE = ("cached", "runtime")  # groups
_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"
_PAGE = 4096


# ---- retained memory ---------------------------------------------------------------------------

# Moments are *samples*, indices of snapshots; the end of all is the sample behind the last. Snapshots are walked from the last to the
# first, since what is retained follows from what comes later: so a number or two an account are all that is kept.


class Retained:
    """The retained memory of the accounts of one line."""

    __slots__ = ("accounts", "held", "rises")

    def __init__(self) -> None:
        self.accounts = array("I")  # that hold something at the end, and have changed after the first sample
        self.held = 0  # bytes of all of them at the end
        self.rises: List[int] = []  # bytes, by sample; empty if there are none

    def add(self, other: "Retained") -> None:
        self.accounts.extend(other.accounts)
        self.held += other.held
        if self.rises and other.rises:
            self.rises = list(map(add, self.rises, other.rises))
        else:
            self.rises = self.rises or other.rises[:]

    def rise(self, sample: int, n_bytes: int, n_samples: int) -> None:
        if n_bytes and sample < n_samples:
            self.rises = self.rises or [0] * n_samples
            self.rises[sample] += n_bytes


def _backwards(
    profile: Profile, samples: Sequence[int], end: int, matters: bytearray, next_at: "array[int]", *columns: str
) -> Iterator[Tuple[int, ...]]:
    """(account, sample, sample of its change after that, numbers of some columns) of the last change before each sample.

    `matters` is 0 for accounts that are passed over, `next_at` keeps the sample of each account's last change that came.
    """
    at = len(samples)
    for index in range(end, -1, -1):
        while at and samples[at - 1] >= index:
            at -= 1
        changes = profile.snapshots[index].changes
        for account, *numbers in changes.backwards(matters, *[getattr(changes, column) for column in columns]):
            later = next_at[account]
            if later != at:
                next_at[account] = at
                yield (account, at, later, *numbers)


def retain(
    profile: Profile,
    samples: Sequence[int],
    end: int,
    counts: Iterable[int],
    line_of: Callable[[int], Retained],
) -> None:
    """Fills in what `line_of` gives for the accounts that count (1 in `counts`, by account) and belong to a line."""
    n = len(samples)
    unseen = n + 1
    next_at = array("I", [unseen]) * len(profile.accounts)
    matters = bytearray(counts)
    matters[0] = 0
    retained = array("Q", bytes(8 * len(next_at)))
    lines: List[Optional[Retained]] = [None] * len(next_at)
    for account, at, later, n_bytes in _backwards(profile, samples, end, matters, next_at, "bytes"):
        after = n_bytes if later == unseen else retained[account]
        before = min(after, n_bytes)
        line = lines[account]
        if line:
            line.rise(later, after - before, n)
        elif 0 < at < n and (later == n or n_bytes):
            line = lines[account] = line_of(account)
            line.accounts.append(account)
            line.held += after
        retained[account] = before
        matters[account] = at > 0 and before > 0
    for account, line in enumerate(lines):
        if line and matters[account]:
            line.rise(next_at[account], retained[account], n)


# Bytes that an account has more than it retained at some sample, and how often it was allocated for since.
Grown = Tuple[int, int]


def grown_since(profile: Profile, samples: Sequence[int], end: int, begins: Sequence[int]) -> List[Grown]:
    """Growth of each account since the sample that `begins` has for it; -1: not asked for. Each sampled page is an allocation."""
    n = len(begins)
    sampled = bytearray(profile.accounts.by_type(lambda type_: profile.is_sampled(type_.kind)))
    unseen = len(samples) + 1
    next_at = array("I", [unseen]) * n
    matters = bytearray(begin >= 0 for begin in begins)
    held, retained, times = array("Q", bytes(8 * n)), array("Q", bytes(8 * n)), [0] * n
    is_new = bytearray(b"\1") * n  # nothing came before that is known
    columns = ("bytes", "all_bytes", "all_blocks")
    for account, at, later, n_bytes, all_bytes, blocks in _backwards(profile, samples, end, matters, next_at, *columns):
        allocated = all_bytes // _PAGE if sampled[account] else blocks
        if later == unseen:
            held[account], retained[account], times[account] = n_bytes, n_bytes, allocated
        retained[account] = min(retained[account], n_bytes)
        if at <= begins[account]:
            times[account] -= allocated
            is_new[account] = matters[account] = 0
    return [(held[id_] - (0 if is_new[id_] else retained[id_]), times[id_]) for id_ in range(n)]


# The fewest accounts that make this part of the growth are asked how often they allocated.
_MOST_OF_IT = 0.9


def allocations(accounts: Sequence[Grown]) -> int:
    """The number of allocations that make most of the growth."""
    enough = _MOST_OF_IT * sum(n_bytes for n_bytes, _ in accounts)
    times = 0
    for n_bytes, allocated in sorted(accounts, reverse=True):
        if enough <= 0:
            break
        times += allocated
        enough -= n_bytes
    return times


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
    snapshots: Tuple[int, ...]  # indices of those taken at just this point of each; () if there are none

    def at(self, time: int) -> float:
        """How many were over then, with what part of the one under way."""
        after = bisect_right(self.times, time)
        if not 0 < after < len(self.times):
            return float(self.counts[-1 if after else 0])
        passed = (time - self.times[after - 1]) / (self.times[after] - self.times[after - 1])
        return self.counts[after - 1] + passed * (self.counts[after] - self.counts[after - 1])


def _pattern(text: str) -> str:
    return " ".join(_NUMBER.sub("", text).split()).rstrip(" :#=([-/") or text


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


_Event = TypeVar("_Event", Mark, Region)


def _by_name(events: Iterable[_Event]) -> Iterable[Tuple[str, List[_Event]]]:
    named: Dict[str, List[_Event]] = defaultdict(list)
    for event in events:
        named[_pattern(event.text)].append(event)
    return named.items()


def _of_regions(profile: Profile, until: int) -> Iterator[Tuple[int, Iterations]]:
    """With how deep they lie."""
    for name, regions in _by_name(each for each in profile.regions if each.begin <= until):
        text = regions[0].text
        is_one_text = all(region.text == text for region in regions)
        numbers = _recorded(len(regions)) if is_one_text else list(range(len(regions)))
        times = [region.begin for region in regions]
        last = max(until if region.end is None else region.end for region in regions)
        n = numbers[-1] + 1
        if is_one_text and text in profile.region_sums:
            n = max(n, profile.region_sums[text].calls)
        depth = min(region.depth for region in regions)
        yield depth, Iterations(printable(name), n, times + [max(last, times[-1])], numbers + [n], ())


def _of_marks(profile: Profile, until: int) -> Iterator[Tuple[int, Iterations]]:
    for name, marks in _by_name(each for each in profile.marks if each.time <= until):
        snapshots = tuple(mark.snapshot for mark in marks if mark.snapshot is not None)
        at_marks = snapshots if len(snapshots) == len(marks) else ()
        times = [mark.time for mark in marks]
        yield 0, Iterations(printable(name), len(marks), times, list(range(len(marks))), at_marks)


def iterations(profile: Profile, until: int) -> Optional[Iterations]:
    """The outermost that came often enough up to that time; if none did what came most often; None if nothing came twice.

    Marks that stand beside regions are passed over only if they come less often than is enough.
    """
    found = [row for row in (*_of_marks(profile, until), *_of_regions(profile, until)) if row[1].n >= 2]
    enough = [row for row in found if row[1].n >= LEAST]
    if not enough:
        return max(found, key=lambda row: row[1].n)[1] if found else None
    # If two are equally far out, one that has snapshots of its own is more exact.
    return min(enough, key=lambda row: (row[0], not row[1].snapshots, -row[1].n))[1]


# ---- growth ------------------------------------------------------------------------------------

# Parts of the run.
_LEAST_WINDOW = 1 / 3
_LONGEST_PAUSE = 0.3
_BEGINNINGS = 16  # how many are tried
_LEAST_RISES = 4
# Parts of the growth in the window.
_LARGEST_RISE = 1 / 2
_SLOWED_DOWN = 0.3  # the last third against the first
# Times the usual distance between two rises: a longer pause before the end is an end of growing.
_USUAL_PAUSES = 3
_SHORT_PAUSE = 1 / 20  # of the window: it may pause so long in any case
_LAST = 1 / 10  # of the window
_LEAST_SAMPLES = 6
# Smaller rises are not worth a reader's time: Python's own small tables have them.
_LEAST_BYTES = 8 << 10
_LEAST_SHARE = 0.0001  # of all that is held in the end
# This part of all that imports allocate: later imports, of a few small modules, are not waited for.
_IMPORTED = 0.99


class Leak(NamedTuple):
    """A line that was still growing."""

    label: str  # the Python line or, without one, the place that allocated; safe to show
    frame: int  # its id
    owner: str
    bytes_per_step: float  # where Growth.step is "" by unit of time
    n_steps: int  # in which it grew; where Growth.step is "" how often it was seen to rise
    grown: int  # bytes, in these
    held: int  # bytes, at the end
    since: int  # time
    blocks: int  # that it held at the end; 0 where any of it are pages, which are no blocks of its own


class Growth(NamedTuple):
    lines: List[Leak]  # what grew most first
    step: str  # the name of the program's iterations; "": it has none, and time is all there is
    n_steps: int
    # Why nothing is known: "no-snapshot", "few-steps", "few-snapshots"; "": what is not in `lines` does not grow.
    unknown: str = ""
    n_found: int = 0  # of steps or snapshots that count, where they are too few
    n_needed: int = 0

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
    allocated = array("Q", bytes(8 * len(exact)))  # by account
    sums: List[int] = []
    so_far = 0
    idle = 0
    has_imports = any(imports)
    for index, snapshot in enumerate(profile.snapshots[: end + 1]):
        accounts = snapshot.changes.account
        if has_imports:
            rows = zip(accounts, snapshot.changes.all_bytes)
            for account, total_bytes in compress(rows, map(imports.__getitem__, accounts)):
                so_far += total_bytes - allocated[account]
                allocated[account] = total_bytes
        idle = idle or (index if any(map(exact.__getitem__, accounts)) else 0)
        sums.append(so_far)
    return max(idle - 1, next(index for index, sum_ in enumerate(sums) if sum_ >= _IMPORTED * so_far))


# ---- whether it grows ------------------------------------------------------------------------


class _Rises(NamedTuple):
    """The rises of one line from a sample on."""

    begin: float  # progress; likewise the others
    end: float
    points: List[Tuple[float, int]]  # progress and bytes of each rise


def _is_steady(rises: _Rises) -> bool:
    """It goes on from the beginning to the end."""
    if len(rises.points) < _LEAST_RISES:
        return False
    length = rises.end - rises.begin
    places = [rises.begin] + [place for place, _ in rises.points]
    longest = max(later - earlier for earlier, later in zip(places, places[1:] + [rises.end]))
    usual = (places[-1] - places[1]) / (len(rises.points) - 1)
    may_pause = max(_USUAL_PAUSES * usual, _SHORT_PAUSE * length)
    return longest <= _LONGEST_PAUSE * length and rises.end - places[-1] <= may_pause


def _without_outlier(points: List[Tuple[float, int]]) -> List[Tuple[float, int]]:
    """A rise that is half of all is something else that the line has made."""
    largest = max(points, key=lambda point: point[1], default=None)
    is_outlier = largest is not None and largest[1] > _LARGEST_RISE * sum(n_bytes for _, n_bytes in points)
    return [point for point in points if not (is_outlier and point is largest)]


def _fills_up(rises: _Rises) -> bool:
    """It rises ever more slowly, as a cache does that is asked for anything: not what was made at once, early on."""
    third = (rises.end - rises.begin) / 3
    early = [n_bytes for place, n_bytes in rises.points if place <= rises.begin + third]
    late = [n_bytes for place, n_bytes in rises.points if place > rises.end - third]
    return len(early) >= _LEAST_RISES and sum(late) < _SLOWED_DOWN * sum(early)


def _longest_growth(progress: Sequence[float], column: Sequence[int], worth: float) -> Optional[_Rises]:
    """From where on it grows to the end; None if it does not."""
    begin, end = progress[0], progress[-1]
    points = [(place, n_bytes) for place, n_bytes in zip(progress, column) if n_bytes]
    if end <= begin or _fills_up(_Rises(begin, end, _without_outlier(points))):
        return None
    for number in range(_BEGINNINGS):
        start = begin + (end - begin) * (1 - _LEAST_WINDOW) * number / (_BEGINNINGS - 1)
        rises = _Rises(start, end, _without_outlier([point for point in points if point[0] > start]))
        if sum(n_bytes for _, n_bytes in rises.points) < worth:
            return None
        if _is_steady(rises):
            return rises
    return None


def _slope(progress: Sequence[float], points: Sequence[Tuple[float, int]]) -> float:
    """Bytes by unit of progress: least squares through what stays.

    Without the very last part, if there is enough before: memory that is held then for a while looks like memory that stays.
    """
    before = [place for place in progress if place <= progress[-1] - _LAST * (progress[-1] - progress[0])]
    progress = before if len(before) >= _LEAST_SAMPLES else progress
    rises: Dict[float, int] = defaultdict(int)  # several samples may lie at one place
    for place, n_bytes in points:
        rises[place] += n_bytes
    totals = accumulate(rises.pop(place, 0) for place in progress)
    line = list(zip(progress, totals))
    mean_x = sum(x for x, _ in line) / len(line)
    mean_y = sum(y for _, y in line) / len(line)
    spread = sum((x - mean_x) ** 2 for x, _ in line)
    return sum((x - mean_x) * (y - mean_y) for x, y in line) / spread if spread else 0.0


# ---- all lines -------------------------------------------------------------------------------


class _Line(NamedTuple):
    frame: int
    caller: int  # of native code; 0: whoever
    owner: str


def _line(profile: Profile, names: Names, account: int) -> _Line:
    owner = profile.accounts.owner(account)
    line = names.charged(account)
    if line:
        return _Line(line, 0, owner)
    node = names.site_node(account)
    return _Line(profile.node_frame[node], profile.node_frame[profile.node_parent[node]], owner)


def _label(names: Names, line: _Line) -> str:
    return names.frame(line.frame) + (f", from {names.frame(line.caller)}" if line.caller else "")


def _samples(profile: Profile, first: int, end: int, repeated: Optional[Iterations]) -> Tuple[List[int], List[float]]:
    """Indices of the snapshots that are looked at, and the progress of the run at each."""
    times = [snapshot.time for snapshot in profile.snapshots]
    if repeated and len(repeated.snapshots) >= LEAST:
        samples = [snapshot for snapshot in repeated.snapshots if snapshot <= end]
    elif repeated:
        # Pages are looked at in the end, however long ago that was.
        samples = [i for i in range(end) if repeated.times[0] <= times[i] <= repeated.times[-1]] + [end]
    else:
        samples = list(range(first, end + 1))
    if repeated and repeated.snapshots:
        return samples, [float(number) for number in range(len(samples))]
    return samples, [repeated.at(times[sample]) if repeated else float(times[sample]) for sample in samples]


def _blocks(profile: Profile, names: Names, end: int, lines: Iterable[_Line]) -> Dict[_Line, int]:
    """How many each of these lines, which may be of any caller, held at the end."""
    found = dict.fromkeys(lines, 0)
    paged = set()
    frames = {line.frame for line in found}
    for account, (n_bytes, blocks) in profile.composition(end).items() if found else ():
        kind = profile.accounts.kind(account)
        is_held = n_bytes and profile.accounts.nodes[account] and side_of(kind)
        if not is_held or (names.charged(account) or names.site_id(account)) not in frames:
            continue
        line = _line(profile, names, account)
        for each in found.keys() & {line, line._replace(caller=0)}:
            found[each] += blocks
            if kind in PAGE_KINDS:
                paged.add(each)
    return {line: 0 if line in paged else blocks for line, blocks in found.items()}


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


def find_growth(profile: Profile, names: Names) -> Growth:
    """Lines that were still growing at the end."""
    return names.once(_find_growth)


def _find_growth(profile: Profile, names: Names) -> Growth:
    if not profile.snapshots:
        return Growth([], "", 0, "no-snapshot")
    end = last_before_the_fall(profile)
    is_import = importing(profile, names)
    repeated = iterations(profile, profile.snapshots[end].time)
    samples, progress = _samples(profile, _started(profile, is_import, end), end, repeated)
    step, n_steps = (repeated.name, repeated.n) if repeated else ("", 0)
    if repeated and repeated.n < LEAST:
        return Growth([], step, n_steps, "few-steps", repeated.n, LEAST)
    least = LEAST if repeated and repeated.snapshots else _LEAST_SAMPLES
    if len(samples) < least:
        return Growth([], step, n_steps, "few-snapshots", len(samples), least)
    lines: Dict[_Line, Retained] = defaultdict(Retained)
    may_leak = _of_accounts(profile, is_import)
    retain(profile, samples, end, may_leak, lambda account: lines[_line(profile, names, account)])
    worth = max(_LEAST_BYTES, _LEAST_SHARE * (profile.snapshots[end].host + profile.snapshots[end].device))
    often = LEAST - 1 if repeated else LEAST  # allocations that make a habit; the first iteration is no growth

    def leaking(lines: Mapping[_Line, Retained]) -> Dict[_Line, Leak]:
        """`since` is a sample."""
        found: Dict[_Line, Leak] = {}
        begins = array("i", [-1]) * len(profile.accounts)
        for line, held in lines.items():
            rises = _longest_growth(progress, held.rises, worth) if held.rises else None
            if rises is None:
                continue
            # It began between two samples.
            begin = progress.index(rises.points[0][0]) - 1
            for account in held.accounts:
                begins[account] = begin
            slope, n_rises = _slope(progress[begin:], rises.points), len(rises.points)
            grown = sum(n_bytes for _, n_bytes in rises.points)
            found[line] = Leak(_label(names, line), line.frame, line.owner, slope, n_rises, grown, held.held, begin, 0)
        since = grown_since(profile, samples, end, begins) if found else []
        times = {line: allocations([since[account] for account in lines[line].accounts]) for line in found}
        return {line: leak for line, leak in found.items() if times[line] >= often}

    found = leaking(lines)
    # Lines that grow by little from each of many callers.
    known = {(line.frame, line.owner) for line in found}
    of_all_callers: Dict[_Line, Retained] = defaultdict(Retained)
    for line, held in lines.items():
        if line.caller and (line.frame, line.owner) not in known:
            of_all_callers[line._replace(caller=0)].add(held)
    found.update(leaking(of_all_callers))
    blocks = _blocks(profile, names, end, found)
    leaks = []
    for line, each in found.items():
        n_times = round(progress[-1] - progress[each.since]) if repeated else each.n_steps
        since = profile.snapshots[samples[each.since]].time
        leaks.append(each._replace(n_steps=n_times, since=since, blocks=blocks[line]))
    leaks.sort(key=lambda leak: (-leak.grown, leak.label, leak.owner))
    return Growth(leaks, step, n_steps)


# ---- still allocated at exit -------------------------------------------------------------------


class HeldAtEnd(NamedTuple):
    time: int
    snapshot: int  # index
    leaked: LiveBytesByAccount
    on_purpose: LiveBytesByAccount  # of the groups that keep it
    # Bytes that are not counted: "inherited", "suppressed", "imports", "interpreter".
    others: Dict[str, int]

    @property
    def bytes(self) -> int:
        return sum(n_bytes for n_bytes, _ in self.leaked.values())


def held_at_end(profile: Profile, names: Names) -> Optional[HeldAtEnd]:
    """None if the trace has no snapshot."""
    if not profile.snapshots:
        return None
    index = before_clean_up(profile)
    is_import = importing(profile, names)
    leaked: LiveBytesByAccount = {}
    on_purpose: LiveBytesByAccount = {}
    others = dict.fromkeys(("inherited", "suppressed", "imports", "interpreter"), 0)
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
            on_purpose[account] = held
        elif known[account]:
            others["suppressed"] += held[0]
        else:
            leaked[account] = held
    return HeldAtEnd(profile.snapshots[index].time, index, leaked, on_purpose, others)


class LeakedPlace(NamedTuple):
    label: str
    owner: str
    kind: str
    bytes: int
    blocks: int


def leaked_places(profile: Profile, names: Names, composition: LiveBytesByAccount) -> List[LeakedPlace]:
    """Python lines or, without one, the places that allocated; the largest first."""

    def key(account: int) -> Tuple[int, str, str]:
        node, kind, owner = profile.accounts[account]
        return (names.charged(account) or names.site_id(account)) if node else 0, owner, kind

    places = [
        LeakedPlace(names.frame(frame) if frame else NO_STACK, owner, kind, usage.bytes, usage.blocks)
        for (frame, owner, kind), usage in aggregate(profile, composition, key).items()
    ]
    return sorted(places, key=lambda place: (-place.bytes, place))


class NotCounted(NamedTuple):
    key: str  # "inherited", "suppressed", "imports", "interpreter", "cached", "runtime"
    bytes: int


def not_counted(profile: Profile, held: HeldAtEnd) -> List[NotCounted]:
    """Memory that is not counted as still allocated."""
    sums = dict(held.others, **dict.fromkeys(_ON_PURPOSE, 0))
    for account, (n_bytes, _) in held.on_purpose.items():
        sums[profile.group_of[profile.accounts[account].owner]] += n_bytes
    return [NotCounted(key, n_bytes) for key, n_bytes in sums.items() if n_bytes]
