# SPDX-License-Identifier: GPL-2.0-or-later
"""A trace in the Trace Event Format, for ui.perfetto.dev and chrome://tracing.

Counters have the totals, what each owner held (or what else --by names) at each snapshot, and the machine's figures;
regions and calls of the CUDA API are slices of their threads; marks, failed allocations and peaks are instants. Slices
of a thread must nest: those that overlap without nesting go to a further track of that thread.

Times are microseconds there. A trace in instructions or bytes has one of them for each microsecond.
"""

import json
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from jmassif.analysis.aggregate import series
from jmassif.analysis.moments import select
from jmassif.analysis.summary import build_report
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


_Event = Callable[..., str]


def _event_of(profile: Profile) -> _Event:
    scale = 1000 if profile.time_unit == "ms" else 1
    pid = profile.number("pid") or 1

    def event(phase: str, name: str, time: Optional[int] = None, **fields: Any) -> str:
        made: Dict[str, Any] = {"ph": phase, "name": unicode_text(name), "pid": pid, **fields}
        made.update({} if time is None else {"ts": time * scale})
        made.update({"dur": fields["dur"] * scale} if "dur" in fields else {})
        return json.dumps(made)

    return event


def _totals(profile: Profile, event: _Event) -> Iterator[str]:
    for time, host, device, most in zip(*profile.timeline):
        yield event("C", "memory", time, args={"host": host, "device": device})
        if not profile.is_discrete:
            yield event("C", "most since the point before", time, args={"host + device": max(most, host + device)})
    for figure, columns in profile.system.items():
        for time, n_bytes in zip(*columns):
            yield event("C", f"machine: {figure}", time, args={"bytes": n_bytes})


def _by_name(profile: Profile, names: Names, view: View, event: _Event) -> Iterator[str]:
    """A counter a name; names that never hold the threshold's share of the fullest snapshot are one."""
    rows = list(series(profile, naming(profile, names, view.by, view.fold != "none")))
    for space in ["host", "device"] if profile.is_discrete else [""]:
        known = rows[-1][1] if rows else {}
        held = {name: [usages[name].on(space) if name in usages else 0 for _, usages in rows] for name in known}
        used = sorted((name for name in held if any(held[name])), key=lambda name: (-max(held[name]), name))
        least = view.threshold / 100 * max(map(sum, zip(*held.values())), default=0)
        shown = [name for name in used if max(held[name]) >= least]
        for at, (snapshot, _) in enumerate(rows if used else ()):
            figures = {unicode_text(name): held[name][at] for name in shown}
            if len(shown) < len(used):
                rest = sum(held[name][at] for name in used[len(shown) :])
                figures[f"({len(used) - len(shown)} more below {view.threshold:g} %)"] = rest
            yield event("C", f"{space} by {view.by}".strip(), snapshot.time, args=figures)


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


def _on_tracks(profile: Profile, event: _Event) -> Iterator[str]:
    """Each slice on the first track of its thread on which it nests."""
    tracks: Dict[int, List[List[int]]] = {}  # by thread, for each track: the ends of the open slices
    for thread, begin, end, category, name, figures in _slices(profile):
        of_thread = tracks.setdefault(thread, [])
        for ends in of_thread:
            # One that ends where this one begins is not around it.
            while ends and ends[-1] <= begin and ends[-1] < end:
                ends.pop()
        number = next((n for n, ends in enumerate(of_thread) if not ends or end <= ends[-1]), len(of_thread))
        track = _FIRST_TRACK * number + thread
        if number == len(of_thread):
            of_thread.append([])
            title = f"thread {thread}" + (f", overlapping ({number + 1})" if number else "")
            yield event("M", "thread_name", tid=track, args={"name": title})
        of_thread[number].append(end)
        yield event("X", name, begin, dur=end - begin, tid=track, cat=category, args=figures)


def _events(profile: Profile, view: View) -> Iterator[str]:
    event, names = _event_of(profile), Names(profile)
    command = unicode_text(profile.manifest.get("command", ""))
    yield event("M", "process_name", args={"name": command or "(unknown command)"})
    yield from _totals(profile, event)
    yield from _by_name(profile, names, view, event)
    yield from _on_tracks(profile, event)
    for mark in profile.marks:
        yield event("i", mark.text, mark.time, s="p", tid=0, cat="mark")
    failed = build_report(profile, select(profile, "peak"), names).out_of_memory if profile.exhaustions else []
    for incident in failed:
        figures = {"verdict": incident.verdict, "asked": incident.situation.asked}
        name = f"out of memory: {incident.verdict}"
        yield event("i", name, incident.last.time, s="p", tid=0, cat="out-of-memory", args=figures)
    for peak in [profile.peaks[which] for which in PEAKS if which in profile.peaks]:
        figures = {"host": peak.host, "device": peak.device}
        yield event("i", f"{peak.which} peak", peak.time, s="p", tid=0, cat="peak", args=figures)


def write(profile: Profile, view: View) -> Iterator[str]:
    """The lines, one an event."""
    manifest = {unicode_text(key): unicode_text(value) for key, value in profile.manifest.items()}
    head = {"displayTimeUnit": "ms", "otherData": dict(manifest, creator=f"jmassif {__version__}")}
    yield json.dumps(head)[:-1] + ',"traceEvents":['
    yield from separated(_events(profile, view))
    yield "]}"
