# SPDX-License-Identifier: GPL-2.0-or-later
"""The headline of a run: what a reader wants to know in the first ten seconds, in the order in which it is asked.

What happened, if it did not go well; how much was held, of the pool that is fullest against its capacity; whose that is; what
kept growing; where to look first; and what would help, if the figures say that something would. All writers show the same statements.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from jmassif.analysis.aggregate import Ledger, Usage, ledger
from jmassif.analysis.balance import untouched_at
from jmassif.analysis.hot_spot import HotSpot, name_owners, place_sentence, hot_spot
from jmassif.analysis.inherited import inherited_at
from jmassif.analysis.leaks import find_growth, growth_sentence
from jmassif.analysis.moments import Moment, select
from jmassif.analysis.oom import Incident, incidents_of
from jmassif.analysis.run_info import ending
from jmassif.analysis.run_outcome import ALARM, NOTE, WARNING, Outcome, died, outcome_of
from jmassif.analysis.system import NEARLY_FULL, Pool, fullest, pools
from jmassif.attribution.names import Names
from jmassif.model.records import Composition
from jmassif.model.run import Profile
from jmassif.units import count, moment, percent, printable, size


# ---- answer ----
# Whose memory it is, in a sentence: what is yours, what is cached and not in use, then libraries and the runtime.

_WHOSE = {
    "yours": "yours",
    "cached": "cached and not in use",
    "libraries": "held by libraries",
    "runtime": "held by the runtime",
    "other": "of owners without a group",
}
# Less would be "0.0 %".
_LEAST_SHARE = 0.0005

NOTHING = "No memory is on record here."

# A pool's name, "" where both sides are one; and what a row has of it.
LedgerPool = Tuple[str, Callable[[Usage], int]]


def _shares(table: Ledger, bytes_of: Callable[[Usage], int]) -> str:
    """ "62.1 % is yours (tensor 1.20 GiB, app 3.00 MiB); 30.0 % is held by libraries (…)" """
    total = bytes_of(table.total)
    shares = []
    for group in table.groups:
        if bytes_of(group.usage) < _LEAST_SHARE * total:
            continue
        share = f"{percent(bytes_of(group.usage), total)} is {_WHOSE[group.name]}"
        named = sorted((o for o in group.owners if bytes_of(o.usage)), key=lambda owner: -bytes_of(owner.usage))
        if group.name != "cached":
            share += f" ({name_owners([(owner.name, bytes_of(owner.usage)) for owner in named])})"
        shares.append(share)
    return "; ".join(shares)


def pools_of(table: Ledger, is_discrete: bool) -> List[LedgerPool]:
    """What may be added up: all memory, or on a discrete GPU the device's and the host's; those that hold anything.

    Memory of the host has no name where there is no other.
    """
    sides: List[LedgerPool] = [("device", lambda usage: usage.device_bytes), ("host", lambda usage: usage.host_bytes)]
    used = [pool for pool in sides if pool[1](table.total)]
    is_apart = (is_discrete and len(used) > 1) or (used and not table.total.host_bytes)
    return used if is_apart else [("", lambda usage: usage.bytes)]


def amount(table: Ledger, pool: LedgerPool) -> str:
    """ "190 MiB of device memory", "233 MiB (43.0 MiB host + 190 MiB device)" """
    name, bytes_of = pool
    total = table.total
    if name or not total.device_bytes:
        return size(bytes_of(total)) + (f" of {name} memory" if name else "")
    return f"{size(total.bytes)} ({size(total.host_bytes)} host + {size(total.device_bytes)} device)"


def whose(table: Ledger, pool: LedgerPool) -> str:
    """A sentence on whose a pool's memory is."""
    name, bytes_of = pool
    of = f"Of its {name} memory" if name else "Of that"
    return f"{of} {_shares(table, bytes_of)}."


def answer(profile: Profile, names: Names, composition: Composition, table: Ledger) -> str:
    """Where the memory went at any moment, in words that are safe to show: how much, whose, and where to look."""
    if not table.total.bytes:
        return NOTHING
    texts = []
    for pool in pools_of(table, profile.is_discrete):
        texts.append(f"The program held {amount(table, pool)}: {_shares(table, pool[1])}.")
    first = pools_of(table, profile.is_discrete)[0]
    place = hot_spot(profile, names, composition, first[0])
    if place:
        texts.append(place_sentence(place))
    return " ".join(texts)


# ---- headline ----

# What a statement is about, in the order of the headline.
HAPPENED, POOL, WHOSE, LEAK, PLACE, HELP = "happened", "pool", "whose", "leak", "place", "help"

# Of its capacity: a pool of which less was in use is no reader's concern.
_WORTH_TELLING = 0.5


_OWNERS = {"machine": "the machine's", "gpu": "the GPU's", "cgroup": "the control group's limit of"}
_NAMES = {"machine": "memory", "gpu": "device memory", "cgroup": "the control group's limit"}


