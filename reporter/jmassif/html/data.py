# SPDX-License-Identifier: GPL-2.0-or-later
"""Everything the page knows of a run, as one JSON object and the columns it names.

Its fields are those of RunHead in reporter/web/src/runs/data.ts; docs/contributing.md describes the columns. Every text is fit
to be shown and of a bearable length.
"""

from itertools import compress, islice
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.analysis.device_memory import Layout, Segment
from jmassif.analysis.moments import main_peak, select
from jmassif.analysis.other_tools import ALLOCATED_OWNERS, Counted
from jmassif.analysis.processes import JobReport
from jmassif.analysis.sizes import Histogram, NamedSizes
from jmassif.analysis.summary import Incident, LeakedPlace, Report, build_report, moment_of
from jmassif.attribution.blame import base_name
from jmassif.attribution.names import NO_TENSOR, Names
from jmassif.html.cells import NO_LINE, OTHERS, Cells, Columns, Index, cells, index_of, shown, source_around
from jmassif.html.first import about_run, reports, statements_data
from jmassif.model.records import GROUPS, HANDLE_KINDS, KINDS, PEAKS, ROLES, Growth, growth_by_side, side_of
from jmassif.model.run import Profile
from jmassif.model.run_info import counted, was_short
from jmassif.render import summary
from jmassif.render.failures import arithmetic, reason
from jmassif.render.job import statements
from jmassif.render.sources import Sources
from jmassif.render.system import BALANCE, doubts, overlay_sentence
from jmassif.render.words import NOT_COUNTED, OWNERS
from jmassif.units import moment, printable


def _fields(record: Any, names: str) -> Dict[str, Any]:
    """Some of a record's fields, with texts fit to be shown."""
    values = ((name, getattr(record, name)) for name in names.split())
    return {name: shown(value) if isinstance(value, str) else value for name, value in values}


# ---- out of memory ----
# Failed allocations, and fragmentation of segments over time.

# The last ones: they are what a run died of.
_MAX_INCIDENTS = 50
_MAX_MAPS = 8
_MAX_SEGMENTS = 40
_MAX_FRAMES = 40
_MAX_MOMENTS = 400
_MAX_PIECES = 1 << 18  # in all maps over time: a few seconds' work
# Share of a segment below which a part is drawn with its neighbour.
_NARROWEST = 1 / 400


def _parts(profile: Profile, segment: Segment) -> List[Tuple[int, str]]:
    """Bytes and owners, "" of holes, from the beginning of the segment to its end; crumbs are their neighbours'."""
    drawn: List[Tuple[int, str]] = []
    for part in segment.parts:
        owner = profile.accounts[part.account].owner if part.account else ""
        if drawn and (drawn[-1][1] == owner or part.bytes < segment.bytes * _NARROWEST):
            drawn[-1] = (drawn[-1][0] + part.bytes, drawn[-1][1])
        else:
            drawn.append((part.bytes, owner))
    return drawn


def _map(profile: Profile, layout: Layout) -> List[Dict[str, Any]]:
    largest = sorted(layout.segments, key=lambda segment: (-segment.bytes, segment.address))[:_MAX_SEGMENTS]
    return [
        {**_fields(each, "bytes free"), "address": f"{each.address:x}", "parts": _parts(profile, each)}
        for each in largest
    ]


def _incident(report: Report, number: int, incident: Incident, has_map: bool) -> Dict[str, Any]:
    profile, names, last = report.profile, report.names, incident.last
    layout = report.device_layout(last.position) if has_map else None
    line = names.charged(last.account)
    stack = profile.stack(profile.accounts[last.account].node)
    return {
        **_fields(incident, "outcome freed verdict"),
        **_fields(last, "time error"),
        "number": number,
        "snapshot": 0 if last.snapshot is None else profile.snapshots[last.snapshot].id,
        "call": printable(incident.call)[:200],
        "asked": incident.situation.asked,
        "tries": [each.time for each in incident.tries],
        "reason": reason(incident, profile.is_discrete),
        "helps": [summary.action(hint, report.run.is_pytorch, incident) for hint in incident.hints],
        "arithmetic": arithmetic(incident.situation),
        "line": names.frame(line)[:400] if line else "",
        "stack": [names.frame(frame)[:400] for _, frame in zip(range(_MAX_FRAMES), stack)],
        "map": _map(profile, layout) if layout else [],
        "segments_left_out": max(0, len(layout.segments) - _MAX_SEGMENTS) if layout else 0,
    }


