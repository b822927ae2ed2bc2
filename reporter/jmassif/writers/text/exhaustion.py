# SPDX-License-Identifier: GPL-2.0-or-later
"""The sections on allocations that failed: the verdict first, its arithmetic, what would have helped, and who asked."""

from textwrap import wrap

from jmassif.model.profile import Profile
from jmassif.questions.exhaustion import Incident, call, incidents_of
from jmassif.questions.segments import layout_at
from jmassif.questions.situation import arithmetic
from jmassif.questions.verdict import FRAGMENTATION
from jmassif.units import count, moment, printable, size
from jmassif.whose.names import Names
from jmassif.writers.text.layout import FULL, PAGE, Extent, Lines, heading, paragraph
from jmassif.writers.text.segments import map_lines
from jmassif.writers.text.table import Column, Table

_SHOWN = 3
_FRAMES_SHOWN = 8
_INNERMOST_SHOWN = 2  # where there are Python frames as well
_SEGMENTS_SHOWN = 8
_OWNERS_SHOWN = 5
_LINES_SHOWN = 10

_ARITHMETIC = Table(Column("", 32, gap=2, align="<"), Column("", 10), Column("", gap=2))


def _of(incident: Incident) -> str:
    return size(incident.situation.asked) if incident.situation.asked else "an unknown size"


def _what(profile: Profile, incident: Incident) -> str:
    event = incident.tries[0]
    if not event.error:
        return f"The framework gave up on {_of(incident)}"
    times = {1: "", 2: " twice"}.get(len(incident.tries), f" {len(incident.tries)} times")
    of = _of(incident)
    if incident.situation.gathered and event.bytes:
        of = f"{size(event.bytes)}, of {of} in all,"
    return f"{printable(call(profile, event))} of {of} failed{times} (error {event.error})"


def _what_came(profile: Profile, incident: Incident) -> str:
    if incident.outcome == "retried":
        return f" After {size(incident.freed)} was given back it succeeded." if incident.freed else ""
    freed = f" {size(incident.freed)} was given back in between; that was not enough." if incident.freed else ""
    if incident.outcome == "raised":
        return f"{freed} The framework told the program that it is out of memory."
    is_last = incident.last.id == max(profile.exhaustions)
    died = is_last and (profile.end is None or profile.end.reason == "signal")
    return f"{freed} The program has no regular end on record." if died else freed


def _stack(profile: Profile, names: Names, account: int) -> Lines:
    """The innermost frames, and those of Python: between them lies what every call of a framework passes through."""
    stack = list(profile.stack(profile.accounts[account].node))
    python = [place for place, frame in enumerate(stack) if profile.frames[frame][0] == "p"]
    shown = list(range(_INNERMOST_SHOWN)) + python[:_FRAMES_SHOWN] if python else list(range(_FRAMES_SHOWN))
    lines = []
    before = -1
    for place in sorted(set(shown) & set(range(len(stack)))):
        if place > before + 1:
            lines.append(f"    … {count(place - before - 1, 'frame')}")
        text = names.frame(stack[place])
        lines.append(f"    {text if len(text) <= PAGE - 4 else text[: PAGE - 5] + '…'}")
        before = place
    if before + 1 < len(stack):
        lines.append(f"    … {count(len(stack) - before - 1, 'frame')}")
    return lines


def _section(profile: Profile, names: Names, number: int, incident: Incident, extent: Extent) -> Lines:
    s = incident.situation
    when = moment(incident.last.time, profile.time_unit)
    lines = heading(f"Out of memory ({number}), at {when}: {incident.verdict}")
    lines += paragraph(f"{_what(profile, incident)}. {incident.reason}{_what_came(profile, incident)}") + [""]
    for label, n_bytes, remark in arithmetic(s):
        lines.append(_ARITHMETIC.row(label, size(n_bytes), remark).rstrip())
    owners = sorted(s.by_owner.items(), key=lambda item: (-item[1], item[0]))
    held = ", ".join(f"{owner} {size(n_bytes)}" for owner, n_bytes in owners[:_OWNERS_SHOWN] if n_bytes)
    snapshot = incident.last.snapshot
    if held and snapshot is not None:
        more = f" (all of it: --snapshot={profile.snapshots[snapshot].id})"
        lines += [""] + paragraph(f"It held: {held}{', …' if len(owners) > _OWNERS_SHOWN else ''}{more}.")
    if incident.helps and extent is FULL:  # the headline of a short report has told them
        lines += ["", "Would have helped, by these numbers:"]
        for text in incident.helps:
            lines += wrap(text, PAGE, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
    if incident.verdict == FRAGMENTATION:
        lines.append("")
        lines += map_lines(profile, layout_at(profile, incident.last.position), None, extent.of(_SEGMENTS_SHOWN))
        lines.append(f"All segments: --segments={number}")
    line = names.charged(incident.last.account)
    lines += ["", f"Asked for by {names.frame(line)}:" if line else "Asked for by:"] + _stack(
        profile, names, incident.last.account
    )
    return lines


def _line(profile: Profile, number: int, incident: Incident) -> Lines:
    when = moment(incident.last.time, profile.time_unit)
    text = f"({number}) at {when}: {_what(profile, incident)}. {incident.reason}"
    return wrap(text, PAGE, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def exhaustion_sections(profile: Profile, names: Names, extent: Extent = FULL) -> Lines:
    """A section for each of the last failures that were not made good by a further try; a line for each of the others."""
    numbered = list(enumerate(incidents_of(profile, names), 1))
    if not numbered:
        return []
    most = _SHOWN if extent is FULL else 1
    failed = [row for row in numbered if not row[1].is_resolved][-most:]
    lines: Lines = []
    for number, incident in failed:
        lines += _section(profile, names, number, incident, extent)
    others = [row for row in numbered if row not in failed]
    n_untold = profile.counters.get("out-of-memory", 0) - sum(len(incident.tries) for _, incident in numbered)
    if not others and n_untold <= 0:
        return lines
    lines += heading("Also failed for lack of memory" if failed else "Failed for lack of memory, and then succeeded")
    most = _LINES_SHOWN if extent is FULL else 1
    for number, incident in others[-most:]:
        lines += _line(profile, number, incident)
    if len(others) > most:
        lines.append(f"and {len(others) - most:,} before these{extent.hint}")
    if n_untold > 0:
        lines.append(f"and {count(n_untold, 'more call')} that the trace only counts")
    return lines
