# SPDX-License-Identifier: GPL-2.0-or-later
"""The text report of several traces: a table of the processes and their sum, then the report of the largest one."""

from typing import Callable, Iterator, List

from jmassif.analysis.processes import NamesOf, Processes, ledger_of
from jmassif.analysis.processes_headline import bounds, dismissed, headline_of_job, largest, main_measure, measures
from jmassif.analysis.run_info import ending, used_sides
from jmassif.model.processes import FORKED, REPLACED, Process
from jmassif.model.run import Profile
from jmassif.render import text as report
from jmassif.render.graph import BETWEEN, DEVICE, HOST, Point, draw, legend
from jmassif.render.layout import HEADING, PAGE, Column, Line, Lines, Table, heading, paragraph
from jmassif.render.owners import groups_table
from jmassif.render.text import headline_lines
from jmassif.render.view import View
from jmassif.units import moment, printable, size


_COMMAND_SHOWN = 60
_HEIGHT = 11
# Of a report that is not asked for more.
_SHORT_HEIGHT = 6
_MOST_ROWS = 12
_LEAST_OWNER = 0.01
_LEAST_ROOM = 40  # for the largest process
_HOW = {FORKED: "fork: ", REPLACED: "exec: "}


def _sides(processes: Processes) -> List[str]:
    used = {side for process in processes.members for side in used_sides(process.profile)}
    return [side for side in ("host", "device") if side in used]


def _command(process: Process) -> str:
    words = printable(process.profile.manifest.get("command", "") or process.name)
    if len(words) > _COMMAND_SHOWN:
        words = f"{words[: _COMMAND_SHOWN - 1]}…"
    how = ending(process.profile)
    return f"{'  ' * process.depth}{_HOW.get(process.relation, '')}{words}" + (
        "" if how == "exit status 0" else f" ({how})"
    )


def _shown(processes: Processes, most: int) -> List[Process]:
    """Those that held most, in the order of their tree."""
    measure = main_measure(processes)
    ranked = sorted(processes.members, key=lambda process: -processes.own_peak(process, measure))
    kept = {id(process.profile) for process in ranked[:most]}
    return [process for process in processes.members if id(process.profile) in kept]


def _table(processes: Processes, is_brief: bool) -> Lines:
    sides = _sides(processes)
    columns = sides + ["total"] * (len(sides) > 1 and not processes.is_discrete)
    has_forks = any(process.is_fork for process in processes.members)
    has_clock = not processes.no_clock

    heads = ["began", "ended"] if has_clock else []
    heads += [f"{column} peak" if column != "total" else "peak" for column in columns]
    heads += ["inherited"] if has_forks else []
    table = Table(Column("pid", 9), *(Column(head, 12) for head in heads), Column("command", gap=2))

    def row(process: Process) -> str:
        cells = [moment(process.begin, "ms"), moment(process.end, "ms")] if has_clock else []
        cells += [size(process.peak(column)) for column in columns]
        if has_forks:
            cells.append(size(process.inherited_bytes) if process.is_fork else "")
        return table.row(str(process.pid or "?"), *cells, _command(process)).rstrip()

    shown = _shown(processes, _MOST_ROWS if is_brief else len(processes.members))
    lines = heading("Processes") + [table.head] + [row(process) for process in shown]
    n_left_out = len(processes.members) - len(shown)
    return lines + ([f"and {n_left_out:,} more, which held less: --all"] if n_left_out else [])


