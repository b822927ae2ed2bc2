# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of several traces: their sum, a table of the processes, owners, and the report of the largest process."""

from collections import Counter
from typing import Callable, Iterator, List, Optional, Sequence, Tuple

from jmassif.analysis.headline import HAPPENED, LEAK, PLACE, POOL, Headline, Statement, happened, headline, words
from jmassif.analysis.hot_spot import HotSpot, hot_spot, place_sentence
from jmassif.analysis.leaks import find_growth, growth_sentence
from jmassif.analysis.oom import incidents_of
from jmassif.analysis.processes import JobMoment, NamesOf, Processes, adjustments, ledger_of
from jmassif.analysis.run_info import ending
from jmassif.analysis.run_outcome import ALARM, NOTE, WARNING
from jmassif.attribution.names import Names
from jmassif.model.processes import FORKED, REPLACED, Process
from jmassif.model.run import Profile
from jmassif.render import text as report
from jmassif.render.graph import DEVICE, HOST, Point, draw, legend
from jmassif.render.layout import HEADING, PAGE, SUM, WARNING, Column, Line, Lines, Table, heading, paragraph
from jmassif.render.owners import groups_table
from jmassif.render.view import View
from jmassif.units import moment, printable, size

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


def _script(process: Process) -> str:
    """ "/usr/bin/python3 /a/train.py --x" → "train.py" """
    words = process.profile.manifest.get("command", "").split() or [process.name]
    is_script = len(words) > 1 and "python" in words[0] and words[1][:1] != "-"
    return printable(words[is_script].rpartition("/")[2][:_MOST_NAME])


def called(job: Processes, process: Process) -> str:
    """The script or program, and the pid where several processes have that name."""
    name = _script(process)
    is_one = Counter(_script(each) for each in job.members)[name] == 1
    return name if is_one else f"process {process.pid}, {name}"


def how_measured(at: JobMoment) -> str:
    """ "sum of proportional shares, PSS, plus device memory" """
    shared = sum(part.has_share for part in at.parts)
    if not shared:
        return "sum of ledgers, without PSS"
    rest = "" if shared == len(at.parts) else f"; {len(at.parts) - shared} of them by ledger"
    return f"sum of proportional shares, PSS{', plus device memory' if at.on('device') else ''}{rest}"


def verdict(job: Processes) -> str:
    largest = job.largest()
    n = f"{len(job.members)} processes"
    if job.no_clock:
        n_bytes = size(largest.peak((job.measures or ["total"])[-1]))
        return f"{n}: no sum, because {job.no_clock}. The largest is {called(job, largest)}: peak {n_bytes}."
    texts = []
    for measure in reversed(job.measures):
        at = job.peak(measure)
        of = "" if measure == "total" or len(job.measures) == 1 else f" of {measure} memory"
        if measure == "device":
            how, most = "", at
        else:
            how, most = f" ({how_measured(at)})", at
        part = max(most.parts, key=lambda part: part.on(measure), default=None)
        where = f", {size(part.on(measure))} of it in {called(job, part.process)}" if part else ""
        texts.append(f"peak {size(at.on(measure))}{of}{how}{where}, after {moment(at.time, 'ms')}")
    return f"{n}: {'; '.join(texts)}."


def _listed(processes: Sequence[Process]) -> str:
    """ "process 2", "processes 2, 3 and 4", "processes 2, 3, 4, 5 and 17 more" """
    named = [str(process.pid or printable(process.name)) for process in processes[:_MOST_NAMED]]
    left_out = len(processes) - len(named)
    last = f"{left_out} more" if left_out else named.pop()
    return f"process {last}" if not named else f"processes {', '.join(named)} and {last}"


def _is_dismissed(process: Process, names: Names) -> bool:
    """A worker that its parent ended after its work, and that lacked nothing: no failure."""
    return process.profile.was_dismissed and not incidents_of(process.profile, names)


def dismissed(job: Processes, names: NamesOf) -> str:
    found = [process for process in job.members if process.profile.was_dismissed]
    found = [process for process in found if _is_dismissed(process, names(process))]
    return f"Ended by their parent after their work (SIGTERM): {_listed(found)}." if found else ""


