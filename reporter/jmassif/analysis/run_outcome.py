# SPDX-License-Identifier: GPL-2.0-or-later
"""What happened to a run that did not go well: memory ran out, it was killed, its trace was cut, its recording stopped."""

from typing import List, NamedTuple, Optional, Tuple

from jmassif.analysis.oom import Incident, call
from jmassif.analysis.run_info import ending
from jmassif.analysis.system import was_short
from jmassif.attribution.names import Names
from jmassif.model.run import Profile
from jmassif.units import count, moment, printable, size


# How bad it is.
ALARM = "alarm"  # the run died of it, or may have
WARNING = "warning"
NOTE = "note"


class Happened(NamedTuple):
    severity: str
    text: str  # a sentence or more that are safe to show


class Failure(NamedTuple):
    """The last allocation that failed for good."""

    number: int  # among all incidents, from 1 on
    incident: Incident


def died(profile: Profile) -> bool:
    """The program was killed, or what became of it is not on record."""
    return (not profile.is_complete and not profile.is_running) or (
        profile.end is not None and profile.end.reason == "signal"
    )


def last_failure(found: List[Incident]) -> Optional[Failure]:
    """Of exhaustion.incidents; None if no allocation failed, or each one succeeded in the end."""
    failures = [Failure(number, one) for number, one in enumerate(found, 1) if not one.is_resolved]
    return failures[-1] if failures else None


def _out_of_memory(profile: Profile, names: Names, failure: Failure, n_failed: int) -> str:
    incident = failure.incident
    s, event = incident.situation, incident.last
    line = names.charged(event.account)
    where = names.frame(line) if line else ""
    if not where and profile.accounts[event.account].node:
        where = names.site_frame(event.account)
    asked = size(s.asked) if s.asked else "an unknown size"
    what = (
        f"{printable(call(profile, event))} of {asked} failed" if event.error else f"the framework gave up on {asked}"
    )
    missing = size(s.missing) if s.missing else ""
    short = f"; {missing} were missing" if missing and missing not in incident.reason else ""
    reason = incident.reason[:1].upper() + incident.reason[1:]
    when = moment(event.time, profile.time_unit)
    often = f", the last time of {n_failed}" if n_failed > 1 else ""
    return f"Out of memory at {when}{often}: {what}{f', asked for by {where}' if where else ''}{short}. {reason}"


def _after_failure(profile: Profile) -> Tuple[str, str]:
    """How bad it was that memory ran out, and a sentence on what came of it."""
    if died(profile):
        return ALARM, ""
    if profile.end is not None and profile.end.code:
        return ALARM, f" The program ended with exit status {profile.end.code}."
    return WARNING, " The program went on without it."


def _killed(profile: Profile) -> str:
    when = moment(profile.last_time, profile.time_unit)
    if profile.end is not None and profile.end.reason == "signal":
        return f"The program was {ending(profile)} after {when}."
    text = f"The trace ends after {when} without the program's end: it was killed then, or still runs."
    if profile.truncation:
        text = f"The trace is cut off after {when} ({printable(profile.truncation)}): what follows is what came before."
    return text


def _low_memory(profile: Profile) -> str:
    short = was_short(profile)
    if short is None:
        return ""
    left = profile.system_at("mem-available", profile.last_time)
    rest = f", and {size(left)} was available at last" if left is not None else ""
    return f" The machine's memory had run short at {moment(short, profile.time_unit)}{rest}: probably it was killed for that."


def happened(profile: Profile, names: Names, tried: List[Incident]) -> List[Happened]:
    """The worst first; nothing of a run that went well. `tried` is what exhaustion.incidents tells."""
    failure = last_failure(tried)
    found: List[Happened] = []
    if failure is not None:
        severity, rest = _after_failure(profile)
        n_failed = sum(not one.is_resolved for one in tried)
        found.append(Happened(severity, _out_of_memory(profile, names, failure, n_failed) + rest))
    if profile.was_dismissed and failure is None:
        when = moment(profile.last_time, profile.time_unit)
        found.append(Happened(NOTE, f"What had started the program ended it after {when} (SIGTERM), and went on."))
    elif died(profile):
        found.append(Happened(ALARM, _killed(profile) + ("" if failure else _low_memory(profile))))
    elif failure is None and profile.end is not None and profile.end.code:
        found.append(Happened(WARNING, f"The program ended with exit status {profile.end.code}."))
    if profile.manifest.get("stopped"):
        found.append(Happened(WARNING, f"Recording stopped early: {printable(profile.manifest['stopped'])}."))
    if tried and failure is None:
        n_retried = count(len(tried), "allocation")
        found.append(Happened(NOTE, f"{n_retried} failed for lack of memory and succeeded at a further try."))
    return found
