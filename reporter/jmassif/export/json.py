# SPDX-License-Identifier: GPL-2.0-or-later
"""The Report as JSON, and with it the whole run: snapshots, accounts, stacks; of several processes their sum.

docs/reference.md says what the members are. Each record is an object of its fields, or of the members that _MEMBERS names; this
module, run by itself, prints the schema. A run is written piece by piece, a row a line: a PyTorch run has half a million of
them. Bytes that were no UTF-8 stand as \\xHH. VERSION grows when a reader of it would break.
"""

import collections.abc
import json
import sys
from array import array
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple
from typing import Union, get_type_hints

from jmassif.analysis.aggregate import VALUES, NamedUsage, by_name
from jmassif.analysis.device_memory import Segment
from jmassif.analysis.moments import Moment
from jmassif.analysis.oom import Situation
from jmassif.analysis.processes import MEASURES, Adjustments, Ended, JobMoment, OddRank, Part, Processes, RankRow
from jmassif.analysis.processes import build_job_report
from jmassif.analysis.summary import Ledger, Report, Usage, Whole, build_report, moment_of
from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.export import separated
from jmassif.model.process_tree import Process
from jmassif.model.records import PEAKS, Exhaustion, LoadedObject, Mark, Peak, Region, RegionSum, Scope, ScopeSum
from jmassif.model.records import Snapshot
from jmassif.model.run import Profile
from jmassif.render.view import View
from jmassif.units import unicode_text
from jmassif.version import __version__

VERSION = 1

# Members of records that are not just their fields; a property is a member too.
_MEMBERS: Mapping[Any, Sequence[str]] = {
    Ended: ("process", "at_peak", "ledger_peak", "outcome"),
    Exhaustion: ("time", "thread", "account", "api", "error", "bytes", "figures"),
    JobMoment: ("time", "host", "device"),
    Mark: ("time", "text"),
    Moment: ("name", "time"),
    Part: ("host", "device", "has_share"),
    Peak: ("which", "time", "host", "device", "by_kind"),
    Process: ("pid", "run_id", "command", "relation", "parent", "begin", "end", "rank"),
    RankRow: ("rank", "host", "pid", "peak", "yours", "cached"),
    Region: ("text", "thread", "depth", "begin", "end"),
    Situation: Situation._fields + ("missing",),
    Segment: ("address", "bytes", "account", "parts"),
    Snapshot: ("id", "time", "reason", "host", "device", "by_kind"),
}

# Members with only these texts, by the name of their record.
_WORDS: Mapping[Tuple[str, str], Sequence[str]] = {
    ("ColumnSpec", "type"): ("number", "signed", "address"),
    ("Identity", "unit"): ("ms", "i", "B"),
    ("Kind", "side"): ("host", "device", ""),
    ("NamedReport", "space"): ("host", "device", ""),
    ("ShownRung", "role"): ("shown", "sum", "less", "plus"),
    ("Statement", "severity"): ("alarm", "warning", "note"),
}


# ---- records beside those of analyses --------------------------------------------------------


class Head(NamedTuple):
    format: str
    version: int = VERSION
    creator: str = f"jmassif {__version__}"


class Columns(NamedTuple):
    columns: List[str]
    rows: List[List[Any]]


class FailedLayout(NamedTuple):
    """Device memory when an allocation failed."""

    incident: int  # from 1, in out_of_memory
    segments: List[Segment]


class Rest(NamedTuple):
    """The members beside those of Head and Report."""

    layouts: List[FailedLayout]
    by: str
    table: List[NamedUsage]
    peaks: List[Peak]
    snapshots: List[Snapshot]
    timeline: Dict[str, List[int]]
    system: Dict[str, Tuple[List[int], List[int]]]  # times, bytes
    marks: List[Mark]
    regions: List[Region]
    region_sums: List[RegionSum]
    scopes: List[Scope]
    scope_sums: List[ScopeSum]
    failures: Columns
    counters: Dict[str, int]
    objects: List[LoadedObject]
    accounts: Columns
    stacks: Columns
    frames: Columns


