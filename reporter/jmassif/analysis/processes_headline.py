# SPDX-License-Identifier: GPL-2.0-or-later
"""The moments of a job that have a name, on the clock that its processes have in common.

A time, a mark, and the end of the process that started the others are moments of all processes. What is of one process, its snapshots'
numbers above all, is named with it: "12-of-4711", "peak-of-4711".
"""

import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.analysis import run_outcome as story
from jmassif.analysis.aggregate import Ledger
from jmassif.analysis.headline import (
    HAPPENED,
    HELP,
    LEAK,
    PLACE,
    POOL,
    WHOSE,
    Headline,
    Statement,
    all_in_use,
    amount,
    capacity,
    headline,
    in_pool,
    pools_of,
    severity,
    whose,
)
from jmassif.analysis.hot_spot import Place, place_sentence, place_to_look
from jmassif.analysis.leaks import find_growth, growth_sentence
from jmassif.analysis.moments import EXAMPLES, Moment, SelectionError, mark_snapshots, select, snapshot_by, time_named
from jmassif.analysis.oom import incidents_of
from jmassif.analysis.processes import NamesOf, Peak, Processes, ledger_of, moments_at
from jmassif.analysis.run_info import used_sides
from jmassif.analysis.run_outcome import NOTE, WARNING
from jmassif.analysis.system import Pool, fullest, pools
from jmassif.attribution.names import Names
from jmassif.model.processes import REPLACED, Process
from jmassif.model.records import Composition
from jmassif.units import moment, printable, size


# ---- headline ----
# The headline of a job: the sum of its processes at their common peak, and in which of them to look first.

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
    return fullest(found, table.total.host_bytes, table.total.device_bytes)


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
    whole = table.total.on(side)
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


# ---- instants ----

_OF_ONE = re.compile(r"(.+)-of-(\d{1,19})", re.DOTALL | re.ASCII)
_PEAKS = {"peak": "", "peak-host": "host", "peak-device": "device"}
_MAX_MARKS = 10
_MAX_MARK = 60  # characters


class Instant(NamedTuple):
    name: str
    time: int  # on the common clock
    moments: Dict[int, Moment]  # by member that ran then: how its trace last told of it, on its own clock


def _main(job: Processes) -> int:
    """The member that the others come of, as it was last: exec may have made another program of it."""
    members = job.members

    def is_main(process: Process) -> bool:
        while process.parent is not None and process.relation == REPLACED:
            process = members[process.parent]
        return process.parent is None

    found = [index for index, process in enumerate(members) if is_main(process) and process.profile.snapshots]
    return max(found or range(len(members)), key=lambda index: members[index].end)


def _at(job: Processes, name: str, time: int, known: Dict[int, Moment]) -> Instant:
    """`known` are exact; of the others it is their last snapshot by then."""
    found = dict(known)
    for index, process in enumerate(job.members):
        profile = process.profile
        if index not in found and profile.snapshots and process.begin <= time <= process.end:
            place = snapshot_by(profile, time - process.offset)
            told = profile.snapshots[place]
            found[index] = Moment(f"snapshot {told.id}", told.time, profile.composition(place), place)
    return Instant(name, time, found)


def _of(job: Processes, index: int, selector: str) -> Instant:
    """A moment of one process."""
    process = job.members[index]
    found = select(process.profile, selector)
    name = f"{found.name} of process {process.pid}"
    return _at(job, name, max(process.begin, found.time + process.offset), {index: found})


def _mark(job: Processes, text: str) -> Optional[Instant]:
    """When any of them set it for the last time."""
    found: List[Tuple[int, int]] = []
    for index, process in enumerate(job.members):
        snapshot = mark_snapshots(process.profile).get(text)
        if snapshot is not None:
            found.append((process.profile.snapshots[snapshot].time + process.offset, index))
    return _of(job, max(found)[1], text) if found else None


def _pid(job: Processes, text: str) -> int:
    """The member. Raises SelectionError."""
    found = [index for index, process in enumerate(job.members) if str(process.pid) == text]
    if len(found) != 1:
        pids = ", ".join(str(process.pid) for process in job.members[:20])
        raise SelectionError(f'{"several processes are" if found else "no process is"} {text}: there are {pids}')
    return found[0]


def _instant(job: Processes, selector: str) -> Instant:
    marked = _mark(job, selector)
    if marked is not None:
        return marked
    of_one = _OF_ONE.fullmatch(selector)
    if of_one:
        return _of(job, _pid(job, of_one.group(2)), of_one.group(1))
    if selector == "start":
        return _at(job, "the start", min(process.begin for process in job.members), {})
    if selector in ("end", "last"):
        return _of(job, _main(job), selector)
    if selector in _PEAKS:
        measure = _PEAKS[selector] or main_measure(job)
        time = job.peak(measure).time
        name = f"the {'' if selector == 'peak' else f'{measure} '}peak of the sum"
        return Instant(name, time, moments_at(job.members, time, measure))
    time_ = time_named(selector, "ms", max(process.end for process in job.members))
    if time_ is not None:
        return _at(job, moment(time_, "ms"), time_, {})
    raise SelectionError(_unknown(job, selector))


def _unknown(job: Processes, selector: str) -> str:
    if selector.isdecimal():
        pid = job.members[0].pid
        return f'snapshot "{selector}" is of one process: name it with that, as {selector}-of-{pid}'
    marks = dict.fromkeys(text for process in job.members for text in mark_snapshots(process.profile))
    named = ["start", "end", "last", *_PEAKS] + [f'"{text[:_MAX_MARK]}"' for text in list(marks)[:_MAX_MARKS]]
    return (
        f'no moment "{printable(selector[:_MAX_MARK])}" of several processes: there are {", ".join(named)}, times such as'
        f" {EXAMPLES['ms']} or 40%, and those of one process, as end-of-{job.members[0].pid}"
    )


def instants(job: Processes, begin: str, end: str) -> Tuple[Instant, Instant]:
    """The two ends of a range, in their order. Raises SelectionError."""
    if job.no_clock:
        raise SelectionError(f"processes have no range in common, because {job.no_clock}: name one trace")
    if not any(process.profile.snapshots for process in job.members):
        raise SelectionError("the traces have no complete snapshot, so no range")
    first, second = _instant(job, begin), _instant(job, end)
    if first.time > second.time or _is_backwards(first, second):
        raise SelectionError(
            f'a range from "{begin}" to "{end}" goes backwards: {first.name} is not before {second.name}'
        )
    if first.time == second.time and _told(first) == _told(second):
        raise SelectionError(f'a range from "{begin}" to "{end}" is empty: both are {first.name}')
    return first, second


def _told(instant: Instant) -> Dict[int, Tuple[int, Optional[int]]]:
    return {index: (found.time, found.snapshot) for index, found in instant.moments.items()}


def _is_backwards(first: Instant, second: Instant) -> bool:
    """Of one time, snapshots tell."""
    for index in first.moments.keys() & second.moments.keys():
        one, other = first.moments[index], second.moments[index]
        if one.time > other.time:
            return True
        if one.snapshot is not None and other.snapshot is not None and one.snapshot > other.snapshot:
            return True
    return False
