# SPDX-License-Identifier: GPL-2.0-or-later
"""The headline of a job: the sum of its processes at their common peak, and in which of them to look first."""

from typing import List, Optional, Sequence, Tuple

from jmassif.model.job import Process
from jmassif.model.records import Composition
from jmassif.questions import happened as story
from jmassif.questions.about import used_sides
from jmassif.questions.answer import amount, pools_of, whose
from jmassif.questions.exhaustion import incidents_of
from jmassif.questions.growth import find_growth
from jmassif.questions.happened import NOTE, WARNING
from jmassif.questions.headline import (
    HAPPENED,
    HELP,
    LEAK,
    PLACE,
    POOL,
    WHOSE,
    Headline,
    Statement,
    all_in_use,
    capacity,
    headline,
    in_pool,
    severity,
)
from jmassif.questions.job.names import NamesOf
from jmassif.questions.job.owners import ledger_of
from jmassif.questions.job.processes import Peak, Processes
from jmassif.questions.leaks import growth_sentence
from jmassif.questions.ledger import Ledger
from jmassif.questions.place import Place, place_sentence, place_to_look
from jmassif.questions.pools import Pool, fullest, pools
from jmassif.units import moment, printable, size
from jmassif.whose.names import Names

_MOST_LEAKS = 3
_MOST_HAPPENED = 3
_MOST_NAMED = 4  # processes
# Of what is in the sum and on no record less is not worth a sentence: bytes, and of the sum.
_LEAST_REST = 1 << 20
_LITTLE_REST = 0.1


def measures(job: Processes) -> List[str]:
    """What can be added up: all memory where the pools are one, else each pool."""
    used = {side for process in job.members for side in used_sides(process.profile)}
    sides = [side for side in ("host", "device") if side in used]
    return sides if job.is_discrete or len(sides) == 1 else ["total"]


def main_measure(job: Processes) -> str:
    """What the largest process, and the peak of the sum, are found by."""
    return measures(job)[-1]


def largest(job: Processes) -> Process:
    """The process that held most of its own: what a fork inherited is its parent's."""
    measure = main_measure(job)
    return max(job.members, key=lambda process: (job.own_peak(process, measure), process.peak(measure)))


def _of_the_largest(job: Processes, biggest: Process, measure: str) -> str:
    """Sentences on how much it held, and on what forks held beside what they inherited."""
    text = f"The largest is {called(biggest)}, with at most {size(biggest.peak(measure))}"
    own = job.own_peak(biggest, measure)
    text += f", {size(own)} of it its own." if own < biggest.peak(measure) else "."
    forks = [process for process in job.members if process.shares and process is not biggest]
    if forks:
        most = max(job.own_peak(process, measure) for process in forks)
        inherited = max(process.inherited_bytes for process in forks)
        the = "The other" if biggest.shares else "The"
        if len(forks) == 1:
            text += f" {the} fork, {called(forks[0])}, began with {size(inherited)} of its parent's;"
            return f"{text} of its own it held {size(most)} or more."
        text += f" {the} {len(forks)} forks began with up to {size(inherited)} of their parent's;"
        text += f" of their own the fullest held {size(most)} or more."
    return text


def bounds(peak: Peak) -> str:
    low, high = size(peak.at_least), size(peak.at_most)
    return low if low == high else f"{low} to {high}"


def called(process: Process) -> str:
    return f"process {process.pid}" if process.pid else printable(process.name)


def _listed(processes: Sequence[Process]) -> str:
    """ "process 2", "processes 2, 3 and 4", "processes 2, 3, 4 and 17 more" """
    named = [str(process.pid or printable(process.name)) for process in processes[:_MOST_NAMED]]
    left_out = len(processes) - len(named)
    last = f"{left_out} more" if left_out else named.pop()
    return f"process {last}" if not named else f"processes {', '.join(named)} and {last}"


def _is_dismissed(process: Process, names: Names) -> bool:
    """A worker that was ended when nobody needed it any more, and lacked nothing: that is no failure."""
    return process.profile.was_dismissed and not incidents_of(process.profile, names)


def dismissed(job: Processes, names: NamesOf) -> str:
    """A sentence on such workers; "" where there are none."""
    ended = [process for process in job.members if process.profile.was_dismissed]
    found = [process for process in ended if _is_dismissed(process, names(process))]
    if not found:
        return ""
    their = "its work" if len(found) == 1 else "their work"
    return f"What had started {_listed(found)} sent SIGTERM when {their} was done, and ended with exit status 0."


def _happened(job: Processes, names: NamesOf) -> List[Statement]:
    """The worst first."""
    found: List[Tuple[Process, Statement]] = []
    for process in job.members:
        profile, words = process.profile, names(process)
        if _is_dismissed(process, words):
            continue
        for each in story.happened(profile, words, incidents_of(profile, words)):
            name = called(process)
            text = f"{name[:1].upper()}{name[1:]}: {each.text}"
            found.append((process, Statement(HAPPENED, each.severity, text)))
    told: List[Statement] = []
    for severity_ in (story.ALARM, WARNING, NOTE):
        alike = [(process, statement) for process, statement in found if statement.severity == severity_]
        told += [statement for _, statement in alike[:_MOST_HAPPENED]]
        others = list(dict.fromkeys(process for process, _ in alike[_MOST_HAPPENED:]))
        if others:
            told.append(Statement(HAPPENED, severity_, f"The like is told of {_listed(others)}."))
    return told


