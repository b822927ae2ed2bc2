# SPDX-License-Identifier: GPL-2.0-or-later
"""The Report as JSON, and with it the whole run: snapshots, accounts, stacks. docs/formats.md says what the members are.

Each record is an object of its fields, and this module, run by itself, prints their schema. Written piece by piece, a row a line: a PyTorch run has half a million of them. Bytes
that were no UTF-8 stand as \\xHH. VERSION grows when a reader of it would break.
"""

import json
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.analysis.aggregate import VALUES, by_name
from jmassif.analysis.device_memory import Layout, layouts
from jmassif.analysis.moments import Moment
from jmassif.analysis.oom import Hint, Incident, Situation
from jmassif.analysis.range_diff import Change, Range, between
from jmassif.analysis.sizes import SizeTables, size_tables
from jmassif.analysis.summary import Report, Usage, Whole, build_report, moment_of
from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.export.schema import schema_of_file
from jmassif.model.records import PEAKS, Exhaustion, Growth, LoadedObject, ScopeSum
from jmassif.model.run import Profile
from jmassif.render.view import View
from jmassif.units import unicode_text
from jmassif.version import __version__

VERSION = 1

_FIGURES = [name.replace("-", "_") for name in VALUES]


# ---- records beside those of the Report -----------------------------------------------------


class Head(NamedTuple):
    format: str
    version: int
    creator: str


class Attempt(NamedTuple):
    """A failed allocation."""

    time: int
    thread: int
    api: str
    error: int
    bytes: Optional[int]
    stack: Optional[int]
    kind: str
    owner: str
    snapshot: Optional[int]
    figures: Dict[str, int]


class SegmentRow(NamedTuple):
    address: str  # hexadecimal
    bytes: int
    account: int
    parts: List[Tuple[int, int, Optional[int]]]  # offset, size, account; None: a hole


class IncidentRow(NamedTuple):
    number: int
    call: str
    line: str
    tries: List[Attempt]
    outcome: Optional[str]
    freed: int
    verdict: str
    situation: Situation
    missing: Optional[int]
    hints: List[Hint]
    segments: List[SegmentRow]


class Figures(NamedTuple):
    live_bytes: int
    live_blocks: int
    allocated_bytes: int
    allocated_blocks: int
    temporaries: int


class NamedFigures(NamedTuple):
    name: str
    host: Figures
    device: Figures


class Table(NamedTuple):
    by: str
    rows: List[NamedFigures]


class PeakRow(NamedTuple):
    which: str
    time: int
    host: int
    device: int
    by_kind: Dict[str, int]


class SnapshotRow(NamedTuple):
    snapshot: int
    time: int
    reason: str
    host: int
    device: int
    by_kind: Dict[str, int]


class SystemFigure(NamedTuple):
    time: List[int]
    bytes: List[int]


class MarkRow(NamedTuple):
    time: int
    name: str


class RegionRow(NamedTuple):
    name: str
    thread: int
    depth: int
    begin: int
    end: Optional[int]


class RegionSumRow(NamedTuple):
    name: str
    calls: int
    time: int


class ScopeRow(NamedTuple):
    scope: int
    parent: Optional[int]
    name: str
    thread: int
    begin: int
    end: int
    stack: Optional[int]
    growths: Tuple[Growth, ...]


class FailureRow(NamedTuple):
    api: str
    code: int
    calls: int


class Columns(NamedTuple):
    columns: List[str]
    rows: List[List[Any]]


class Rest(NamedTuple):
    """The members beside those of Head and Report."""

    out_of_memory: List[IncidentRow]
    range: Any
    sizes: SizeTables
    table: Table
    peaks: List[PeakRow]
    snapshots: List[SnapshotRow]
    timeline: Dict[str, List[int]]
    system: Dict[str, SystemFigure]
    marks: List[MarkRow]
    regions: List[RegionRow]
    region_sums: List[RegionSumRow]
    scopes: List[ScopeRow]
    scope_sums: List[ScopeSum]
    failures: List[FailureRow]
    counters: Dict[str, int]
    objects: List[LoadedObject]
    accounts: Columns
    stacks: Columns
    frames: Columns


def schema() -> Dict[str, Any]:
    return schema_of_file((Head, Report, Rest), ("range", "sizes"), f"jmassif report --format=json, version {VERSION}")


# ---- writing ---------------------------------------------------------------------------------


