# SPDX-License-Identifier: GPL-2.0-or-later
"""Several traces as one: what the processes of a job held together.

Times are on the common clock (model/job.py).

A trace tells exact totals at its rows and, between two rows, the largest total only. So a sum over processes lies between
two bounds:

- at most: between two rows each process holds what its trace says it reached there;
- at least: what was freed between two snapshots, by each account and in all, is known; at worst it was freed before
  anything was allocated.

Memory that a fork shares is counted once; forks.py tells how.
"""

from typing import Dict, List, NamedTuple, Sequence, Tuple

from jmassif.model.job import Process, tree
from jmassif.model.profile import Profile
from jmassif.model.records import Composition
from jmassif.questions.inherited import fullest_of_own, sides_of
from jmassif.questions.job.curves import Curve, added, combined, steps, values_after, values_at
from jmassif.questions.job.forks import Left, Opening, left_of, let_go, opening_of
from jmassif.questions.job.held import told_of
from jmassif.questions.job.moments import compositions_at, moments_at


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
