# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of several traces: their sum, a table of the processes, owners, and the report of the largest process."""

from collections import Counter
from typing import Callable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.analysis.processes import Ended, JobMoment, JobReport, NamesOf, Processes, build_job_report
from jmassif.analysis.run_outcome import ALARM, NOTE, WARNING
from jmassif.analysis.summary import short_command
from jmassif.attribution.names import Names
from jmassif.model.processes import FORKED, REPLACED, Process
from jmassif.model.run import Profile
from jmassif.render import layout, text as report
from jmassif.render.graph import DEVICE, HOST, Point, draw, legend
from jmassif.render.layout import HEADING, PAGE, SUM, Column, Line, Lines, Table, heading, paragraph, wrapped
from jmassif.render.owners import groups_table
from jmassif.render.summary import ending, growth_text, missing, request, whole_percent
from jmassif.render.view import View
from jmassif.units import moment, printable, size

_WIDE = 100  # columns of sentences
_MOST_COMMAND = 60
_MOST_NAME = 30
_HEIGHT, _SHORT_HEIGHT = 11, 6
_MOST_ROWS = 12
_LEAST_OWNER = 0.01
_LEAST_ROOM = 40  # for the largest process
_MOST_LEAKS = 3
_MOST_FAILURES = 3  # of one severity
_MOST_NAMED = 4  # processes
_HOW = {FORKED: "fork: ", REPLACED: "exec: "}


# ---- sentences -------------------------------------------------------------------------------


# The subjects of statements, in their order.
HAPPENED, POOL, LEAK, PLACE = "happened", "pool", "leak", "place"


class Statement(NamedTuple):
    about: str  # one of these
    severity: str  # ALARM, WARNING or NOTE
    text: str  # safe to show


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


def verdict(made: JobReport) -> str:
    job, n = made.job, f"{len(made.job.members)} processes"
    if job.no_clock:
        n_bytes = size(made.largest.peak(made.measures[-1]))
        return f"{n}: no sum, because {job.no_clock}. The largest is {named(job, made.largest)}: peak {n_bytes}."
    if not made.main_peak.parts:
        return f"{n}: no memory on record."
    texts = []
    for measure in reversed(made.measures):
        at = made.peaks[measure]
        of = f" of {measure} memory" if len(made.measures) > 1 else ""
        how = "" if measure == "device" else f" ({_measured(at)})"
        largest = max(at.parts, key=lambda part: part.on(measure), default=None)
        where = f"; {size(largest.on(measure))} of it in {named(job, largest.process)}" if largest else ""
        texts.append(f"peak {size(at.on(measure))}{of}{how}, after {moment(at.time, 'ms')}{where}")
    return f"{n}: {'. '.join(texts)}."


def listed(processes: Sequence[Process]) -> str:
    """ "process 2", "processes 2, 3 and 4", "processes 2, 3, 4, 5 and 17 more" """
    names = [str(process.pid or printable(process.name)) for process in processes[:_MOST_NAMED]]
    left_out = len(processes) - len(names)
    last = f"{left_out} more" if left_out else names.pop()
    return f"process {last}" if not names else f"processes {', '.join(names)} and {last}"


def _failure(each: Ended) -> str:
    time = moment(each.outcome.time, each.process.profile.time_unit)
    is_known = each.outcome.end not in ("cut", "unknown", "running")
    how = f"{ending(each.outcome)}{f', after {time}' if is_known else f' (last record: {time})'}"
    if each.failed is not None:
        how = (
            f"{'OUT OF MEMORY: ' if each.outcome.is_fatal else ''}{request(each.failed)} {missing(each.failed)}; {how}"
        )
    return f"{each.process.called.capitalize()}: {how}."


def statements(made: JobReport) -> List[Statement]:
    """Failures, the verdict, leaks, and the largest line."""
    found: List[Statement] = []
    for severity in (ALARM, WARNING):
        alike = made.failures(severity)
        found += [Statement(HAPPENED, severity, _failure(each)) for each in alike[:_MOST_FAILURES]]
        if alike[_MOST_FAILURES:]:
            others = listed([each.process for each in alike[_MOST_FAILURES:]])
            found.append(Statement(HAPPENED, severity, f"Likewise {others}."))
    found.append(Statement(POOL, NOTE, verdict(made)))
    for process, grown in made.growing[:_MOST_LEAKS]:
        text = f"{process.called.capitalize()}: {growth_text(grown, process.profile.time_unit)}"
        found.append(Statement(LEAK, WARNING, text))
    if made.hot_spot is not None:
        process, spot = made.hot_spot
        whole = made.main_peak.on(made.measures[-1])
        share = f", {whole_percent(spot.bytes, whole)} of the sum" if spot.bytes <= whole else ""
        text = f"Largest line: {spot.label} in {named(made.job, process)}: {size(spot.bytes)}{share}."
        found.append(Statement(PLACE, NOTE, text))
    return found


class JobHeadline(NamedTuple):
    statements: List[Statement]
    time: int  # of the peak


def headline_of_job(job: Processes, names: Optional[Sequence[Names]] = None) -> JobHeadline:
    """`names` are the members', where they are known."""
    made = build_job_report(job, NamesOf(zip(job.members, names or ())))
    return JobHeadline(statements(made), made.main_peak.time)


# ---- sections --------------------------------------------------------------------------------


def _headline(made: JobReport) -> Lines:
    lines: List[str] = []
    for each in statements(made):
        is_alarm = each.severity != NOTE
        text, role = (f"!!! {each.text}", layout.WARNING) if is_alarm else (each.text, layout.WORDS)
        lines += [Line((line, role)) for line in wrapped(text, _WIDE)]
    return lines


