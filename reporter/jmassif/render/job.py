# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of several traces: their sum, a table of the processes, owners, and the report of the largest process."""

from collections import Counter
from itertools import islice
from typing import Callable, Iterator, List, NamedTuple, Sequence, Tuple

from jmassif.analysis.moments import SelectionError
from jmassif.analysis.oom import ALARM, NOTE, WARNING
from jmassif.analysis.processes import Ended, JobMoment, JobReport, OddRank, Processes, RankRow, build_job_report
from jmassif.model.process_tree import FORKED, REPLACED, Process
from jmassif.model.run import Profile
from jmassif.model.run_info import has_arenas, short_command
from jmassif.render import layout, text as report
from jmassif.render.events import region_cells
from jmassif.render.graph import Point, graph
from jmassif.render.layout import HEADING, PAGE, WIDE, Column, Line, Lines, Table, cut, heading, paragraph
from jmassif.render.owners import LEAST_OWNER, groups_table
from jmassif.render.summary import ending, growth_text, is_small, missing, request, whole_percent
from jmassif.render.view import View
from jmassif.units import growth, moment, printable, size

_MOST_COMMAND = 60
_HOW = {FORKED: "fork: ", REPLACED: "exec: "}
_MOST_NAME = 30
_MOST_ROWS = 12
_LEAST_ROOM = 40  # for the largest process
_MOST_LEAKS = 3
_MOST_FAILURES = 3  # of one severity
_MOST_NAMED = 4  # processes, or ranks
_MOST_HOST = 20
_LEAST_COPIED = 0.2  # of the sum


# ---- sentences -------------------------------------------------------------------------------


# The subjects of statements, in their order.
HAPPENED, POOL, ODD, LEAK, PLACE = "happened", "pool", "odd", "leak", "place"


class Statement(NamedTuple):
    """A sentence of the first screen, or more. `action`, what to do, is the end of the text."""

    about: str  # one of these; of one process "verdict", "remark", "moment" or "finding"
    severity: str  # ALARM, WARNING or NOTE
    text: str  # safe to show
    action: str = ""


def _name(process: Process) -> str:
    words = short_command(process.profile.manifest.get("command", "")).split() or [printable(process.name)]
    return words[0][:_MOST_NAME]


def named(job: Processes, process: Process) -> str:
    """The script or program, with the pid where several processes have that name."""
    name = _name(process)
    is_one = Counter(map(_name, job.members))[name] == 1
    return name if is_one else f"{name} ({process.called})"


def _measured(at: JobMoment) -> str:
    """ "sum of proportional shares, PSS, plus device memory" """
    shared = sum(part.has_share for part in at.parts)
    if not shared:
        return "sum of ledgers, without PSS"
    rest = "" if shared == len(at.parts) else f"; {len(at.parts) - shared} of them by ledger"
    return f"sum of proportional shares, PSS{', plus device memory' if at.on('device') else ''}{rest}"


def verdict(job: Processes) -> str:
    n = f"{len(job.members)} processes"
    if job.no_clock:
        largest = job.largest()
        peak = size(largest.peak(job.measures[-1]))
        return f"{n}: no sum, because {job.no_clock}. The largest is {named(job, largest)}: peak {peak}."
    texts = []
    for measure, at in ((measure, job.peak(measure)) for measure in reversed(job.measures)):
        if at.parts:
            of = f" of {measure} memory" if len(job.measures) > 1 else ""
            how = "" if measure == "device" else f" ({_measured(at)})"
            n_bytes, name = max((part.on(measure), named(job, part.process)) for part in at.parts)
            when = f", after {moment(at.time, 'ms')}; {size(n_bytes)} of it in {name}"
            texts.append(f"peak {size(at.on(measure))}{of}{how}{when}")
    return f"{n}: {'. '.join(texts) or 'no memory on record'}."


def _listed(names: List[str], n: int, one: str, several: str) -> str:
    """ "process 2", "processes 2, 3 and 4", "processes 2, 3, 4, 5 and 17 more": of n the first names"""
    *names, last = [*names, f"{n - len(names):,} more"] if n > len(names) else names
    return f"{one} {last}" if not names else f"{several} {', '.join(names)} and {last}"


