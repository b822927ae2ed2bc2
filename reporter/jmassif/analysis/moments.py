# SPDX-License-Identifier: GPL-2.0-or-later
"""The moments of a run that have a name: its peaks, its start and end, snapshots and marks."""

import re
from bisect import bisect_right
from typing import Dict, NamedTuple, Optional

from jmassif.model.records import ALLOCATED, LiveBytesByAccount
from jmassif.model.run import Profile
from jmassif.units import moment, printable


# ---- times ----
# Moments by the clock: "12.5s", "350ms", "40%", in traces of other units "3.2Mi" (instructions) or "64MiB".
#
# Holders are recorded at snapshots, and totals in between. So a time stands for the last snapshot that was
# taken by then.

_TIME = re.compile(r"(\d{1,15}(?:\.\d{0,9})?) ?(%|[a-zA-Z]+)", re.ASCII)

# Units that people write, by the trace's unit.
_SCALES: Dict[str, Dict[str, float]] = {
    "ms": {"ms": 1, "s": 1000, "min": 60000, "h": 3600000},
    "i": {"i": 1, "ki": 1e3, "Mi": 1e6, "Gi": 1e9, "Ti": 1e12},
    "B": {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40},
}
# Examples for messages.
EXAMPLES = {"ms": "12.5s", "i": "3.2Mi", "B": "64MiB"}


def time_named(text: str, time_unit: str, last: int) -> Optional[int]:
    """The time that a text names, on a clock of that unit that ends at `last`; None: it names none."""
    match = _TIME.fullmatch(text)
    if not match:
        return None
    number, unit = float(match.group(1)), match.group(2)
    if unit == "%":
        return int(number / 100 * last) if number <= 100 else None
    scale = _SCALES[time_unit].get(unit)
    return None if scale is None else int(number * scale)


def snapshot_by(profile: Profile, time: int) -> int:
    """The index of the last snapshot that was taken by then; of the first, before there was one."""
    return max(0, bisect_right([snapshot.time for snapshot in profile.snapshots], time) - 1)


# ---- moments ----

SELECTORS = ("peak", "peak-host", "peak-device", "peak-allocated", "start", "end", "last")


class SelectionError(Exception):
    """The trace does not have the moment that was asked for. The message says what it has."""


class Moment(NamedTuple):
    """One moment of the run and who held what then."""

    name: str  # "the peak", "snapshot 7"
    time: int
    composition: LiveBytesByAccount
    snapshot: Optional[int]  # index, where it is a snapshot


def whole_at(profile: Profile, at: Moment) -> int:
    """All bytes that were held at a moment, whatever of it is to be seen."""
    if at.snapshot is not None:
        snapshot = profile.snapshots[at.snapshot]
        return snapshot.host + snapshot.device
    return max((peak.host + peak.device for peak in profile.peaks.values() if peak.time == at.time), default=0)


def main_peak(profile: Profile) -> str:
    """The peak that "the peak" means. On a discrete GPU a sum of both pools says nothing: it is the device's there."""
    if profile.is_discrete:
        device = profile.peaks.get("device")
        return "device" if device and device.device else "host"
    return "total"


# At least this part of the memory before the program frees everything is still there at "the end".
_END_SHARE = 0.9
# The same of what a script's functions free as they return, beside the imports that stay.
_RETURN_SHARE = 0.98


def before_clean_up(profile: Profile) -> int:
    """The index of the last snapshot before an interpreter let go of all it held; of other programs, the last of all.

    A program that has grown beyond that without its interpreter has not ended with it. Pages of files do not count: much
    is touched for the first time on the way out.
    """
    totals = [profile.allocated_bytes(snapshot.by_kind) for snapshot in profile.snapshots]
    index = len(totals) - 1
    if profile.snapshots[index].reason in ("exit", "signal"):
        for earlier in range(index - 1, -1, -1):
            if profile.snapshots[earlier].reason == "end" and totals[earlier] >= totals[index]:
                return earlier
    return index


def last_before_the_fall(profile: Profile, before_return: bool = False) -> int:
    """Programs free their memory as they end, Python all of its modules: the last moment before that. `before_return`: also
    before a script's last functions have freed what they held.

    Pages of files do not count: nobody frees them, and of its parent's a forked child has fewer and fewer.
    """
    totals = [snapshot.host + snapshot.device - snapshot.by_kind.get("file", 0) for snapshot in profile.snapshots]
    index = before_clean_up(profile)
    share = _END_SHARE
    if profile.snapshots[index].reason != "exit":
        if not before_return:
            return index
        share = _RETURN_SHARE
    top = index
    while top and totals[top - 1] > totals[top]:
        top -= 1
    while totals[index] < share * totals[top]:
        index -= 1
    return index


# As many as a message can list.
_MAX_MARKS = 10
_MAX_MARK = 60  # characters


def _snapshot(profile: Profile, index: int, name: str) -> Moment:
    return Moment(name, profile.snapshots[index].time, profile.composition(index), index)


def mark_snapshots(profile: Profile) -> Dict[str, int]:
    """The index of the last snapshot of each mark that the program took one at, by its text."""
    return {mark.text: mark.snapshot for mark in profile.marks if mark.snapshot is not None}


def select(profile: Profile, selector: str) -> Moment:
    """The moment that `selector` names: one of SELECTORS, a snapshot's id, a mark, or a time. Raises SelectionError."""
    if not profile.snapshots:
        if selector in SELECTORS:
            return Moment("the start", 0, {}, None)
        raise SelectionError("the trace has no complete snapshot")
    if selector == "start":
        return _snapshot(profile, 0, "the start")
    if selector == "last":
        return _snapshot(profile, len(profile.snapshots) - 1, "the last snapshot")
    if selector == "end":
        return _snapshot(profile, last_before_the_fall(profile), "the end")
    if selector in SELECTORS:
        which = selector[len("peak-") :] or main_peak(profile)
        name = "the peak" if selector == "peak" else f"the {which} peak"
        if which == ALLOCATED and not profile.has_pages:
            which = "total"
        if which in profile.peaks:
            peak = profile.peaks[which]
            return Moment(name, peak.time, profile.peak_composition(which), None)
        # Killed before the record of the peak was first written.
        totals = [snapshot.host + snapshot.device for snapshot in profile.snapshots]
        return _snapshot(profile, totals.index(max(totals)), "the fullest snapshot")
    for index, snapshot in enumerate(profile.snapshots):
        if str(snapshot.id) == selector:
            return _snapshot(profile, index, f"snapshot {selector}")
    marks = mark_snapshots(profile)
    if selector in marks:
        return _snapshot(profile, marks[selector], f'the mark "{printable(selector[:_MAX_MARK])}"')
    time = time_named(selector, profile.time_unit, profile.last_time)
    if time is not None:
        index = snapshot_by(profile, time)
        found = profile.snapshots[index]
        return _snapshot(profile, index, f"snapshot {found.id}, the last by {moment(time, profile.time_unit)}")
    ids = [snapshot.id for snapshot in profile.snapshots]
    named = SELECTORS + tuple(f'"{text[:_MAX_MARK]}"' for text in list(marks)[:_MAX_MARKS])
    times = f"times such as {EXAMPLES[profile.time_unit]} or 40%"
    raise SelectionError(
        f'no snapshot "{selector}": there are {min(ids)} to {max(ids)}, {", ".join(named)}, and {times}'
    )