def oom(report: Report) -> Dict[str, Any]:
    """The failures, the last ones with maps, and the number of calls that the trace only counts."""
    numbered = list(enumerate(report.out_of_memory, 1))[-_MAX_INCIDENTS:]
    with_map = set([number for number, incident in numbered if not incident.is_resolved][-_MAX_MAPS:])
    n_shown = sum(len(incident.tries) for _, incident in numbered)
    return {
        "incidents": [_incident(report, number, each, number in with_map) for number, each in numbered],
        "not_shown": max(0, report.profile.counters.get("out-of-memory", 0) - n_shown),
        "over_time": _over_time(report),
    }


def _over_time(report: Report) -> Dict[str, List[int]]:
    """Columns, at snapshots: bytes that segments reserve, free bytes in them, and the largest hole."""
    n_blocks = report.profile.blocks.n_rows - 2 * len(report.profile.frees)
    rows = report.fragmentation(max(10, min(_MAX_MOMENTS, _MAX_PIECES // max(1, n_blocks))))
    columns: Dict[str, List[int]] = {"time": [time for time, _ in rows]}
    for name in ("reserved", "free", "largest_hole"):
        columns[name] = [getattr(pieces, name) for _, pieces in rows]
    return columns


# ---- history ----
# Events of a run: the machine's figures, marks and regions, start-up calls.

_MAX_SCOPES = 200
_MAX_EVENTS = 2000
_MAX_SUMS = 200


def machine_figures(report: Report, columns: Columns) -> Dict[str, Any]:
    """The figures of the machine over time: their names, and rows of all of them, one figure after the other."""
    found = report.histories
    columns.add("machine.time", [time for history in found for time in history.times])
    columns.add("machine.bytes", [value for history in found for value in history.values])
    figures = [{**_fields(each, "label wants_much is_of_process beside"), "rows": len(each.times)} for each in found]
    return {"machine": figures, "short_at": was_short(report.profile)}


def events(profile: Profile) -> Dict[str, Any]:
    """Marks and regions."""
    return {
        "marks": [_fields(mark, "time text") for mark in profile.marks[:_MAX_EVENTS]],
        "regions": [
            {**_fields(region, "text begin end thread depth"), **profile.region_figures(region)._asdict()}
            for region in profile.regions[:_MAX_EVENTS]
        ],
        "events_left_out": max(0, len(profile.marks) - _MAX_EVENTS) + max(0, len(profile.regions) - _MAX_EVENTS),
    }


def _growths(growths: Tuple[Growth, ...]) -> Dict[str, Any]:
    host, device = growth_by_side(growths)
    return {"host": host, "device": device, "kinds": [[part.kind, part.bytes] for part in growths if part.bytes]}


def scopes(report: Report) -> Dict[str, Any]:
    fall = report.waterfall(_MAX_SCOPES)
    sums = sorted(report.profile.scope_sums.values(), key=lambda total: -total.calls)[:_MAX_SUMS]
    return {
        "scopes": [
            {**_fields(scope, "name begin end"), **_growths(scope.growths), "depth": depth}
            for scope, depth in fall.rows
        ],
        "scopes_left_out": [fall.n_left_out, fall.left_out_bytes],
        "scope_sums": [{**_fields(total, "name calls time"), **_growths(total.growths)} for total in sums],
    }


# ---- mapped ----
# Mapped memory besides the heap, by library and kind: what is resident of it, and how much address space it takes.
#
# Figures are those of analysis/system.py at every moment of a page, as changes.


class MappedFigures(NamedTuple):
    """Bytes; see records.Pages."""

    resident: int = 0
    virtual: int = 0
    shared: int = 0
    swapped: int = 0


def mapped(profile: Profile, found: Cells, columns: Columns) -> List[List[str]]:
    """The names that mapped memory goes by: library, as the cells have it, and kind."""
    is_page = bytearray(profile.accounts.by_type(lambda type_: profile.is_sampled(type_.kind)))
    names = Index()
    name_of: Dict[int, int] = {}  # by account
    for account in compress(range(len(is_page)), is_page):
        attributes = found.attributes[found.cells[found.cell_of[account]].attributes]
        name_of[account] = names[shown(attributes.library), attributes.kind]
    sums = [MappedFigures()] * len(names)
    known: Dict[int, MappedFigures] = {}  # by account, as the next three
    resident: Dict[int, int] = {}
    pages: Dict[int, Tuple[int, ...]] = {}
    then: Dict[int, int] = {}  # resident at a peak, where that differs from the snapshot that it is recorded against
    n_read = 0
    n_rows = []
    rows: List[Tuple[int, MappedFigures]] = []  # names, and their figures from then on, moment after moment
    for moment in found.moments:
        before, changed = list(sums), set(then)
        peak = profile.peaks[moment.peak] if moment.snapshot is None else None
        last = peak.snapshot if peak else moment.snapshot
        for snapshot in profile.snapshots[n_read : (last or 0) + 1]:
            accounts = snapshot.changes.account
            now = dict(compress(zip(accounts, snapshot.changes.bytes), map(is_page.__getitem__, accounts)))
            resident.update(now)
            page_rows = snapshot.pages
            pages.update(zip(page_rows.account, zip(page_rows.virtual, page_rows.shared, page_rows.swapped)))
            changed.update(now, page_rows.account)
            n_read += 1
        then = dict(zip(peak.differences.account, peak.differences.bytes)) if peak else {}
        for account in name_of.keys() & (changed | then.keys()):
            held = then.get(account, resident.get(account, 0))
            virtual, *others = pages.get(account, (0, 0, 0))
            was, known[account] = known.get(account, MappedFigures()), MappedFigures(held, max(virtual, held), *others)
            name = name_of[account]
            sums[name] = MappedFigures(*(sum_ - a + b for sum_, a, b in zip(sums[name], was, known[account])))
        more = [row for row, was in zip(enumerate(sums), before) if row[1] != was]
        rows += more
        n_rows.append(len(more))
    columns.add("mapped.rows", n_rows)
    columns.add("mapped.name", [name for name, _ in rows])
    for figure in MappedFigures._fields:
        columns.add(f"mapped.{figure}", [getattr(figures, figure) for _, figures in rows])
    return [list(name) for name in names]


# ---- others ----
# Figures of other tools over time: sampled ones by their times, the ledger's by the page's moments.


def _values(found: Cells, rows: Sequence[Counted]) -> List[List[int]]:
    """The bytes that each row counts, at every moment."""
    types = [found.attributes[cell.attributes][:2] for cell in found.cells]
    counting = [[n for n, row in enumerate(rows) if type_ in row.types] for type_ in types]
    held, values = [0] * len(rows), [[] for _ in rows]  # type: List[int], List[List[int]]
    steps = zip(found.cell, found.live_bytes)
    for moment in found.moments:
        cell = 0
        for step, grown in islice(steps, moment.n_rows):
            cell += step
            for n in counting[cell]:
                held[n] += grown
        for column, n_bytes in zip(values, held):
            column.append(n_bytes)
    return values


def others(report: Report, found: Cells) -> List[Dict[str, Any]]:
    """A row for each figure: `times` is null where `values` are those of the moments, in their order."""
    rows = [_fields(each, "tool figure leaves_out times values") for each in report.sampled_by_others]
    counted = report.counted_by_others
    for each, values in zip(counted, _values(found, counted)):
        rows.append({**_fields(each, "tool figure leaves_out"), "times": None, "values": values})
    overlay = report.profile.overlay
    if overlay is not None:
        figure = "memory used" if overlay.is_of_device else "RAM"
        row = {"tool": shown(f"{overlay.tool}, by its log"), "figure": figure, "leaves_out": "owners"}
        rows.append({**row, **_fields(overlay, "times values")})
    return rows


# ---- sizes ----
# Sizes of blocks at the peak and in the whole run: in sum, by owner and by line.

_MOST_LINES = 200


def _histogram(of: Histogram) -> Dict[str, Any]:
    classes = [[each.most.bit_length(), each.blocks, each.bytes] for each in of.classes]
    return {"classes": classes, "by_mean": of.blocks_by_mean}


def _row(row: NamedSizes) -> Dict[str, Any]:
    held, asked = _histogram(row.held), _histogram(row.asked)
    return {"name": shown(row.name), "held": held, "asked": asked, "at_once": row.at_once}


def sizes(report: Report) -> Optional[Dict[str, Any]]:
    """None without records of blocks. Rows with the most frequent first; lines beyond a limit are one row."""
    profile = report.profile
    at = select(profile, "peak")
    by = report.sizes(at, _MOST_LINES)
    if not by.asked.blocks:
        return None
    at_once = sum(row.at_once for row in by.owners)
    return {
        "when": f"{at.name} ({moment(at.time, profile.time_unit)})",
        "has_all_records": profile.manifest.get("option.large") == "0",
        "all": _row(NamedSizes("", by.held, by.asked, at_once)),
        "owners": list(map(_row, by.owners)),
        "lines": list(map(_row, by.lines)),
    }


# ---- data ----

_MAX_PLACES = 100
_MAX_COUNTS = 200
_MAX_BLOCKS = 20000
_MAX_TIMELINE_ROWS = 20000
_MAX_SOURCE_BYTES = 400_000  # before they are deflated; beyond, frames have none


class RunData(NamedTuple):
    head: Dict[str, Any]  # fit for JSON
    columns: bytes  # what head["columns"] describes


# ---- where memory was allocated --------------------------------------------------------------


def _frames(profile: Profile, names: Names, frames: Sequence[int], sources: Optional[Sources]) -> Dict[str, List[Any]]:
    """Columns, by place in `frames`. The first stands for no frame."""
    packages, libraries, arounds = index_of([""]), index_of([""]), index_of([""])
    n_bytes = 0
    table: Dict[str, List[Any]] = {"label": [""], "type": [""], "package": [0], "library": [0], "around": [0]}
    for frame in frames[1:]:
        fields = profile.frame(frame)
        around = source_around(sources, fields)
        if around not in arounds:
            n_bytes += len(around)
            around = around if n_bytes <= _MAX_SOURCE_BYTES else ""
        table["label"].append(shown(names.frame(frame)))
        table["type"].append(fields.type)
        table["package"].append(packages[shown(names.folding.internal(frame).package)])
        table["library"].append(libraries[shown(base_name(fields.object))])
        table["around"].append(arounds[around])
    return {**table, "packages": list(packages), "libraries": list(libraries), "arounds": list(arounds)}


def _lines(profile: Profile, names: Names, frames: Sequence[int], sources: Optional[Sources]) -> Dict[str, List[Any]]:
    """Columns, by place in `frames`, of the Python lines that memory is charged to."""
    table: Dict[str, List[Any]] = {"label": [], "function": [], "path": [], "source": [], "around": []}
    changed: Dict[str, None] = {}
    for frame in frames:
        row = ["(no Python line)" if frame == NO_LINE else "(other lines)", "", "", "", ""]
        if frame not in (NO_LINE, OTHERS):
            fields = profile.frame(frame)
            source = shown(sources.line(fields.file, fields.line)) if sources else ""
            around = source_around(sources, fields) if source else ""
            label = shown(f"{names.file(frame)}:{fields.line}")
            row = [label, shown(fields.function), shown(fields.file), source, around]
            if sources and source and fields.file in sources.changed:
                changed[shown(names.file(frame))] = None
        for column, text in zip(table.values(), row):
            column.append(text)
    return {**table, "changed": list(changed)}


def cells_data(
    profile: Profile, names: Names, found: Cells, sources: Optional[Sources], columns: Columns
) -> Dict[str, Any]:
    """The cells, what they are grouped by, and how they change."""
    frame_index = index_of([0])
    columns.add("node.parent", found.parents)
    columns.add("node.frame", [frame_index[profile.node_frame[node]] for node in found.nodes])
    used = found.attributes
    kinds = [kind for kind in KINDS if any(row.kind == kind for row in used)]
    owners = sorted({row.owner for row in used})
    roles = sorted({row.role for row in used}, key=lambda role: (ROLES + (role,)).index(role))
    libraries, threads = sorted({row.library for row in used}), sorted({row.thread for row in used})
    lines = index_of(row.line for row in used)
    sets = index_of(row.through for row in used)
    through = [tuple(map(lines.__getitem__, frames)) for frames in sets]
    order_of = {"kind": kinds, "owner": owners, "role": roles, "library": libraries, "thread": threads}
    indices = {**{name: index_of(order) for name, order in order_of.items()}, "line": lines, "through": sets}
    for name, index in indices.items():
        places = [index[getattr(row, name)] for row in used]
        columns.add(f"cell.{name}", [places[cell.attributes] for cell in found.cells])
    columns.add("cell.node", [cell.node for cell in found.cells])
    columns.add("cell.places", [cell.places for cell in found.cells])
    columns.add("cell.inherited", [int(cell.is_inherited) for cell in found.cells])
    if profile.chosen is not None:
        columns.add("cell.chosen", [int(used[cell.attributes].is_chosen) for cell in found.cells])
    columns.add("row.cell", found.cell)
    for name, rows in (("bytes", found.live_bytes), ("blocks", found.live_blocks), ("allocated", found.allocated)):
        columns.add(f"row.{name}", rows, "signed")
    return {
        "kinds": [{"name": kind, "side": side_of(kind) or "", "is_handle": kind in HANDLE_KINDS} for kind in kinds],
        "owners": [
            {
                "name": owner,
                "group": profile.group_of.get(owner, "other"),
                "about": OWNERS.get(owner, ""),
                "is_tensors": owner in ALLOCATED_OWNERS,
            }
            for owner in owners
        ],
        "groups": list(GROUPS + ("other",)),
        "roles": [role if role != NO_TENSOR else "" for role in roles],
        "libraries": [shown(library) for library in libraries],
        "threads": [shown(thread) for thread in threads],
        "lines": dict(_lines(profile, names, list(lines), sources), through=through),
        "frames": _frames(profile, names, list(frame_index), sources),
        "nodes": len(profile.node_frame) - 1,
    }


# ---- time ------------------------------------------------------------------------------------


def _moments(report: Report, found: Cells, columns: Columns) -> Dict[str, Any]:
    """The snapshots and peaks in order, and where the report's moment, the peak and the end are among them."""
    profile = report.profile
    named = [
        (0, f"peak-{moment.peak}")
        if moment.snapshot is None
        else (profile.snapshots[moment.snapshot].id, profile.snapshots[moment.snapshot].reason)
        for moment in found.moments
    ]
    kinds = sorted({reason for _, reason in named})
    columns.add("moment.time", [moment.time for moment in found.moments])
    columns.add("moment.rows", [moment.n_rows for moment in found.moments])
    columns.add("moment.id", [id_ for id_, _ in named])
    columns.add("moment.reason", [kinds.index(reason) for _, reason in named])
    peaks = {}
    for index, moment in enumerate(found.moments):
        if moment.peak:
            peaks[moment.peak] = {**_fields(profile.peaks[moment.peak], "time host device"), "moment": index}
    at = {"first": -1, "peak": -1, "end": -1}
    of_snapshot = {moment.snapshot: index for index, moment in enumerate(found.moments)}
    chosen = {"peak": select(profile, "peak"), "end": select(profile, "end"), "first": report.at}
    for name, each in chosen.items() if found.moments else ():
        at[name] = peaks[main_peak(profile)]["moment"] if each.snapshot is None else of_snapshot[each.snapshot]
    return {"reasons": kinds, "peaks": peaks, "at": at}


def _balances(report: Report, found: Cells) -> List[Dict[str, Any]]:
    """The balance of the whole machine, for each moment that has them."""
    index_of = {moment.snapshot: index for index, moment in enumerate(found.moments)}
    rows = []
    for made in report.balances:
        row: Dict[str, Any] = {**_fields(made, "board held"), "moment": index_of[made.snapshot], "doubts": doubts(made)}
        row["names"] = {each.field: each.named(made) for each in BALANCE}
        row["notes"] = {each.field: each.noted(made) for each in BALANCE}
        row.update((each.field, each.bytes(made)) for each in BALANCE)
        rows.append(row)
    return rows


def _fullest(maximum: Sequence[int]) -> Sequence[int]:
    """Places of rows over time. Of very many, the fullest of each of as many equal runs as are kept."""
    n_rows, n_kept = len(maximum), min(len(maximum), _MAX_TIMELINE_ROWS)
    bounds = [place * n_rows // n_kept for place in range(n_kept + 1)] if n_rows else []
    return [max(range(a, b), key=maximum.__getitem__) for a, b in zip(bounds, bounds[1:])]


def _timeline(profile: Profile, columns: Columns) -> None:
    """The totals between snapshots."""
    rows = _fullest(profile.timeline.maximum)
    for name, column in profile.timeline._asdict().items():
        columns.add(f"timeline.{name}", [column[row] for row in rows])


# ---- blocks ----------------------------------------------------------------------------------


def _blocks(report: Report, found: Cells, share: float, columns: Columns) -> Dict[str, Any]:
    kept = report.blocks(max(1, int(share * _MAX_BLOCKS)))
    for name in ("begin", "end", "came", "went", "bytes"):
        columns.add(f"block.{name}", [getattr(block, name) for block in kept.rows])
    columns.add("block.address", [block.address for block in kept.rows], "address")
    columns.add("block.cell", [found.cell_of[block.account] for block in kept.rows])
    return {
        "blocks_left_out": [kept.n_left_out, kept.left_out_bytes],
        "block_thresholds": report.profile.block_thresholds,
    }


# ---- leaks -----------------------------------------------------------------------------------


def _call_sites(places: Sequence[LeakedPlace]) -> List[Dict[str, Any]]:
    """A row for each label, with all its owners and kinds; the largest first."""
    sites: Dict[str, List[LeakedPlace]] = {}
    for place in places:
        sites.setdefault(place.label, []).append(place)
    rows: List[Dict[str, Any]] = [
        {
            "label": shown(label),
            "bytes": sum(place.bytes for place in found),
            "blocks": sum(place.blocks for place in found),
            "owner": ", ".join(dict.fromkeys(place.owner for place in found)),
            "kind": ", ".join(dict.fromkeys(place.kind for place in found)),
        }
        for label, found in sites.items()
    ]
    return sorted(rows, key=lambda row: -int(row["bytes"]))[:_MAX_PLACES]


def _leaks(report: Report) -> Optional[Dict[str, Any]]:
    leaks, growth, unit = report.leaks, report.growth, report.run.time_unit
    if leaks is None or growth is None:
        return None
    owners = [
        {
            "name": row.name,
            "group": group.name,
            "host": row.usage.host_bytes,
            "device": row.usage.device_bytes,
            "blocks": row.usage.blocks,
        }
        for group in leaks.ledger.groups
        for row in group.owners
    ]
    return {
        **_fields(leaks, "time bytes"),
        "owners": sorted(owners, key=lambda row: (-row["host"] - row["device"], row["name"])),
        "places": _call_sites(leaks.places),
        "not_counted": [[NOT_COUNTED[row.key], row.bytes] for row in leaks.not_counted],
        "step": summary.step_of(growth.step, unit),
        "n_steps": growth.n_steps,
        "unknown": summary.growth_unknown(growth),
        "growing": [
            {**_fields(leak, "label owner grown held since"), "slope": round(summary.slope(growth, leak, unit), 3)}
            for leak in growth.lines[:_MAX_PLACES]
        ],
    }


# ---- the run ---------------------------------------------------------------------------------


def _about(report: Report) -> Dict[str, Any]:
    profile = report.profile
    failures = sorted(profile.failures.items(), key=lambda item: (-item[1], item[0]))
    counters = counted(profile)
    return {
        "facts": [[name, shown(text)] for name, text in report.run.facts],
        "manifest": [[shown(key), shown(text)] for key, text in sorted(profile.manifest.items())],
        "failures": [{"name": shown(name), "code": code, "calls": n} for (name, code), n in failures[:_MAX_COUNTS]],
        "counters": [[shown(key), n] for key, n in counters.odd[:_MAX_COUNTS]],
        "without_size": counters.without_size,
        "notes": [note for note in [summary.where_arenas_are(profile)] if note],
        "truncation": shown(profile.truncation or ("the program still runs" if profile.is_running else "")),
        "is_complete": profile.is_complete,
    }


def report_of(profile: Profile) -> Report:
    """At the failure that ended the run, else at the peak."""
    names = Names(profile)
    return build_report(profile, moment_of(profile, names, None), names)


def together(made: JobReport) -> Dict[str, Any]:
    """The sum of a job's processes over time, on the common clock."""
    job, rows = made.job, made.job.timeline()
    totals = [row.on("total") for row in rows]
    kept = _fullest(totals)
    peaks = {which: job.peak(which) for which in PEAKS}
    return {
        "summary": statements_data(statements(made)),
        "no_clock": shown(job.no_clock),
        "time": [rows[row].time for row in kept],
        "host": [rows[row].host for row in kept],
        "device": [rows[row].device for row in kept],
        "maximum": [totals[row] for row in kept],
        "peaks": {which: {"bytes": at.on(which), "time": at.time} for which, at in peaks.items()},
    }


def run_key(profile: Profile) -> str:
    """The name of a run on its page: after exec the process has the same number."""
    return ".".join(filter(None, (profile.manifest.get(key, "") for key in ("pid", "start-unix-ms"))))


def run_data(
    report: Report,
    share: float = 1.0,
    sources: Optional[Sources] = None,
    offset: int = 0,
    has_parent: bool = False,
) -> RunData:
    """Data of one process, with that share of a page's budget. Raises TooLarge.

    `offset`: added to its times for the common clock of the page's processes; see cells() for `has_parent`.
    """
    profile, names, columns = report.profile, report.names, Columns()
    found = cells(profile, names, share, has_parent)
    moments = _moments(report, found, columns)
    head: Dict[str, Any] = {
        "offset": offset,
        "pid": shown(profile.manifest.get("pid", "")),
        "key": shown(run_key(profile)),
        "command": shown(profile.manifest.get("command", "")),
        "unit": profile.time_unit,
        "is_discrete": profile.is_discrete,
        "end_time": profile.end.time if profile.end else None,
        "board_bytes": profile.number("mem-total-bytes"),
        "about": about_run(report),
        "reports": reports(report, moments["at"], sources),
        "is_pytorch": report.run.is_pytorch,
        "leaks": _leaks(report),
        "temporaries": [
            {**_fields(row, "temporaries blocks bytes"), "site": shown(row.label)} for row in report.temporaries
        ],
        "sizes": sizes(report),
        "filter": shown(profile.chosen_by),
        "balances": _balances(report, found),
        "others": others(report, found),
        "overlay": overlay_sentence(report.overlay, profile.time_unit) if report.overlay else "",
        "oom": oom(report),
        **cells_data(profile, names, found, sources, columns),
        **moments,
        **events(profile),
        **scopes(report),
        **_blocks(report, found, share, columns),
        **_about(report),
        "mapped": mapped(profile, found, columns),
        **machine_figures(report, columns),
    }
    _timeline(profile, columns)
    head["columns"] = columns.specs
    return RunData(head, columns.bytes())
