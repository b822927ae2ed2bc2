# SPDX-License-Identifier: GPL-2.0-or-later
"""The sentences of a report: the verdict, notes on how the run ended, and at most three findings.

A finding has a line of code where one is known, and an action only where the trace proves it. What the rows below show is not
repeated.
"""

import os
import re
from typing import List, NamedTuple, Optional, Sequence, Tuple

from jmassif.analysis.inherited import Inherited
from jmassif.analysis.leaks import Growth, Keeper, Leak
from jmassif.analysis.lines import Imports
from jmassif.analysis.oom import ALARM, NO_MEMORY, NOTE, WARNING, Hint, Incident, Outcome
from jmassif.analysis.summary import Report
from jmassif.model import run_info
from jmassif.model.run import Profile
from jmassif.render import words
from jmassif.render.layout import cut
from jmassif.units import count, moment, printable, size

_MOST_FINDINGS = 3
# Share of its capacity: a machine that is less full matters on boards alone.
_WORTH_TELLING = 0.1
_NEARLY_FULL = 0.9
# Share of the program: a smaller part is no finding.
_LEAST_IMPORTED = 0.25
_LEAST_TWICE = 0.02
# Peaks of loading and of the time since: they are about the same if neither is reached.
_LEAST_APART = 16 << 20
_LEAST_SHARE_APART = 0.1
_MAX_STEP = 30
_NEARLY_EQUAL = 1.1  # the largest block to the mean
# Share of the peak: what a program has not freed when it ends.
_LEAST_NOT_FREED = 0.01
_LEAST_LOWERED = 0.05
_SMALL_GROWTH = 0.001
_OUTWEIGHS = 100  # times what grew: what returns more comes before it


def whole_percent(part: int, whole: int) -> str:
    """ "54 %", "under 1 %" """
    share = 100 * part / whole if whole else 0.0
    return f"{share:.0f} %" if share >= 0.5 or not part else "under 1 %"


# ---- the verdict -----------------------------------------------------------------------------


def ending(outcome: Outcome) -> str:
    return run_info.ending(outcome.end, outcome.code)


def of_pool(report: Report, n_bytes: int) -> str:
    """ " of the board's 4.00 GiB": the fullest of the pools that hold all that the verdict counts."""
    space = report.wholes[0].space
    counted = {space} if space else set(report.run.sides)
    known = [report.pool] + report.pools if report.pool else []
    pool = next((pool for pool in known if counted <= set(pool.sides)), None)
    if pool is None:
        return ""
    is_concern = report.run.is_board or pool.key != "machine"
    if not is_concern and max(pool.fullness, pool.share(n_bytes)) < _WORTH_TELLING:
        return ""
    return f" of {words.pool_owner(pool.key, report.run.is_board)} {size(pool.capacity)}"


def missing(incident: Incident) -> str:
    """Why the request failed, after "cudaMalloc of 400 MiB"."""
    s = incident.situation
    if incident.verdict == "too large":
        return f"is more than there is ({size(s.total or 0)})"
    if incident.verdict == "fragmentation":
        return f"found {size(s.cached)} of cache in {count(s.holes, 'hole')}, the largest {size(s.largest_hole)}"
    if incident.verdict == "cache" and s.returnable + s.pool_unused:
        return f"failed with {size(s.returnable + s.pool_unused)} of empty cache"
    if incident.verdict == "limit":
        if s.granted is not None:
            return f"exceeded the {size(s.granted)} that NvMap grants"
        return (
            f"exceeded ulimit -v ({size(s.limit)})"
            if s.side == "host" and s.limit
            else "exceeded the framework's limit"
        )
    if incident.verdict == "refused":
        return f"was refused with {size(s.free or 0)} free"
    return f"was {size(s.missing)} short" if s.missing else "failed"


def request(incident: Incident) -> str:
    """ "cudaMalloc of 400 MiB at train.py:147 (f)" """
    s = incident.situation
    call = printable(incident.call) if incident.last.error else "the framework's request"
    where = f" at {incident.line}" if incident.line else ""
    return f"{call}{f' of {size(s.asked)}' if s.asked else ''}{where}"


