# SPDX-License-Identifier: GPL-2.0-or-later
"""What was still growing when the program ended: which line, by how much each time, and since when.

What a line holds goes up and down; what counts is what *stays*: of each account at each moment, as much as it never again
holds less of until the end. That only rises, and a leak makes it rise again and again to the end, whatever comes and goes
beside it. So a line is growing if, over at least a third of the run after its imports,

- it rises from beginning to end, without a pause of three tenths of that time; a list made once, a warm-up, a cache that is
  full rise and then stay;
- that goes without any single rise that is half of it;
- in its last third it rises by no less than a fraction of what it rose by in the first, or it is a cache filling up;
- it has allocated as often as it takes to tell a habit: a buffer that was made anew a few times, larger each time, is none.

The run is measured in repetitions (repetitions.py) where the program tells any, else in time. Sampled pages of files and
stacks are no program's to free, and what imports leave is kept on purpose: neither counts.
"""

from array import array
from itertools import compress
from operator import add, and_
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from jmassif.model.kinds import KINDS, PAGE_KINDS, side_of
from jmassif.model.profile import Profile
from jmassif.questions.moments import select
from jmassif.questions.repetitions import LEAST, Repetitions, repetitions
from jmassif.questions.stays import Stayed, allocations, grown_since, stayed
from jmassif.units import count
from jmassif.whose.charges import Innermost
from jmassif.whose.folding import OWN
from jmassif.whose.names import Names

# Parts of the run.
_LEAST_WINDOW = 1 / 3
_LONGEST_PAUSE = 0.3
_BEGINNINGS = 16  # how many are tried
_LEAST_RISES = 4
# Of what has come in the window.
_LARGEST_RISE = 1 / 2
_SLOWED_DOWN = 0.3  # the last third against the first
# Of the usual distance between two rises: a longer pause before the end is an end of growing.
_USUAL_PAUSES = 3
_SHORT_PAUSE = 1 / 20  # of the window: it may pause so long in any case
_LAST = 1 / 10  # of the window
_LEAST_SAMPLES = 6
# What rises by less is not worth a reader's time, and Python's own small tables do.
_LEAST_BYTES = 8 << 10
_LEAST_SHARE = 0.0001  # of all that is held in the end
# Of all that imports allocate in the whole run: later ones, of a few small modules, are not waited for.
_IMPORTED = 0.99

_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"
NOT_FREED = ("file", "stack")  # kinds of pages


class Growing(NamedTuple):
    """A line that was still growing."""

    label: str  # the Python line or, without one, the place that allocated; safe to show
    frame: int  # likewise, its id
    owner: str
    bytes_per_step: float  # where Growth.step is "" by unit of time
    n_steps: int  # in which it grew; where Growth.step is "" how often it was seen to rise
    grown: int  # bytes, in these
    held: int  # bytes, at the end
    since: int  # time
    blocks: int  # that it held at the end; 0 where any of it are pages, which are no blocks of its own


class Growth(NamedTuple):
    lines: List[Growing]  # what grew most first
    step: str  # what the program repeats, by its name; "": it tells nothing of the kind, and time is all there is
    n_steps: int
    untold: str  # why nothing can be said; "": what is not in `lines` does not grow

    @property
    def grown(self) -> int:
        return sum(line.grown for line in self.lines)


def importing(profile: Profile, names: Names) -> bytearray:
    """By account, whether it is what an import left: the import system comes before any line of the program's own."""
    return names.once(_importing)


def _importing(profile: Profile, names: Names) -> bytearray:
    of_imports, own = set(), set()
    for id_, fields in profile.frames.items():
        if profile.strings[fields[3]] == _IMPORT_SYSTEM:
            of_imports.add(id_)
        elif fields[0] == "p" and names.folding.internal(id_).rank == OWN:
            own.add(id_)
    first = Innermost(profile, of_imports | own)
    return bytearray(first(account.node) in of_imports for account in profile.accounts)


def _started(profile: Profile, is_import: bytearray, end: int) -> int:
    """The index of the first snapshot that has nearly all of the imports' allocations behind it, or of a program without
    imports the last one before it allocates: until then its libraries are loaded.
    """
    is_sampled = {kind: profile.is_sampled(kind) for kind in ("",) + KINDS}
    exact = bytearray(not is_sampled[account.kind] for account in profile.accounts)
    imports = bytearray(map(and_, exact, is_import))
    allocated: Dict[int, int] = {}  # by account
    sums: List[int] = []
    so_far = 0
    idle = 0
    has_imports = any(imports)
    for index, snapshot in enumerate(profile.snapshots[: end + 1]):
        accounts = snapshot.changes.account
        if has_imports:
            rows = zip(accounts, snapshot.changes.all_bytes)
            for account, total_bytes in compress(rows, map(imports.__getitem__, accounts)):
                so_far += total_bytes - allocated.get(account, 0)
                allocated[account] = total_bytes
        idle = idle or (index if any(map(exact.__getitem__, accounts)) else 0)
        sums.append(so_far)
    return max(idle - 1, next(index for index, sum_ in enumerate(sums) if sum_ >= _IMPORTED * so_far))


