# SPDX-License-Identifier: GPL-2.0-or-later
"""The whole run at one moment as JSON. docs/formats.md is its schema; VERSION grows when a reader of it would break.

Written piece by piece, a row a line: a PyTorch run has half a million of them. Bytes that were no UTF-8 stand as \\xHH.
"""

import json
from typing import Any, Dict, Iterable, Iterator, List, Sequence, Tuple

from jmassif.analysis.aggregate import VALUES, SampleFigures, Usage, by_name, ledger, samples
from jmassif.analysis.balance import books, nearest_to
from jmassif.analysis.device_memory import Layout, layouts
from jmassif.analysis.headline import as_data, headline
from jmassif.analysis.ladder import as_data as ladder_data, ladders
from jmassif.analysis.moments import Moment, select, whole_at
from jmassif.analysis.oom import Incident, incidents_of
from jmassif.analysis.other_tools import beside, others
from jmassif.analysis.range_diff import Change, Range, between
from jmassif.analysis.run_info import labels_of_run, run_id
from jmassif.analysis.sizes import as_data as sizes_data
from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.model.records import PEAKS, Exhaustion, Growth
from jmassif.model.run import Profile
from jmassif.render.leaks import as_data as leaks_data
from jmassif.render.view import View
from jmassif.units import unicode_text
from jmassif.version import __version__


VERSION = 1

_FIGURES = [name.replace("-", "_") for name in VALUES]


def _text(value: str) -> str:
    return json.dumps(unicode_text(value))


def _object(members: Dict[str, Any]) -> str:
    """With all texts made Unicode."""

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            return unicode_text(value)
        if isinstance(value, dict):
            return {unicode_text(key): clean(member) for key, member in value.items()}
        return [clean(member) for member in value] if isinstance(value, (list, tuple)) else value

    return json.dumps(clean(members))


def _rows(name: str, rows: Iterable[str]) -> Iterator[str]:
    """A member whose value is an array, an element a line."""
    yield f',"{name}":['
    before = ""
    for row in rows:
        if before:
            yield before + ","
        before = row
    yield before + "]"


def _table(name: str, columns: Sequence[str], rows: Iterable[str]) -> Iterator[str]:
    """A member whose value is an object of the columns' names, and of the rows as arrays."""
    yield f',"{name}":{{"columns":{json.dumps(columns)}'
    yield from _rows("rows", rows)
    yield "}"


def _run(profile: Profile) -> Dict[str, Any]:
    end = profile.end
    return {
        "id": run_id(profile),
        "labels": dict(labels_of_run(profile)),
        "time_unit": profile.time_unit,
        "memory": profile.manifest.get("memory", ""),
        "is_complete": profile.is_complete,
        "truncation": profile.truncation,
        "end": {"time": end.time, "reason": end.reason, "code": end.code} if end else None,
        "manifest": profile.manifest,
    }


def _held(name: str, usage: Usage) -> Dict[str, Any]:
    return {
        "name": name,
        "host": {"bytes": usage.host_bytes, "blocks": usage.host_blocks},
        "device": {"bytes": usage.device_bytes, "blocks": usage.device_blocks},
    }


def _ledger(profile: Profile, at: Moment) -> Dict[str, Any]:
    table = ledger(profile, at.composition)
    groups = [
        dict(_held(group.name, group.usage), owners=[_held(*owner) for owner in group.owners]) for group in table.groups
    ]
    imported = {"bytes": table.imported_bytes, "blocks": table.imported_blocks}
    return {"groups": groups, "total": _held("total", table.total), "imported": imported}


def _figures(figures: SampleFigures) -> Dict[str, int]:
    return dict(zip(_FIGURES, figures))


def _growths(growths: Tuple[Growth, ...]) -> List[Dict[str, Any]]:
    return [growth._asdict() for growth in growths]


def _moment(profile: Profile, at: Moment) -> Dict[str, Any]:
    snapshot = None if at.snapshot is None else profile.snapshots[at.snapshot].id
    return {"name": at.name, "time": at.time, "snapshot": snapshot}


def _range(profile: Profile, found: Range) -> Iterator[str]:
    """By place, a row of figures of bytes and of blocks."""
    ends = {"from": _moment(profile, found.first), "to": _moment(profile, found.second)}
    yield ',"range":' + _object(ends)[:-1]
    columns = ["account"] + [f"{figure}_{what}" for what in ("bytes", "blocks") for figure in Change._fields]
    rows = (
        f"[{account},{','.join(map(str, (*change.bytes, *change.blocks, change.temporaries)))}]"
        for account, change in sorted(found.places.items())
    )
    yield from _table("places", columns + ["temporaries"], rows)
    yield "}"