def listed(processes: Sequence[Process]) -> str:
    names = [str(process.pid or printable(process.name)) for process in processes[:_MOST_NAMED]]
    return _listed(names, len(processes), "process", "processes")


def _failure(each: Ended, is_first: bool = False) -> str:
    time = moment(each.outcome.time + each.process.offset, each.process.profile.time_unit)
    is_known = each.outcome.end not in ("cut", "unknown", "running")
    how = f"{ending(each.outcome)}{f', after {time}' if is_known else f' (last record: {time})'}"
    if each.failed is not None:
        alarm = "OUT OF MEMORY: " if each.outcome.is_fatal else ""
        how = f"{alarm}{request(each.failed)} {missing(each.failed)}; {how}"
    host = printable(each.process.profile.manifest.get("host", ""))
    where = f" failed first{host and f' (on {host}, process {each.process.pid})'}" if is_first else ""
    return f"{each.process.called.capitalize()}{where}: {how}."


def _odd(found: OddRank, n_ranks: int) -> str:
    row = found.row
    text = f"Rank {row.rank} differs most: peak {size(row.peak)}, {growth(row.peak - found.median)} against the median"
    line = f", above all at {found.line}: {size(found.line_bytes)}, not {size(found.line_median)}" if found.line else ""
    return f"{text} of {n_ranks} ranks, {size(found.median)}{line}."


def _copied(made: JobReport) -> str:
    """ "" where forks copied few pages."""
    n_bytes, whole = made.copied, made.job.main_peak.on("total")
    if not n_bytes or n_bytes < _LEAST_COPIED * whole:
        return ""
    text = f"About {size(n_bytes)}, {whole_percent(n_bytes, whole)} of the sum, are pages that forks copied by writing to them."
    if not any(has_arenas(process.profile) for process in made.job.members):
        return text
    return f"{text} Reading a Python object writes its reference count: keep shared data in NumPy arrays or tensors."


def statements(made: JobReport) -> List[Statement]:
    """Failures, the verdict, leaks, and the largest line."""
    first = made.first_failure
    found = [Statement(HAPPENED, first.outcome.severity, _failure(first, True))] if first else []
    for severity in (ALARM, WARNING):
        alike = [each for each in made.failures if each.outcome.severity == severity and each is not first]
        found += [Statement(HAPPENED, severity, _failure(each)) for each in alike[:_MOST_FAILURES]]
        if alike[_MOST_FAILURES:]:
            others = listed([each.process for each in alike[_MOST_FAILURES:]])
            found.append(Statement(HAPPENED, severity, f"Likewise {others}."))
    found.append(Statement(POOL, NOTE, verdict(made.job)))
    copied = _copied(made)
    found += [Statement(POOL, NOTE, copied)] if copied else []
    if made.odd is not None:
        found.append(Statement(ODD, NOTE, _odd(made.odd, len(made.ranks))))
    growing = [(process, grown) for process, grown in made.growing if not is_small(grown, process.peak("total"))]
    for process, grown in growing[:_MOST_LEAKS]:
        text = f"{process.called.capitalize()}: {growth_text(grown, process.profile.time_unit)}"
        found.append(Statement(LEAK, NOTE if grown.lines[0].is_freed else WARNING, text))
    if made.hot_spot is not None:
        process, spot = made.hot_spot
        whole = made.job.main_peak.on(made.job.measures[-1])
        share = f", {whole_percent(spot.bytes, whole)} of the sum" if spot.bytes <= whole else ""
        text = f"Largest line: {spot.label} in {named(made.job, process)}: {size(spot.bytes)}{share}."
        if 100 * spot.bytes >= whole:  # of what a line of imports dwarfs nothing is to be learned
            found.append(Statement(PLACE, NOTE, text))
    return found


# ---- sections --------------------------------------------------------------------------------


def _headline(made: JobReport) -> Lines:
    lines: Lines = []
    for each in statements(made):
        is_note = each.severity == NOTE
        lines += paragraph(each.text, WIDE) if is_note else paragraph(f"!!! {each.text}", WIDE, layout.WARNING)
    return lines


