# SPDX-License-Identifier: GPL-2.0-or-later
"""The report for a terminal: the answer on the first screen, the evidence below it.

Sections come in the order in which a reader asks: what ran, where the memory went, when, whose it is, what the start
cost, what went wrong, and last the stacks. A section without content is left out.
"""

from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.ledger import Ledger, Row, hottest_temporaries, ledger, roles
from jmassif.lines import LINE_VIEWS
from jmassif.names import NO_TENSOR, Names
from jmassif.profile import Composition, Profile, Snapshot, side_of
from jmassif.regions import regions_by_name, region_figures
from jmassif.summary import (
    Moment,
    answer,
    growth_by_side,
    main_peak,
    select,
    waterfall,
)
from jmassif.trace import Growth
from jmassif.tree import Node, Shape, build
from jmassif.units import count, growth, moment, percent, printable, size
from jmassif.writers import View
from jmassif.writers.exhaustion import exhaustion_sections
from jmassif.writers.graph import BETWEEN, DEVICE, HOST, draw, one_pool, timeline_points
from jmassif.writers.header import header
from jmassif.writers.layout import Lines, arena_note, heading, paragraph, used_sides
from jmassif.writers.lines import write_lines
from jmassif.writers.machine import machine_section
from jmassif.writers.mapped import by_library, mapped
from jmassif.writers.reconciliation import reconciliation_section
from jmassif.writers.segments import write_segments

_SCOPES_SHOWN = 16
_MARKS_SHOWN = 40
_REGIONS_SHOWN = 20
_REGIONS_SHOWN_OF_A_NAME = 3
_TEMPORARIES_SHOWN = 5
_SNAPSHOTS_SHOWN = 24
_FAILURES_SHOWN = 16
_HEIGHT_OF_ONE_GRAPH = 11
_HEIGHT_OF_TWO_GRAPHS = 7

# Error codes that the CUDA runtime and driver API share (driver_types.h, cuda.h).
_CUDA_ERRORS = {
    1: "invalid value",
    2: "out of memory",
    3: "not initialized",
    4: "driver shutting down",
    35: "driver too old",
    100: "no device",
    101: "invalid device",
    201: "invalid context",
    304: "operating system call failed",
    400: "invalid handle",
    700: "illegal address",
    712: "host memory already registered",
    713: "host memory not registered",
    719: "launch failure",
    801: "not supported",
    999: "unknown error",
}

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
    legend = [
        f"{HOST} host" if has_host else "",
        f"{DEVICE} device" if has_device else "",
        f"{BETWEEN} reached between two samples" if any(BETWEEN in line for line in lines) else "",
    ]
    return lines + [" " * 10 + "   ".join(entry for entry in legend if entry)]


# ---- whose -----------------------------------------------------------------------------------


def rows_table(sides: Sequence[str], is_sum: bool, rows: Sequence[Tuple[str, Row]], total: Row) -> Lines:
    """Rows, each with its indentation, and their sum: bytes and blocks in each pool that the program used.

    Where the pools add up (`is_sum`), the sum in bytes and its percents follow; else each pool has percents of its own.
    """
    width = max([12] + [len(indent + row.name) + 1 for indent, row in rows])

    def line(row: Row, indent: str) -> str:
        text = f"{indent + row.name:<{width}}"
        for side in sides:
            held = row.on(side)
            blocks = f"{held.blocks:,}" if held.blocks else ""
            text += f"{size(held.bytes) if held.bytes or held.blocks else '-':>9}{blocks:>11}"
            if not is_sum:
                text += f"{percent(held.bytes, total.on(side).bytes) if held.bytes else '':>9}"
        if is_sum:
            text += f"{row.bytes:>17,}{percent(row.bytes, total.bytes):>9}"
        return text.rstrip()

    head = " " * width
    for side in sides:
        head += f"{side:>9}{'blocks':>11}" + ("" if is_sum else f"{'share':>9}")
    if is_sum:
        head += f"{'bytes' if len(sides) == 1 else 'together (B)':>17}{'share':>9}"
    return [head] + [line(row, indent) for indent, row in rows] + [line(total, "")]