_BOOKS = ("board", "before", "held", "untouched", "allocators", "valgrind", "unaccounted", "elsewhere", "free")


def _books(profile: Profile, at: Moment) -> str:
    """Bytes; null where the trace has no sample of the process's pages."""
    snapshot = nearest_to(profile, at)
    if snapshot is None:
        return "null"
    made = books(profile, snapshot)
    told = profile.snapshots[snapshot]
    return _object({"snapshot": told.id, "time": told.time, **{row: getattr(made, row) for row in _BOOKS}})


def _overlay(profile: Profile, at: Moment) -> str:
    """What another tool showed, by its log; null where none was given."""
    found = beside(profile, at, ledger(profile, at.composition).total)
    tool = profile.overlay.tool if profile.overlay else ""
    return "null" if found is None else _object({"tool": tool, **found._asdict()})


def _segments(layout: Layout) -> str:
    """An array. The maps of a few hundred failures have parts by the hundred thousand, so it is spelt here and not by a library."""
    found = []
    for segment in layout.segments:
        parts = ", ".join([f"[{offset}, {n_bytes}, {account or 'null'}]" for offset, n_bytes, account in segment.parts])
        found.append(
            f'{{"address": "{segment.address:x}", "bytes": {segment.bytes}, "account": {segment.account}, "parts": [{parts}]}}'
        )
    return f"[{', '.join(found)}]"


def _incidents(profile: Profile, names: Names) -> Iterator[str]:
    numbered = sorted(enumerate(incidents_of(profile, names), 1), key=lambda row: row[1].last.position)
    positions = [incident.last.position for _, incident in numbered]
    for (number, incident), layout in zip(numbered, layouts(profile, positions)):
        yield f'{_object(_incident(profile, number, incident))[:-1]}, "segments": {_segments(layout)}}}'


def _incident(profile: Profile, number: int, incident: Incident) -> Dict[str, Any]:
    def attempt(event: Exhaustion) -> Dict[str, Any]:
        account = profile.accounts[event.account]
        snapshot = None if event.snapshot is None else profile.snapshots[event.snapshot].id
        return {
            "time": event.time,
            "thread": event.thread,
            "api": event.api,
            "error": event.error,
            "bytes": event.bytes or None,
            "stack": account.node or None,
            "kind": account.kind,
            "owner": account.owner,
            "snapshot": snapshot,
            "figures": event.figures,
        }

    situation = incident.situation._asdict()
    situation["missing"] = incident.situation.missing
    return {
        "number": number,
        "call": incident.call,
        "line": incident.line,
        "tries": [attempt(event) for event in incident.tries],
        "outcome": incident.outcome or None,
        "freed": incident.freed,
        "verdict": incident.verdict,
        "hints": [hint._asdict() for hint in incident.hints],
        "situation": situation,
    }


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


def _named_by_the_program(profile: Profile) -> Iterator[str]:
    """Marks and regions."""
    yield from _rows("marks", (_object({"time": mark.time, "name": mark.text}) for mark in profile.marks))
    yield from _rows(
        "regions",
        (
            _object({"name": r.text, "thread": r.thread, "depth": r.depth, "begin": r.begin, "end": r.end})
            for r in profile.regions
        ),
    )
    yield from _rows(
        "region_sums",
        (_object({"name": r.text, "calls": r.calls, "time": r.time}) for r in profile.region_sums.values()),
    )


def _scopes(profile: Profile) -> Iterator[str]:
    yield from _rows(
        "scopes",
        (
            _object(
                {
                    "scope": s.id,
                    "parent": s.parent or None,
                    "name": s.name,
                    "thread": s.thread,
                    "begin": s.begin,
                    "end": s.end,
                    "stack": s.node or None,
                    "growths": _growths(s.growths),
                }
            )
            for s in profile.scopes
        ),
    )
    yield from _rows(
        "scope_sums",
        (
            _object({"name": s.name, "calls": s.calls, "time": s.time, "growths": _growths(s.growths)})
            for s in profile.scope_sums.values()
        ),
    )


