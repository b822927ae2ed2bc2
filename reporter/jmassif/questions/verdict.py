# SPDX-License-Identifier: GPL-2.0-or-later
"""Why an allocation failed: a word for it, and a sentence or two with its numbers."""

from typing import List, Optional, Tuple

from jmassif.model.profile import Profile
from jmassif.model.records import Exhaustion
from jmassif.questions.situation import MIB, Situation
from jmassif.units import size

# Verdicts.
CACHE_BOUND = "cache"  # memory was free in a cache, and could be given back
FRAGMENTATION = "fragmentation"  # enough was free, in pieces of which none was large enough
OTHERS = "others"  # what else is on the board or the GPU holds more than this program
FULL = "full"
TOO_LARGE = "too large"  # for any run on this machine
LIMIT = "limit"  # one that was set, not the memory
REFUSED = "refused"  # although enough was free
UNKNOWN = "unknown"
# The driver takes device memory by pages of this size.
_DRIVER_PAGE = 2 * MIB
# Of what is reserved.
_FEW_HOLES = 0.1


def _shown(n_bytes: Optional[int]) -> str:
    return "an unknown number of bytes" if n_bytes is None else size(n_bytes)


def outside(profile: Profile, s: Situation) -> str:
    """What `others` are."""
    if s.side == "host" or not profile.is_discrete:
        return "everything else on this machine (other programs, the system, the driver, Valgrind)"
    return "everything else on the GPU (other programs, the driver)"


def _verdict_on_host(profile: Profile, s: Situation) -> Tuple[str, str]:
    asked = s.asked or 0
    if s.limit is not None and (s.free is None or s.free >= asked):
        known = f"{size(s.free)} of memory and swap were available, but " if s.free is not None else ""
        return LIMIT, f"{known}the address space is limited to {size(s.limit)} (ulimit -v), Valgrind's own included."
    if s.free is None:
        return UNKNOWN, "What was free is not known."
    if s.total is not None and asked > s.total + s.free:
        return TOO_LARGE, f"{size(asked)} is more than the machine has ({size(s.total)})."
    if s.free >= asked:
        return (
            REFUSED,
            f"{size(s.free)} of memory and swap were available: a limit, or the system's rules for overcommitment.",
        )
    return _full_or_others(profile, s)


def _full_or_others(profile: Profile, s: Situation) -> Tuple[str, str]:
    missing = _shown(s.missing)
    free = f"{size(s.free or 0)} was free"
    if s.gathered:
        free = f"After {size(s.gathered)} had been got in pieces, {free}"
    if s.cached + s.pool_unused:
        free += f" and {size(s.cached + s.pool_unused)} in caches"
    if s.others is not None and s.own is not None and s.others > s.own:
        return (
            OTHERS,
            f"{free}: {missing} too little. This program holds {size(s.own)}; {outside(profile, s)} {size(s.others)}.",
        )
    return FULL, f"{free}: {missing} too little. This program holds {_shown(s.own)}."


def _nearly_full(s: Situation) -> str:
    """Holes that are few and would have held the block, but not another one, are not what the program suffers from."""
    asked = (s.asked or 0) - s.gathered
    spare = (s.free or 0) + s.cached + s.pool_unused - asked
    if spare >= asked or s.cached > s.reserved * _FEW_HOLES:
        return ""
    return f" In one piece they would have held it and left {size(spare)}: the memory was nearly full."


def _verdict_on_device(profile: Profile, event: Exhaustion, s: Situation) -> Tuple[str, str]:
    where = "GPU" if profile.is_discrete else "board"
    if event.error == 0:
        free = f" The driver was not asked, which had {size(s.free)} free." if s.free else " The driver was not asked."
        return LIMIT, f"The framework keeps to a limit of its own (a fraction of the memory).{free}"
    if s.asked is None:
        free = "" if s.free is None else f" {size(s.free)} was free."
        return (FULL if s.free is not None else UNKNOWN), f"How much the call needs is not known.{free}"
    if s.total is not None and s.asked > s.total:
        return TOO_LARGE, f"{size(s.asked)} is more than the {where} has ({size(s.total)})."
    asked = s.asked - s.gathered
    to_return = s.returnable + s.pool_unused
    in_pieces = f"in {s.holes:,} hole{'' if s.holes == 1 else 's'}, the largest {size(s.largest_hole)}"
    if s.free is not None and s.free >= asked + _DRIVER_PAGE:
        return (
            REFUSED,
            f"The driver said that {size(s.free)} was free, and refused: it found no pages for it, or a limit.",
        )
    if to_return and (s.free or 0) + to_return >= asked:
        kept = f"{size(to_return)} of the cache held nothing and could have been given back"
        return CACHE_BOUND, f"{kept}; {_shown(s.free)} was free besides."
    if s.cached and (s.free or 0) + s.cached + s.pool_unused >= asked:
        free = "" if s.free is None else f", and {size(s.free)} outside"
        return FRAGMENTATION, (
            f"{size(s.cached)} of what is reserved was free{free}, but {in_pieces}. Of it, {size(s.returnable)} could be given back."
            f"{_nearly_full(s)}"
        )
    if s.free is None:
        return UNKNOWN, "What was free on the device is not known."
    return _full_or_others(profile, s)


def verdict_on(profile: Profile, tries: List[Exhaustion], outcome: str, freed: int, s: Situation) -> Tuple[str, str]:
    if outcome == "retried" and s.side == "device":
        if freed:
            return CACHE_BOUND, f"{size(freed)} was given back, and then it succeeded."
        return (
            _verdict_on_device(profile, tries[-1], s)[0],
            "It succeeded at the next try, with nothing freed by this program.",
        )
    return _verdict_on_device(profile, tries[-1], s) if s.side == "device" else _verdict_on_host(profile, s)
