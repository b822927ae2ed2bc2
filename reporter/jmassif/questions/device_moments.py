# SPDX-License-Identifier: GPL-2.0-or-later
"""Moments at which device memory is shown as it lies: those of moments.py, with their place among the records of blocks.

A peak knows its time only; which of that time's records it stands behind, segments.py finds out.
"""

from typing import NamedTuple, Optional

from jmassif.model.profile import Profile
from jmassif.model.records import Composition
from jmassif.questions.exhaustion import incidents
from jmassif.questions.moments import SelectionError, main_peak, select
from jmassif.questions.segments import position_of_peak


class DeviceMoment(NamedTuple):
    name: str
    time: int
    position: int  # rows of Profile.blocks before it
    composition: Optional[Composition]  # the ledger then, if it is known


def _event(profile: Profile, number: str) -> DeviceMoment:
    found = incidents(profile)
    if not number.isdecimal() or not 1 <= int(number) <= len(found):
        has = f"there are 1 to {len(found)}" if found else "there are none"
        raise SelectionError(f'no failed allocation "{number[:20]}": {has}')
    event = found[int(number) - 1].last
    composition = None if event.snapshot is None else profile.composition(event.snapshot)
    return DeviceMoment(f"failed allocation {number}", event.time, event.position, composition)


def select_device(profile: Profile, number: str, selector: Optional[str]) -> DeviceMoment:
    """The failed allocation with this number; without one what `selector` names, by default the device's peak.

    Raises SelectionError.
    """
    if number:
        return _event(profile, number)
    chosen = select(profile, selector or "peak-device")
    if chosen.snapshot is not None:
        return DeviceMoment(chosen.name, chosen.time, profile.snapshots[chosen.snapshot].position, chosen.composition)
    which = (selector or "peak-device")[len("peak-") :] or main_peak(profile)
    position = position_of_peak(profile, which) if which in profile.peaks else profile.blocks.n_rows
    return DeviceMoment(chosen.name, chosen.time, position, chosen.composition)
