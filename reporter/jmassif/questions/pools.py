# SPDX-License-Identifier: GPL-2.0-or-later
"""The pools of memory that a run drew on, each with its capacity: the machine's, a GPU's, a control group's limit."""

from typing import List, NamedTuple, Optional, Tuple

from jmassif.model.profile import Profile
from jmassif.questions.machine import total_memory

# From this share of its capacity on, a pool is the story whoever fills it.
NEARLY_FULL = 0.9
# As much may a device's total differ from the machine's where they are the same chips.
_SAME_CHIPS = 0.1


class Pool(NamedTuple):
    """Bytes."""

    name: str
    owner: str  # in words, in the genitive: "the machine's"
    sides: Tuple[str, ...]  # of what the program holds, those that lie in it
    capacity: int
    used: Optional[int]  # by everything, Valgrind too, when that was most; None: not known

    def inside(self, host: int, device: int) -> int:
        """Of what the program holds on either side, what lies in it."""
        return (host if "host" in self.sides else 0) + (device if "device" in self.sides else 0)

    def share(self, n_bytes: int) -> float:
        return n_bytes / self.capacity if self.capacity else 0.0

    @property
    def fullness(self) -> float:
        return 0.0 if self.used is None else self.share(self.used)


def _most_used(profile: Profile, total: str, free: str) -> Optional[int]:
    """The most that was in use, by two figures of the machine of which one is what is left."""
    times, values = profile.system.get(free, ((), ()))
    used = [(profile.system_at(total, time) or 0) - left for time, left in zip(times, values)]
    return max((n for n in used if n >= 0), default=None)


def _device(profile: Profile) -> Optional[Tuple[int, Optional[int]]]:
    """A device's capacity and what was in use of it, as the driver told when it was asked, or refused."""
    looks: List[Tuple[int, int]] = []
    if "device-total" in profile.system:
        used = _most_used(profile, "device-total", "device-free")
        looks.append((profile.system["device-total"][1][-1], used or 0))
    for event in profile.exhaustions.values():
        if "device-total" in event.figures:
            total = event.figures["device-total"]
            looks.append((total, max(0, total - event.figures.get("device-free", 0))))
    if not looks:
        return None
    return max(total for total, _ in looks), max(used for _, used in looks)


def _control_group(profile: Profile) -> Optional[Pool]:
    limits = profile.system.get("cgroup-limit", ((), ()))[1]
    if not limits:
        return None
    used = max(profile.system.get("cgroup-used", ((), ()))[1], default=None)
    sides = ("host",) if profile.is_discrete else ("host", "device")
    return Pool("the control group's limit", "the control group's limit of", sides, limits[-1], used)


def pools(profile: Profile) -> List[Pool]:
    """Those whose capacity the trace tells."""
    found = []
    machine = total_memory(profile)
    device = _device(profile)
    is_one = device is not None and machine and abs(device[0] - machine) <= _SAME_CHIPS * machine
    if device is not None and (profile.is_discrete or not is_one):
        found.append(Pool("device memory", "the GPU's", ("device",), *device))
    if machine:
        sides = ("host",) if profile.is_discrete else ("host", "device")
        used = _most_used(profile, "mem-total", "mem-available")
        found.append(Pool("memory", "the machine's", sides, machine, used))
    group = _control_group(profile)
    if group is not None and (not machine or group.capacity < machine):
        found.append(group)
    return found


def fullest(found: List[Pool], host: int, device: int) -> Optional[Pool]:
    """The pool that is nearly full, if one is, whoever fills it; else that of which the program holds the largest share."""

    def rank(pool: Pool) -> Tuple[float, float]:
        return (pool.fullness if pool.fullness >= NEARLY_FULL else 0.0, pool.share(pool.inside(host, device)))

    return max(found, key=rank) if found else None