class Statement(NamedTuple):
    about: str  # one of the above
    severity: str  # happened.ALARM, WARNING or NOTE
    text: str  # a sentence or more, safe to show


class Headline(NamedTuple):
    statements: List[Statement]
    time: int  # of the moment that it is about
    name: str  # of that moment: "the peak"
    held: int  # bytes: what the first statement on a pool says that was held
    at_most: int  # likewise; more than `held` where a sum is known within bounds
    pool: Optional[Pool]  # the fullest; None where no capacity is known
    place: Optional[HotSpot]
    incident: Optional[int]  # the number of the failed allocation that it tells of

    def about(self, *abouts: str) -> List[Statement]:
        return [statement for statement in self.statements if statement.about in abouts]


def words(headline: Headline, *abouts: str) -> str:
    """The statements, all or those about something, one after the other."""
    return " ".join(each.text for each in (headline.about(*abouts) if abouts else headline.statements))


# ---- what happened -----------------------------------------------------------------------------


def _out_of_memory(incident: Incident, outcome: Outcome, time_unit: str) -> str:
    s, call = incident.situation, printable(incident.call)
    asked = size(s.asked) if s.asked else "an unknown size"
    what = f"{call} of {asked} failed" if incident.last.error else f"the framework gave up on {asked}"
    where = f", asked for by {incident.line}" if incident.line else ""
    short = f"; {size(s.missing)} were missing" if s.missing else ""
    often = f", the last time of {outcome.n_failed}" if outcome.n_failed > 1 else ""
    return f"Out of memory at {moment(incident.last.time, time_unit)}{often}: {what}{where}{short}."


def happened(profile: Profile, tried: List[Incident]) -> List[Tuple[str, str]]:
    """(severity, sentence) of a run that did not go well, the worst first."""
    outcome, unit = outcome_of(profile, tried), profile.time_unit
    when = moment(outcome.time, unit)
    found: List[Tuple[str, str]] = []
    if outcome.failed:
        text = _out_of_memory(tried[outcome.failed - 1], outcome, unit)
        if not outcome.is_fatal:
            text += " The program went on without it."
        elif outcome.end == "exit":
            text += f" The program ended with exit status {outcome.code}."
        found.append((ALARM if outcome.is_fatal else WARNING, text))
    if outcome.end == "dismissed" and not outcome.failed:
        found.append((NOTE, f"The program was ended by its parent after {when} (SIGTERM)."))
    elif outcome.end == "signal":
        found.append((ALARM, f"The program was {ending(profile)} after {when}."))
    elif outcome.truncation:
        found.append((ALARM, f"The trace is cut off after {when} ({printable(outcome.truncation)})."))
    elif died(profile):
        found.append((ALARM, f"The trace ends after {when} without the program's end: still running, or killed."))
    elif not outcome.failed and outcome.code:
        found.append((WARNING, f"The program ended with exit status {outcome.code}."))
    if found and outcome.short_at is not None and not outcome.failed and died(profile):
        found.append((ALARM, f"The machine ran short of memory at {moment(outcome.short_at, unit)}."))
    if outcome.stopped:
        found.append((WARNING, f"Recording stopped early: {printable(outcome.stopped)}."))
    if outcome.n_recovered and not outcome.failed:
        n = count(outcome.n_recovered, "allocation")
        found.append((NOTE, f"{n} failed for lack of memory and succeeded when retried."))
    return found


# ---- how much, of which pool -----------------------------------------------------------------


def _pool(profile: Profile, total: Usage) -> Optional[Pool]:
    """The fullest; None if it may well be one whose capacity is not known."""
    known = pools(profile)
    found = fullest(known, total)
    is_told = not (profile.is_discrete and total.device_bytes) or any("device" in pool.sides for pool in known)
    return found if found is not None and (is_told or found.fullness >= NEARLY_FULL) else None


def _order(table: Ledger, is_discrete: bool, pool: Optional[Pool]) -> List[LedgerPool]:
    """The pools of the ledger, that which the headline is about first."""
    found = pools_of(table, is_discrete)
    is_first = [of for of in found if pool is not None and pool.sides == (of[0],)]
    return is_first + [of for of in found if of not in is_first]


def in_pool(pool: Optional[Pool], total: Usage, of: str) -> Tuple[int, str]:
    """Of what is told, which is of the pool `of` of the ledger: the bytes in `pool`, and "device" if only those on it count."""
    if pool is None or of:
        return total.on(of) if of else total.bytes, ""
    n_bytes = pool.inside(total)
    return n_bytes, "" if n_bytes == total.bytes else " and ".join(pool.sides)


def capacity(pool: Optional[Pool], n_bytes: int, part: str = "", whose_part: str = "its") -> str:
    """ ", 0.5 % of the machine's 23.5 GiB"; where the pool holds but a part of it, "; its device memory is 95.0 % of …" """
    if pool is None:
        return ""
    begin = f"; {whose_part} {part} memory is" if part else ","
    return f"{begin} {percent(n_bytes, pool.capacity)} of {_OWNERS[pool.key]} {size(pool.capacity)}"