def _sections(profile: Profile, names: Names, at: Moment) -> Iterator[str]:
    """What there are few of: an object each."""
    peaks = [profile.peaks[which] for which in PEAKS if which in profile.peaks]
    yield from _rows(
        "peaks",
        (
            _object({"which": p.which, "time": p.time, "host": p.host, "device": p.device, "by_kind": p.by_kind})
            for p in peaks
        ),
    )
    yield from _rows(
        "snapshots",
        (
            _object(
                {
                    "snapshot": s.id,
                    "time": s.time,
                    "reason": s.reason,
                    "host": s.host,
                    "device": s.device,
                    "by_kind": s.by_kind,
                }
            )
            for s in profile.snapshots
        ),
    )
    columns = profile.timeline._asdict()
    yield ',"timeline":' + json.dumps({name: column.tolist() for name, column in columns.items()})
    system = {
        name: {"time": times.tolist(), "bytes": values.tolist()} for name, (times, values) in profile.system.items()
    }
    yield ',"system":' + _object(system)
    yield from _named_by_the_program(profile)
    yield from _scopes(profile)
    failures = profile.failures.items()
    yield from _rows("failures", (_object({"api": api, "code": code, "calls": n}) for (api, code), n in failures))
    yield from _rows("out_of_memory", _incidents(profile, names))
    yield ',"counters":' + _object(profile.counters)
    yield from _rows("objects", (_object(o._asdict()) for o in profile.objects))


def _told(profile: Profile, names: Names, at: Moment) -> Iterator[str]:
    """What is told of the run and of the machine; of a part of the memory there is none of it, but what it is a part of."""
    if profile.kept is not None:
        held = ledger(profile, at.composition).total.bytes
        yield ',"filter":' + _object({"options": profile.chosen_by, "bytes": held, "of_bytes": whole_at(profile, at)})
        yield ',"headline":null,"leaks":null,"ladders":[],"books":null,"others":[],"overlay":null'
        return
    yield ',"headline":' + _object(as_data(headline(profile, names, at)))
    yield ',"leaks":' + json.dumps(leaks_data(profile, names))
    yield from _rows("ladders", (_object(ladder_data(each)) for each in ladders(profile, at)))
    yield ',"books":' + _books(profile, at)
    yield from _rows("others", (_object(row._asdict()) for row in others(profile, at)))
    yield ',"overlay":' + _overlay(profile, at)


def write(profile: Profile, view: View) -> Iterator[str]:
    """The lines. Raises moments.SelectionError."""
    at = select(profile, view.selector or "peak")
    range_ = between(profile, *view.range) if view.range is not None else None
    names = Names(profile)
    head = {"format": "jmassif", "version": VERSION, "creator": f"jmassif {__version__}", "run": _run(profile)}
    yield _object(head)[:-1]
    yield ',"moment":' + _object(_moment(profile, at))
    yield from _told(profile, names, at)
    yield ',"ledger":' + _object(_ledger(profile, at))
    if range_ is not None:
        yield from _range(profile, range_)
    if view.sizes:
        yield ',"sizes":' + _object(sizes_data(profile, names, at))
    rows = by_name(profile, samples(profile, at.composition), naming(profile, names, view.by, view.fold != "none"))
    yield f',"table":{{"by":"{view.by}"'
    yield from _rows(
        "rows",
        (_object({"name": row.name, "host": _figures(row.host), "device": _figures(row.device)}) for row in rows),
    )
    yield "}"
    yield from _sections(profile, names, at)
    yield from _table("accounts", ["account", "stack", "kind", "owner", "role"] + _FIGURES, _accounts(profile, at))
    nodes = zip(profile.node_parent, profile.node_frame)
    yield from _table(
        "stacks",
        ["stack", "parent", "frame"],
        (f"[{node},{parent},{frame}]" for node, (parent, frame) in enumerate(nodes) if frame),
    )
    yield from _table(
        "frames",
        ["frame", "name", "type", "function", "object", "file", "line", "address"],
        (_frame(profile, names, frame) for frame in profile.frames),
    )
    yield "}"


def _frame(profile: Profile, names: Names, id_: int) -> str:
    frame = profile.frame(id_)
    texts = ",".join(map(_text, (frame.function, frame.object, frame.file)))
    line = profile.frames[id_][4]  # of a thread its number
    return f'[{id_},{_text(names.frame(id_))},"{frame.type}",{texts},{line},"{frame.address:x}"]'