def verdict(report: Report) -> str:
    """The first line. Without the command, which could be read as a part of it."""
    unit, end = report.run.time_unit, ending(report.outcome)
    if report.failure is not None:
        when = moment(report.failure.last.time, unit)
        return f"OUT OF MEMORY at {when}: {request(report.failure)} {missing(report.failure)}; {end}"
    if not report.peak.bytes:
        return f"No memory on record; {end}"
    space = f" of {report.wholes[0].space} memory" if report.wholes[0].space else ""
    when = moment(report.peak.time, unit)
    return f"Peak {size(report.peak.bytes)}{space}{of_pool(report, report.peak.bytes)}, after {when}; {end}"


class Remark(NamedTuple):
    severity: str  # ALARM, WARNING or NOTE
    text: str


def remarks(report: Report) -> List[Remark]:
    """On a run that did not go well, below the verdict; the worst first."""
    outcome, unit, pool = report.outcome, report.run.time_unit, report.pool
    found: List[Remark] = []

    def remark(severity: str, text: str) -> None:
        found.append(Remark(severity, text))

    if report.failure is not None:
        if outcome.n_failed > 1:
            is_last = all(each.is_resolved for each in report.out_of_memory[outcome.failed or 0 :])
            remark(NOTE, f"{'The last' if is_last else 'One'} of {outcome.n_failed} requests that failed.")
    elif outcome.severity == ALARM and outcome.short_at is not None:
        left = f" and had {size(outcome.available)} available at the end" if outcome.available is not None else ""
        short = moment(outcome.short_at, unit)
        remark(ALARM, f"The machine ran short of memory at {short}{left}: probably killed for that.")
    if run_info.unseen_heap(report.profile) == run_info.STATIC:
        remark(WARNING, f"The heap was {run_info.STATIC}: only its pages are counted, and its leaks are unknown.")
    if outcome.truncation:
        remark(WARNING, f"The trace is cut off: {printable(outcome.truncation)}. This is what came before.")
    if outcome.stopped:
        remark(WARNING, f"Recording stopped early: {printable(outcome.stopped)}.")
    if outcome.failed and report.failure is None:
        incident = report.out_of_memory[outcome.failed - 1]
        when = moment(incident.last.time, unit)
        what = request(incident)
        what = what if incident.last.error else what[:1].upper() + what[1:]  # a function keeps its name
        remark(WARNING, f"{what} failed at {when}: it {missing(incident)}. The program went on.")
    elif outcome.n_recovered and not outcome.failed:
        n = count(outcome.n_recovered, "allocation")
        remark(NOTE, f"{n} failed for lack of memory and succeeded when retried.")
    if pool is not None and pool.fullness >= _NEARLY_FULL and report.failure is None:
        owner = words.pool_owner(pool.key, report.run.is_board)
        besides = ", the profiler included" if "host" in pool.sides else ""
        full = whole_percent(pool.used or 0, pool.capacity)
        remark(WARNING, f"At most {full} of {owner} {size(pool.capacity)} was in use{besides}.")
    return found


def other_moment(report: Report) -> str:
    """The moment of the figures, where that is not the peak; "" at the peak."""
    if report.moment.is_peak or not report.peak.bytes:
        return ""
    unit = report.run.time_unit
    when = "" if report.is_of_failure else f", {moment(report.moment.time, unit)}"
    peak = f"the peak, {size(report.peak.bytes)}, was at {moment(report.peak.time, unit)}"
    return f"All figures below are of {report.moment.name}{when}; {peak}."


def filtered(report: Report) -> str:
    """The share of a report on a part of the memory; "" of a whole one."""
    part = report.filter
    if part is None:
        return ""
    share = f"{size(part.bytes)}, {whole_percent(part.bytes, part.of_bytes)} of {size(part.of_bytes)} at {report.moment.name}"
    return f"Filtered by {printable(part.options)}: {share}."


