# SPDX-License-Identifier: GPL-2.0-or-later
"""What the processes of a job held at one moment of the common clock, each of them as its trace last told.

A trace tells all that its process held at its snapshots and peaks. Between them it holds what it held last, nothing before its
beginning, and nothing after its end. In one millisecond several processes may tell something, one after the other; then the
fullest of these moments stands for it. The page follows the same rule (findPeaks in runs/sum.js), so what it shows as the peak
is what the headline and the text tell of.
"""

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.model.job import Process
from jmassif.model.kinds import PEAKS
from jmassif.model.records import Composition
from jmassif.questions.inherited import bytes_on, own_of, sides_of
from jmassif.questions.moments import Moment


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
