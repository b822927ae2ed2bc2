# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine around the program, from the kernel's figures in the trace (docs/trace-format.md, "The machine")."""

from bisect import bisect_right
from typing import List, NamedTuple, Optional

from jmassif.model.profile import Profile


class Figure(NamedTuple):
    """Bytes; None where the machine does not tell."""

    label: str
    first: Optional[int]
    chosen: Optional[int]
    last: Optional[int]
    worst: int  # the least of what is free, the most of what is used
    worst_at: int  # time
    wants_much: bool  # it is something to have left


class History(NamedTuple):
    """A figure over time: from each time on, so many bytes."""

    label: str
    wants_much: bool
    is_of_process: bool  # of the recorded process alone
    times: List[int]  # when it changed
    values: List[int]
    beside: str = ""  # what it is to be seen beside: "both" sides' memory, or one's; "" for none

    def at(self, time: int) -> Optional[int]:
        place = bisect_right(self.times, time)
        return self.values[place - 1] if place else None


class _Row(NamedTuple):
    label: str
    figure: str
    minus: str  # another figure that is taken from it; or ""
    wants_much: bool
    is_of_process: bool = False


_ROWS = (
    _Row("available", "mem-available", "", True),
    _Row("largest free block", "largest-free", "", True),
    _Row("free in blocks of that size", "free-in-largest", "", True),
    _Row("swap in use", "swap-total", "swap-free", False),
    _Row("CMA free", "cma-free", "", True),
    _Row("NvMap in use", "nvmap-used", "", False),
    _Row("left of the control group's limit", "cgroup-limit", "cgroup-used", True),
    _Row("this process, with Valgrind", "process-resident", "", False, True),
    _Row("swapped out of it", "process-swapped", "", False, True),
)


def _value(profile: Profile, row: _Row, time: int) -> Optional[int]:
    value = profile.system_at(row.figure, time)
    if value is None or not row.minus:
        return value
    taken = profile.system_at(row.minus, time)
    return None if taken is None else max(0, value - taken)


def histories(profile: Profile) -> List[History]:
    """The figures that the machine has. Those that stay 0, such as swap where there is none, are left out."""
    found = []
    for row in _ROWS:
        changes = {t for name in (row.figure, row.minus) if name in profile.system for t in profile.system[name][0]}
        told = [(t, value) for t in sorted(changes) for value in [_value(profile, row, t)] if value is not None]
        if any(value for _, value in told):
            times, values = ([pair[place] for pair in told] for place in (0, 1))
            found.append(History(row.label, row.wants_much, row.is_of_process, times, values))
    if profile.overlay is not None:
        overlay = profile.overlay
        side = "both" if not profile.is_discrete else "device" if overlay.is_of_device else "host"
        found.append(History(f"{overlay.tool} showed in use", False, False, overlay.times, overlay.values, side))
    return found


def machine(profile: Profile, time: int) -> List[Figure]:
    """The figures that the machine has, at the start, at `time`, at the end, and when they were worst."""
    figures = []
    for history in histories(profile):
        values = history.values
        worst = (min if history.wants_much else max)(values)
        worst_at = history.times[values.index(worst)]
        chosen = history.at(time)
        figures.append(Figure(history.label, values[0], chosen, values[-1], worst, worst_at, history.wants_much))
    return figures


# Which of a source's figures tells that it was used; a figure that has to be missing as well, or "".
_SOURCES = (
    ("/proc/meminfo", "mem-total", ""),
    ("/proc/buddyinfo", "largest-free", ""),
    ("/proc/self/status", "process-resident", ""),
    ("/proc/self/smaps", "resident", ""),
    ("/sys/kernel/debug/nvmap", "nvmap-used", "nvmap-free"),
    ("the control group", "cgroup-limit", ""),
    ("cuMemGetInfo", "device-free", ""),
)


def sources(profile: Profile) -> List[str]:
    """Where the machine's figures come from: what the recorder found when it looked for them."""
    told = profile.system
    return [source for source, figure, missing in _SOURCES if figure in told and missing not in told]


def total_memory(profile: Profile) -> Optional[int]:
    times = profile.system.get("mem-total")
    return times[1][-1] if times else profile.number("mem-total-bytes")


def was_short(profile: Profile) -> Optional[int]:
    """When the recorder first found memory short; None if it never did."""
    return next((snapshot.time for snapshot in profile.snapshots if snapshot.reason == "low-memory"), None)
