# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run has counted: what was odd, and what the kernel's driver keeps without saying how much memory that takes.

The latter is as it should be on any board, so it stands apart from what the recorder met and did not understand.
"""

from typing import Dict, List, NamedTuple, Tuple

from jmassif.model.profile import Profile

# By counter, what one of them is.
_WITHOUT_SIZE = {
    "driver-address-spaces": "GPU address space",
    "driver-channels": "GPU channel",
    "driver-rm-channels": "GPU channel",
    "driver-objects-without-size": "other object",
}

WITHOUT_SIZE = "Kept by the kernel's driver, which does not say how much memory it takes"


class Counted(NamedTuple):
    odd: List[Tuple[str, int]]  # counters by name; those that end in -bytes are of bytes
    without_size: List[Tuple[str, int]]  # what one is, as a noun, and how many there were when they were last told


def counted(profile: Profile) -> Counted:
    odd = []
    without: Dict[str, int] = {}
    for key, n in sorted(profile.counters.items()):
        if key in _WITHOUT_SIZE:
            without[_WITHOUT_SIZE[key]] = without.get(_WITHOUT_SIZE[key], 0) + n
        elif n:
            odd.append((key, n))
    return Counted(odd, [(noun, n) for noun, n in without.items() if n])
