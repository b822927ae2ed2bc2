# SPDX-License-Identifier: GPL-2.0-or-later
"""The report for a terminal: the answer on the first screen, the evidence below it.

Sections come in the order in which a reader asks: what ran, where the memory went, when, whose it is, what the start
cost, what went wrong, and last the stacks. A section without content is left out.
"""

from typing import Iterator, Tuple

from jmassif.model.profile import Profile
from jmassif.model.records import Growth
from jmassif.questions.about import used_sides, where_arenas_are
from jmassif.questions.headline import headline
from jmassif.questions.ledger import Ledger, ledger, roles
from jmassif.questions.moments import Moment, select
from jmassif.questions.scopes import growth_by_side, waterfall
from jmassif.units import count, growth, moment, printable, size
from jmassif.whose.lines import LINE_VIEWS
from jmassif.whose.names import Names
from jmassif.writers.text.events import failures, marks, regions, snapshots, temporaries
from jmassif.writers.text.exhaustion import exhaustion_sections
from jmassif.writers.text.graph import BETWEEN, DEVICE, HOST, draw, legend, one_pool, timeline_points
from jmassif.writers.text.header import header
from jmassif.writers.text.headline import headline_lines
from jmassif.writers.text.leaks import growing_section, held_section
from jmassif.writers.text.layout import Lines, heading, paragraph
from jmassif.writers.text.lines import write_lines
from jmassif.writers.text.machine import machine_section
from jmassif.writers.text.mapped import by_library, mapped
from jmassif.writers.text.reconciliation import reconciliation_section
from jmassif.writers.text.segments import write_segments
from jmassif.writers.text.stacks import trees
from jmassif.writers.text.table import Column, Table
from jmassif.writers.text.table_of_owners import groups_table, rows_table
from jmassif.writers.view import View

_SCOPES_SHOWN = 16
_HEIGHT_OF_ONE_GRAPH = 11
_HEIGHT_OF_TWO_GRAPHS = 7


# ---- when ------------------------------------------------------------------------------------


def _graph(profile: Profile, view: View) -> Lines:
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
            height = view.height or _HEIGHT_OF_TWO_GRAPHS
            lines += [""] + draw(pool, view.width, height, unit, caption)
        return lines
    top = max(points, key=lambda point: point.maximum)
    caption = f"peak: {size(top.maximum)} at {moment(top.time, unit)}"
    lines = [""] + draw(points, view.width, view.height or _HEIGHT_OF_ONE_GRAPH, unit, caption)
    entries = [
        f"{HOST} host" if has_host else "",
        f"{DEVICE} device" if has_device else "",
        f"{BETWEEN} reached between two samples" if any(BETWEEN in line for line in lines) else "",
    ]
    return lines + [legend(entry for entry in entries if entry)]


def _by_owner(profile: Profile, table: Ledger) -> Lines:
    """The ledger: owners by group."""
    sides = used_sides(profile)
    lines = groups_table(sides, len(sides) == 1 or not profile.is_discrete, table)
    if table.imported.bytes or table.imported.blocks:
        imported = f"{size(table.imported.bytes)} in {count(table.imported.blocks, 'block')}"
        lines.append(f"Also mapped, and in no sum: {imported} imported from other processes.")
    return lines


def _ledger(profile: Profile, names: Names, chosen: Moment) -> Lines:
    table = ledger(profile, chosen.composition)
    when = moment(chosen.time, profile.time_unit)
    lines = heading(f"Where the memory went, at {chosen.name} ({when})")
    lines += headline_lines(headline(profile, names, chosen))
    if table.groups or table.imported.blocks:
        lines += [""] + _by_owner(profile, table) + paragraph(where_arenas_are(profile))
    return lines


def _by_role(profile: Profile, chosen: Moment) -> Lines:
    rows, total = roles(profile, chosen.composition)
    if not rows:
        return []
    sides = used_sides(profile)
    return heading(f"Tensors by role, at {chosen.name}") + rows_table(
        sides, len(sides) == 1 or not profile.is_discrete, rows, total
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


def _scopes(profile: Profile) -> Lines:
    if not profile.scopes and not profile.scope_sums:
        return []
    unit = profile.time_unit
    lines = heading("What start-up calls cost") + [_SCOPES.head]

    def row(at: str, took: int, growths: Tuple[Growth, ...], call: str) -> str:
        host, device = growth_by_side(growths)
        kinds = _kinds(growths)
        text = f"{call}: {kinds}" if kinds else call
        return _SCOPES.row(at, moment(took, unit), growth(host), growth(device), text)

    fall = waterfall(profile, _SCOPES_SHOWN)
    for scope, depth in fall.rows:
        call = "  " * depth + printable(scope.name)
        lines.append(row(moment(scope.begin, unit), scope.end - scope.begin, scope.growths, call))
    if fall.n_left_out:
        calls = count(fall.n_left_out, "more call")
        lines.append(f"and {calls} that cost less, {growth(fall.left_out_bytes)} in all")
    for total in sorted(profile.scope_sums.values(), key=lambda total: -total.calls):
        call = f"{printable(total.name)}, {count(total.calls, 'call')}"
        lines.append(row("many times", total.time, total.growths, call))
    return lines


def write(profile: Profile, view: View) -> Iterator[str]:
    """The report's lines. Raises moments.SelectionError."""
    names = Names(profile)
    if view.by in LINE_VIEWS:
        table = write_lines(profile, names, view)
        yield from header(profile)
        yield from table
        return
    if view.segments is not None:
        map_ = list(write_segments(profile, view.segments, view.selector))
        yield from header(profile)
        yield from map_
        return
    chosen = select(profile, view.selector or "peak")
    yield from header(profile)
    yield from _graph(profile, view)
    yield from exhaustion_sections(profile, names)
    yield from _ledger(profile, names, chosen)
    yield from _by_role(profile, chosen)
    yield from by_library(profile, names, chosen) if view.by == "library" else mapped(profile, names, chosen)
    yield from reconciliation_section(profile, chosen)
    yield from machine_section(profile, chosen.name, chosen.time)
    yield from _scopes(profile)
    yield from failures(profile)
    yield from regions(profile)
    yield from marks(profile)
    yield from growing_section(profile, names)
    yield from held_section(profile, names)
    yield from temporaries(profile, names)
    yield from snapshots(profile)
    yield from trees(profile, names, chosen, view)
