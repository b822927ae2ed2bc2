# SPDX-License-Identifier: GPL-2.0-or-later
"""What a program does again and again, as it says itself: regions and marks whose name comes several times.

"epoch 1" and "epoch 2" are one name, and so is whatever differs in numbers only. Of regions that come often the recorder
tells every second, then every fourth, and so on; which ones these are follows from how many there were (docs/trace-format.md).
"""

import re
from bisect import bisect_right
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, TypeVar

from jmassif.model.profile import Profile
from jmassif.model.records import Mark, Region
from jmassif.units import printable

# Fewer tell nothing of what goes on: the first is the warm-up, and the last is cut short.
LEAST = 5
# Of one name as many are told as come; from there on half as many in each doubling of their number.
_ALL_TOLD = 256
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:\s*/\s*\d+)?")


class Repetitions(NamedTuple):
    name: str  # safe to show
    n: int
    # Columns: when so many of them were over. Neither decreases.
    times: Sequence[int]
    counts: Sequence[int]
    snapshots: Tuple[int, ...]  # indices of those taken at just this point of each; () if there are none

    def at(self, time: int) -> float:
        """How many were over then, with what part of the one under way."""
        after = bisect_right(self.times, time)
        if not after:
            return float(self.counts[0])
        if after == len(self.times):
            return float(self.counts[-1])
        passed = (time - self.times[after - 1]) / (self.times[after] - self.times[after - 1])
        return self.counts[after - 1] + passed * (self.counts[after] - self.counts[after - 1])

    def when(self, count: float) -> int:
        """When so many were over, at the latest."""
        after = bisect_right(self.counts, count)
        return self.times[min(after, len(self.times) - 1)]


def _pattern(text: str) -> str:
    return " ".join(_NUMBER.sub("", text).split()).rstrip(" :#=([-/") or text


def _told(n: int) -> List[int]:
    """The numbers, from 0, of the first `n` that the recorder tells."""
    found: List[int] = []
    number, step = 0, 1
    while len(found) < n:
        while number // step >= _ALL_TOLD:
            step *= 2
        found.append(number)
        number += step
    return found


_Event = TypeVar("_Event", Mark, Region)


def _by_name(events: Iterable[_Event]) -> Iterable[Tuple[str, List[_Event]]]:
    named: Dict[str, List[_Event]] = {}
    for event in events:
        named.setdefault(_pattern(event.text), []).append(event)
    return named.items()


def _of_regions(profile: Profile, until: int) -> List[Tuple[int, Repetitions]]:
    """With how deep they lie."""
    found = []
    for name, regions in _by_name(each for each in profile.regions if each.begin <= until):
        is_one_text = len({region.text for region in regions}) == 1
        numbers = _told(len(regions)) if is_one_text else list(range(len(regions)))
        times = [region.begin for region in regions]
        last = max(region.end if region.end is not None else until for region in regions)
        n = numbers[-1] + 1
        if is_one_text and regions[0].text in profile.region_sums:
            n = max(n, profile.region_sums[regions[0].text].calls)
        depth = min(region.depth for region in regions)
        found.append((depth, Repetitions(printable(name), n, times + [max(last, times[-1])], numbers + [n], ())))
    return found


def _of_marks(profile: Profile, until: int) -> List[Repetitions]:
    found = []
    for name, marks in _by_name(each for each in profile.marks if each.time <= until):
        snapshots = tuple(mark.snapshot for mark in marks if mark.snapshot is not None)
        times = [mark.time for mark in marks]
        at_marks = snapshots if len(snapshots) == len(marks) else ()
        found.append(Repetitions(printable(name), len(marks), times, list(range(len(marks))), at_marks))
    return found


def repetitions(profile: Profile, until: int) -> Optional[Repetitions]:
    """The outermost that came often enough up to that time; if none did what came most often; None if nothing came twice.

    Marks that stand beside regions are passed over only if they come less often than is enough.
    """
    found = [(0, each) for each in _of_marks(profile, until)] + _of_regions(profile, until)
    found = [(depth, each) for depth, each in found if each.n >= 2]
    if not found:
        return None
    enough = [(depth, each) for depth, each in found if each.n >= LEAST]
    if enough:
        # Where two are equally far out, one that has snapshots of its own is more exact.
        return min(enough, key=lambda row: (row[0], not row[1].snapshots, -row[1].n))[1]
    return max(found, key=lambda row: row[1].n)[1]