class Job(NamedTuple):
    is_discrete: bool
    no_clock: str
    peak: str
    peaks: Dict[str, JobMoment]
    largest: int  # pid
    processes: List[Ended]
    ledger: Ledger
    adjustments: Adjustments
    timeline: Dict[str, List[int]]
    ranks: List[RankRow]
    odd: Optional[OddRank]
    first_failure: Optional[int]  # the rank that failed first


# ---- their schema ----------------------------------------------------------------------------

_PLAIN: Mapping[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
_LISTS = (list, List, Sequence, collections.abc.Sequence)
_OBJECTS = (dict, Dict, Mapping, collections.abc.Mapping)


def _record(type_: Any) -> Dict[str, Any]:
    hints = get_type_hints(type_)
    names = _MEMBERS.get(type_, type_._fields)
    members = {
        name: _schema_of(hints.get(name) or get_type_hints(getattr(type_, name).fget)["return"]) for name in names
    }
    members.update({name: {"enum": list(words)} for (of, name), words in _WORDS.items() if of == type_.__name__})
    if "usage" in members:  # where the whole is known
        members["share"] = {"type": "object", "additionalProperties": {"type": "number"}}
    described = {"title": type_.__name__}
    if type_.__doc__ and not type_.__doc__.startswith(f"{type_.__name__}("):  # NamedTuple's own
        described["description"] = " ".join(type_.__doc__.split())
    return {
        **described,
        "type": "object",
        "properties": members,
        "required": list(names),
        "additionalProperties": False,
    }


def _schema_of(type_: Any) -> Dict[str, Any]:
    """Of a NamedTuple, or of a type that annotates one of its fields."""
    if type_ is Any:
        return {}
    if type_ in _PLAIN:
        return {"type": _PLAIN[type_]}
    if hasattr(type_, "_fields"):
        return _record(type_)
    origin = type_.__origin__
    arguments = type_.__args__
    if origin is Union:
        return {"anyOf": [_schema_of(each) for each in arguments]}
    if origin in _OBJECTS:
        return {"type": "object", "additionalProperties": _schema_of(arguments[1])}
    if origin in _LISTS or arguments[-1] is Ellipsis:
        return {"type": "array", "items": _schema_of(arguments[0])}
    items = [_schema_of(each) for each in arguments]
    return {"type": "array", "items": items, "additionalItems": False, "minItems": len(items)}


FILES = {"jmassif": (Head, Report, Rest), "jmassif-job": (Head, Job)}


def merged_schema(title: str, parts: Sequence[Any]) -> Dict[str, Any]:
    """JSON Schema (draft 7) of an object with the members of several records."""
    members = {name: each for part in parts for name, each in _record(part)["properties"].items()}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": title,
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def schema(format_: str = "jmassif") -> Dict[str, Any]:
    """Of a file, by its member `format`."""
    return merged_schema(f"{format_}, version {VERSION}", FILES[format_])


# ---- writing ---------------------------------------------------------------------------------


def data(value: Any, wholes: Sequence[Whole] = ()) -> Any:
    """Records as objects of their members, texts in Unicode. `wholes`: to add the share of each usage, by what it is of."""
    if isinstance(value, str):
        return unicode_text(value)
    if hasattr(value, "_fields"):
        names = _MEMBERS.get(type(value), value._fields)
        made = {name: data(getattr(value, name), wholes) for name in names}
        if wholes and isinstance(getattr(value, "usage", None), Usage):
            parts = [(each.of, value.usage.on(each.space), each.bytes) for each in wholes]
            made["share"] = {of: round(part / whole, 6) if whole else 0.0 for of, part, whole in parts}
        return made
    if isinstance(value, dict):
        return {unicode_text(key): data(member, wholes) for key, member in value.items()}
    return [data(member, wholes) for member in value] if isinstance(value, (list, tuple, array)) else value


def _text(value: Any) -> str:
    return json.dumps(data(value))


def _member(name: str, value: Any, wholes: Sequence[Whole] = ()) -> str:
    return f',"{name}":{json.dumps(data(value, wholes))}'


def _rows(name: str, rows: Iterable[Any], text_of: Callable[[Any], str] = _text) -> Iterator[str]:
    """A member whose value is an array, an element a line."""
    yield f',"{name}":['
    yield from separated(map(text_of, rows))
    yield "]"


def _table(name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """A member of the type Columns. Texts in rows are Unicode."""
    yield f',"{name}":{{"columns":{json.dumps(columns)}'
    yield from _rows("rows", rows, json.dumps)
    yield "}"


# ---- a run -----------------------------------------------------------------------------------

_WITH_SHARES = ("ledger", "roles", "lines")


def _report(report: Report) -> Iterator[str]:
    if report.balance is not None:  # its snapshot by number
        number = report.profile.snapshots[report.balance.snapshot].id
        report = report._replace(balance=report.balance._replace(snapshot=number))
    for name, value in report._asdict().items():
        yield _member(name, value, report.wholes if name in _WITH_SHARES else ())


def _accounts(profile: Profile, at: Moment) -> Iterator[Sequence[Any]]:
    lifetime = profile.lifetime()
    for account, (node, kind, owner) in enumerate(profile.accounts):
        if kind and (profile.kept is None or profile.kept[account]):
            figures = at.composition.get(account, (0, 0)) + tuple(column[account] for column in lifetime)
            yield (account, node, kind, owner, profile.role(account), *figures)


def _frames(profile: Profile, names: Names) -> Iterator[Sequence[Any]]:
    for id_, (_, _, _, _, line, _) in profile.frames.items():  # the line of a thread is its number
        frame = profile.frame(id_)
        function, object_, file = map(unicode_text, (frame.function, frame.object, frame.file))
        yield id_, unicode_text(names.frame(id_)), frame.type, function, object_, file, line, f"{frame.address:x}"


def _events(run: Profile) -> Iterator[str]:
    """Totals over time, and events in the run."""
    yield from _rows("peaks", [run.peaks[which] for which in PEAKS if which in run.peaks])
    failures = ((unicode_text(api), code, n) for (api, code), n in run.failures.items())
    yield from _table("failures", ["api", "code", "calls"], failures)
    for name in ("snapshots", "marks", "regions", "scopes", "objects"):
        yield from _rows(name, getattr(run, name))
    for name in ("region_sums", "scope_sums"):
        yield from _rows(name, getattr(run, name).values())
    for name in ("timeline", "system", "counters"):
        yield _member(name, getattr(run, name))


def write(profile: Profile, view: View) -> Iterator[str]:
    """The lines. Raises moments.SelectionError."""
    names = Names(profile)
    at = moment_of(profile, names, view.selector)
    report = build_report(profile, at, names)
    yield _text(Head("jmassif"))[:-1]
    yield from _report(report)
    yield from _rows("layouts", (FailedLayout(number, layout.segments) for number, layout in report.failed_layouts()))
    yield _member("by", view.by)
    yield from _rows("table", by_name(profile, at.composition, naming(profile, names, view.by, view.fold != "none")))
    yield from _events(profile)
    columns = ["account", "stack", "kind", "owner", "role", *(name.replace("-", "_") for name in VALUES)]
    yield from _table("accounts", columns, _accounts(profile, at))
    nodes = enumerate(zip(profile.node_parent, profile.node_frame))
    stacks = ((node, parent, frame) for node, (parent, frame) in nodes if frame)
    yield from _table("stacks", ["stack", "parent", "frame"], stacks)
    columns = ["frame", "name", "type", "function", "object", "file", "line", "address"]
    yield from _table("frames", columns, _frames(profile, names))
    yield "}"


# ---- several processes -----------------------------------------------------------------------


def write_job(job: Processes, view_of: Callable[[Profile], View], is_each: bool = False) -> Iterator[str]:
    made, measure = build_job_report(job), job.measures[-1]
    found = Job(
        job.is_discrete,
        job.no_clock,
        measure,
        {} if job.no_clock else {which: job.peak(which) for which in MEASURES},
        job.largest().pid,
        made.ended,
        made.ledger,
        made.adjustments,
        {name: [getattr(row, name) for row in job.timeline()] for name in _MEMBERS[JobMoment]},
        made.ranks,
        made.odd,
        next((row.rank for row in made.ranks if row.ended is made.first_failure), None),
    )
    yield json.dumps({**data(Head("jmassif-job")), **data(found)})


if __name__ == "__main__":
    print(json.dumps(schema(*sys.argv[1:]), indent=1))
