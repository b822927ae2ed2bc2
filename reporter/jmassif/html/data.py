# SPDX-License-Identifier: GPL-2.0-or-later
"""Everything the page knows of a run, as one JSON object (html/head.py) and the columns it names (docs/contributing.md)."""

from itertools import compress, islice
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.analysis.device_memory import Layout, Segment
from jmassif.analysis.moments import main_peak, select
from jmassif.analysis.oom import NOTE, WARNING
from jmassif.analysis.other_tools import Counted
from jmassif.analysis.summary import Incident, Report, build_report, moment_of
from jmassif.attribution.names import Names
from jmassif.html import head
from jmassif.html.cells import Cells, Columns, Index, cells, index_of, shown
from jmassif.html.first import about_run, reports
from jmassif.html.names import SharedNames, cells_data
from jmassif.html.tables import MAX_EVENTS, MAX_SCOPES, tables
from jmassif.model.run import Profile
from jmassif.model.run_info import counted, was_short
from jmassif.render import summary
from jmassif.render.failures import arithmetic, sentence
from jmassif.render.job import Statement
from jmassif.render.sources import Sources
from jmassif.render.system import BALANCE, doubts
from jmassif.units import count


def _fields(record: Any, names: str) -> Dict[str, Any]:
    """Some of a record's fields, with texts fit to be shown."""
    values = ((name, getattr(record, name)) for name in names.split())
    return {name: shown(value) if isinstance(value, str) else value for name, value in values}


# ---- out of memory ----
# Failed allocations.

# The last ones: they are what a run died of.
_MAX_INCIDENTS = 50
_MAX_MAPS = 8
_MAX_SEGMENTS = 40
_MAX_FRAMES = 40
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


def _map(profile: Profile, layout: Layout) -> List[head.DrawnSegment]:
    largest = sorted(layout.segments, key=lambda segment: (-segment.bytes, segment.address))[:_MAX_SEGMENTS]
    return [head.DrawnSegment(f"{each.address:x}", each.bytes, each.free, _parts(profile, each)) for each in largest]


def _incident(report: Report, number: int, incident: Incident, has_map: bool) -> head.Incident:
    profile, names, last = report.profile, report.names, incident.last
    layout = report.device_layout(last.position) if has_map else None
    line = names.charged(last.account)
    stack = profile.stack(profile.accounts[last.account].node)
    return head.Incident(
        **_fields(incident, "outcome verdict"),
        time=last.time,
        number=number,
        snapshot=0 if last.snapshot is None else profile.snapshots[last.snapshot].id,
        text=sentence(report, incident),
        helps=[summary.action(hint, report.run.is_pytorch, incident) for hint in incident.hints],
        arithmetic=arithmetic(incident.situation),
        line=names.frame(line)[:400] if line else "",
        stack=[names.frame(frame)[:400] for _, frame in zip(range(_MAX_FRAMES), stack)],
        map=_map(profile, layout) if layout else [],
        segments_left_out=max(0, len(layout.segments) - _MAX_SEGMENTS) if layout else 0,
    )


def oom(report: Report) -> head.OutOfMemory:
    """The failures, the last ones with maps, and the number of calls that the trace only counts."""
    numbered = list(enumerate(report.out_of_memory, 1))[-_MAX_INCIDENTS:]
    with_map = set([number for number, incident in numbered if not incident.is_resolved][-_MAX_MAPS:])
    n_shown = sum(len(incident.tries) for _, incident in numbered)
    return head.OutOfMemory(
        [_incident(report, number, each, number in with_map) for number, each in numbered],
        max(0, report.profile.counters.get("out-of-memory", 0) - n_shown),
    )


# ---- history ----
# Events of a run: the machine's figures, marks and regions, start-up calls.


def _events(report: Report, columns: Columns) -> head.Events:
    """Figures of the machine, marks and regions, start-up calls.

    The columns have rows of all figures of the machine, one figure after the other.
    """
    profile, histories = report.profile, report.histories
    columns.add("machine.time", [time for history in histories for time in history.times])
    columns.add("machine.bytes", [value for history in histories for value in history.values])
    return head.Events(
        [head.MachineFigure(rows=len(each.times), **_fields(each, "label worst is_of_process")) for each in histories],
        was_short(profile),
        [head.Mark(mark.time, shown(mark.text)) for mark in profile.marks[:MAX_EVENTS]],
        [head.Region(**_fields(region, "text begin end depth")) for region in profile.regions[:MAX_EVENTS]],
        [
            head.Scope(shown(scope.name), depth, scope.begin, scope.end)
            for scope, depth in report.waterfall(MAX_SCOPES).rows
        ],
    )


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


