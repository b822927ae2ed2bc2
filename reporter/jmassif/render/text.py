# SPDX-License-Identifier: GPL-2.0-or-later
"""The report for a terminal: the answer on the first screen, the evidence below it.

Sections come in the order in which a reader asks: what ran, where the memory went, when, by owner, the start-up
cost, what went wrong, and last the stacks. A section without content is left out.
"""

from shlex import quote
from typing import Callable, Dict, Iterator, Sequence, Tuple

from jmassif.analysis.moments import Moment
from jmassif.analysis.processes import join
from jmassif.analysis.regions import waterfall
from jmassif.analysis.summary import ALARM, NOTE, Ledger, Report, build_report, moment_of
from jmassif.attribution.names import Names
from jmassif.attribution.views import LINE_VIEWS
from jmassif.model.records import Growth, growth_by_side
from jmassif.model.run import Profile
from jmassif.model.run_info import about
from jmassif.render.events import (
    failures,
    marks,
    regions,
    snapshots,
    snapshots_in_a_sentence,
    temporaries,
    without_size,
)
from jmassif.render.graph import BETWEEN, DEVICE, HOST, Point, draw, legend, one_pool, timeline_points
from jmassif.render.ladder import ladder_section
from jmassif.render.layout import (
    BRIEF,
    COMMAND,
    FULL,
    LABEL,
    PAGE,
    WARNING,
    WORDS,
    Column,
    Extent,
    Line,
    Lines,
    Section,
    Table,
    bounded,
    heading,
    paragraph,
    wrapped,
)
from jmassif.render.leaking import growing_section, held_section
from jmassif.render.lines import lines_section, threads_section, trees, write_lines, write_sizes
from jmassif.render.failures import oom_sections, write_segments
from jmassif.render.owners import groups_table, rows_table
from jmassif.render.ranges import write_range
from jmassif.render.sources import sources_of
from jmassif.render.summary import filtered, findings, other_moment, remarks, verdict, where_arenas_are
from jmassif.render.system import balance_section, by_library, machine_section, mapped, others_section
from jmassif.render.view import View
from jmassif.render.words import OWNERS
from jmassif.units import count, growth, moment, printable, size


# ---- header ----
# The head of a text report: what ran, where, and how it ended.

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
            rows = wrapped(printable(text), PAGE - 13) or [""]
            role = WARNING if name in _WARNINGS else ""
            lines.append(Line((f"{name + ':':<13}", LABEL), (rows[0], role)))
            lines += [" " * 13 + rest for rest in rows[1:]]
    return lines


def _other_facts(report: Report) -> Lines:
    """The section with what a short header leaves out."""
    lines = _facts(report.run.facts, lambda name: name not in _FIRST + _LONG)
    return heading("Machine and software") + lines if lines else []


# ---- the first screen ----
# The verdict, at most three findings, the ladder, the largest lines, and the commands that show more.


# The sentences of the first screen are as wide as its tables.
_WIDE = 100


def _more(report: Report, view: View) -> Lines:
    """Empty where the trace has no name, as when it came through a pipe."""
    if not view.file:
        return []
    name = quote(printable(view.file))
    by_line = " | --by=python-line" if report.run.has_python else ""
    commands = (f"jmassif report {name} --all{by_line} | --stacks", f"jmassif report {name} --html --open")
    return [""] + [Line(f"{what}: ", (text, COMMAND)) for what, text in zip(("More", "Page"), commands)]


def first_screen(profile: Profile, report: Report, view: View) -> Lines:
    role = WARNING if report.outcome.severity == ALARM else WORDS
    lines: Lines = [Line((line, role)) for line in wrapped(verdict(report), _WIDE)]
    for remark in remarks(report):
        alarm: Lines = [Line((line, WARNING)) for line in wrapped(f"!!! {remark.text}", _WIDE)]
        lines += paragraph(remark.text) if remark.severity == NOTE else alarm
    for text in filter(None, (filtered(report), other_moment(report))):
        lines += paragraph(text)
    for finding in findings(report):
        lines += ["", *(Line((f"  {line}", WORDS)) for line in wrapped(finding.text, _WIDE - 4))]
    sources = sources_of(profile, view.source)
    return lines + ladder_section(report) + lines_section(report, sources) + _more(report, view)


# ---- report ----