def _sum(processes: Processes) -> Lines:
    """What the headline's sum does not say: the other pool's, and what to think of a range."""
    sentences: List[str] = []
    pools = measures(processes)
    has_forks = any(process.relation == FORKED for process in processes.members)
    for measure in pools[:-1]:
        peak = processes.peak(measure)
        when = "" if processes.no_clock else f" ({moment(peak.time, 'ms')})"
        sentences.append(f"Of {measure} memory they held {bounds(peak)} at the most{when}.")
    if processes.no_clock:
        sentences.append(f"When each of them held it is not comparable, because {processes.no_clock}.")
    elif any(" to " in bounds(processes.peak(measure)) for measure in pools):
        reason = "It is a range because between two records a trace tells no more than its largest total"
        sentences.append(f"{reason}, and not which of a file's pages a fork shares." if has_forks else f"{reason}.")
    if has_forks:
        sentences.append("What a fork inherited is counted once, as long as nobody has written to it.")
    sentences.append(dismissed(processes, NamesOf()))
    if processes.orphans:
        pids = ", ".join(str(process.pid) for process in processes.orphans)
        sentences.append(
            f"The traces that {pids} were forked from are not here: what they inherited counts in each of them."
        )
    if len(processes.machines) > 1 and not processes.no_clock:
        machines = printable(", ".join(processes.machines))
        sentences.append(
            f"The processes ran on {len(processes.machines)} machines ({machines}), whose clocks are taken to agree."
        )
    text = " ".join(sentence for sentence in sentences if sentence)
    return [""] + paragraph(text) if text else []


def _graph(processes: Processes, view: View) -> Lines:
    rows = processes.timeline()
    if not rows:
        return []
    lines: Lines = []
    pools = measures(processes)
    for measure in pools:
        peak = processes.peak(measure)
        if measure == "total":
            points = [Point(*row) for row in rows]
        elif measure == "host":
            points = [Point(row.time, row.host, 0, min(row.maximum, peak.at_most)) for row in rows]
        else:
            points = [Point(row.time, 0, row.device, min(row.maximum, peak.at_most)) for row in rows]
        if len(pools) > 1:  # the largest sum of both pools says nothing of one
            points = [point._replace(maximum=point.host + point.device) for point in points]
        what = f"sum of {measure} memory" if len(pools) > 1 else "sum"
        caption = f"peak of the {what}: {bounds(peak)} at {moment(peak.time, 'ms')}"
        height = view.height or (_SHORT_HEIGHT if view.is_brief else _HEIGHT)
        lines += [""] + draw(points, view.width, height, "ms", caption)
    drawn = "".join(lines)
    entries = [f"{HOST} host", f"{DEVICE} device", f"{BETWEEN} reached between two samples, at most"]
    return lines + [legend(entry for entry in entries if entry[0] in drawn)]


def _by_owner(processes: Processes, is_brief: bool) -> Lines:
    if processes.no_clock:
        return []
    measure = main_measure(processes)
    time = processes.peak(measure).time
    table = ledger_of(processes, time, measure)
    if not table.groups:
        return []
    sides = _sides(processes)
    lines = heading(f"Where the memory went, in all processes, at {moment(time, 'ms')}")
    least = _LEAST_OWNER if is_brief else 0.0
    lines += groups_table(sides, len(sides) == 1 or not processes.is_discrete, table, least)
    return lines + paragraph("Of each process: what it told last, at a snapshot or a peak.")


def _of(process: Process, n: int) -> Lines:
    which = "the largest process; --each shows all of them" if n == 1 else f"the trace {printable(process.name)}"
    title = f"Process {process.pid or '?'}, {which}"
    return ["", *(Line((line, HEADING)) for line in ("=" * PAGE, *paragraph(title), "=" * PAGE))]


def write(processes: Processes, view_of: Callable[[Profile], View], is_each: bool = False) -> Iterator[str]:
    """The report's lines; `is_each` adds the reports of all processes, not of the largest one only. Raises SelectionError."""
    view = view_of(largest(processes).profile)
    chosen = processes.members if is_each else [largest(processes)]
    lines = headline_lines(headline_of_job(processes)) + _sum(processes) + _graph(processes, view)
    lines += _table(processes, view.is_brief) + _by_owner(processes, view.is_brief)
    yield from lines
    for process in chosen:
        title = _of(process, len(chosen))
        room = report.TWO_SCREENS - (0 if is_each else len(lines) + len(title))
        yield from title
        yield from report.write(process.profile, view_of(process.profile), max(room, _LEAST_ROOM))
