# SPDX-License-Identifier: GPL-2.0-or-later
"""Moments by the clock: "12.5s", "350ms", "40%", in traces of other units "3.2Mi" (instructions) or "64MiB".

A trace tells who held what at its snapshots, and how much was held in between. So a time stands for the last snapshot that was
taken by then.
"""

import re
from bisect import bisect_right
from typing import Dict, Optional

from jmassif.model.profile import Profile

_TIME = re.compile(r"(\d{1,15}(?:\.\d{0,9})?) ?(%|[a-zA-Z]+)", re.ASCII)

# By the trace's unit: how many of it are one of the words that people write.
_SCALES: Dict[str, Dict[str, float]] = {
    "ms": {"ms": 1, "s": 1000, "min": 60000, "h": 3600000},
    "i": {"i": 1, "ki": 1e3, "Mi": 1e6, "Gi": 1e9, "Ti": 1e12},
    "B": {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40},
}
# What a message gives for an example.
EXAMPLES = {"ms": "12.5s", "i": "3.2Mi", "B": "64MiB"}


def time_of(profile: Profile, text: str) -> Optional[int]:
    """The time that a text names, in the trace's unit; None: it names none."""
    return time_named(text, profile.time_unit, profile.last_time)


def time_named(text: str, time_unit: str, last: int) -> Optional[int]:
    """Likewise, on a clock of that unit that ends at `last`."""
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