def _table(profile: Profile, rows: Sequence[Tuple[str, Row]], total: Row) -> Lines:
    sides = used_sides(profile)
    return rows_table(sides, len(sides) == 1 or not profile.is_discrete, rows, total)


def _by_owner(profile: Profile, table: Ledger) -> Lines:
    """The ledger: owners by group."""
    rows: List[Tuple[str, Row]] = []
    for group, owners in table.groups:
        rows.append(("", group))
        rows += [("  ", owner) for owner in owners]
    lines = _table(profile, rows, table.total)
    if table.imported.bytes or table.imported.blocks:
        imported = f"{size(table.imported.bytes)} in {count(table.imported.blocks, 'block')}"
        lines.append(f"Also mapped, and in no sum: {imported} imported from other processes.")
    return lines


def _ledger(profile: Profile, names: Names, chosen: Moment) -> Lines:
    table = ledger(profile, chosen.composition)
    when = moment(chosen.time, profile.time_unit)
    lines = heading(f"Where the memory went, at {chosen.name} ({when})")
    lines += paragraph(answer(profile, names, chosen.composition, table))
    if table.groups or table.imported.blocks:
        lines += [""] + _by_owner(profile, table) + arena_note(profile)
    return lines


def _by_role(profile: Profile, chosen: Moment) -> Lines:
    rows, total = roles(profile, chosen.composition)
    if not rows:
        return []
    return heading(f"Tensors by role, at {chosen.name}") + _table(profile, [("", row) for row in rows], total)


def _left_at_exit(profile: Profile) -> Lines:
    if not profile.snapshots or profile.snapshots[-1].reason != "exit":
        return []
    # Libraries stay mapped: pages are nothing that a program would free.
    last = profile.composition(len(profile.snapshots) - 1)
    table = ledger(profile, {a: held for a, held in last.items() if not profile.is_sampled(profile.accounts[a].kind)})
    if not table.groups:
        return []
    return heading("Never freed: held at exit") + _by_owner(profile, table)


# ---- what the start cost ---------------------------------------------------------------------


def _kinds(growths: Tuple[Growth, ...]) -> str:
    parts = sorted(growths, key=lambda part: (-abs(part.bytes), part.kind))
    return ", ".join(f"{part.kind} {growth(part.bytes)}" for part in parts if part.bytes)


def _scopes(profile: Profile) -> Lines:
    if not profile.scopes and not profile.scope_sums:
        return []
    unit = profile.time_unit
    form = "{:>11} {:>10} {:>10} {:>10}  {}"
    lines = heading("What start-up calls cost")
    lines.append(form.format("at", "took", "host", "device", "call: net growth by kind"))

    def row(at: str, took: int, growths: Tuple[Growth, ...], call: str) -> str:
        host, device = growth_by_side(growths)
        kinds = _kinds(growths)
        text = f"{call}: {kinds}" if kinds else call
        return form.format(at, moment(took, unit), growth(host), growth(device), text)

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


# ---- what went wrong -------------------------------------------------------------------------


def _failures(profile: Profile) -> Lines:
    lines: Lines = []
    ranked = sorted(profile.failures.items(), key=lambda item: (-item[1], item[0]))
    for (name, code), calls in ranked[:_FAILURES_SHOWN]:
        is_cuda = name.startswith("cuda") or (name.startswith("cu") and name[2:3].isupper())
        meaning = _CUDA_ERRORS.get(code) if is_cuda else None
        error = f"error {code} ({meaning})" if meaning else f"error {code}"
        lines.append(f"{count(calls, 'call')} of {printable(name)} failed with {error}")
    if len(ranked) > _FAILURES_SHOWN:
        lines.append(f"and {len(ranked) - _FAILURES_SHOWN:,} other pairs of function and error")
    for key, n in sorted(profile.counters.items()):
        if n:
            lines.append(f"{key}: {size(n) if key.endswith('-bytes') else f'{n:,}'}")
    return heading("Failed calls and oddities") + lines if lines else []