_SCOPES_SHOWN = 16
_THREADS_SHOWN = 40  # where they are asked for
_HEIGHT_OF_ONE_GRAPH = 11
_HEIGHT_OF_TWO_GRAPHS = 7
_SHORT_GRAPH = 6
# Lines of a report that is not asked for more: what is wrapped or said besides finds room on two screens of 60.
TWO_SCREENS = 112
# Share of all memory: owners with less are one row there.
_LEAST_OWNER = 0.01


# ---- when ------------------------------------------------------------------------------------


def graph(points: Sequence[Point], is_discrete: bool, unit: str, view: View) -> Lines:
    used = [side for side in ("device", "host") if any(getattr(point, side) for point in points)]
    is_split = is_discrete and len(used) == 2
    usual = _SHORT_GRAPH if view.is_brief else _HEIGHT_OF_TWO_GRAPHS if is_split else _HEIGHT_OF_ONE_GRAPH
    pools: Dict[str, Sequence[Point]] = {"": points} if points else {}
    if is_split:
        pools = {f"{side} ": one_pool(points, side) for side in used}
    lines: Lines = []
    for name, pool in pools.items():
        top = max(pool, key=lambda point: point.maximum)
        caption = f"{name}peak: {size(top.maximum)} at {moment(top.time, unit)}"
        lines += [""] + draw(pool, view.width, view.height or usual, unit, caption)
    if is_split or not lines:
        return lines
    entries = [f"{bar} {side}" for side, bar in (("host", HOST), ("device", DEVICE)) if side in used]
    has_more = any(BETWEEN in line for line in lines)
    return lines + [legend(entries + ([f"{BETWEEN} reached between two samples"] if has_more else []))]


def _by_owner(report: Report, extent: Extent) -> Lines:
    """The ledger: owners by group."""
    table = report.ledger
    if not table.groups and not table.imported_blocks:
        return []
    least = 0.0 if extent is FULL else _LEAST_OWNER
    lines = heading(f"By owner, at {report.moment.name}")
    lines += groups_table(report.run.sides, len(report.wholes) == 1, table, least)
    if table.imported_bytes or table.imported_blocks:
        imported = f"{size(table.imported_bytes)} in {count(table.imported_blocks, 'block')}"
        lines.append(f"Not counted: {imported} imported from other processes.")
    if report.moment.pages_of is not None:
        when = moment(report.moment.pages_of, report.run.time_unit)
        lines += paragraph(f"Pages of files and mappings are those of {when}, when they were sampled last.")
    return lines + _legend(table, extent.rows)


def _legend(table: Ledger, most: int) -> Lines:
    """Descriptions of the largest owners."""
    owners = sorted(table.owners, key=lambda owner: -owner.bytes)
    known = [owner.name for owner in owners if owner.name in OWNERS and owner.bytes >= _LEAST_OWNER * table.total.bytes]
    return paragraph("; ".join(f"{name}: {OWNERS[name]}" for name in known[:most]) + ".") if known else []


def _by_role(report: Report) -> Lines:
    if not report.roles:
        return []
    title = heading(f"Tensors by role, at {report.moment.name}")
    return title + rows_table(report.run.sides, len(report.wholes) == 1, report.roles, "all tensors")


# ---- what the start cost ---------------------------------------------------------------------


_SCOPES = Table(
    Column("at", 11),
    Column("took", 10, gap=1),
    Column("host", 10, gap=1),
    Column("device", 10, gap=1),
    Column("call: net growth by kind", gap=2),
)