def data(value: Any, wholes: Sequence[Whole] = ()) -> Any:
    """Records as objects of their fields, texts in Unicode. `wholes`: to add the share of each usage, by what it is of."""
    if isinstance(value, str):
        return unicode_text(value)
    if hasattr(value, "_fields"):
        made = {name: data(member, wholes) for name, member in zip(value._fields, value)}
        if wholes and isinstance(getattr(value, "usage", None), Usage):
            made["share"] = {each.of: _share(value.usage.on(each.space), each.bytes) for each in wholes}
        return made
    if isinstance(value, dict):
        return {unicode_text(key): data(member, wholes) for key, member in value.items()}
    return [data(member, wholes) for member in value] if isinstance(value, (list, tuple)) else value


def _share(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0


def _member(name: str, value: Any, wholes: Sequence[Whole] = ()) -> str:
    return f',"{name}":{json.dumps(data(value, wholes))}'


def _rows(name: str, rows: Iterable[Any]) -> Iterator[str]:
    """A member whose value is an array, an element a line; texts are JSON already."""
    yield f',"{name}":['
    before = ""
    for row in rows:
        if before:
            yield before + ","
        before = row if isinstance(row, str) else json.dumps(data(row))
    yield before + "]"


def _table(name: str, columns: Sequence[str], rows: Iterable[str]) -> Iterator[str]:
    """A member whose value is an object of the columns' names, and of the rows as arrays."""
    yield f',"{name}":{{"columns":{json.dumps(columns)}'
    yield from _rows("rows", rows)
    yield "}"


_WITH_SHARES = ("ledger", "roles", "lines")


def _report(profile: Profile, report: Report) -> Iterator[str]:
    if report.balance is not None:  # its snapshot by number
        number = profile.snapshots[report.balance.snapshot].id
        report = report._replace(balance=report.balance._replace(snapshot=number))
    for name, value in report._asdict().items():
        if name != "out_of_memory":
            yield _member(name, value, report.wholes if name in _WITH_SHARES else ())


def _moment(profile: Profile, at: Moment) -> Dict[str, Any]:
    snapshot = None if at.snapshot is None else profile.snapshots[at.snapshot].id
    return {"name": at.name, "time": at.time, "snapshot": snapshot}


def _range(profile: Profile, found: Range) -> Iterator[str]:
    """By place, a row of figures of bytes and of blocks."""
    ends = {"from": _moment(profile, found.first), "to": _moment(profile, found.second)}
    yield ',"range":' + json.dumps(data(ends))[:-1]
    columns = ["account"] + [f"{figure}_{what}" for what in ("bytes", "blocks") for figure in Change._fields]
    rows = (
        f"[{account},{','.join(map(str, (*change.bytes, *change.blocks, change.temporaries)))}]"
        for account, change in sorted(found.places.items())
    )
    yield from _table("places", columns + ["temporaries"], rows)
    yield "}"


def _segments(layout: Layout) -> str:
    """An array. The maps of a few hundred failures have parts by the hundred thousand, so it is spelt here and not by a library."""
    found = []
    for segment in layout.segments:
        parts = ", ".join([f"[{offset}, {n_bytes}, {account or 'null'}]" for offset, n_bytes, account in segment.parts])
        found.append(
            f'{{"address": "{segment.address:x}", "bytes": {segment.bytes}, "account": {segment.account}, "parts": [{parts}]}}'
        )
    return f"[{', '.join(found)}]"


def _attempt(profile: Profile, event: Exhaustion) -> Attempt:
    account = profile.accounts[event.account]
    snapshot = None if event.snapshot is None else profile.snapshots[event.snapshot].id
    stack = account.node or None
    place = (stack, account.kind, account.owner, snapshot)
    return Attempt(event.time, event.thread, event.api, event.error, event.bytes or None, *place, event.figures)


def _incidents(profile: Profile, incidents: Sequence[Incident]) -> Iterator[str]:
    numbered = sorted(enumerate(incidents, 1), key=lambda row: row[1].last.position)
    positions = [incident.last.position for _, incident in numbered]
    for (number, each), layout in zip(numbered, layouts(profile, positions)):
        tries = [_attempt(profile, event) for event in each.tries]
        about = (each.outcome or None, each.freed, each.verdict, each.situation, each.situation.missing, each.hints)
        text = json.dumps(data(IncidentRow(number, each.call, each.line, tries, *about, [])))
        yield f"{text[:-len('[]}')]}{_segments(layout)}}}"


def _accounts(profile: Profile, at: Moment) -> Iterator[str]:
    lifetime = profile.lifetime()
    for account, (node, kind, owner) in enumerate(profile.accounts):
        if not kind or (profile.kept is not None and not profile.kept[account]):
            continue
        held = at.composition.get(account, (0, 0))
        figures = held + (lifetime.bytes[account], lifetime.blocks[account], lifetime.temporaries[account])
        role = profile.role(account)
        role_text = f'"{role}"' if role else "null"
        yield f'[{account},{node},"{kind}","{owner}",{role_text},{",".join(map(str, figures))}]'


def _frame(profile: Profile, names: Names, id_: int) -> str:
    frame = profile.frame(id_)
    name, function, object_, file = (
        json.dumps(unicode_text(text)) for text in (names.frame(id_), frame.function, frame.object, frame.file)
    )
    line = profile.frames[id_][4]  # of a thread its number
    return f'[{id_},{name},"{frame.type}",{function},{object_},{file},{line},"{frame.address:x}"]'


def _events(run: Profile) -> Iterator[str]:
    """Totals over time, and events in the run."""
    peaks = [run.peaks[which] for which in PEAKS if which in run.peaks]
    yield from _rows("peaks", (PeakRow(p.which, p.time, p.host, p.device, p.by_kind) for p in peaks))
    snapshots = (SnapshotRow(s.id, s.time, s.reason, s.host, s.device, s.by_kind) for s in run.snapshots)
    yield from _rows("snapshots", snapshots)
    yield _member("timeline", {name: column.tolist() for name, column in run.timeline._asdict().items()})
    figures = {name: SystemFigure(*(column.tolist() for column in columns)) for name, columns in run.system.items()}
    yield _member("system", figures)
    yield from _rows("marks", (MarkRow(mark.time, mark.text) for mark in run.marks))
    yield from _rows("regions", (RegionRow(r.text, r.thread, r.depth, r.begin, r.end) for r in run.regions))
    yield from _rows("region_sums", (RegionSumRow(r.text, r.calls, r.time) for r in run.region_sums.values()))
    scopes = (
        ScopeRow(s.id, s.parent or None, s.name, s.thread, s.begin, s.end, s.node or None, s.growths)
        for s in run.scopes
    )
    yield from _rows("scopes", scopes)
    yield from _rows("scope_sums", run.scope_sums.values())
    yield from _rows("failures", (FailureRow(api, code, n) for (api, code), n in run.failures.items()))
    yield _member("counters", run.counters)
    yield from _rows("objects", run.objects)


def write(profile: Profile, view: View) -> Iterator[str]:
    """The lines. Raises moments.SelectionError."""
    names = Names(profile)
    at = moment_of(profile, names, view.selector)
    range_ = between(profile, *view.range) if view.range is not None else None
    report = build_report(profile, at, names)
    yield json.dumps(data(Head("jmassif", VERSION, f"jmassif {__version__}")))[:-1]
    yield from _report(profile, report)
    yield from _rows("out_of_memory", _incidents(profile, report.out_of_memory))
    if range_ is not None:
        yield from _range(profile, range_)
    if view.sizes:
        yield _member("sizes", size_tables(profile, names, at))
    rows = by_name(profile, at.composition, naming(profile, names, view.by, view.fold != "none"))
    yield f',"table":{{"by":"{view.by}"'
    yield from _rows(
        "rows", (NamedFigures(row.name, *(Figures(*row.figures(side)) for side in ("host", "device"))) for row in rows)
    )
    yield "}"
    yield from _events(profile)
    yield from _table("accounts", ["account", "stack", "kind", "owner", "role"] + _FIGURES, _accounts(profile, at))
    nodes = enumerate(zip(profile.node_parent, profile.node_frame))
    stacks = (f"[{node},{parent},{frame}]" for node, (parent, frame) in nodes if frame)
    yield from _table("stacks", ["stack", "parent", "frame"], stacks)
    columns = ["frame", "name", "type", "function", "object", "file", "line", "address"]
    yield from _table("frames", columns, (_frame(profile, names, frame) for frame in profile.frames))
    yield "}"


if __name__ == "__main__":
    print(json.dumps(schema(), indent=1))
