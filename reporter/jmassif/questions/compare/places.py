# SPDX-License-Identifier: GPL-2.0-or-later
"""The one line that accounts for most of a difference, where there is one.

A function is the same in two runs by its name. Its lines move with every edit above them, and mostly together: so the lines of
the first run are moved by the distance at which most of them meet lines of the last, before they are compared.
"""

import sys
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.model.kinds import side_of
from jmassif.model.profile import Profile
from jmassif.model.records import Composition
from jmassif.questions.compare.breakdown import PartFigures, frame_name, median
from jmassif.questions.place import lines_to_blame
from jmassif.whose.names import Names


class Spot(NamedTuple):
    """What one line of a function holds."""

    label: str  # safe to show
    host: int  # bytes, as is the next
    device: int

    @property
    def figures(self) -> PartFigures:
        return PartFigures(self.host, self.device)


# By function, as frame_name calls it, and line; 0 where lines are not known.
Places = Dict[str, Dict[int, Spot]]
_Lines = Dict[int, int]  # bytes by line
_Pick = Callable[[PartFigures], int]


def places_of(profile: Profile, names: Names, composition: Composition) -> Places:
    """By the Python line to blame or, without Python, the frame: as jm_print's headline has it."""
    found: Places = {}
    to_blame = lines_to_blame(names)
    called: Dict[int, Tuple[str, str]] = {}
    for account, (n_bytes, _) in composition.items():
        node, kind, _ = profile.accounts[account]
        side = side_of(kind)
        if not node or not side or not n_bytes:
            continue
        frame = to_blame[account] or names.site_id(account)
        if frame not in called:  # runs of one program have nearly all of them in common
            called[frame] = sys.intern(frame_name(profile, names, frame)), sys.intern(names.frame(frame))
        function, label = called[frame]
        lines, line = found.setdefault(function, {}), profile.frame(frame).line
        _, host, device = lines.get(line) or (label, 0, 0)
        lines[line] = Spot(label, host + n_bytes, device) if side == "host" else Spot(label, host, device + n_bytes)
    return found


class Moved(NamedTuple):
    """A line, or a function of which no one line does, that holds more than before, or less, in bytes."""

    label: str
    is_line: bool
    before: int
    now: int

    @property
    def change(self) -> int:
        return self.now - self.before


def _lines_of(runs: Sequence[Places], function: str, of: _Pick) -> _Lines:
    """The medians of some runs."""
    found = [run.get(function, {}) for run in runs]
    lines = {line for run in found for line in run}
    return {line: median([of(run[line].figures) if line in run else 0 for run in found]) for line in lines}


def _sum_of(runs: Sequence[Places], function: str, of: _Pick) -> int:
    return median([sum(of(spot.figures) for spot in run.get(function, {}).values()) for run in runs])


# Of a function: so many of its largest lines tell how far all have moved.
_MOST_LINES = 50


def _distance(before: _Lines, now: _Lines) -> int:
    """By how many lines those of the first runs have moved."""
    if before.keys() <= now.keys() or now.keys() <= before.keys():
        return 0

    def fit(distance: int) -> Tuple[int, int, int, int]:
        met = [line for line in before if line + distance in now]
        alike = sum(before[line] == now[line + distance] for line in met)
        return len(met), alike, -abs(distance), distance

    largest = sorted(before, key=lambda line: -before[line])[:_MOST_LINES]
    to = sorted(now, key=lambda line: -now[line])[:_MOST_LINES]
    return max(fit(distance) for distance in {there - line for line in largest for there in to})[3]


def _label(runs: Iterable[Places], function: str, line: int) -> Optional[str]:
    return next((run[function][line].label for run in runs if line in run.get(function, {})), None)


def most_moved(first: Sequence[Places], last: Sequence[Places], of: _Pick, sign: int, least: float) -> Optional[Moved]:
    """What has grown most (of `sign` -1: shrunk) from the first runs to the last, in bytes of a pool; None if by no more than `least`."""
    functions = {function: None for run in [*last, *first] for function in run}
    sums = {function: (_sum_of(first, function, of), _sum_of(last, function, of)) for function in functions}
    best = max(sums, key=lambda function: sign * (sums[function][1] - sums[function][0]), default=None)
    if best is None or sign * (sums[best][1] - sums[best][0]) <= least:
        return None
    now = _lines_of(last, best, of)
    before = _lines_of(first, best, of)
    distance = _distance(before, now)
    before = {line + distance: n_bytes for line, n_bytes in before.items()}
    line = max({**before, **now}, key=lambda line: sign * (now.get(line, 0) - before.get(line, 0)))
    found = Moved("", True, before.get(line, 0), now.get(line, 0))
    label = _label(last, best, line) or _label(first, best, line - distance)
    if label is None or sign * found.change <= least:
        return Moved(best, False, *sums[best])
    return found._replace(label=label)