# ---- findings --------------------------------------------------------------------------------


class Finding(NamedTuple):
    # Its subject: the action of a hint, "growth", "held-twice", "loading", "holds-most", "imports", "not-freed", "copied",
    # "resident", "arenas", "inherited", "nothing".
    key: str
    bytes: int  # that acting on it returns; 0: it has no action
    text: str
    to_do: str = ""  # the end of the text
    line: Optional[Leak] = None
    callers: Sequence[str] = ()  # of its line, the nearest first


def _of_it(report: Report) -> str:
    space = report.wholes[0].space
    return f"of its {space} memory" if space else "of the peak" if report.moment.is_peak else "of it"


def _of_group(report: Report, name: str) -> int:
    """Bytes in the memory space that findings are about."""
    return sum(group.usage.on(report.wholes[0].space) for group in report.ledger.groups if group.name == name)


def _cached(report: Report) -> str:
    cached = _of_group(report, "cached")
    by = "PyTorch, holding no tensor" if report.run.is_pytorch else "an allocator, unused"
    share = whole_percent(cached, report.wholes[0].bytes)
    text = f"{share} {_of_it(report)}, {size(cached)}, is allocator cache: reserved by {by}."
    cause = report.cache_cause
    if cause is None:
        return text
    if cause.used:
        return f"{text} It was in use before: {size(cause.used)} at {moment(cause.used_at, report.run.time_unit)}, then {size(cause.used_now)}."
    at = f", above all at {cause.line}" if cause.line else ""
    return (
        f"{text} Cause: fragmentation. {size(cause.outgrown)} was reserved for requests of up to {size(cause.most)}{at}, while as"
        " much was free, in smaller pieces."
    )


def _emptied(hint: Hint, peak: int) -> str:
    """The effect of emptying the cache in a run that did not fail: on the peak first."""
    returned, before = f"{size(hint.bytes)} of cache", f"{size(hint.held_before)} was held before it"
    if not hint.held_before or peak - hint.held_before >= hint.bytes:
        return f"returns {returned}, in empty segments; the peak may stay, since later requests may need it again"
    if peak <= hint.held_before:
        return f"returns {returned}; the peak stays, since {before}"
    return f"lowers the peak by {size(peak - hint.held_before)} at most, since {before}; after it {size(hint.bytes)} less is held"


def action(hint: Hint, is_pytorch: bool, failure: Optional[Incident] = None, peak: int = 0) -> str:
    """A sentence or two on what to do, with the bytes that it returns; `peak`: of a run that did not fail."""
    n_bytes, mib = size(hint.bytes), hint.setting >> 20
    emptied = f"returns {n_bytes} of cache, in empty segments" if failure else _emptied(hint, peak)
    emptying = "torch.cuda.empty_cache()" if is_pytorch else "Emptying the cache"
    before = f" before {hint.line}" if hint.line else ""
    is_little = bool(hint.held_before) and peak - hint.held_before < _LEAST_LOWERED * peak
    other = "`jmassif fit` tries its allocator's other settings, which may need less. " * (is_pytorch and is_little)
    value = f"{hint.variable}={printable(hint.value)}" + (f" ({hint.needs} and later)" if hint.needs else "")
    tried, it = (f"Try {value}", ": it") if hint.is_trial else (value, "")
    fails = " On some boards cuMemCreate then fails although memory is free; unset it there." if hint.is_trial else ""
    missed = f"{size(failure.situation.missing)} was missing" if failure and failure.situation.missing else ""
    lacking, lacked = (f"; {missed}", f"{missed}, and ") if missed else ("", "")
    return {
        "empty-cache": f"{other}{emptying}{before} {emptied}.",
        "expandable-segments": f"{tried}{it} can return {n_bytes}, the whole pages in the holes.{fails}",
        "max-split-size": f"{value}: keeps blocks up to {mib} MiB out of the large"
        " segments, which then can be returned.",
        "trim-pools": f"cudaMemPoolTrimTo, or a lower release threshold: pools hold {n_bytes} unused.",
        "smaller-workspace": "A smaller workspace (CUBLAS_WORKSPACE_CONFIG, torch.backends.cudnn.benchmark): workspaces hold"
        f" {n_bytes}.",
        "lazy-loading": f"CUDA_MODULE_LOADING=LAZY: kernel code holds {n_bytes}, and most of it is seldom used.",
        "smaller-batch": f"With at most {hint.setting / 10:.0f} % of the batch this request would have fit: {n_bytes} was"
        " missing, and inputs and activations scale with it. Later requests may need more.",
        "drop-page-cache": f"Try sync; echo 3 | sudo tee /proc/sys/vm/drop_caches: {lacked}cuMemGetInfo counts {n_bytes} of"
        " cached files as in use.",
        "smaller-cma": f"A smaller cma= in /boot/extlinux/extlinux.conf gives NvMap up to {n_bytes} more{lacking}.",
        "stop-others": f"Stop other programs: with the system they hold {n_bytes}{lacking}.",
        "trim-heap": f"{tried}: glibc then returns large blocks as soon as they are freed.",
        "raise-limit": f"Raise the limit of the address space, ulimit -v, by {n_bytes} for this request, or hold less.",
    }[hint.action]


