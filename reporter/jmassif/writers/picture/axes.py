# SPDX-License-Identifier: GPL-2.0-or-later
"""The ticks of an axis: one unit for all of them, and steps that are round in it, as on the page (base/ticks.js)."""

import math
from typing import Dict, List, Tuple

Unit = Tuple[str, int]  # its name, and one of it in what the axis counts

_UNITS: Dict[str, List[Unit]] = {
    "B": [(name, 1024**i) for i, name in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))],
    "i": [(name, 1000**i) for i, name in enumerate(("i", "k i", "M i", "G i", "T i", "P i", "E i"))],
    "ms": [("ms", 1), ("s", 1000), ("min", 60000), ("h", 3600000)],
}
_FACTORS = (1, 2, 5)


def _unit_of(kind: str, least: float, most: float) -> Unit:
    """The largest unit of which the axis shows at least one, and in which its ticks need few digits."""
    fitting = [unit for unit in _UNITS[kind] if most >= unit[1] and (most - least) * 5 >= unit[1]]
    return (fitting or _UNITS[kind][:1])[-1]


def ticks(kind: str, least: float, most: float, wanted: int) -> List[Tuple[float, str]]:
    """(where, what stands there), at most about `wanted`; `kind` is "B", "i" or "ms"."""
    name, one = _unit_of(kind, least, most)
    steps = [factor * 10.0**power * one for power in range(-4, 7) for factor in _FACTORS]
    # Half a byte is none, nor is half a tick of the clock.
    step = next((each for each in steps if each >= 1 and (most - least) / each <= wanted), max(1.0, most - least))
    digits = max(0, -math.floor(math.log10(step / one) + 1e-6))
    first, last = math.ceil(least / step - 1e-9), math.floor(most / step + 1e-9)
    return [(n * step, f"{n * step / one:.{digits}f} {name}" if n else "0") for n in range(first, last + 1)]