def mapped(profile: Profile, found: Cells, columns: Columns) -> List[Tuple[str, str]]:
    """The names that mapped memory goes by: library, as the cells have it, and kind."""
    is_page = bytearray(profile.accounts.by_type(lambda type_: profile.is_sampled(type_.kind)))
    names = Index()
    name_of: Dict[int, int] = {}  # by account
    for account in compress(range(len(is_page)), is_page):
        attributes = found.attributes[found.cells[found.cell_of[account]].attributes]
        name_of[account] = names[shown(attributes.library), attributes.kind]
    copies: Dict[Tuple[int, int], List[int]] = {}  # accounts, by the names of the file and of its copied pages
    keys = list(names)
    for account, name in name_of.items():
        file = (keys[name][0], "file")
        if keys[name][1] == "anon" and file in names and profile.copied_file(account):
            copies.setdefault((names[file], name), []).append(account)
    sums = [MappedFigures()] * len(names)
    shown_last = list(sums)
    known: Dict[int, MappedFigures] = {}  # by account, as the next three
    resident: Dict[int, int] = {}
    pages: Dict[int, Tuple[int, ...]] = {}
    then: Dict[int, int] = {}  # resident at a peak, where that differs from the snapshot that it is recorded against
    n_read = 0
    n_rows = []
    rows: List[Tuple[int, MappedFigures]] = []  # names, and their figures from then on, moment after moment
    for moment in found.moments:
        changed = set(then)
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
        now_shown = list(sums)
        for (file_name, name), accounts_of in copies.items():  # as in analysis/system.py
            file_sums, anon = now_shown[file_name], now_shown[name]
            n_bytes = min(sum(known[each].resident for each in accounts_of if each in known), file_sums.shared)
            now_shown[file_name] = file_sums._replace(shared=file_sums.shared - n_bytes)
            now_shown[name] = anon._replace(shared=anon.shared + n_bytes)
        more = [row for row, was in zip(enumerate(now_shown), shown_last) if row[1] != was]
        shown_last = now_shown
        rows += more
        n_rows.append(len(more))
    columns.add("mapped.rows", n_rows)
    columns.add("mapped.name", [name for name, _ in rows])
    for figure in MappedFigures._fields:
        columns.add(f"mapped.{figure}", [getattr(figures, figure) for _, figures in rows])
    return list(names)


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


def others(report: Report, found: Cells) -> List[head.OtherFigure]:
    rows = [
        head.OtherFigure(**_fields(each, "tool figure leaves_out times values")) for each in report.sampled_by_others
    ]
    counted = report.counted_by_others
    for each, values in zip(counted, _values(found, counted)):
        rows.append(head.OtherFigure(**_fields(each, "tool figure leaves_out"), times=None, values=values))
    return rows


# ---- data ----

_MAX_BLOCKS = 20000
_MAX_TIMELINE_ROWS = 20000


class RunData(NamedTuple):
    head: Dict[str, Any]  # fit for JSON
    columns: bytes  # what head["columns"] describes


# ---- time ------------------------------------------------------------------------------------


def _moments(report: Report, found: Cells, columns: Columns) -> head.Moments:
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
            peaks[moment.peak] = head.Peak(index, **_fields(profile.peaks[moment.peak], "time host device"))
    at = {}
    of_snapshot = {moment.snapshot: index for index, moment in enumerate(found.moments)}
    chosen = {"peak": select(profile, "peak"), "end": select(profile, "end"), "first": report.at}
    for name, each in chosen.items() if found.moments else ():
        at[name] = peaks[main_peak(profile)].moment if each.snapshot is None else of_snapshot[each.snapshot]
    return head.Moments(kinds, peaks, head.ChosenMoments(**at))


def _balances(report: Report, found: Cells) -> List[head.Balance]:
    """The balance of the whole machine, for each moment that has them."""
    index_of = {moment.snapshot: index for index, moment in enumerate(found.moments)}
    return [
        head.Balance(
            index_of[made.snapshot],
            made.board,
            made.held,
            doubts(made),
            {each.field: each.named(made) for each in BALANCE},
            {each.field: each.noted(made) for each in BALANCE},
            **{each.field: each.bytes(made) for each in BALANCE},
        )
        for made in report.balances
    ]


def _balance_of(report: Report, found: Cells) -> List[int]:
    """By moment, its balance's place among those of the page."""
    place_of = {made.snapshot: place for place, made in enumerate(report.balances)}
    snapshots = [report.balance_for(moment.snapshot, moment.time) for moment in found.moments] if place_of else []
    return [place_of[snapshot] for snapshot in snapshots if snapshot is not None]


