# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads a log of tegrastats, jtop or nvidia-smi on the clock of a run.

Sources: tegrastats prints "RAM used/total MB" a line, on releases from L4T r35 on behind the local date and time; jtop's logger
writes a CSV file with the columns time and RAM (a share of the memory; before its version 4 KiB); nvidia-smi
--query-gpu=timestamp,memory.used --format=csv has "2017/03/19 17:32:29.613, 1234 MiB". All write local time without its zone.
"""

import calendar
import csv
import re
import time
from typing import Callable, Dict, Iterable, List, Optional, Tuple

from jmassif.model.records import Overlay
from jmassif.model.run import Profile
from jmassif.units import printable


_TEGRASTATS = re.compile(r"\s*(?:(\d\d)-(\d\d)-(\d{4}) (\d\d:\d\d:\d\d)\s+)?RAM (\d{1,9})/\d+([kMG])B")
_UNITS = {"k": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_STAMP = re.compile(r"\s*(\d{4})[-/](\d\d)[-/](\d\d)[ T](\d\d):(\d\d):(\d\d)(\.\d{1,9})?\s*")
_MIB = re.compile(r"\s*(\d{1,9})(?: MiB)?\s*")
_INTERVAL_MS = 1000  # between the lines of a log without times, which is taken to begin with the run
_QUARTER_S = 15 * 60
_FARTHEST_ZONE = 14 * 4  # quarters of an hour
_GPU_COLUMNS = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "name")


class OverlayError(Exception):
    """The message is one line."""


_Row = Tuple[Optional[float], int]  # seconds since 1970 as if the log were UTC; bytes


def _stamp(text: str) -> Optional[float]:
    match = _STAMP.fullmatch(text)
    try:
        fields = time.strptime(" ".join(match.groups()[:6]), "%Y %m %d %H %M %S") if match else None
    except ValueError:
        return None
    return calendar.timegm(fields) + float(match.group(7) or 0) if match and fields else None


def _tegrastats(lines: List[str]) -> List[_Row]:
    rows: List[_Row] = []
    for match in filter(None, map(_TEGRASTATS.match, lines)):
        month, day, year, clock, number, unit = match.groups()
        when = _stamp(f"{year}-{month}-{day} {clock}") if year else None
        if when is not None or not year:
            rows.append((when, int(number) * _UNITS[unit]))
    return rows


def _jtops_bytes(text: str, total: Optional[int]) -> Optional[int]:
    try:
        value = float(text)
    except ValueError:
        return None
    if 1 < value < 1 << 40:
        return int(value) * 1024
    return int(value * total) if total and 0 <= value <= 1 else None


def _table(lines: List[str], time_name: str, is_value: Callable[[str], bool]) -> Tuple[List[Dict[str, str]], str]:
    """The rows, and the name of the column that has the memory; none if the header has not both."""
    found = csv.DictReader((line.replace("\0", "") for line in lines), skipinitialspace=True)
    names = [name.strip() for name in found.fieldnames or []]
    value = next((name for name in names if is_value(name)), None)
    if time_name not in names or value is None:
        return [], ""
    found.fieldnames = names
    rows = [
        {name: text for name, text in row.items() if isinstance(name, str) and isinstance(text, str)} for row in found
    ]
    return rows, value


def _jtop(lines: List[str], total: Optional[int]) -> List[_Row]:
    table, value = _table(lines, "time", lambda name: name == "RAM")
    rows: List[_Row] = []
    for row in table:
        when, n_bytes = _stamp(row.get("time", "")), _jtops_bytes(row.get(value, ""), total)
        if when is not None and n_bytes is not None:
            rows.append((when, n_bytes))
    return rows


def _nvidia_smi(lines: List[str]) -> List[_Row]:
    """The first one of several GPUs."""
    table, value = _table(lines, "timestamp", lambda name: name.startswith("memory.used"))
    if not value and lines and len(lines[0].split(",")) == 2 and _stamp(lines[0].split(",")[0]) is not None:
        table, value = _table(["timestamp, memory.used"] + lines, "timestamp", lambda name: name == "memory.used")
    gpu: Optional[List[str]] = None
    rows: List[_Row] = []
    for row in table:
        which = [row[name] for name in _GPU_COLUMNS if name in row]
        gpu = which if gpu is None else gpu
        when, used = _stamp(row.get("timestamp", "")), _MIB.fullmatch(row.get(value, ""))
        if which == gpu and when is not None and used:
            rows.append((when, int(used.group(1)) << 20))
    return rows


def _zone_s(profile_start_s: float, run_s: float, stamps: List[float]) -> float:
    """The seconds that make a log's local times UTC: by this machine's zone, or by another one if that fits the run."""
    local = time.localtime(profile_start_s)
    here = float(calendar.timegm(time.gmtime(profile_start_s)) - calendar.timegm(local))
    quarters = range(-_FARTHEST_ZONE, _FARTHEST_ZONE + 1)
    offsets = sorted((float(n * _QUARTER_S) for n in quarters), key=lambda offset: abs(offset - here))

    def overlap(offset: float) -> float:
        first, last = stamps[0] + offset, stamps[-1] + offset
        return min(last, profile_start_s + run_s) - max(first, profile_start_s)

    if overlap(here) >= -1:
        return here
    best = max([here, *offsets], key=overlap)
    if overlap(best) < -1:
        raise OverlayError("its times are not those of the run")
    return best


def parse(lines: Iterable[str], profile: Profile) -> Overlay:
    """The log on the run's clock. Raises OverlayError."""
    kept = [line.rstrip("\r\n") for line in lines]
    total = profile.number("mem-total-bytes") or (profile.system.get("mem-total", ((), [0]))[1][-1] or None)
    readers: Dict[str, Callable[[], List[_Row]]] = {
        "tegrastats": lambda: _tegrastats(kept),
        "jtop": lambda: _jtop(kept, total),
        "nvidia-smi": lambda: _nvidia_smi(kept),
    }
    for tool, read in readers.items():
        rows = read()
        if rows:
            return Overlay(tool, tool == "nvidia-smi", *_placed(rows, profile))
    first = printable(next((line for line in kept if line.strip()), ""))[:60]
    raise OverlayError(f'not a log of tegrastats, jtop or nvidia-smi: it begins with "{first}"')


def _placed(rows: List[_Row], profile: Profile) -> Tuple[List[int], List[int]]:
    """Times of the trace, and bytes."""
    start_ms = profile.number("start-unix-ms")
    if profile.time_unit != "ms":
        raise OverlayError("the trace counts no time that a log could be laid beside (--time-unit=ms does)")
    timed = sorted((when, n_bytes) for when, n_bytes in rows if when is not None)
    placed = [(at * _INTERVAL_MS, n_bytes) for at, (_, n_bytes) in enumerate(rows)]
    if timed:
        if start_ms is None:
            raise OverlayError("the trace does not say when the run started")
        start_s = start_ms / 1000
        offset = _zone_s(start_s, profile.last_time / 1000, [when for when, _ in timed])
        placed = [(round((when + offset - start_s) * 1000), n_bytes) for when, n_bytes in timed]
    during = [(at, n_bytes) for at, n_bytes in placed if -2000 <= at <= profile.last_time + 2000]
    if not during:
        raise OverlayError("no line of it is of the time of the run")
    return [max(0, at) for at, _ in during], [n_bytes for _, n_bytes in during]