def _regions(profile: Profile) -> Lines:
    """Regions that come again and again, a row a name."""
    names = regions_by_name(profile)
    if all(row.calls == 1 for row in names):
        return []
    unit = profile.time_unit
    form = "{:>9} {:>11} {:>10} {:>10} {:>10}  {}"
    lines = heading("Regions by name")
    lines.append(form.format("times", "took", "at most", "host", "device", "region"))
    for row in names[:_REGIONS_SHOWN]:
        figures = (size(row.most), growth(row.host), growth(row.device)) if row.told else ("", "", "")
        text = printable(row.text)
        if row.told < row.calls:
            text += f" (sizes: of {row.told:,} of them)"
        lines.append(form.format(f"{row.calls:,}", moment(row.time, unit), *figures, text))
    if len(names) > _REGIONS_SHOWN:
        lines.append(f"and {len(names) - _REGIONS_SHOWN:,} more names")
    return lines


def _marks(profile: Profile) -> Lines:
    unit = profile.time_unit
    rows: List[Tuple[int, str]] = []
    for mark in profile.marks:
        rows.append((mark.time, f"mark: {mark.text}"))
    shown: Dict[str, int] = {}
    for region in profile.regions:
        shown[region.text] = shown.get(region.text, 0) + 1
        if shown[region.text] > _REGIONS_SHOWN_OF_A_NAME or len(rows) > 2 * _MARKS_SHOWN:
            continue
        lasted = "still open at the end" if region.end is None else f"took {moment(region.end - region.begin, unit)}"
        figures = region_figures(profile, region)
        held = f"held at most {size(figures.most)}, host {growth(figures.host)}, device {growth(figures.device)}"
        text = f"{'  ' * region.depth}{region.text} (thread {region.thread}, {lasted}; {held})"
        rows.append((region.begin, f"region: {text}"))
    n_more = len(profile.marks) + len(profile.regions) - min(len(rows), _MARKS_SHOWN)
    if not rows:
        return []
    rows.sort(key=lambda row: row[0])
    lines = [f"{moment(time, unit):>12}  {printable(text)}" for time, text in rows[:_MARKS_SHOWN]]
    if n_more:
        lines.append(f"and {n_more:,} more")
    return heading("Marks and regions") + lines


def _temporaries(profile: Profile, names: Names) -> Lines:
    churns = hottest_temporaries(profile, _TEMPORARIES_SHOWN)
    if not churns:
        return []
    lines = heading("Temporaries: freed before their thread allocated anything else")
    for churn in churns:
        site = names.site(churn.account) or "memory without a stack"
        lines.append(f"{churn.temporaries:>12,} of {count(churn.blocks, 'block')} in {site}")
    return lines


class _TableRow(NamedTuple):
    time: int
    name: str
    host: int
    device: int
    reason: str


def _snapshots_shown(profile: Profile) -> List[Snapshot]:
    """What was taken for a reason, and the fullest of each of a number of equal spans of time."""
    fullest: Dict[int, Snapshot] = {}
    shown = []
    duration = max([1] + [snapshot.time for snapshot in profile.snapshots])
    for snapshot in profile.snapshots:
        span = snapshot.time * _SNAPSHOTS_SHOWN // duration
        if snapshot.reason != "time":
            shown.append(snapshot)
        elif span not in fullest or snapshot.host + snapshot.device > fullest[span].host + fullest[span].device:
            fullest[span] = snapshot
    return shown + list(fullest.values())


def _snapshots(profile: Profile) -> Lines:
    """Snapshots and peaks in order of time."""
    shown = _snapshots_shown(profile)
    rows = [_TableRow(s.time, str(s.id), s.host, s.device, s.reason) for s in shown]
    for peak in profile.peaks.values():
        which = "peak" if peak.which == main_peak(profile) else f"peak-{peak.which}"
        if which != "peak-total":
            rows.append(_TableRow(peak.time, which, peak.host, peak.device, ""))
    if not rows:
        return []
    rows.sort(key=lambda row: (row.time, row.name.rjust(20)))
    time_head = f"time ({profile.time_unit})"
    lines = heading("Snapshots and peaks: --snapshot=n explains one")
    lines.append(f"{'n':>11}{time_head:>15}{'host (B)':>17}{'device (B)':>17}  reason")
    for row in rows:
        numbers = f"{row.time:>15,}{row.host:>17,}{row.device:>17,}"
        lines.append(f"{row.name:>11}{numbers}  {row.reason}".rstrip())
    left_out = len(profile.snapshots) - len(shown)
    if left_out:
        lines.append(f"{'':>11}  and {left_out:,} more between these")
    return lines