def _leaks(job: Processes, names: NamesOf) -> List[Statement]:
    """Of the processes that grew most."""
    found = []
    for process in job.members:
        grown = find_growth(process.profile, names(process))
        if grown.lines:
            name = called(process)
            text = f"{name[:1].upper()}{name[1:]}: {growth_sentence(process.profile, grown)}"
            found.append((-grown.grown, Statement(LEAK, WARNING, text)))
    return [statement for _, statement in sorted(found, key=lambda row: row[0])][:_MOST_LEAKS]


def _fullest(job: Processes, table: Ledger) -> Optional[Pool]:
    """Of processes on one machine."""
    if len(job.machines) > 1:
        return None
    found = [pool for process in job.members for pool in pools(process.profile)]
    return fullest(found, table.total.host.bytes, table.total.device.bytes)


def _in_forks(job: Processes, peak: Peak, on_record: int) -> int:
    """What of the sum is in forks, but in nobody's composition: that leaves out what a fork inherited, as its parent's, also
    where the parent has let go of it, or the fork has put something else in its place. 0 where that is little."""
    rest = peak.at_least - on_record
    has_forks = any(process.shares for process in job.members)
    return rest if has_forks and rest >= max(_LEAST_REST, _LITTLE_REST * peak.at_least) else 0


def _place(names: NamesOf, held: Sequence[Tuple[Process, Composition]], side: str, whole: int) -> Optional[Place]:
    """The place that holds most in any of them, one of the user's own first; its share is of what all of them held."""
    found = []
    for process, composition in held:
        place = place_to_look(process.profile, names(process), composition, side)
        if place:
            of = f"their {side} memory" if side else "all they held"
            label = f"{place.label} in {called(process)}"
            found.append(place._replace(label=label, whole=whole, of=of))
    return max(found, key=lambda place: (place.is_yours, place.bytes)) if found else None


def _sum(job: Processes, pool: Optional[Pool], peak: Peak, side: str, table: Optional[Ledger] = None) -> Statement:
    n = len(job.members)
    of = f" of {side} memory" if side else ""
    n_bytes, part = peak.at_least, ""
    if table is not None and not side:
        # Of a pool that holds one side, the bounds of the sum tell nothing.
        inside, part = in_pool(pool, table.total, side)
        n_bytes = inside if part else n_bytes
    share = capacity(pool, n_bytes, part, "their") + "." + all_in_use(pool, n_bytes if part else peak.at_most)
    when = f"at the peak ({moment(peak.time, 'ms')})" if not job.no_clock else "at the most"
    text = f"Together these {n} processes held {bounds(peak)}{of} {when}{share}"
    return Statement(POOL, severity(pool, n_bytes), text)


def headline_of_job(job: Processes, names: Optional[Sequence[Names]] = None) -> Headline:
    """Of several processes. Without a clock that they have in common, the rest is about the largest of them.

    `names` are the members', for those who have them.
    """
    names_of = NamesOf(zip(job.members, names or ()))
    statements = _happened(job, names_of)
    measure = main_measure(job)
    # Memory of the host has no name where there is no other.
    side = measure if measure == "device" or len(measures(job)) > 1 else ""
    peak = job.peak(measure)
    biggest = largest(job)
    if job.no_clock:
        own = headline(biggest.profile, names_of(biggest))
        statements.append(_sum(job, None, peak, side))
        statements.append(Statement(POOL, NOTE, f"The largest is {called(biggest)}."))
        statements += own.about(POOL, WHOSE) + _leaks(job, names_of) + own.about(PLACE, HELP)
        return own._replace(statements=statements, held=peak.at_least, at_most=peak.at_most, incident=None)
    table = ledger_of(job, peak.time, measure)
    pool = _fullest(job, table)
    limit = pool if pool is not None and (not side or side in pool.sides) else None
    statements.append(_sum(job, limit, peak, side, table))
    statements.append(Statement(POOL, NOTE, _of_the_largest(job, biggest, measure)))
    for of in pools_of(table, job.is_discrete):
        text = whose(table, of)
        statements.append(
            Statement(WHOSE, NOTE, text.replace("Of that", f"Of the {amount(table, of)} on record then", 1))
        )
    whole = table.total.on(side).bytes if side else table.total.bytes
    in_forks = _in_forks(job, peak, whole)
    held = job.compositions(peak.time, measure, is_whole=in_forks > whole)
    if in_forks:
        text = f"Another {size(in_forks)} is in forks, of what they inherited or in its place."
        statements.append(Statement(WHOSE, NOTE, text))
        whole = peak.at_least
    statements += _leaks(job, names_of)
    found = _place(names_of, held, side, whole)
    if found:
        statements.append(Statement(PLACE, NOTE, place_sentence(found)))
    return Headline(statements, peak.time, "the peak", peak.at_least, peak.at_most, limit, found, None)
