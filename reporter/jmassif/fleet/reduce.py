# SPDX-License-Identifier: GPL-2.0-or-later
"""What a fleet keeps of a run: its facts, and what each owner, library, call and Python line held at the peak.

The names are those that jm_diff compares by, so that they mean the same in every run.
"""

from typing import Any, Dict, List, Tuple

from jmassif.fleet.schema import LINE, OWNER, LIBRARY, SCOPE, TOTAL, VIEWS, number_of
from jmassif.model.profile import Profile
from jmassif.questions.compare.breakdown import Key, PartFigures
from jmassif.questions.compare.difference import Run, measure
from jmassif.questions.facts import fact, facts
from jmassif.questions.identity import run_id
from jmassif.questions.moments import SelectionError
from jmassif.units import printable, unicode_text

_LARGEST = (1 << 63) - 1
_OF_ONE_HOST = ("host",)


class TooLarge(Exception):
    """A figure that no database holds."""


def _text(value: str) -> str:
    return unicode_text(value).replace("\0", "\\x00")


def _number(value: int) -> int:
    if abs(value) > _LARGEST:
        raise TooLarge("a figure is beyond 63 bits, which databases cannot hold")
    return value


def _name(key: Key) -> str:
    """Of a part; calls within calls are told with those around them."""
    return " > ".join(key.path) + (" (further calls)" if key.is_listed else "")


def _parts(run: Run) -> List[Tuple[str, str, PartFigures]]:
    found: Dict[Tuple[str, str], PartFigures] = {}
    for view in VIEWS:
        for key, figures in run.views[view].items():
            name = (view, _text(_name(key)))
            found[name] = found.get(name, PartFigures()).plus(figures)
    return [(view, name, figures) for (view, name), figures in found.items()]


def _figures(name: str, profile: Profile) -> List[Tuple[str, str, int, int, int]]:
    """View, name, host, device, and blocks or calls. A program that was killed before it had a peak has none."""
    try:
        run = measure(name, profile, VIEWS, "peak")
    except SelectionError:
        return []
    parts = _parts(run)
    total = PartFigures()
    for view, _, figures in parts:
        total = total.plus(figures) if view == OWNER else total
    parts.insert(0, (TOTAL, TOTAL, total))
    assert {view for view, _, _ in parts} <= {TOTAL, OWNER, LIBRARY, SCOPE, LINE}
    return [(view, part, _number(f.host), _number(f.device), _number(f.number)) for view, part, f in parts]


def _ended(profile: Profile) -> str:
    if profile.truncation:
        return f"cut off: {printable(profile.truncation)}"
    if profile.end:
        return f"{profile.end.reason} {profile.end.code}"
    return "exec" if profile.is_complete else "no end on record"


def reduced(name: str, profile: Profile) -> Dict[str, Any]:
    """As JSON can carry it: `row` of the table run, `setup` (key, value), `figures`. Raises TooLarge."""
    id_ = run_id(profile)
    known = {key: _text(value) for key, value in facts(profile).items() if value and key not in _OF_ONE_HOST}
    setup = number_of("\n".join(f"{key}\0{value}" for key, value in sorted(known.items())))
    peaks = {which: profile.peaks.get(which) for which in ("total", "host", "device")}
    total, host, device = peaks["total"], peaks["host"], peaks["device"]
    manifest = profile.manifest
    row = {
        "run": number_of(id_),
        "id": id_,
        "file": _text(name),
        "host": _text(manifest.get("host", "")),
        "board": _text(manifest.get("board", "")),
        "l4t": _text(manifest.get("l4t", "")),
        "jetpack": _text(fact(profile, "jetpack")),
        "pytorch": _text(manifest.get("pytorch", "")),
        "command": _text(manifest.get("command", "")),
        "pid": _number(profile.number("pid") or 0),
        "start": _text(manifest.get("start", "")),
        "start_unix_ms": _number(profile.number("start-unix-ms") or 0),
        "is_complete": int(profile.is_complete),
        "ended": _text(_ended(profile)),
        "end_time": _number(profile.last_time),
        "is_discrete": int(profile.is_discrete),
        "peak_total": _number(total.host + total.device) if total else None,
        "peak_host": _number(host.host) if host else None,
        "peak_device": _number(device.device) if device else None,
        "setup": setup,
    }
    return {"row": row, "setup": sorted(known.items()), "figures": _figures(name, profile)}