# ---- the stacks ------------------------------------------------------------------------------


def _tags(node: Node, parent: Optional[Node]) -> str:
    """What is known of all memory in a branch and was not yet known of the branch around it."""
    tags = []
    if node.kind and node.kind != node.label and not (parent and parent.kind):
        tags.append(node.kind)
    if node.owner and node.owner != node.label and not (parent and parent.owner):
        tags.append(node.owner)
    return f" of {', '.join(tags)}" if tags else ""


def _tree_lines(root: Node, n_levels: int, threshold: float) -> Iterator[str]:
    """A paragraph a branch, indented by how deep it branches; the first `n_levels` levels are no frames.

    Frames that pass all their memory on stand below each other without numbers of their own.
    """
    pending: List[Tuple[Node, int, str, Optional[Node]]] = [(root, 0, "", None)]
    while pending:
        node, depth, indent, parent = pending.pop()
        share = percent(node.bytes, root.bytes)
        blocks = f" in {count(node.blocks, 'block')}" if node.blocks else ""
        head = f"{indent}{share:>7} {node.bytes:,} B{blocks}"
        if node.places:
            yield f"{head}, in {count(node.places, 'place')} below {threshold:g} %"
            yield ""
            continue
        if depth <= n_levels:
            label = f": {node.label}" if node.label else ""
            yield f"{head}{_tags(node, parent)}{label}"
        else:
            yield f"{head}{_tags(node, parent)}"
            yield f"{indent}{' ' * 8}{node.label}"
        while depth > n_levels and len(node.children) == 1 and not node.children[0].places:
            node = node.children[0]
            yield f"{indent}{' ' * 8}{node.label}"
        yield ""
        inner = indent + ("  " if depth else "")
        pending.extend((child, depth + 1, inner, node) for child in reversed(node.children))


def _level(profile: Profile, names: Names, by: str) -> List[Callable[[int], str]]:
    """What stands above the stacks."""
    table: Dict[str, Callable[[int], str]] = {
        "owner": lambda account: profile.accounts[account].owner,
        "library": names.library,
        "kind": lambda account: profile.accounts[account].kind,
        "role": lambda account: profile.role(account) or NO_TENSOR,
    }
    return [table[by]] if by in table else []


def _trees(profile: Profile, names: Names, chosen: Moment, view: View) -> Lines:
    def side(account: int) -> Optional[str]:
        return side_of(profile.accounts[account].kind)

    def part(wanted: Tuple[str, ...]) -> Composition:
        return {a: held for a, held in chosen.composition.items() if side(a) in wanted}

    sides: List[Tuple[str, ...]] = [("device",), ("host",)] if profile.is_discrete else [("host", "device")]
    is_folded = view.fold == "internal"
    levels = _level(profile, names, view.by)
    shape = Shape(levels, names.frame, names.folding, view.threshold, is_folded)
    lines: Lines = []
    for wanted in sides:
        composition = part(wanted)
        if not composition:
            continue
        what = f"{wanted[0]} memory" if len(wanted) == 1 else "all memory"
        by = f"by {view.by}, then call stack" if levels else "by call stack"
        folded = ", internal frames folded" if is_folded else ""
        lines += heading(f"{what.capitalize()} {by}, at {chosen.name}{folded}")
        root = build(profile, composition, shape, "")
        lines += list(_tree_lines(root, len(levels), view.threshold))[:-1]
    return lines


def write(profile: Profile, view: View) -> Iterator[str]:
    """The report's lines. Raises summary.SelectionError."""
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
    yield from _failures(profile)
    yield from _regions(profile)
    yield from _marks(profile)
    yield from _left_at_exit(profile)
    yield from _temporaries(profile, names)
    yield from _snapshots(profile)
    yield from _trees(profile, names, chosen, view)