def _notes(made: JobReport) -> Lines:
    job, sentences = made.job, []
    dismissed = [each.process for each in made.ended if each.is_dismissed]
    if dismissed:
        sentences.append(f"Ended by their parent after their work (SIGTERM): {listed(dismissed)}.")
    if job.orphans:
        sentences.append(f"Forked from a process without a trace here: {listed(job.orphans)}.")
    if len(job.machines) > 1 and not job.no_clock:
        machines = printable(", ".join(job.machines))
        sentences.append(
            f"The clocks of {len(job.machines)} machines ({machines}) are taken to agree: the order of events on different"
            " machines is as exact as these clocks."
        )
    here = {row.rank for row in made.ranks}
    n_missing = max((row.ended.process.rank.world for row in made.ranks if row.ended.process.rank), default=0) - len(
        here
    )
    if n_missing > 0:
        missing_ = map(str, islice((n for n in range(n_missing + len(here)) if n not in here), _MOST_NAMED))
        sentences.append(f"Without a trace here: {_listed(list(missing_), n_missing, 'rank', 'ranks')}.")
    return [""] + paragraph(" ".join(sentences)) if sentences else []


def rank_cells(row: RankRow, is_clock: bool) -> List[str]:
    """Rank, host, process; when it ended on the common clock, and how."""
    ended = row.ended
    when = moment(ended.process.end, "ms") if is_clock else ""
    how = ending(ended.outcome)
    return [str(row.rank), printable(row.host), str(ended.process.pid or "?"), when, how]


def _ranks(made: JobReport, is_brief: bool) -> Lines:
    """Those that failed first or differ most are always among the shown ones."""
    named_ = [row for row in made.ranks if row.ended is made.first_failure or made.odd and row is made.odd.row]
    rest = [row for row in made.ranks if row not in named_]
    shown = named_ + rest[: max(0, _MOST_ROWS - len(named_)) if is_brief else None]
    host = Column("host", max([4, *(min(_MOST_HOST, len(printable(row.host))) for row in shown)]), 2, "<")
    figures = [Column(head, 11) for head in ("peak", "your code", "cache", "end")]
    table = Table(Column("rank", 4), host, Column("pid", 9), *figures, Column("status", gap=2))
    rows = []
    for row in made.ranks:
        rank, name, pid, when, how = rank_cells(row, not made.job.no_clock)
        figures_ = map(size, (row.peak, row.yours, row.cached))
        rows += [[rank, cut(name, _MOST_HOST), pid, *figures_, when, how.partition(":")[0]]] if row in shown else []
    lines = table.section("Ranks, each at its own peak", rows)
    return lines + ([f"and {len(made.ranks) - len(rows):,} more: --all"] if len(rows) < len(made.ranks) else [])


def _command(process: Process) -> str:
    """With its relation to its parent, below which it is indented."""
    command = cut(printable(process.command or process.name), _MOST_COMMAND)
    return f"{'  ' * process.depth}{_HOW.get(process.relation, '')}{command}"


def _table(made: JobReport, is_brief: bool) -> Lines:
    """Each process at the peak of the sum, and the peak of its own ledger."""
    job, at, measure = made.job, made.job.main_peak, made.job.measures[-1]

    def rank(each: Ended) -> Tuple[int, int]:
        return each.at_peak.on(measure) if each.at_peak else 0, each.ledger_peak

    ranked = sorted(made.ended, key=rank, reverse=True)
    shown = ranked[: _MOST_ROWS if is_brief else None]
    spaces = ["host", "device"] if "device" in job.sides else ["host"]
    host = "PSS" if any(part.has_share for part in at.parts) else "host"
    heads = [] if job.no_clock else ["start", "end", host, *spaces[1:]]
    columns = [Column(head, 10) for head in heads] + [Column("ledger peak", 13), Column("command", gap=2)]
    table = Table(Column("pid", 9), *columns)
    title = "Processes" if job.no_clock else f"Processes, at the peak of their sum ({moment(at.time, 'ms')})"
    lines = heading(title) + [table.head]
    for each in made.ended:
        part = each.at_peak
        cells = [moment(each.process.begin, "ms"), moment(each.process.end, "ms")]
        cells += [size(part.on(space)) if part else "-" for space in spaces]
        how = ending(each.outcome).partition(":")[0]
        command = _command(each.process) + ("" if how == "exit status 0" else f" ({how})")
        cells = [str(each.process.pid or "?"), *([] if job.no_clock else cells), size(each.ledger_peak), command]
        lines += [table.row(*cells)] if each in shown else []
    if len(shown) < len(ranked):
        lines.append(f"and {len(ranked) - len(shown):,} smaller: --all")
    if not job.no_clock:
        sums = ["", "", *(size(at.on(space)) for space in spaces), "", ""]
        lines.append(table.sum("sum", *sums))
    return lines


