# SPDX-License-Identifier: GPL-2.0-or-later
"""The report for a terminal: the answer on the first screen, the evidence below it.

Sections come in the order in which a reader asks: what ran, where the memory went, when, whose it is, what the start
cost, what went wrong, and last the stacks. A section without content is left out.
"""

from shlex import quote
from typing import Iterable, Iterator, List, Tuple

from jmassif.analysis.aggregate import Ledger, ledger, roles
from jmassif.analysis.headline import HAPPENED, HELP, LEAK, PLACE, POOL, WHOSE, Headline, headline, words
from jmassif.analysis.moments import Moment, select, whole_at
from jmassif.analysis.regions import growth_by_side, waterfall
from jmassif.analysis.run_info import about, used_sides, where_arenas_are
from jmassif.analysis.run_outcome import NOTE
from jmassif.analysis.system import was_short
from jmassif.attribution.names import Names
from jmassif.attribution.views import LINE_VIEWS
from jmassif.model.records import Growth
from jmassif.model.run import Profile
from jmassif.render.events import (
    failures,
    marks,
    regions,
    snapshots,
    snapshots_in_a_sentence,
    temporaries,
    without_size,
)
from jmassif.render.graph import BETWEEN, DEVICE, HOST, draw, legend, one_pool, timeline_points
from jmassif.render.ladder import ladder_section
from jmassif.render.layout import (
    BRIEF,
    COMMAND,
    FULL,
    LABEL,
    PAGE,
    WARNING,
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
from jmassif.render.leaks import growing_section, held_section
from jmassif.render.lines import largest_lines, threads_section, write_lines
from jmassif.render.oom import exhaustion_sections, write_segments
from jmassif.render.owners import groups_table, rows_table
from jmassif.render.range_diff import write_range
from jmassif.render.sizes import write_sizes
from jmassif.render.stacks import trees
from jmassif.render.system import by_library, machine_section, mapped, others_section, reconciliation_section
from jmassif.render.view import View
from jmassif.render.words import OWNERS
from jmassif.units import count, growth, moment, percent, printable, size


# ---- header ----
# The head of a text report: what ran, where, and how it ended.

_WARNINGS = ("Stopped", "Truncated")
# What a reader wants to be sure of before anything else.
_FIRST = ("Command", "Run") + _WARNINGS
# What --all adds to the other facts.
_LONG = ("Packages", "Environment")


def _facts(facts: Iterable[Tuple[str, str]]) -> Lines:
    """A line, or more, a fact."""
    lines: Lines = []
    for name, text in facts:
        rows = wrapped(printable(text), PAGE - 13) or [""]
        role = WARNING if name in _WARNINGS else ""
        lines.append(Line((f"{name + ':':<13}", LABEL), (rows[0], role)))
        lines += [" " * 13 + rest for rest in rows[1:]]
    return lines


def header(profile: Profile) -> Lines:
    return _facts(about(profile))


def short_header(profile: Profile) -> Lines:
    return _facts((name, text) for name, text in about(profile) if name in _FIRST)


def other_facts(profile: Profile) -> Lines:
    """The section with what a short header leaves out."""
    lines = _facts((name, text) for name, text in about(profile) if name not in _FIRST + _LONG)
    return heading("Machine and software") + lines if lines else []


# ---- headline ----
# The headline of a text report: what went wrong stands out, and the rest is a paragraph.


def _alarm(text: str) -> Lines:
    return [Line((line, WARNING)) for line in paragraph(f"!!! {text}")]


def headline_lines(made: Headline, with_owners: bool = True) -> Lines:
    """Paragraphs: each thing that happened, the answer, what leaks, and what would help.

    `with_owners`: say in words whose the memory is, which the ladder shows in rows.
    """
    lines: List[str] = []
    for statement in made.about(HAPPENED):
        lines += paragraph(statement.text) if statement.severity == NOTE else _alarm(statement.text)
        lines.append("")
    lines += paragraph(words(made, POOL, *((WHOSE,) if with_owners else ()), PLACE))
    for statement in made.about(LEAK):
        lines += [""] + _alarm(statement.text)
    for statement in made.about(HELP):
        lines += [""] + paragraph(statement.text)
    return lines


# ---- next steps ----
# The end of a text report: the commands that answer what a reader asks next, ready to be run.

# Where a name is longer the commands have a line for themselves.
_REMARKS_UP_TO = 100


def _steps(profile: Profile, name: str) -> List[Tuple[str, str]]:
    is_python = any(frame[0] == "p" for frame in profile.frames.values())
    steps = [(f"jm_print --by=python-line {name}", "what each line of the script held")] if is_python else []
    return steps + [
        (f"jm_print --stacks {name}", "the call stacks"),
        (f"jm_diff {name} OTHER", "what another run holds more"),
        (f"jm_print --format=html --open {name}", "all of it, as a page to click through"),
    ]


def next_steps(profile: Profile, view: View) -> Lines:
    """Empty where the trace has no name, as when it came through a pipe."""
    if not view.file:
        return []
    steps = _steps(profile, quote(printable(view.file)))
    width = max(len(command) for command, _ in steps)
    has_remarks = width + max(len(remark) for _, remark in steps) + 8 <= (view.columns or _REMARKS_UP_TO)
    lines: Lines = [""]
    for command, remark in steps:
        start = "Next: " if len(lines) == 1 else "      "
        rest = f"{' ' * (width - len(command))}  {remark}" if has_remarks else ""
        lines.append(Line(start, (command, COMMAND), rest))
    return lines


# ---- report ----

_SCOPES_SHOWN = 16
_THREADS_SHOWN = 40  # where they are asked for
_HEIGHT_OF_ONE_GRAPH = 11
_HEIGHT_OF_TWO_GRAPHS = 7
_SHORT_GRAPH = 6
# Lines of a report that is not asked for more: what is wrapped or said besides finds room on two screens of 60.
TWO_SCREENS = 112
# Of all that is held: owners with less are one row there.
_LEAST_OWNER = 0.01


# ---- when ------------------------------------------------------------------------------------


def _graph(profile: Profile, view: View) -> Lines:
    one, two = (_SHORT_GRAPH, _SHORT_GRAPH) if view.is_brief else (_HEIGHT_OF_ONE_GRAPH, _HEIGHT_OF_TWO_GRAPHS)
    points = timeline_points(profile)
    if not points:
        return []
    unit = profile.time_unit
    has_host = any(point.host for point in points)
    has_device = any(point.device for point in points)
    if profile.is_discrete and has_device and has_host:
        lines: Lines = []
        for side in ("device", "host"):
            pool = one_pool(points, side)
            top = max(pool, key=lambda point: point.maximum)
            caption = f"{side} peak: {size(top.maximum)} at {moment(top.time, unit)}"
            height = view.height or two
            lines += [""] + draw(pool, view.width, height, unit, caption)
        return lines
    top = max(points, key=lambda point: point.maximum)
    caption = f"peak: {size(top.maximum)} at {moment(top.time, unit)}"
    lines = [""] + draw(points, view.width, view.height or one, unit, caption)
    entries = [
        f"{HOST} host" if has_host else "",
        f"{DEVICE} device" if has_device else "",
        f"{BETWEEN} reached between two samples" if any(BETWEEN in line for line in lines) else "",
    ]
    return lines + [legend(entry for entry in entries if entry)]


def _by_owner(profile: Profile, table: Ledger, extent: Extent) -> Lines:
    """The ledger: owners by group."""
    sides = used_sides(profile)
    least = 0.0 if extent is FULL else _LEAST_OWNER
    lines = groups_table(sides, len(sides) == 1 or not profile.is_discrete, table, least)
    if table.imported_bytes or table.imported_blocks:
        imported = f"{size(table.imported_bytes)} in {count(table.imported_blocks, 'block')}"
        lines.append(f"Also mapped, and in no sum: {imported} imported from other processes.")
    return lines


def _headline(profile: Profile, names: Names, chosen: Moment) -> Lines:
    when = moment(chosen.time, profile.time_unit)
    title = heading(f"Where the memory went, at {chosen.name} ({when})")
    ladder = ladder_section(profile, chosen)
    return title + headline_lines(headline(profile, names, chosen), not ladder) + ladder


def _legend(table: Ledger, most: int) -> Lines:
    """What the largest owners are."""
    owners = sorted(table.owners, key=lambda owner: -owner.bytes)
    known = [owner.name for owner in owners if owner.name in OWNERS and owner.bytes >= _LEAST_OWNER * table.total.bytes]
    return paragraph("; ".join(f"{name}: {OWNERS[name]}" for name in known[:most]) + ".") if known else []


def _ledger(profile: Profile, chosen: Moment, extent: Extent) -> Lines:
    table = ledger(profile, chosen.composition)
    if not table.groups and not table.imported_blocks:
        return []
    lines = heading(f"By owner, at {chosen.name}") + _by_owner(profile, table, extent)
    lines += _legend(table, extent.rows)
    return lines + (paragraph(where_arenas_are(profile)) if extent is FULL else [])


def _by_role(profile: Profile, chosen: Moment) -> Lines:
    rows = roles(profile, chosen.composition)
    if not rows:
        return []
    sides = used_sides(profile)
    return heading(f"Tensors by role, at {chosen.name}") + rows_table(
        sides, len(sides) == 1 or not profile.is_discrete, rows, "all tensors"
    )


# ---- what the start cost ---------------------------------------------------------------------


def _kinds(growths: Tuple[Growth, ...]) -> str:
    parts = sorted(growths, key=lambda part: (-abs(part.bytes), part.kind))
    return ", ".join(f"{part.kind} {growth(part.bytes)}" for part in parts if part.bytes)


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
    lines = heading("What start-up calls cost") + [_SCOPES.head]

    def row(at: str, took: int, growths: Tuple[Growth, ...], call: str) -> str:
        host, device = growth_by_side(growths)
        kinds = _kinds(growths)
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


def _sections(profile: Profile, names: Names, chosen: Moment, view: View, extent: Extent) -> Iterator[Section]:
    """What stands below the first screen, in the order in which a reader asks."""
    is_brief = extent is not FULL
    has_libraries = view.by == "library"
    yield Section(0, exhaustion_sections(profile, names, extent))
    yield Section(0, _ledger(profile, chosen, extent))
    yield Section(1, _by_role(profile, chosen))
    yield Section(0, largest_lines(profile, names, chosen, view, extent.rows) if is_brief else [])
    has_threads = view.by == "thread"
    room = extent._replace(rows=_THREADS_SHOWN) if has_threads and is_brief else extent
    by_thread = threads_section(profile, names, chosen, room, view.fold != "none")
    yield Section(0 if has_threads else 1, by_thread)
    mapped_ = by_library(profile, names, chosen) if has_libraries else mapped(profile, names, chosen, extent)
    yield Section(0 if has_libraries else 2, mapped_)
    yield Section(1, reconciliation_section(profile, chosen))
    yield Section(1 if profile.overlay else 2, others_section(profile, chosen))
    yield Section(3 if was_short(profile) is None else 0, machine_section(profile, chosen.name, chosen.time, extent))
    yield Section(2, _scopes(profile, extent))
    yield Section(2, without_size(profile))
    yield Section(1, failures(profile, extent))
    yield Section(1, regions(profile, extent))
    yield Section(3, marks(profile, extent))
    yield Section(0, growing_section(profile, names, extent))
    yield Section(1, held_section(profile, names, extent))
    yield Section(4, temporaries(profile, names, extent))
    yield Section(3, snapshots_in_a_sentence(profile) if is_brief else snapshots(profile))
    yield Section(3, other_facts(profile) if is_brief else [])


def _other_report(profile: Profile, names: Names, view: View) -> Lines:
    """What the user asked for in the report's place; empty: nothing."""
    if view.range is not None:
        return write_range(profile, names, view)
    if view.sizes:
        return write_sizes(profile, names, view)
    if profile.kept is not None and view.by not in LINE_VIEWS:
        return _narrowed(profile, names, view)
    return []


def _narrowed(profile: Profile, names: Names, view: View) -> Lines:
    """The report on a part of the memory: no total of the run or of the machine is in it, but what it is a part of."""
    chosen = select(profile, view.selector or "peak")
    extent = BRIEF if view.is_brief else FULL
    held = ledger(profile, chosen.composition).total.bytes
    all_ = whole_at(profile, chosen)
    lines = heading(
        f"Only what --include and --exclude leave, at {chosen.name} ({moment(chosen.time, profile.time_unit)})"
    )
    lines += paragraph(f"{size(held)} of {size(all_)}, {percent(held, all_)} of all that was held then.")
    lines += _ledger(profile, chosen, FULL) + _by_role(profile, chosen)
    lines += threads_section(profile, names, chosen, extent, view.fold != "none")
    lines += largest_lines(profile, names, chosen, view, extent.rows)
    return lines + (trees(profile, names, chosen, view) if view.with_stacks or view.is_brief else [])


def write(profile: Profile, view: View, room: int = TWO_SCREENS) -> Iterator[str]:
    """The report's lines, as a rule no more than `room` if it is to be brief. Raises moments.SelectionError."""
    names = Names(profile)
    in_its_place = _other_report(profile, names, view)
    if in_its_place:
        yield from short_header(profile) if view.is_brief else header(profile)
        yield from in_its_place
        return
    if view.by in LINE_VIEWS:
        table = write_lines(profile, names, view)
        yield from short_header(profile) if view.is_brief else header(profile)
        yield from table
        return
    if view.segments is not None:
        map_ = list(write_segments(profile, view.segments, view.selector))
        yield from short_header(profile) if view.is_brief else header(profile)
        yield from map_
        return
    chosen = select(profile, view.selector or "peak")
    extent = BRIEF if view.is_brief else FULL
    first = short_header(profile) if view.is_brief else header(profile)
    first += _headline(profile, names, chosen) + _graph(profile, view)
    sections = _sections(profile, names, chosen, view, extent)
    last = next_steps(profile, view)
    brief = bounded(sections, room - len(first) - len(last)) if view.is_brief else []
    yield from first
    yield from brief
    if not view.is_brief:
        for section in sections:
            yield from section.lines
    if view.with_stacks:
        yield from trees(profile, names, chosen, view)
    yield from last
