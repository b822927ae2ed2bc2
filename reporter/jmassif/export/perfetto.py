# SPDX-License-Identifier: GPL-2.0-or-later
"""A trace in the Trace Event Format, for ui.perfetto.dev and chrome://tracing.

Counters have the totals, what each owner held (or what else --by names) at each snapshot, and the machine's figures;
regions and calls of the CUDA API are slices of their threads; marks, failed allocations and peaks are instants. Slices
of a thread must nest: those that overlap without nesting go to a further track of that thread.

Times are microseconds there. A trace in instructions or bytes has one of them for each microsecond.
"""

import json
from typing import Any, Dict, Iterator, List, Optional, Tuple

from jmassif.analysis.aggregate import series
from jmassif.analysis.oom import incidents_of
from jmassif.analysis.regions import Tracks, slices
from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.model.records import PEAKS
from jmassif.model.run import Profile
from jmassif.render.view import View
from jmassif.units import unicode_text
from jmassif.version import __version__


class _Events:
    def __init__(self, profile: Profile) -> None:
        self._scale = 1000 if profile.time_unit == "ms" else 1
        self._pid = profile.number("pid") or 1

    def event(self, phase: str, name: str, time: Optional[int] = None, **fields: Any) -> str:
        event: Dict[str, Any] = {"ph": phase, "name": unicode_text(name), "pid": self._pid}
        if time is not None:
            event["ts"] = time * self._scale
        if "dur" in fields:
            fields["dur"] *= self._scale
        event.update(fields)
        return json.dumps(event)


def _totals(profile: Profile, events: _Events) -> Iterator[str]:
    for time, host, device, most in zip(*profile.timeline):
        yield events.event("C", "memory", time, args={"host": host, "device": device})
        if not profile.is_discrete:
            yield events.event(
                "C", "most since the point before", time, args={"host + device": max(most, host + device)}
            )


def _machine(profile: Profile, events: _Events) -> Iterator[str]:
    for figure, (times, values) in profile.system.items():
        for time, n_bytes in zip(times, values):
            yield events.event("C", f"machine: {figure}", time, args={"bytes": n_bytes})


def _by_name(profile: Profile, view: View, events: _Events) -> Iterator[str]:
    """A counter a name; names that never hold the threshold's share of the fullest snapshot are one."""
    pools = ["host", "device"] if profile.is_discrete else [""]
    rows: List[Tuple[int, List[Dict[str, int]]]] = []
    for snapshot, usages in series(profile, naming(profile, Names(profile), view.by, view.fold != "none")):
        rows.append((snapshot.time, [{name: usage.on(pool) for name, usage in usages.items()} for pool in pools]))
    for pool, space in enumerate(pools):
        most: Dict[str, int] = {}
        for _, held in rows:
            for name, n_bytes in held[pool].items():
                most[name] = max(most.get(name, 0), n_bytes)
        fullest = max((sum(held[pool].values()) for _, held in rows), default=0)
        used = [name for name in most if most[name]]
        shown = [name for name in used if most[name] * 100 >= view.threshold * fullest]
        shown.sort(key=lambda name: (-most[name], name))
        for time, held in rows:
            figures = {unicode_text(name): held[pool].get(name, 0) for name in shown}
            if len(shown) < len(used):
                rest = sum(held[pool].values()) - sum(figures.values())
                figures[f"({len(used) - len(shown)} more below {view.threshold:g} %)"] = rest
            if figures:
                yield events.event("C", f"{space} by {view.by}".strip(), time, args=figures)


def _events(profile: Profile, view: View) -> Iterator[str]:
    events = _Events(profile)
    command = profile.manifest.get("command", "") or "(unknown command)"
    yield events.event("M", "process_name", args={"name": unicode_text(command)})
    yield from _totals(profile, events)
    yield from _by_name(profile, view, events)
    yield from _machine(profile, events)
    tracks = Tracks()
    for slice_ in slices(profile):
        yield events.event(
            "X",
            slice_.name,
            slice_.begin,
            dur=slice_.end - slice_.begin,
            tid=tracks.place(slice_),
            cat=slice_.category,
            args=slice_.figures,
        )
    for track, name in tracks.names.items():
        yield events.event("M", "thread_name", tid=track, args={"name": name})
    for mark in profile.marks:
        yield events.event("i", mark.text, mark.time, s="p", tid=0, cat="mark")
    for incident in incidents_of(profile, Names(profile)):
        name = f"out of memory: {incident.verdict}"
        said = {"verdict": incident.verdict, "asked": incident.situation.asked}
        yield events.event("i", name, incident.last.time, s="p", tid=0, cat="out-of-memory", args=said)
    for which in PEAKS:
        if which in profile.peaks:
            peak = profile.peaks[which]
            figures = {"host": peak.host, "device": peak.device}
            yield events.event("i", f"{which} peak", peak.time, s="p", tid=0, cat="peak", args=figures)


def write(profile: Profile, view: View) -> Iterator[str]:
    """The lines, one an event."""
    manifest = {unicode_text(key): unicode_text(value) for key, value in profile.manifest.items()}
    head = {"displayTimeUnit": "ms", "otherData": dict(manifest, creator=f"jmassif {__version__}")}
    yield json.dumps(head)[:-1] + ',"traceEvents":['
    before = ""
    for event in _events(profile, view):
        if before:
            yield before + ","
        before = event
    yield before + "]}"