def all_in_use(pool: Optional[Pool], n_bytes: int) -> str:
    """A sentence on what everything held, where that is known, more than the program's own, and much."""
    if pool is None or pool.used is None or pool.used <= n_bytes or pool.fullness < _WORTH_TELLING:
        return ""
    besides = " and Valgrind" if "host" in pool.sides else ""
    return f" With everything else{besides}, at most {percent(pool.used, pool.capacity)} of it was in use."


def severity(pool: Optional[Pool], n_bytes: int) -> str:
    """Of holding so much of the pool."""
    is_full = pool is not None and max(pool.fullness, pool.share(n_bytes)) >= NEARLY_FULL
    return WARNING if is_full else NOTE


def _pools(profile: Profile, chosen: Moment, table: Ledger, pool: Optional[Pool]) -> List[Statement]:
    found = []
    when = f"at {chosen.name} ({moment(chosen.time, profile.time_unit)})"
    for number, of in enumerate(_order(table, profile.is_discrete, pool)):
        if number:
            found.append(Statement(POOL, NOTE, f"It also held {amount(table, of)}."))
            continue
        is_of_it = pool is not None and (not of[0] or of[0] in pool.sides)
        limit = pool if is_of_it else None
        n_bytes, part = in_pool(limit, table.total, of[0])
        share = f"{capacity(limit, n_bytes, part)}.{all_in_use(limit, n_bytes)}"
        text = f"The program held {amount(table, of)} {when}{share}"
        untouched = (
            untouched_at(profile, chosen, table.total.host_bytes if profile.is_discrete else table.total.bytes)
            if of[0] != "device"
            else 0
        )
        if untouched:
            text += f" About {size(untouched)} of it had been asked for and not touched, which takes no memory."
        found.append(Statement(POOL, severity(limit, n_bytes), text))
    return found


def _whose(table: Ledger, of: LedgerPool, before: List[Statement]) -> str:
    """Whose the memory is; what has been told of the machine, or of untouched memory, is not what "that" is."""
    text = whose(table, of)
    is_told_of_more = len(before) > 1 or ". " in before[0].text
    return text.replace("Of that", f"Of the {size(of[1](table.total))}", 1) if is_told_of_more else text


# ---- all of it -------------------------------------------------------------------------------


def headline(profile: Profile, names: Names, chosen: Optional[Moment] = None) -> Headline:
    """Of a process; at its peak, unless a moment is chosen."""
    return _headline(profile, names, chosen) if chosen else names.once(_at_peak)


def _at_peak(profile: Profile, names: Names) -> Headline:
    return _headline(profile, names, select(profile, "peak"))


def _headline(profile: Profile, names: Names, chosen: Moment) -> Headline:
    table = ledger(profile, chosen.composition)
    tried = incidents_of(profile, names)
    outcome = outcome_of(profile, tried)
    statements = [Statement(HAPPENED, *each) for each in happened(profile, tried)]
    total = table.total
    pool = _pool(profile, total)
    if not total.bytes:
        statements.append(Statement(POOL, NOTE, NOTHING))
        return Headline(statements, chosen.time, chosen.name, 0, 0, pool, None, outcome.failed)
    order = _order(table, profile.is_discrete, pool)
    told = _pools(profile, chosen, table, pool)
    own, looked_at = inherited_at(profile, chosen, order[0][0])
    if own:
        told[1:1] = [
            Statement(
                POOL,
                NOTE,
                f"At most {size(own.shared_bytes)} of it is inherited from process {printable(own.parent)}, and shared with it as long as neither writes there; at least {size(own.own_bytes)} is its own.",
            )
        ]
    statements += told
    statements += [Statement(WHOSE, NOTE, _whose(table, of, told)) for of in order]
    leak = growth_sentence(profile, find_growth(profile, names))
    statements += [Statement(LEAK, WARNING, leak)] if leak else []
    place = hot_spot(profile, names, looked_at, order[0][0], looked_at is not chosen.composition)
    if place:
        statements.append(Statement(PLACE, NOTE, place_sentence(place)))
    held = order[0][1](total)
    return Headline(statements, chosen.time, chosen.name, held, held, pool, place, outcome.failed)


def as_data(made: Headline) -> Dict[str, Any]:
    """What formats for programs, and the page, have of it."""
    pool, place = made.pool, made.place
    return {
        "time": made.time,
        "moment": made.name,
        "held": made.held,
        "at_most": made.at_most,
        "statements": [statement._asdict() for statement in made.statements],
        "pool": pool and {"name": _NAMES[pool.key], "capacity": pool.capacity, "used": pool.used},
        "place": place
        and {
            "label": place.label,
            "bytes": place.bytes,
            "whole": place.whole,
            "pool": place.pool,
            "is_yours": place.is_yours,
            "owners": [list(row) for row in place.owners],
        },
        "incident": made.incident,
    }