def step_of(name: str, time_unit: str) -> str:
    """The unit of a slope: the program's own name of an iteration, or a unit of time."""
    if not name:
        return {"ms": "second", "i": "million instructions"}.get(time_unit, "MiB allocated and freed")
    step = cut(name, _MAX_STEP)
    return step if step.isalnum() else f'"{step}"'


def slope(growth: Growth, leak: Leak, time_unit: str) -> float:
    """Bytes by a step or, without iterations, by a second or the like."""
    return leak.bytes_per_step * (1.0 if growth.step else {"ms": 1000.0, "i": 1e6}.get(time_unit, float(1 << 20)))


def rate(growth: Growth, leak: Leak, time_unit: str) -> str:
    """ "by 4.00 KiB a step"; without iterations "in 40 blocks of 4.00 KiB": seconds under Valgrind are not the program's own."""
    if growth.step or not leak.blocks:
        step = step_of(growth.step, time_unit)
        return f"by {size(round(slope(growth, leak, time_unit)))} {'an' if step[0] in 'aeiou' else 'a'} {step}"
    if leak.blocks == 1:
        return "in one block"
    mean, largest = leak.held // leak.blocks, leak.largest_block
    of = f" of about {size(mean)}" if largest <= _NEARLY_EQUAL * mean else f" of up to {size(largest)}"
    return f"in {leak.blocks:,} blocks{of if largest else ''}"


def growth_unknown(growth: Growth) -> str:
    """Why it is unknown whether the run leaks; "" if it is known."""
    few = {
        "few-steps": f'"{growth.step}" came {growth.n_found} times',
        "few-snapshots": f"{count(growth.n_found, 'snapshot')} after the start",
    }
    if growth.suspect and growth.unknown == "alone":
        grew = f"{growth.suspect.label} grew by {size(growth.suspect.grown)} up to the end, and no other line allocated meanwhile"
        return f'{grew}: a leak, or a list that was being built; jmassif.mark("step") in each step tells'
    if growth.suspect:
        few[
            "few-rises"
        ] = f"{growth.suspect.label} grew {growth.n_found} times, by {size(growth.suspect.grown)}; below 1 % of all memory"
    if growth.unknown in few:
        return f"{few[growth.unknown]}, {growth.n_needed} are needed"
    return "the trace has no snapshot" if growth.unknown else ""


def is_small(grown: Growth, peak: int) -> bool:
    """It was freed at the end, most of it, and is little beside the peak."""
    return grown.grown < _SMALL_GROWTH * peak and 2 * sum(leak.at_exit for leak in grown.lines) < grown.grown