# ---- whether it grows ------------------------------------------------------------------------


class _Rises(NamedTuple):
    """Of what one line holds, from a sample on."""

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
    if not points:
        return points
    largest = max(points, key=lambda point: point[1])
    if largest[1] > _LARGEST_RISE * sum(n_bytes for _, n_bytes in points):
        return [point for point in points if point is not largest]
    return points


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
        later = [point for point in points if point[0] > start]
        later = _without_outlier(later)
        if sum(n_bytes for _, n_bytes in later) < worth:
            return None
        rises = _Rises(start, end, later)
        if _is_steady(rises):
            return rises
    return None


def _slope(progress: Sequence[float], points: Sequence[Tuple[float, int]]) -> float:
    """Bytes by unit of progress: least squares through what stays.

    Without the very last, where there is enough before: what is held then only for a while cannot be told from what stays.
    """
    before = [place for place in progress if place <= progress[-1] - _LAST * (progress[-1] - progress[0])]
    progress = before if len(before) >= _LEAST_SAMPLES else progress
    rises: Dict[float, int] = {}  # several samples may lie at one place
    for place, n_bytes in points:
        rises[place] = rises.get(place, 0) + n_bytes
    total, line = 0, []
    for place in progress:
        total += rises.pop(place, 0)
        line.append((place, total))
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
    owner = profile.accounts[account].owner
    line = names.charged(account)
    if line:
        return _Line(line, 0, owner)
    node = names.site_node(account)
    return _Line(profile.node_frame[node], profile.node_frame[profile.node_parent[node]], owner)


def _label(names: Names, line: _Line) -> str:
    return names.frame(line.frame) + (f", from {names.frame(line.caller)}" if line.caller else "")


def _samples(profile: Profile, first: int, end: int, repeated: Optional[Repetitions]) -> List[int]:
    """Indices of the snapshots that are looked at."""
    if repeated and len(repeated.snapshots) >= LEAST:
        return [snapshot for snapshot in repeated.snapshots if snapshot <= end]
    if repeated:
        times = [snapshot.time for snapshot in profile.snapshots]
        # Pages are looked at in the end, however long ago that was.
        return [i for i in range(end) if repeated.times[0] <= times[i] <= repeated.times[-1]] + [end]
    return list(range(first, end + 1))


def _progress(profile: Profile, samples: Sequence[int], repeated: Optional[Repetitions]) -> List[float]:
    if repeated and repeated.snapshots:
        return [float(number) for number in range(len(samples))]
    times = [profile.snapshots[sample].time for sample in samples]
    return [repeated.at(time) for time in times] if repeated else [float(time) for time in times]


def _untold(profile: Profile, samples: Sequence[int], repeated: Optional[Repetitions]) -> str:
    """Why that cannot be told; "" if it can."""
    if repeated and repeated.n < LEAST:
        return f'"{repeated.name}" came {repeated.n} times only, and it takes {LEAST} to tell'
    least = LEAST if repeated and repeated.snapshots else _LEAST_SAMPLES
    if len(samples) < least:
        told = f"there are {count(len(profile.snapshots), 'snapshot')} only"
        if len(samples) < len(profile.snapshots):
            told = f"of {count(len(profile.snapshots), 'snapshot')} only {len(samples)} came after its start"
        return f"{told}, and it takes {least} to tell"
    return ""


