# SPDX-License-Identifier: GPL-2.0-or-later
"""What one process held over time, between the rows of its trace too: bounds for one measure, from its snapshots."""

from array import array
from typing import List, NamedTuple, Tuple

from jmassif.model.job import Process
from jmassif.model.kinds import side_of
from jmassif.model.profile import Profile
from jmassif.model.rows import Changes
from jmassif.questions.job.curves import Curve, curve_of

# What a sum can be of: all memory, or one side's.
MEASURES = ("total", "host", "device")


class _Change(NamedTuple):
    """What happened between two snapshots, in bytes."""

    dip: int  # how far below the first one the sum may have been
    allocated: int
    freed: int


class Balances:
    """Walks the snapshots of a trace, and keeps each account's live and total bytes."""

    def __init__(self, profile: Profile, measure: str) -> None:
        self.live = array("Q", bytes(8 * len(profile.accounts)))
        self.total = array("Q", self.live)
        self.counts = [
            bool(side_of(account.kind)) and measure in ("total", side_of(account.kind)) for account in profile.accounts
        ]

    def apply(self, rows: Changes) -> "_Change":
        """Goes on by a snapshot's changes."""
        dip, freed, allocated = 0, 0, 0
        for account, live, total in zip(rows.account, rows.bytes, rows.all_bytes):
            if self.counts[account]:
                before = self.live[account]
                new = max(0, total - self.total[account])
                dip += before - min(before, max(0, live - new))
                allocated += max(new, live - before)
                freed += max(new, live - before) + before - live
            self.live[account] = live
            self.total[account] = total
        return _Change(dip, allocated, freed)


class Told(NamedTuple):
    """What a trace tells of one measure over time, on the common clock."""

    least: Curve
    most: Curve
    instants: List[Tuple[int, int]]  # (time, bytes), exact: the rows, and the peak
    rows: List[Tuple[int, int]]


def _values(profile: Profile, measure: str) -> List[int]:
    line = profile.timeline
    if measure == "total":
        return [host + device for host, device in zip(line.host, line.device)]
    return (line.host if measure == "host" else line.device).tolist()


def told_of(process: Process, measure: str) -> Told:
    profile = process.profile
    line = profile.timeline
    values = _values(profile, measure)
    known = profile.peaks.get(measure)
    ceiling = process.peak(measure)
    last_snapshot = profile.snapshots[-1].time if profile.snapshots else -1

    balances = Balances(profile, measure)
    spans: List[Tuple[int, int, _Change]] = []  # (time of the snapshot that ends it, bytes at the one before, change)
    level = 0
    for snapshot in profile.snapshots:
        spans.append((snapshot.time, level, balances.apply(snapshot.changes)))
        level = {"total": snapshot.host + snapshot.device, "host": snapshot.host, "device": snapshot.device}[measure]

    rows: List[Tuple[int, int]] = []  # (time, bytes)
    most: List[int] = []  # since the row before
    least: List[int] = []
    span = 0
    for time, value, maximum in zip(line.time, values, line.maximum):
        while span < len(spans) and spans[span][0] < time:
            span += 1
        is_covered = bool(profile.peaks) and time <= last_snapshot
        last_time, last_value = rows[-1] if rows else (time, value)
        # Of one side, the peak of that side is often closer than the largest sum of both.
        most.append(max(last_value, value, min(maximum, ceiling) if is_covered else maximum))
        floors = [value]
        for end, before, change in spans[span:] or [(time, 0, _Change(0, value, last_value))]:
            floors.append(max(0, before - change.dip, last_value - change.freed, value - change.allocated))
            # Within a millisecond any of the snapshots taken in it may have come first.
            if end > time or last_time < time:
                break
        least.append(min(floors))
        rows.append((time, value))
    told = [(time + process.offset, value) for time, value in rows]
    if known and any(time > known.time for time, _ in rows[1:]) and rows[0][0] <= known.time:
        after = next(index for index, (time, _) in enumerate(rows) if time > known.time)
        rows.insert(after, (known.time, ceiling))
        most.insert(after, max(most[after], ceiling))
        least.insert(after, least[after])
    instants = [(time + process.offset, value) for time, value in rows]
    if instants and process.end > instants[-1][0]:
        instants.append((process.end, instants[-1][1]))
        most.append(instants[-1][1])
        least.append(instants[-1][1])
        told.append(instants[-1])
    floor_curve = curve_of(instants, least[1:], min)
    for edge in (0, -1) if instants else ():
        floor_curve.at[edge] = 0  # in its first and last millisecond it was not always there
    return Told(floor_curve, curve_of(instants, most[1:], max), instants, told)