def _regions(made: JobReport, is_brief: bool) -> Lines:
    """Return the rows of all processes: one for each name of a region."""
    rows = []
    for process, row in made.regions:
        name = f"{printable(row.text)} ({_name(process)})"
        rows.append([str(process.pid or "?"), *region_cells(row, process.profile.time_unit), name])
    heads = [("times", 9), ("took", 11), ("at most", 10), ("host", 10), ("device", 10)]
    table = Table(Column("pid", 9), *(Column(*head, gap=1) for head in heads), Column("region (process)", gap=2))
    shown = rows[: _MOST_ROWS if is_brief else None]
    lines = table.section("Regions of all processes", shown)
    return lines + ([f"and {len(rows) - len(shown):,} more: --all"] if len(shown) < len(rows) else [])


def adjustment_rows(made: JobReport) -> List[Tuple[str, int]]:
    """Labels and bytes that lead from the owners to the sum."""
    more = made.adjustments
    rest = "shared with other processes (about)" if more.rest < 0 else "copied by forks, free inside malloc (about)"
    return [(label, n_bytes) for label, n_bytes in zip(("allocated, never written", rest), more) if n_bytes]


def _by_owner(made: JobReport, is_brief: bool) -> Lines:
    job, at = made.job, made.job.main_peak
    if not made.ledger.groups:
        return []
    is_sum = len(job.sides) == 1 or not job.is_discrete
    lines = heading(f"By owner, in all processes, at {moment(at.time, 'ms')}")
    lines += groups_table(job.sides, is_sum, made.ledger, LEAST_OWNER if is_brief else 0.0)
    rows = adjustment_rows(made) if is_sum else []
    if rows:
        table = Table(Column("", 46, align="<"), Column("", 15))
        lines += [table.row(f"{'+' if n_bytes > 0 else '-'} {label}", f"{abs(n_bytes):,}") for label, n_bytes in rows]
        lines.append(table.sum("= the sum", f"{at.on('total'):,}"))
    return lines


def _title(process: Process, which: str) -> Lines:
    title = paragraph(f"{process.called.capitalize()}, {which}")
    return [Line((line, HEADING)) for line in ("=" * PAGE, *title, "=" * PAGE)]


def _ranges(job: Processes, view_of: Callable[[Profile], View]) -> Lines:
    """The range of each process, on its own clock; of one that lacks it, why. Raises SelectionError if all do."""
    lines: Lines = []
    lacking = []
    for process in job.members:
        lines += ([""] if lines else []) + _title(process, f"the trace {printable(process.name)}")
        try:
            lines += report.write(process.profile, view_of(process.profile))
        except SelectionError as error:
            lacking.append(f"{process.name}: {error}")
            lines += paragraph(f"{str(error)[:1].upper()}{str(error)[1:]}.")
    if len(lacking) == len(job.members):
        raise SelectionError(lacking[0])
    return lines


def write(job: Processes, view_of: Callable[[Profile], View], is_each: bool = False) -> Iterator[str]:
    """The report's lines; `is_each` adds the reports of all processes, not of the largest one only. Raises SelectionError."""
    largest = job.largest()
    if view_of(largest.profile).range is not None:
        yield from _ranges(job, view_of)
        return
    made = build_job_report(job)
    view = view_of(largest.profile)
    points = [Point(row.time, row.host, row.device, row.on("total")) for row in job.timeline()]
    lines = _headline(made) + _notes(made) + graph(points, job.is_discrete, "ms", view)
    sections = (_ranks, _table, _by_owner, _regions)
    lines += [line for section in sections for line in section(made, view.is_brief)]
    yield from lines
    for process in job.members if is_each else [largest]:
        title = _title(
            process, f"the trace {printable(process.name)}" if is_each else "the largest process; --each shows all"
        )
        yield from ["", *title]
        room = report.TWO_SCREENS - (0 if is_each else len(lines) + len(title) + 1)
        yield from report.write(process.profile, view_of(process.profile), max(room, _LEAST_ROOM))