def _fullest(maximum: Sequence[int]) -> Sequence[int]:
    """Places of rows over time. Of very many, the fullest of each of as many equal runs as are kept."""
    n_rows, n_kept = len(maximum), min(len(maximum), _MAX_TIMELINE_ROWS)
    bounds = [place * n_rows // n_kept for place in range(n_kept + 1)] if n_rows else []
    return [max(range(a, b), key=maximum.__getitem__) for a, b in zip(bounds, bounds[1:])]


def add_timeline(columns: Columns, *totals: Sequence[int]) -> None:
    """Totals between snapshots: time, host, device and the most of their sum since the row before."""
    rows = _fullest(totals[-1])
    for name, column in zip(("time", "host", "device", "maximum"), totals):
        columns.add(f"timeline.{name}", [column[row] for row in rows])


# ---- blocks ----------------------------------------------------------------------------------


def _blocks(report: Report, found: Cells, share: float, columns: Columns) -> Tuple[int, int]:
    """The number of blocks that are left out, and their bytes."""
    kept = report.blocks(max(1, int(share * _MAX_BLOCKS)))
    for name in ("begin", "end", "bytes"):
        columns.add(f"block.{name}", [getattr(block, name) for block in kept.rows])
    columns.add("block.address", [block.address for block in kept.rows], "address")
    columns.add("block.cell", [found.cell_of[block.account] for block in kept.rows])
    return kept.n_left_out, kept.left_out_bytes


# ---- the run ---------------------------------------------------------------------------------


def notes(reports: Sequence[Report], n_kept: int) -> List[Statement]:
    """Sentences on a run, or on several. `n_kept`: nodes of call stacks on the page."""
    found = list(dict.fromkeys(filter(None, (summary.where_arenas_are(report.profile) for report in reports))))
    unsized: Dict[str, int] = {}
    for report in reports:
        for noun, n in counted(report.profile).without_size:
            unsized[noun] = unsized.get(noun, 0) + n
    if unsized:
        objects = ", ".join(count(n, noun) for noun, n in unsized.items())
        found.append(f"Not counted: driver objects of unknown size ({objects}).")
    n_nodes = sum(len(report.profile.node_frame) - 1 for report in reports)
    found.append(
        f"This page has all {n_nodes:,} nodes of call stacks."
        if n_kept >= n_nodes
        else f"This page has {n_kept:,} of {n_nodes:,} nodes of call stacks; smaller ones are summed into their callers. All sums are exact."
    )
    said = [Statement("note", NOTE, text) for text in found]
    for profile in (report.profile for report in reports):
        if profile.truncation or not profile.is_complete:
            why = (
                shown(profile.truncation)
                if profile.truncation
                else "the program still runs"
                if profile.is_running
                else "no end record (killed, or still running)"
            )
            of = f" of process {shown(profile.manifest.get('pid', ''))}" if len(reports) > 1 else ""
            said.append(Statement("note", WARNING, f"Incomplete trace{of}: {why}. The page shows what came before."))
    return said


def report_of(profile: Profile) -> Report:
    """At the failure that ended the run, else at the peak."""
    names = Names(profile)
    return build_report(profile, moment_of(profile, names, None), names)


def run_key(profile: Profile) -> str:
    """The name of a run on its page: after exec the process has the same number."""
    return ".".join(filter(None, (profile.manifest.get(key, "") for key in ("pid", "start-unix-ms"))))


def run_data(
    report: Report,
    share: float = 1.0,
    sources: Optional[Sources] = None,
    offset: int = 0,
    has_parent: bool = False,
    shared: Optional[SharedNames] = None,
) -> RunData:
    """Data of one process, with that share of a page's budget. Raises TooLarge.

    `offset`: added to its times for the common clock of the page's processes; see cells() for `has_parent`. With `shared` it has
    no names of its own.
    """
    profile, names, columns = report.profile, report.names, Columns()
    found = cells(profile, names, share, has_parent)
    own = shared or SharedNames()
    cells_data(profile, names, found, sources, columns, own)
    moments = _moments(report, found, columns)
    identity = head.Identity(
        profile.time_unit,
        profile.is_discrete,
        offset,
        shown(profile.manifest.get("pid", "")),
        shown(run_key(profile)),
        shown(profile.manifest.get("command", "")),
        profile.end.time if profile.end else None,
        profile.number("mem-total-bytes"),
        shown(profile.chosen_by),
        about_run(report),
        report.run.is_pytorch,
    )
    figures = head.Figures(
        reports(report, moments.at, sources),
        tables(report),
        _balances(report, found),
        _balance_of(report, found),
        others(report, found),
        oom(report),
        mapped(profile, found, columns),
        _blocks(report, found, share, columns),
        profile.block_thresholds,
    )
    events = _events(report, columns)
    add_timeline(columns, *profile.timeline)
    about = head.About(
        [(name, shown(text)) for name, text in report.run.facts], notes([report], columns.specs["node.parent"].rows - 1)
    )
    parts = (identity, figures, moments, events, about, head.Packed(columns.specs))
    return RunData(head.run_head(*parts, *([] if shared else [own.cell_names()])), columns.bytes())
