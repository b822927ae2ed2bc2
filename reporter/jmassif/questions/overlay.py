# SPDX-License-Identifier: GPL-2.0-or-later
"""What another tool did show, by the log that the user gave (trace/overlay.py), beside what the ledger has."""

from typing import NamedTuple, Optional

from jmassif.model.profile import Profile
from jmassif.questions.ledger import ledger
from jmassif.questions.moments import Moment
from jmassif.questions.others import nearest
from jmassif.units import moment, size


class Beside(NamedTuple):
    """Bytes: what the tool showed nearest to the moment, and what the ledger held of the same memory."""

    time: int
    showed: int
    held: int


def beside(profile: Profile, chosen: Moment) -> Optional[Beside]:
    """None without a log."""
    overlay = profile.overlay
    if overlay is None:
        return None
    place = nearest(overlay.times, chosen.time)
    total = ledger(profile, chosen.composition).total
    if not profile.is_discrete:
        held = total.bytes
    else:
        held = total.device.bytes if overlay.is_of_device else total.host.bytes
    return Beside(overlay.times[place], overlay.values[place], held)


def overlay_at(profile: Profile, chosen: Moment) -> str:
    """In a sentence; "" without a log."""
    found = beside(profile, chosen)
    overlay = profile.overlay
    if found is None or overlay is None:
        return ""
    rest = found.showed - found.held
    text = f"{overlay.tool} showed {size(found.showed)} in use at {moment(found.time, profile.time_unit)}; the ledger explains"
    if rest < 0:
        return f"{text} {size(found.held)}, more than that: it was never touched, or came after the line."
    who = "contexts and other programs" if overlay.is_of_device else "Valgrind, the system and other programs"
    return f"{text} {size(found.held)}; the rest, {size(rest)}, is {who}."