def growth_text(grown: Growth, time_unit: str, peak: int = 0) -> str:
    """`peak`: bytes; without it the growth is not called small."""
    first, others = grown.lines[0], grown.lines[1:]
    by, when = rate(grown, first, time_unit).split(" ", 1)[1], moment(grown.end, time_unit)
    head = "Small growth" if is_small(grown, peak) else "Grows" if first.is_freed else "Leak"
    until = ""
    if first.is_freed:
        until = f" until {when}"
        left = f"all but {size(first.at_exit)} of it" if first.at_exit else "all of it"
        held = f"{size(first.held)}; {left} was freed before the end"
    elif first.at_exit >= first.held:
        held = f"{size(first.at_exit)} at the end"
    else:
        held = f"{size(first.held)} at {when}, {size(first.at_exit)} of it left at the end"
    text = f"{head}: {first.label} keeps what it allocates{until}: {by}, {held}."
    if others:
        text += f" {count(len(others), 'more line')} grew by {size(grown.grown - first.grown)}."
    return text


def _variable(keeper: Keeper) -> str:
    return {
        "module": keeper.variable if keeper.holder == "__main__" else f"{keeper.holder}.{keeper.variable}",
        "class": f"{keeper.holder}.{keeper.variable}",
        "instance": f"{keeper.variable}` of a `{keeper.holder}",
        "function": f"{keeper.variable}` of the function `{keeper.holder}",
    }.get(keeper.sort, keeper.variable)


def _dropped(keeper: Keeper) -> str:
    """ "Remove from the list `history` what is no longer used." """
    return f"Remove from the {keeper.container} `{_variable(keeper)}` what is no longer used."


def keeper_text(keeper: Keeper) -> str:
    others = f" and {count(keeper.others, 'other object')}" if keeper.others else ""
    return (
        f"{keeper.objects:,} `{keeper.type}` object{'s' * (keeper.objects != 1)}{others} kept by the {keeper.container}"
        f" `{_variable(keeper)}`, at {keeper.label}."
    )


def _imports(report: Report) -> str:
    """ "" if they hold little."""
    whole, spot = report.wholes[0].bytes, report.hot_spot
    found = Imports(spot.bytes, True, spot.label) if spot and spot.is_import else spot.imports if spot else None
    if found is None or found.bytes < _LEAST_IMPORTED * whole:
        return ""
    libraries = _of_group(report, "libraries")
    holds = f"imports hold {size(found.bytes)}, most of it at {found.label}"
    if found.is_one:
        holds = f"the import at {found.label} alone holds {size(found.bytes)}"
    if libraries >= max(_LEAST_IMPORTED * whole, found.bytes):
        return f"{whole_percent(libraries, whole)} {_of_it(report)}, {size(libraries)}, is libraries; {holds}."
    return f"{holds[:1].upper()}{holds[1:]}, {whole_percent(found.bytes, whole)} {_of_it(report)}."


# A share of the whole.
_LEAST_COPIED = 0.05


def _copied_text(files: List[Tuple[str, int]]) -> str:
    (path, n_bytes), others = files[0], sum(n_bytes for _, n_bytes in files[1:])
    more = f", and {size(others)} of other files," if others else ""
    return (
        f"{size(n_bytes)} of {printable(os.path.basename(path))}{more} are private copies, made by writing to its mapping or"
        " pinning it. The kernel cannot drop these pages, as it can the file's; map the file read-only, or do not pin it."
    )


# Own memory of a forked child: less is not worth a sentence, and by more may it once have been larger.
_LEAST_OWN = 1 << 20
_WORTH_TELLING_OWN = 0.5


