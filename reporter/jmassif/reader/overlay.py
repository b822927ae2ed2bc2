# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads a log of tegrastats, jtop or nvidia-smi on the clock of a run.

Sources: tegrastats prints "RAM used/total MB" a line, on releases from L4T r35 on behind the local date and time; jtop's logger
writes a CSV file with the columns time and RAM (a share of the memory; before its version 4 KiB); nvidia-smi
--query-gpu=timestamp,memory.used --format=csv has "2017/03/19 17:32:29.613, 1234 MiB". All write local time without its zone,
which is taken for that of this machine: TZ names another.
"""

import csv
import re
from datetime import datetime
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from jmassif.model.records import Overlay
from jmassif.model.run import Profile
from jmassif.units import UNITS, printable


_TEGRASTATS = re.compile(r"\s*(?:(\d\d)-(\d\d)-(\d{4}) (\d\d:\d\d:\d\d)\s+)?RAM (\d{1,9})/\d+([kMG])B")
_STAMP = re.compile(r"\s*(\d{4})[-/](\d\d)[-/](\d\d)[ T](\d\d):(\d\d):(\d\d)(\.\d{1,9})?\s*")
_INTERVAL_MS = 1000  # between the lines of a log without times, which is taken to begin with the run
_BESIDE_MS = 2000  # so much before and after the run counts as well
_LONGEST_LINE = 4096


class OverlayError(Exception):
    """The message is one line."""


_Row = Tuple[Optional[float], int]  # seconds since 1970, if the log has times; bytes


def _seconds(text: str) -> Optional[float]:
    match = _STAMP.fullmatch(text)
    if not match:
        return None
    try:
        second = datetime.strptime(" ".join(match.groups()[:6]), "%Y %m %d %H %M %S").timestamp()
    except (ValueError, OverflowError):
        return None
    return second + float(match.group(7) or 0)


def _tegrastats(lines: List[str]) -> Iterator[_Row]:
    for match in filter(None, map(_TEGRASTATS.match, lines)):
        month, day, year, clock, number, unit = match.groups()
        when = _seconds(f"{year}-{month}-{day} {clock}") if year else None
        if when is not None or not year:
            yield when, int(number) * UNITS["KiB" if unit == "k" else f"{unit}iB"]


def _table(lines: List[str], time_name: str, name: str, bytes_of: Callable[[str], Optional[int]]) -> Iterator[_Row]:
    """The columns of these names, which a unit may follow, of a CSV file."""
    rows = csv.reader((line[:_LONGEST_LINE].replace("\0", "") for line in lines), skipinitialspace=True)
    try:
        header = [title.partition(" ")[0] for title in next(rows, [])]
        for row in rows if time_name in header and name in header else ():
            cells = dict(zip(header, row))
            when, n_bytes = _seconds(cells.get(time_name, "")), bytes_of(cells.get(name, ""))
            if when is not None and n_bytes is not None:
                yield when, n_bytes
    except csv.Error:
        return


def _jtops_bytes(text: str, total: Optional[int]) -> Optional[int]:
    try:
        value = float(text)
    except ValueError:
        return None
    if 1 < value < 1 << 40:
        return int(value) * 1024
    return int(value * total) if total and 0 <= value <= 1 else None


def _nvidias_bytes(text: str) -> Optional[int]:
    match = re.fullmatch(r"\s*(\d{1,9})(?: MiB)?\s*", text)
    return int(match.group(1)) << 20 if match else None


def parse(lines: Iterable[str], profile: Profile) -> Overlay:
    """The log on the run's clock. Raises OverlayError."""
    kept = list(lines)
    total = profile.number("mem-total-bytes") or (profile.system.get("mem-total", ((), [0]))[1][-1] or None)
    readers: Dict[str, Iterator[_Row]] = {
        "tegrastats": _tegrastats(kept),
        "jtop": _table(kept, "time", "RAM", lambda text: _jtops_bytes(text, total)),
        "nvidia-smi": _table(kept, "timestamp", "memory.used", _nvidias_bytes),
    }
    for tool, rows in readers.items():
        found = _placed(list(rows), profile)
        if found:
            return Overlay(tool, tool == "nvidia-smi", [max(0, at) for at, _ in found], [value for _, value in found])
    first = printable(next((line for line in kept if line.strip()), ""))[:60]
    raise OverlayError(f'not a log of tegrastats, jtop or nvidia-smi: it begins with "{first}"')


def _placed(rows: List[_Row], profile: Profile) -> List[Tuple[int, int]]:
    """Times of the trace, and bytes; of a log with times the lines that have one."""
    if not rows:
        return []
    if profile.time_unit != "ms":
        raise OverlayError("the trace counts no time that a log could be laid beside (--time-unit=ms does)")
    placed = [(at * _INTERVAL_MS, n_bytes) for at, (_, n_bytes) in enumerate(rows)]
    timed = sorted((when, n_bytes) for when, n_bytes in rows if when is not None)
    if timed:
        start_ms = profile.number("start-unix-ms")
        if start_ms is None:
            raise OverlayError("the trace does not say when the run started")
        placed = [(round(when * 1000) - start_ms, n_bytes) for when, n_bytes in timed]
    during = [row for row in placed if -_BESIDE_MS <= row[0] <= profile.last_time + _BESIDE_MS]
    if not during:
        raise OverlayError("its times are not those of the run: if it is of another time zone, name that in TZ")
    return during