def _failures(job: Processes, names: NamesOf) -> List[Statement]:
    """The worst first."""
    found: List[Tuple[Process, Statement]] = []
    for process in job.members:
        run, of = process.profile, names(process)
        if not _is_dismissed(process, of):
            for severity, said in happened(run, incidents_of(run, of)):
                text = f"Process {process.pid or printable(process.name)}: {said}"
                found.append((process, Statement(HAPPENED, severity, text)))
    statements: List[Statement] = []
    for severity in (ALARM, WARNING, NOTE):
        alike = [(process, statement) for process, statement in found if statement.severity == severity]
        statements += [statement for _, statement in alike[:_MOST_FAILURES]]
        others = list(dict.fromkeys(process for process, _ in alike[_MOST_FAILURES:]))
        if others:
            statements.append(Statement(HAPPENED, severity, f"Likewise {_listed(others)}."))
    return statements


def _leaks(job: Processes, names: NamesOf) -> List[Statement]:
    grown = [(find_growth(process.profile, names(process)), process) for process in job.members]
    largest = sorted((row for row in grown if row[0].lines), key=lambda row: -row[0].grown)
    texts = [f"In {called(job, each)}: {growth_sentence(each.profile, growth)}" for growth, each in largest]
    return [Statement(LEAK, WARNING, text) for text in texts[:_MOST_LEAKS]]


def _largest_line(job: Processes, names: NamesOf) -> Optional[HotSpot]:
    """In any of the processes at the peak, one of the user's own first."""
    measure = (job.measures or ["total"])[-1]
    space = "" if measure == "total" else measure
    at = job.peak(measure)
    found = []
    for part in at.parts:
        composition = part.observed.composition(part.process)
        place = hot_spot(part.process.profile, names(part.process), composition, space)
        if place:
            label = f"{place.label} in {called(job, part.process)}"
            found.append(place._replace(label=label, whole=max(place.bytes, at.on(measure)), of="the sum"))
    return max(found, key=lambda place: (place.is_yours, place.bytes)) if found else None


def headline_of_job(job: Processes, names: Optional[Sequence[Names]] = None) -> Headline:
    """Failures, the verdict, leaks, and the largest line. `names` are the members', where they are known."""
    names_of = NamesOf(zip(job.members, names or ()))
    statements = _failures(job, names_of) + [Statement(POOL, NOTE, verdict(job))] + _leaks(job, names_of)
    if job.no_clock:
        largest = job.largest()
        own = headline(largest.profile, names_of(largest))
        return own._replace(statements=statements + own.about(PLACE), incident=None)
    at, measure = job.main_peak, job.measures[-1]
    place = _largest_line(job, names_of)
    statements += [Statement(PLACE, NOTE, place_sentence(place))] if place else []
    n_bytes = at.on(measure)
    return Headline(statements, at.time, "the peak", n_bytes, n_bytes, None, place, None)


def _headline_lines(made: Headline) -> Lines:
    lines: List[str] = []
    for statement in made.about(HAPPENED, LEAK):
        text = statement.text if statement.severity == NOTE else f"!!! {statement.text}"
        lines += [Line((line, WARNING if statement.severity != NOTE else "")) for line in paragraph(text)]
    return lines + paragraph(words(made, POOL, PLACE))


# ---- sections --------------------------------------------------------------------------------


def _table(job: Processes, is_brief: bool) -> Lines:
    """Each process at the peak of the sum, and the peak of its own ledger."""
    at = job.main_peak
    parts = {id(part.process.profile): part for part in at.parts}
    measure = job.measures[-1] if job.measures else "total"
    ranked = sorted(
        job.members,
        key=lambda each: (
            -parts[id(each.profile)].on(measure) if id(each.profile) in parts else 0,
            -each.peak(measure),
        ),
    )
    kept = {id(each.profile) for each in ranked[: _MOST_ROWS if is_brief else None]}
    columns = ["host", "device"] if "device" in job.sides else ["host"]
    is_clocked = not job.no_clock
    heads = (["start", "end"] + ["PSS" if column == "host" else column for column in columns]) * is_clocked
    table = Table(
        Column("pid", 9),
        *(Column(head, 12 if "ledger" in head else 10) for head in heads + ["ledger peak"]),
        Column("command", gap=2),
    )

    def row(process: Process) -> str:
        part = parts.get(id(process.profile))
        cells = [moment(process.begin, "ms"), moment(process.end, "ms")]
        cells += [size(part.on(column)) if part else "-" for column in columns]
        command = printable(process.profile.manifest.get("command", "") or process.name)
        command = command if len(command) <= _MOST_COMMAND else f"{command[: _MOST_COMMAND - 1]}…"
        how = ending(process.profile)
        command = f"{'  ' * process.depth}{_HOW.get(process.relation, '')}{command}"
        command += "" if how == "exit status 0" else f" ({how})"
        return table.row(str(process.pid or "?"), *cells * is_clocked, size(process.peak(measure)), command).rstrip()

    title = f"Processes, at the peak of their sum ({moment(at.time, 'ms')})" if is_clocked else "Processes"
    lines = heading(title) + [table.head.rstrip()]
    lines += [row(process) for process in job.members if id(process.profile) in kept]
    if len(kept) < len(job.members):
        lines.append(f"and {len(job.members) - len(kept):,} smaller: --all")
    if is_clocked:
        sums = ["", "", *(size(at.on(column)) for column in columns), "", ""]
        lines.append(Line((table.row("sum", *sums).rstrip(), SUM)))
    return lines