def _notes(made: JobReport) -> Lines:
    job, sentences = made.job, []
    if made.dismissed:
        sentences.append(f"Ended by their parent after their work (SIGTERM): {listed(made.dismissed)}.")
    if job.orphans:
        sentences.append(f"Forked from a process without a trace here: {listed(job.orphans)}.")
    if len(job.machines) > 1 and not job.no_clock:
        machines = printable(", ".join(job.machines))
        sentences.append(f"The clocks of {len(job.machines)} machines ({machines}) are taken to agree.")
    return [""] + paragraph(" ".join(sentences)) if sentences else []


def _graph(made: JobReport, view: View) -> Lines:
    rows, lines = made.job.timeline(), []
    height = view.height or (_SHORT_HEIGHT if view.is_brief else _HEIGHT)
    for measure in made.measures if rows else ():
        host, device = measure != "device", measure != "host"
        points = [Point(*row[:3], 0) for row in rows]
        points = [Point(p.time, p.host * host, p.device * device, p.host * host + p.device * device) for p in points]
        at = made.peaks[measure]
        of = f"sum of {measure} memory" if len(made.measures) > 1 else "sum"
        caption = f"peak of the {of}: {size(at.on(measure))} at {moment(at.time, 'ms')}"
        lines += [""] + draw(points, view.width, height, "ms", caption)
    drawn = "".join(lines)
    return (
        lines + [legend(entry for entry in (f"{HOST} host", f"{DEVICE} device") if entry[0] in drawn)] if lines else []
    )


def _table(made: JobReport, is_brief: bool) -> Lines:
    """Each process at the peak of the sum, and the peak of its own ledger."""
    job, at, measure = made.job, made.main_peak, made.measures[-1]
    parts = {id(part.process.profile): part for part in at.parts}

    def size_of(each: Ended) -> Tuple[int, int]:
        part = parts.get(id(each.process.profile))
        return part.on(measure) if part else 0, each.process.peak(measure)

    shown = sorted(made.ended, key=size_of, reverse=True)[: _MOST_ROWS if is_brief else None]
    spaces = [space for space in ("host", "device") if space == "host" or space in job.sides]
    host = "PSS" if any(part.has_share for part in at.parts) else "host"
    heads = [] if job.no_clock else ["start", "end", *(host if space == "host" else space for space in spaces)]
    columns = [Column(head, 10) for head in heads] + [Column("ledger peak", 13), Column("command", gap=2)]
    table = Table(Column("pid", 9), *columns)

    def row(each: Ended) -> str:
        process, part = each.process, parts.get(id(each.process.profile))
        cells = [moment(process.begin, "ms"), moment(process.end, "ms")]
        cells += [size(part.on(space)) if part else "-" for space in spaces]
        command = printable(process.profile.manifest.get("command", "") or process.name)
        command = command if len(command) <= _MOST_COMMAND else f"{command[: _MOST_COMMAND - 1]}…"
        how = ending(each.outcome).partition(":")[0]
        command = f"{'  ' * process.depth}{_HOW.get(process.relation, '')}{command}"
        command += "" if how == "exit status 0" else f" ({how})"
        cells = [] if job.no_clock else cells
        return table.row(str(process.pid or "?"), *cells, size(process.peak(measure)), command).rstrip()

    title = "Processes" if job.no_clock else f"Processes, at the peak of their sum ({moment(at.time, 'ms')})"
    lines = heading(title) + [table.head.rstrip()] + [row(each) for each in made.ended if each in shown]
    if len(shown) < len(made.ended):
        lines.append(f"and {len(made.ended) - len(shown):,} smaller: --all")
    if not job.no_clock:
        sums = ["", "", *(size(at.on(space)) for space in spaces), "", ""]
        lines.append(Line((table.row("sum", *sums).rstrip(), SUM)))
    return lines


def _by_owner(made: JobReport, is_brief: bool) -> Lines:
    job, at = made.job, made.main_peak
    if not made.ledger.groups:
        return []
    is_sum = len(job.sides) == 1 or not job.is_discrete
    lines = heading(f"By owner, in all processes, at {moment(at.time, 'ms')}")
    lines += groups_table(job.sides, is_sum, made.ledger, _LEAST_OWNER if is_brief else 0.0)
    more = made.adjustments
    rest = "shared with other processes (about)" if more.rest < 0 else "copied by forks, free inside malloc (about)"
    rows = [(label, n_bytes) for label, n_bytes in zip(("allocated, never written", rest), more) if n_bytes]
    if rows and is_sum:
        table = Table(Column("", 46, align="<"), Column("", 15))
        lines += [table.row(f"{'+' if n_bytes > 0 else '-'} {label}", f"{abs(n_bytes):,}") for label, n_bytes in rows]
        lines.append(Line((table.row("= the sum", f"{at.on('total'):,}"), SUM)))
    return lines


def write(job: Processes, view_of: Callable[[Profile], View], is_each: bool = False) -> Iterator[str]:
    """The report's lines; `is_each` adds the reports of all processes, not of the largest one only. Raises SelectionError."""
    made = build_job_report(job)
    view = view_of(made.largest.profile)
    lines = (
        _headline(made)
        + _notes(made)
        + _graph(made, view)
        + _table(made, view.is_brief)
        + _by_owner(made, view.is_brief)
    )
    yield from lines
    for process in job.members if is_each else [made.largest]:
        which = f"the trace {printable(process.name)}" if is_each else "the largest process; --each shows all"
        title = paragraph(f"{process.called.capitalize()}, {which}")
        yield from ["", *(Line((line, HEADING)) for line in ("=" * PAGE, *title, "=" * PAGE))]
        room = report.TWO_SCREENS - (0 if is_each else len(lines) + len(title) + 3)
        yield from report.write(process.profile, view_of(process.profile), max(room, _LEAST_ROOM))