class _Lines:
    """What stays of each line, and which of them grow."""

    def __init__(self, profile: Profile, names: Names, samples: Sequence[int], end: int) -> None:
        self._profile, self._names = profile, names
        self._samples, self._end = samples, end
        self._held: Dict[_Line, Stayed] = {}

    def walk(self, counts: Callable[[int], bool]) -> None:
        def line_of(account: int) -> Stayed:
            line = _line(self._profile, self._names, account)
            if line not in self._held:
                self._held[line] = _nothing()
            return self._held[line]

        stayed(self._profile, self._samples, self._end, counts, line_of)

    def growing(self, progress: Sequence[float], worth: float, often: int) -> Dict[_Line, Growing]:
        """`often` is what tells a habit."""
        found = self._growing(self._held, progress, worth, often)
        # What grows by little from each of many callers.
        told = {(line.frame, line.owner) for line in found}
        of_all_callers: Dict[_Line, Stayed] = {}
        for line, held in self._held.items():
            if line.caller and (line.frame, line.owner) not in told:
                _add(of_all_callers.setdefault(line._replace(caller=0), _nothing()), held)
        found.update(self._growing(of_all_callers, progress, worth, often))
        return found

    def _growing(
        self, lines: Mapping[_Line, Stayed], progress: Sequence[float], worth: float, often: int
    ) -> Dict[_Line, Growing]:
        found: Dict[_Line, Growing] = {}
        begins = array("i", [-1]) * len(self._profile.accounts)
        for line, held in lines.items():
            rises = _longest_growth(progress, held.rises, worth) if held.rises else None
            if rises is None:
                continue
            # It began between two samples.
            begin = progress.index(rises.points[0][0]) - 1
            for account in held.accounts:
                begins[account] = begin
            slope = _slope(progress[begin:], rises.points)
            grown = sum(n_bytes for _, n_bytes in rises.points)
            label = _label(self._names, line)
            found[line] = Growing(
                label, line.frame, line.owner, slope, len(rises.points), grown, held.held[0], begin, 0
            )
        if not found:
            return {}
        since = grown_since(self._profile, self._samples, self._end, begins)
        return {
            line: each
            for line, each in found.items()
            if allocations([since[account] for account in lines[line].accounts]) >= often
        }


def _nothing() -> Stayed:
    return Stayed(array("I"), [0], [])


def _add(to: Stayed, other: Stayed) -> None:
    to.accounts.extend(other.accounts)
    to.held[0] += other.held[0]
    to.rises[:] = map(add, to.rises, other.rises) if to.rises and other.rises else to.rises or other.rises


def _blocks(profile: Profile, names: Names, end: int, lines: Set[_Line]) -> Dict[_Line, int]:
    """How many each of these lines, which may be of any caller, held at the end."""
    found: Dict[_Line, int] = {}
    paged = set()
    for account, (n_bytes, blocks) in profile.composition(end).items():
        node, kind, _ = profile.accounts[account]
        if not (node and n_bytes and side_of(kind)):
            continue
        line = _line(profile, names, account)
        for each in lines & {line, line._replace(caller=0)}:
            found[each] = found.get(each, 0) + blocks
            if kind in PAGE_KINDS:
                paged.add(each)
    return {line: blocks for line, blocks in found.items() if line not in paged}


def find_growth(profile: Profile, names: Names) -> Growth:
    """What was still growing at the end. The headline, the sections and the budgets want to know."""
    return names.once(_find_growth)


def _find_growth(profile: Profile, names: Names) -> Growth:
    end = select(profile, "end").snapshot
    if end is None:
        return Growth([], "", 0, "the trace has no snapshot")
    accounts = profile.accounts
    is_import = importing(profile, names)
    repeated = repetitions(profile, profile.snapshots[end].time)
    samples = _samples(profile, _started(profile, is_import, end), end, repeated)
    step, n_steps = (repeated.name, repeated.n) if repeated else ("", 0)
    untold = _untold(profile, samples, repeated)
    if untold:
        return Growth([], step, n_steps, untold)

    known = profile.suppressed or bytearray(len(accounts))

    def counts(account: int) -> bool:
        node, kind, owner = accounts[account]
        if known[account]:
            return False
        # What a caching allocator reserves beyond what is in use grows on purpose.
        if profile.group_of.get(owner) == "cached":
            return False
        return bool(node) and side_of(kind) is not None and kind not in NOT_FREED and not is_import[account]

    progress = _progress(profile, samples, repeated)
    worth = max(_LEAST_BYTES, _LEAST_SHARE * (profile.snapshots[end].host + profile.snapshots[end].device))
    # Of repetitions that the program tells the first is none of growth.
    often = LEAST - 1 if repeated else LEAST
    lines = _Lines(profile, names, samples, end)
    lines.walk(counts)
    found = lines.growing(progress, worth, often)
    blocks = _blocks(profile, names, end, set(found))
    grown = []
    for line, each in found.items():
        times = round(progress[-1] - progress[each.since]) if repeated else each.n_steps
        since = profile.snapshots[samples[each.since]].time
        grown.append(each._replace(n_steps=times, since=since, blocks=blocks.get(line, 0)))
    grown.sort(key=lambda each: (-each.grown, each.label, each.owner))
    return Growth(grown, step, n_steps, "")