def _notes(job: Processes) -> Lines:
    sentences = [dismissed(job, NamesOf())]
    if job.orphans:
        pids = ", ".join(str(process.pid) for process in job.orphans)
        sentences.append(f"Processes forked from one without a trace here: {pids}.")
    if len(job.machines) > 1 and not job.no_clock:
        machines = printable(", ".join(job.machines))
        sentences.append(f"The clocks of {len(job.machines)} machines ({machines}) are taken to agree.")
    text = " ".join(sentence for sentence in sentences if sentence)
    return [""] + paragraph(text) if text else []


def _graph(job: Processes, view: View) -> Lines:
    rows = job.timeline()
    lines: Lines = []
    for measure in job.measures if rows else ():
        is_on = [measure != "device", measure != "host"]
        points = [Point(row.time, row.host * is_on[0], row.device * is_on[1], 0) for row in rows]
        points = [point._replace(maximum=point.host + point.device) for point in points]
        at = job.peak(measure)
        of = "sum" if len(job.measures) == 1 else f"sum of {measure} memory"
        caption = f"peak of the {of}: {size(at.on(measure))} at {moment(at.time, 'ms')}"
        lines += [""] + draw(
            points, view.width, view.height or (_SHORT_HEIGHT if view.is_brief else _HEIGHT), "ms", caption
        )
    drawn = "".join(lines)
    return (
        lines + [legend(entry for entry in (f"{HOST} host", f"{DEVICE} device") if entry[0] in drawn)] if lines else []
    )


def _by_owner(job: Processes, is_brief: bool) -> Lines:
    at = job.main_peak
    table = ledger_of(at)
    if not table.groups:
        return []
    is_sum = len(job.sides) == 1 or not job.is_discrete
    lines = heading(f"By owner, in all processes, at {moment(at.time, 'ms')}")
    lines += groups_table(job.sides, is_sum, table, _LEAST_OWNER if is_brief else 0.0)
    more = adjustments(at)
    rest = "shared with other processes (about)" if more.rest < 0 else "copied by forks, free inside malloc (about)"
    rows = [(label, n_bytes) for label, n_bytes in zip(("allocated, never written", rest), more) if n_bytes]
    if rows and is_sum:
        shown = Table(Column("", 46, align="<"), Column("", 15))
        lines += [shown.row(f"{'+' if n_bytes > 0 else '-'} {label}", f"{abs(n_bytes):,}") for label, n_bytes in rows]
        lines.append(Line((shown.row("= the sum", f"{at.on('total'):,}"), SUM)))
    return lines


def write(job: Processes, view_of: Callable[[Profile], View], is_each: bool = False) -> Iterator[str]:
    """The report's lines; `is_each` adds the reports of all processes, not of the largest one only. Raises SelectionError."""
    largest = job.largest()
    view = view_of(largest.profile)
    chosen = job.members if is_each else [largest]
    lines = _headline_lines(headline_of_job(job)) + _notes(job) + _graph(job, view)
    lines += _table(job, view.is_brief) + ([] if job.no_clock else _by_owner(job, view.is_brief))
    yield from lines
    for process in chosen:
        which = "the largest process; --each shows all" if len(chosen) == 1 else f"the trace {printable(process.name)}"
        title = paragraph(f"Process {process.pid or '?'}, {which}")
        yield from ["", *(Line((line, HEADING)) for line in ("=" * PAGE, *title, "=" * PAGE))]
        room = report.TWO_SCREENS - (0 if is_each else len(lines) + len(title) + 3)
        yield from report.write(process.profile, view_of(process.profile), max(room, _LEAST_ROOM))