def _scopes(profile: Profile, extent: Extent) -> Lines:
    if not profile.scopes and not profile.scope_sums:
        return []
    unit = profile.time_unit
    lines = heading("Start-up cost") + [_SCOPES.head]

    def row(at: str, took: int, growths: Tuple[Growth, ...], call: str) -> str:
        host, device = growth_by_side(growths)
        parts = sorted(growths, key=lambda part: (-abs(part.bytes), part.kind))
        kinds = ", ".join(f"{part.kind} {growth(part.bytes)}" for part in parts if part.bytes)
        text = f"{call}: {kinds}" if kinds else call
        return _SCOPES.row(at, moment(took, unit), growth(host), growth(device), text)

    fall = waterfall(profile, extent.of(_SCOPES_SHOWN))
    for scope, depth in fall.rows:
        call = "  " * depth + printable(scope.name)
        lines.append(row(moment(scope.begin, unit), scope.end - scope.begin, scope.growths, call))
    if fall.n_left_out:
        calls = count(fall.n_left_out, "more call")
        lines.append(f"and {calls} that cost less, {growth(fall.left_out_bytes)} in all{extent.hint}")
    sums = sorted(profile.scope_sums.values(), key=lambda total: -total.calls)
    for total in sums[: extent.of(len(sums)) // (1 if extent is FULL else 2)]:
        call = f"{printable(total.name)}, {count(total.calls, 'call')}"
        lines.append(row("many times", total.time, total.growths, call))
    return lines


def _sections(profile: Profile, names: Names, chosen: Moment, report: Report, view: View) -> Iterator[Section]:
    """The sections below the first screen, in the order in which a reader asks."""
    extent = BRIEF if view.is_brief else FULL
    has_libraries, has_threads = view.by == "library", view.by == "thread"
    yield Section(0, oom_sections(profile, names, report, extent))
    yield Section(0, _by_owner(report, extent) + ([] if view.is_brief else paragraph(where_arenas_are(profile))))
    yield Section(1, _by_role(report))
    room = extent._replace(rows=_THREADS_SHOWN) if has_threads and view.is_brief else extent
    yield Section(0 if has_threads else 1, threads_section(profile, names, chosen, room, view.fold != "none"))
    mapped_ = by_library(profile, names, chosen, report) if has_libraries else mapped(report, extent)
    yield Section(0 if has_libraries else 2, mapped_)
    yield Section(1, balance_section(profile, report))
    yield Section(1 if profile.overlay else 2, others_section(report))
    yield Section(3 if report.outcome.short_at is None else 0, machine_section(report, extent))
    yield Section(2, _scopes(profile, extent))
    yield Section(2, without_size(profile))
    yield Section(1, failures(profile, extent))
    yield Section(1, regions(report, extent))
    yield Section(3, marks(profile, extent))
    yield Section(0, growing_section(report, extent))
    yield Section(1, held_section(report, extent))
    yield Section(4, temporaries(report, extent))
    yield Section(3, snapshots_in_a_sentence(profile) if view.is_brief else snapshots(profile))
    yield Section(3, _other_facts(report) if view.is_brief else [])


def _other_report(profile: Profile, names: Names, view: View) -> Lines:
    """The report that the user asked for in the place of this one; empty: none."""
    if view.range is not None:
        return write_range(join([("", profile)]), view)
    if view.sizes:
        return write_sizes(profile, names, view)
    if view.by in LINE_VIEWS:
        return write_lines(profile, names, view)
    return list(write_segments(profile, view.segments, view.selector)) if view.segments is not None else []


def _narrowed(profile: Profile, names: Names, chosen: Moment, report: Report, view: View) -> Lines:
    """The sections of a part of the memory: without totals of the run and of the machine."""
    extent = BRIEF if view.is_brief else FULL
    return (
        _by_owner(report, FULL)
        + _by_role(report)
        + threads_section(profile, names, chosen, extent, view.fold != "none")
        + (trees(profile, names, chosen, view) if view.with_stacks or view.is_brief else [])
    )


def write(profile: Profile, view: View, room: int = TWO_SCREENS) -> Iterator[str]:
    """The report's lines, as a rule no more than `room` if it is to be brief. Raises moments.SelectionError."""
    names = Names(profile)
    in_its_place = _other_report(profile, names, view)
    if in_its_place:
        yield from _facts(about(profile), lambda name: name in _FIRST or not view.is_brief)
        yield from in_its_place
        return
    chosen = moment_of(profile, names, view.selector)
    report = build_report(profile, chosen, names)
    first = first_screen(profile, report, view)
    yield from first
    if profile.kept is not None:
        yield from _narrowed(profile, names, chosen, report, view)
        return
    drawn = graph(timeline_points(profile), profile.is_discrete, profile.time_unit, view)
    yield from drawn
    sections = _sections(profile, names, chosen, report, view)
    if view.is_brief:
        yield from bounded(sections, room - len(first) - len(drawn))
    else:
        yield from [""] + _facts(report.run.facts)
        for section in sections:
            yield from section.lines
    if view.with_stacks:
        yield from trees(profile, names, chosen, view)