def inherited_text(own: Inherited, time_unit: str) -> str:
    shared = f"inherited from process {printable(own.parent)} and shared until written to"
    whole = own.shared_bytes + own.own_bytes
    if own.own_bytes < min(_LEAST_OWN, whole // 100):
        text = f"{'Almost all' if own.own_bytes else 'All'} of it is {shared}."
    else:
        text = f"At most {size(own.shared_bytes)} of it is {shared}; at least {size(own.own_bytes)} is its own."
    if own.own_bytes < _WORTH_TELLING_OWN * own.most_own_bytes and own.most_own_bytes >= _LEAST_OWN:
        text += f" Its own was largest at {moment(own.most_own_at, time_unit)}: {size(own.most_own_bytes)}."
    return text


class _NotFreed(NamedTuple):
    """Memory that a program without an interpreter still held at its exit, where no line is said to grow."""

    bytes: int
    blocks: int
    label: str  # the largest place
    of_label: int  # bytes


def _not_freed(report: Report) -> Optional[_NotFreed]:
    leaks, growth = report.leaks, report.growth
    ended_well = (report.outcome.end, report.outcome.code) == ("exit", 0)
    if leaks is None or growth is None or not leaks.is_at_exit or not ended_well or report.run.has_python:
        return None
    growing = {report.names.frame(leak.frame) for leak in growth.lines}
    places = [place for place in leaks.places if place.label not in growing]
    sums = sum(place.bytes for place in places), sum(place.blocks for place in places)
    return _NotFreed(*sums, places[0].label, places[0].bytes) if sums[0] else None


def _not_freed_text(report: Report) -> str:
    """ "" if it is little."""
    found = _not_freed(report)
    if found is None or found.bytes < _LEAST_NOT_FREED * report.peak.bytes or run_info.unseen_heap(report.profile):
        return ""
    most = "" if found.of_label == found.bytes else f"{size(found.of_label)} of it "
    blocks = f" in {count(found.blocks, 'block')}" if found.blocks else ""
    return f"Not freed at exit: {size(found.bytes)}{blocks}, {most}at {found.label}."


def held_twice_text(report: Report) -> str:
    """ "" where little is held twice, or host and device are not one memory."""
    twice, whole = report.held_twice, report.wholes[0].bytes
    if twice is None or report.run.memory != "unified" or not twice.bytes or twice.bytes < _LEAST_TWICE * whole:
        return ""
    first = twice.rows[0]
    most = f", {size(first.bytes)} of it" if len(twice.rows) > 1 else ":"
    memory = f"{'pinned ' if first.is_pinned else ''}host memory {'mapped' if first.is_mapped else 'allocated'} by {first.allocated}"
    alive = moment(first.until - first.since, report.run.time_unit)
    before = f" before {twice.before}" if twice.before else ""
    return (
        f"{size(twice.bytes)} is held twice at {report.moment.name}{most} in {memory}, copied to the GPU by {first.copied},"
        f" both alive for {alive}, and unchanged in all samples. Dropping the host copy{before} leaves"
        f" {size(whole - twice.bytes)} of {size(whole)}."
    )


def loading_text(report: Report) -> str:
    """ "" where both peaks are about the same."""
    found, unit = report.loading, report.run.time_unit
    if found is None or abs(found.peak - found.steady_peak) < min(_LEAST_APART, _LEAST_SHARE_APART * found.steady_peak):
        return ""
    what = "training takes" if found.is_training else "running it takes"
    return (
        f"Loading the model took {size(found.peak)}, at {moment(found.peak_at, unit)}; {what} {size(found.steady_peak)},"
        f" at {moment(found.steady_peak_at, unit)}."
    )


def _has_failed(profile: Profile) -> bool:
    """An allocation has, recovered ones and those that are only counted included."""
    counted = any(profile.counters.get(key) for key in ("out-of-memory", "heap-allocation-failed"))
    return bool(profile.exhaustions) or counted or any(code == NO_MEMORY for _, code in profile.failures)


def _nothing(report: Report, is_all: bool) -> str:
    """Problems that a run is proven not to have, up to its end; first how it ended, if not well."""
    outcome, growth, pool = report.outcome, report.growth, report.pool
    if outcome.end == "exec":
        return "The program that it became is recorded with --trace-children=yes only, as a trace of its own."
    if outcome.end not in ("exit", "signal", "unknown") or outcome.is_fatal or growth is None or growth.lines:
        return ""
    if any(remark.severity != NOTE for remark in remarks(report)):
        return ""
    facts = ["no allocation failed"] * (not _has_failed(report.profile))
    left, unseen = _not_freed(report), run_info.unseen_heap(report.profile)
    if not growth.unknown:
        beside = f" beside the heap, which was {unseen}" if unseen else ""
        facts.append(f"no leak was found{beside}" if left is None else f"no line kept growing{beside}")
    if left is not None and not _not_freed_text(report):
        facts.append(f"{size(left.bytes)} was not freed at exit")
    if pool is not None and pool.key == "machine" and pool.used and report.run.is_board:
        facts.append(f"the board was at most {whole_percent(pool.used, pool.capacity)} full")
    if not facts:
        return ""
    text = ", ".join(facts[:-1] + ["and " * (len(facts) > 1) + facts[-1]])
    unknown = f" Whether it leaks is unknown: {growth_unknown(growth)}." if growth.unknown else ""
    ended_well = (outcome.end, outcome.code) == ("exit", 0)
    how = {"exit": f"failed ({ending(outcome)})", "unknown": "was killed, or still runs"}
    failed = "" if ended_well else f"The program {how.get(outcome.end, f'was {ending(outcome)}')}. "
    said = f"Nothing stands out: {text}" if is_all and ended_well else text[:1].upper() + text[1:]
    return f"{failed}{said}.{unknown}"


_BY_OBJECT = "Run it with PYTHONMALLOC=malloc to count each object for its own line; that is slower."
_FREE_THREADED = "A free-threaded Python keeps objects of all sizes in arenas; a build with the GIL has lines for them."
_LEAST_ARENAS = 0.25  # of the peak
_LEAST_OF_FAILURE = 0.1  # of the peak
_FREE_IT = "Free it, or drop what refers to it, once it is no longer used."


def callers_text(finding: Finding, width: int) -> str:
    """ "called from main.py:12 (step) < main.py:30 (main)", with as many as fit; "" where none does."""
    text = ""
    for n in range(1, len(finding.callers) + 1):
        longer = f"called from {' < '.join(finding.callers[:n])}"
        if len(longer) + 4 * (n < len(finding.callers)) > width:
            return f"{text} < …" if text else ""
        text = longer
    return text


def findings(report: Report) -> List[Finding]:
    """Proof that all is well, else leaks; then those first that return most, and other programs last; three at most.

    What returns far more than a leak has taken comes before it: a short run shows only the leak's beginning.
    """
    first, found = [], []
    if report.inherited is not None:
        first.append(Finding("inherited", 0, inherited_text(report.inherited, report.run.time_unit)))
    for hint in report.hints:
        to_do = action(hint, report.run.is_pytorch, report.failure, report.peak.bytes)
        is_of_cache = report.failure is None and hint.action in ("empty-cache", "expandable-segments")
        text = f"{_cached(report)} {to_do}" if is_of_cache else to_do
        if hint.action == "trim-heap":
            text = f"Besides the {size(report.wholes[0].bytes)}, {size(hint.bytes)} is resident but free inside malloc. {to_do}"
        found.append(Finding(hint.action, hint.bytes, text, to_do))
    grown, imports = report.growth, _imports(report)
    # A line that grew may be the cause of a failure.
    least = _LEAST_OF_FAILURE * report.peak.bytes if report.failure else 0
    if grown and grown.lines and grown.grown >= least:
        kept = f" {keeper_text(report.leaks.keepers[0])}" if report.leaks and report.leaks.keepers else ""
        text = growth_text(grown, report.run.time_unit, report.peak.bytes) + kept
        if is_small(grown, report.peak.bytes):
            found.append(Finding("growth", 0, text))
        else:
            to_do = _dropped(report.leaks.keepers[0]) if report.leaks and report.leaks.keepers else _FREE_IT
            first.append(
                Finding("growth", grown.grown, f"{text} {to_do}", to_do, grown.lines[0], report.growth_callers)
            )
    twice = held_twice_text(report)
    if twice and report.held_twice:
        found.append(Finding("held-twice", report.held_twice.bytes, twice))
    loading = loading_text(report)
    if report.failure is None and loading and report.loading:
        found.append(Finding("loading", max(0, report.loading.peak - report.loading.steady_peak), loading))
    spot = report.hot_spot
    named = [report.names.frame(id_) for each in first if each.line for id_ in (each.line.frame, each.line.caller)]
    if report.failure and spot and spot.is_yours and spot.label not in named:
        which = "That" if spot.label.split(" ")[0] == report.failure.line.split(" ")[0] else "Another"
        held = f"{size(spot.bytes)}, {whole_percent(spot.bytes, report.wholes[0].bytes)} of it"
        found.append(Finding("holds-most", 0, f"{which} line holds most: {spot.label}, {held}."))
    if report.failure is None and imports:
        found.append(Finding("imports", 0, imports))
    left = _not_freed_text(report)
    if left:
        found.append(Finding("not-freed", 0, left))
    copied = sum(n_bytes for _, n_bytes in report.copied_files)
    if report.failure is None and copied and copied >= _LEAST_COPIED * report.wholes[0].bytes:
        found.append(Finding("copied", copied, _copied_text(report.copied_files)))
    later = report.resident_later
    if report.failure is None and later is not None:
        at = moment(later.time, report.run.time_unit)
        text = f"Resident memory is highest at {at}: {size(later.bytes)},"
        if later.unused:
            to_do = "malloc_trim(0), after it was freed, can return it."
            text = f"{text} {size(later.unused)} of it free inside malloc. {to_do}"
        else:
            to_do = "PYTHONMALLOC=malloc records each object." if run_info.has_arenas(report.profile) else ""
            text = (
                f"{text} {size(later.more)} more than at this peak. Pages are sampled: a short peak is missed. {to_do}"
            )
        found.append(Finding("resident", later.more, text.rstrip(), to_do))
    arenas = _arenas(report)
    if report.failure is None and arenas and arenas >= _LEAST_ARENAS * report.wholes[0].bytes:
        text = f"{size(arenas)} are arenas of small Python objects, and count for the line that needed an arena, not for those"
        text = f"{text} whose objects fill it. {_BY_OBJECT}"
        if run_info.is_free_threaded(report.profile):
            text = f"{size(arenas)} are arenas of Python objects, without lines. {_FREE_THREADED}"
        found.append(Finding("arenas", 0, text))
    found.sort(key=lambda each: (each.key == "stop-others", -each.bytes, each.key == "growth"))
    leak = first[-1] if first and first[-1].key == "growth" else None
    if leak and found and found[0].key != "stop-others" and found[0].bytes > _OUTWEIGHS * leak.bytes:
        first.insert(-1, found.pop(0))
    found = found[: _MOST_FINDINGS - len(first)]
    well = _nothing(report, not first + found)
    nothing = [Finding("nothing", 0, well)] * bool(well)
    return first + (found + nothing if grown and grown.unknown else nothing + found)


def _arenas(report: Report) -> int:
    """Bytes that the interpreter has mapped; nearly all are arenas."""
    rows = (row for row in report.mappings if row.kind == "anon" and re.match(r"(lib)?python3", row.name))
    return sum(row.resident for row in rows) if run_info.has_arenas(report.profile) else 0


def where_arenas_are(profile: Profile) -> str:
    """The place of a Python program's own objects in the figures; "" for other programs."""
    if not run_info.has_arenas(profile):
        return ""
    if run_info.is_free_threaded(profile):
        return _FREE_THREADED
    if profile.has_pages:
        return (
            "Python keeps objects up to 512 bytes in arenas from mmap. The pages of an arena are anon memory of the line that"
            f" needed it, though objects of other lines may fill it, then or later. {_BY_OBJECT}"
        )
    return (
        "Objects up to 512 bytes of owners data and python are not in here: Python keeps them in arenas from mmap, unless it is"
        " run with PYTHONMALLOC=malloc."
    )
