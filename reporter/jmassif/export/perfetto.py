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
from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.export import separated
from jmassif.model.records import PEAKS, growth_by_side
from jmassif.model.run import Profile
from jmassif.render.view import View
from jmassif.units import unicode_text
from jmassif.version import __version__


# Numbers of threads of the second track on, beyond those of real threads.
_FIRST_TRACK = 1 << 24


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
    name_of = naming(profile, Names(profile), view.by, view.fold != "none")
    for space in ["host", "device"] if profile.is_discrete else [""]:
        rows: List[Tuple[int, Dict[str, int]]] = []
        for snapshot, usages in series(profile, name_of):
            rows.append((snapshot.time, {name: usage.on(space) for name, usage in usages.items()}))
        names = rows[-1][1] if rows else {}
        most = {name: max(held.get(name, 0) for _, held in rows) for name in names}
        least = view.threshold / 100 * max((sum(held.values()) for _, held in rows), default=0)
        used = sorted((name for name in most if most[name]), key=lambda name: (-most[name], name))
        shown = [name for name in used if most[name] >= least]
        for time, held in rows:
            figures = {unicode_text(name): held.get(name, 0) for name in shown}
            if len(shown) < len(used):
                rest = sum(held.values()) - sum(figures.values())
                figures[f"({len(used) - len(shown)} more below {view.threshold:g} %)"] = rest
            if figures:
                yield events.event("C", f"{space} by {view.by}".strip(), time, args=figures)


# Thread, begin, end, category, name, figures.
_Slice = Tuple[int, int, int, str, str, Dict[str, Any]]


def _slices(profile: Profile) -> List[_Slice]:
    """In order of time, the outer one first."""
    found: List[_Slice] = []
    for region in profile.regions:
        end = max(region.begin, profile.last_time) if region.end is None else region.end
        most, host, device = profile.region_figures(region)
        figures = {"most_bytes": most, "host_growth_bytes": host, "device_growth_bytes": device}
        figures.update({"still_open": True} if region.end is None else {})
        found.append((region.thread, region.begin, end, "region", region.text, figures))
    for scope in sorted(profile.scopes, key=lambda scope: scope.id):
        host, device = growth_by_side(scope.growths)
        figures = {"host_growth_bytes": host, "device_growth_bytes": device}
        figures.update((f"{growth.kind}_blocks", growth.blocks) for growth in scope.growths)
        found.append((scope.thread, scope.begin, scope.end, "scope", scope.name, figures))
    # Stable: of slices with the same ends the region is the outer one, and a scope that was begun first.
    return sorted(found, key=lambda row: (row[1], -row[2]))


def _on_tracks(profile: Profile, events: _Events) -> Iterator[str]:
    """Each slice on the first track of its thread on which it nests, then the tracks' names."""
    tracks: Dict[int, List[List[int]]] = {}  # by thread, for each track: the ends of the open slices
    names: Dict[int, str] = {}
    for thread, begin, end, category, name, figures in _slices(profile):
        of_thread = tracks.setdefault(thread, [])
        for ends in of_thread:
            # One that ends where this one begins is not around it.
            while ends and ends[-1] <= begin and ends[-1] < end:
                ends.pop()
        number = next((n for n, ends in enumerate(of_thread) if not ends or end <= ends[-1]), len(of_thread))
        if number == len(of_thread):
            of_thread.append([])
        of_thread[number].append(end)
        track = _FIRST_TRACK * number + thread
        names[track] = f"thread {thread}" + (f", overlapping ({number + 1})" if number else "")
        yield events.event("X", name, begin, dur=end - begin, tid=track, cat=category, args=figures)
    for track, name in names.items():
        yield events.event("M", "thread_name", tid=track, args={"name": name})


def _events(profile: Profile, view: View) -> Iterator[str]:
    events = _Events(profile)
    command = profile.manifest.get("command", "") or "(unknown command)"
    yield events.event("M", "process_name", args={"name": unicode_text(command)})
    yield from _totals(profile, events)
    yield from _by_name(profile, view, events)
    yield from _machine(profile, events)
    yield from _on_tracks(profile, events)
    for mark in profile.marks:
        yield events.event("i", mark.text, mark.time, s="p", tid=0, cat="mark")
    for incident in incidents_of(profile, Names(profile)):
        name = f"out of memory: {incident.verdict}"
        figures = {"verdict": incident.verdict, "asked": incident.situation.asked}
        yield events.event("i", name, incident.last.time, s="p", tid=0, cat="out-of-memory", args=figures)
    for peak in [profile.peaks[which] for which in PEAKS if which in profile.peaks]:
        args = {"host": peak.host, "device": peak.device}
        yield events.event("i", f"{peak.which} peak", peak.time, s="p", tid=0, cat="peak", args=args)


def write(profile: Profile, view: View) -> Iterator[str]:
    """The lines, one an event."""
    manifest = {unicode_text(key): unicode_text(value) for key, value in profile.manifest.items()}
    head = {"displayTimeUnit": "ms", "otherData": dict(manifest, creator=f"jmassif {__version__}")}
    yield json.dumps(head)[:-1] + ',"traceEvents":['
    yield from separated(_events(profile, view))
    yield "]}"
