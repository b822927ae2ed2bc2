# SPDX-License-Identifier: GPL-2.0-or-later
"""The report for a terminal: the answer on the first screen, the evidence below it."""

from shlex import quote
from typing import Callable, Dict, Iterator, Sequence, Tuple

from jmassif.analysis.summary import ALARM, NOTE, Report, build_report, moment_of
from jmassif.attribution.names import Names
from jmassif.attribution.views import LINE_VIEWS
from jmassif.model.run import Profile
from jmassif.model.run_info import about, recorded
from jmassif.render import events, failures, owners, system
from jmassif.render.graph import graph, timeline_points
from jmassif.render.ladder import ladder_section
from jmassif.render.layout import COMMAND, LABEL, PAGE, WARNING, WIDE, WORDS, Line, Lines
from jmassif.render.layout import Section, bounded, heading, paragraph, wrapped
from jmassif.render.lines import lines_section, trees, write_lines
from jmassif.render.sources import sources_of
from jmassif.render.summary import callers_text, filtered, findings, other_moment, remarks, verdict
from jmassif.render.view import View
from jmassif.units import printable

# Lines of a report that is not asked for more: what is wrapped or said besides finds room on two screens of 60.
TWO_SCREENS = 112


# ---- facts of the run --------------------------------------------------------------------------

_WARNINGS = ("Stopped", "Truncated")
# The verdict of a short report has these.
_FIRST = ("Command", "Run") + _WARNINGS
# Facts that --all adds.
_LONG = ("Packages", "Environment")


def _facts(facts: Sequence[Tuple[str, str]], is_shown: Callable[[str], bool] = lambda name: True) -> Lines:
    """A line, or more, a fact."""
    lines: Lines = []
    for name, text in facts:
        if is_shown(name):
            first, *others = wrapped(printable(text), PAGE - 13) or [""]
            lines.append(Line((f"{name + ':':<13}", LABEL), (first, WARNING if name in _WARNINGS else "")))
            lines += [" " * 13 + other for other in others]
    return lines


def _other_facts(report: Report, view: View) -> Lines:
    """The facts that the first screen leaves out."""
    lines = _facts(report.run.facts, lambda name: name not in _FIRST + _LONG)
    return heading("Machine and software") + lines if lines and view.is_brief else []


# ---- the first screen --------------------------------------------------------------------------


def _more(report: Report, view: View) -> Lines:
    """Commands that show more; none where the trace has no name, as when it came through a pipe."""
    if not view.file:
        return []
    name = quote(printable(view.file))
    by_line = " | --by=python-line" if report.run.has_python else ""
    commands = [("More", f"jmassif report {name} --all{by_line} | --stacks")]
    if report.is_of_failure:
        commands.append(("Peak", f"jmassif report {name} --snapshot=peak"))
    commands.append(("Page", f"jmassif report {name} --html --open"))
    return [""] + [Line(f"{what}: ", (text, COMMAND)) for what, text in commands]


def first_screen(report: Report, view: View) -> Lines:
    """The verdict, at most three findings, the ladder, and the largest lines."""
    lines = paragraph(verdict(report), WIDE, WARNING if report.outcome.severity == ALARM else WORDS)
    if report.run.name:
        lines.append(f"Command: {report.run.name}")
    how = recorded(report.profile)
    lines += paragraph(how[:1].upper() + how[1:])
    for remark in remarks(report):
        is_note = remark.severity == NOTE
        lines += paragraph(remark.text) if is_note else paragraph(f"!!! {remark.text}", WIDE, WARNING)
    lines += paragraph(filtered(report)) + paragraph(other_moment(report))
    for finding in findings(report):
        lines += [""] + paragraph(finding.text, WIDE - 4, indent="  ")
        called = callers_text(finding, WIDE - 4)
        lines += [f"  {called}"] if called else []
    sources = sources_of(report.profile, view.source)
    return lines + ladder_section(report) + lines_section(report, sources) + _more(report, view)


# ---- the sections below it ---------------------------------------------------------------------

# In the order in which a reader asks. Where a short report has no room, those of the highest rank are left out first.
_SECTIONS: Tuple[Tuple[int, Callable[[Report, View], Lines]], ...] = (
    (0, failures.out_of_memory),
    (0, owners.by_owner),
    (1, owners.by_role),
    (1, owners.by_part),
    (1, owners.by_thread),
    (2, events.held_twice),
    (2, system.mapped),
    (1, system.balance),
    (2, system.other_tools),
    (3, system.machine),
    (2, events.start_up),
    (2, events.without_size),
    (1, events.failed_calls),
    (1, events.regions),
    (3, events.marks),
    (0, events.growing),
    (1, events.held_at_exit),
    (4, events.temporaries),
    (3, events.snapshots),
    (3, _other_facts),
)


def _sections(report: Report, view: View) -> Iterator[Section]:
    first: Dict[Callable[..., Lines], bool] = {
        owners.by_part: view.by == "part",
        owners.by_thread: view.by == "thread",
        system.mapped: view.by == "library",
        system.machine: report.outcome.short_at is not None,
    }
    for rank, section in _SECTIONS:
        yield Section(0 if first.get(section) else rank, section(report, view))


# ---- report ------------------------------------------------------------------------------------


def _in_its_place(report: Report, view: View) -> Lines:
    """The report that the user asked for instead; empty: none."""
    if view.by in LINE_VIEWS:
        return write_lines(report, view)
    if view.held_twice:
        return events.write_held_twice(report, view)
    return failures.write_segments(report, view) if view.segments is not None else []


def write(profile: Profile, view: View, room: int = TWO_SCREENS) -> Iterator[str]:
    """The report's lines, as a rule no more than `room` if it is to be brief. Raises moments.SelectionError."""
    names = Names(profile)
    if view.range is not None:
        from jmassif.render.ranges import write_range

        other = write_range(profile, view)
    else:
        report = build_report(profile, moment_of(profile, names, view.selector), names)
        other = _in_its_place(report, view)
    if other:
        yield from _facts(about(profile), lambda name: name in _FIRST or not view.is_brief)
        yield from other
        return
    first = first_screen(report, view)
    yield from first
    if report.filter is not None:
        # Without totals of the run and of the machine.
        yield from owners.by_owner(report, view) + owners.by_role(report, view) + owners.by_thread(report, view)
    else:
        drawn = graph(timeline_points(profile), profile.is_discrete, profile.time_unit, view)
        yield from drawn
        if view.is_brief:
            yield from bounded(_sections(report, view), room - len(first) - len(drawn))
        else:
            yield from [""] + _facts(report.run.facts)
            for section in _sections(report, view):
                yield from section.lines
    if view.with_stacks or (report.filter is not None and view.is_brief):
        yield from trees(profile, names, report.at, view)
