# SPDX-License-Identifier: GPL-2.0-or-later
"""Bytes in host memory that are in a device copy too: where host and device are one memory, they are paid for twice.

Sources and copies are alive, and samples of the source have not changed since. Writes by kernels are not seen. Sizes are bytes.
"""

from typing import Dict, List, NamedTuple, Tuple

from jmassif.analysis.aggregate import Usage
from jmassif.analysis.moments import Moment, main_peak
from jmassif.analysis.oom import line_of, position_of
from jmassif.attribution.names import Names
from jmassif.model.records import PAGE_KINDS, Copy
from jmassif.model.run import Profile


class HeldTwice(NamedTuple):
    """Host memory of a line, copied to the device by a line. Labels are safe to show."""

    allocated: str
    copied: str
    kind: str  # of the host memory
    is_pinned: bool  # page-locked, or registered
    copies: int
    bytes: int
    since: int  # all of these copies are held from then
    until: int  # and up to then

    @property
    def is_mapped(self) -> bool:
        return self.kind in PAGE_KINDS


class CopiedBy(NamedTuple):
    """A line's copies to the device, of at least 64 KiB each, in the whole run."""

    line: str
    copies: int
    bytes: int


class Twice(NamedTuple):
    bytes: int  # of host memory
    before: str  # the line that allocated last up to the moment, if that was after these copies; else ""
    rows: List[HeldTwice]  # the largest first
    copied: List[CopiedBy]  # likewise


def until(run: Profile, copy: Copy) -> int:
    return run.copies_until if copy.until is None else copy.until


def _new_bytes(copies: List[Copy]) -> List[Tuple[Copy, int]]:
    """Each with the bytes of its source that none before it has: one source may have several copies."""
    found, end = [], 0
    for copy in sorted(copies, key=lambda copy: (copy.source, -copy.bytes)):
        found.append((copy, max(0, copy.source + copy.bytes - max(copy.source, end))))
        end = max(end, copy.source + copy.bytes)
    return found


def held_twice(run: Profile, names: Names, at: Moment) -> Twice:
    """At a moment. `copied` is of the whole run."""
    held = [copy for copy in run.copies.values() if copy.begin <= at.time <= until(run, copy)]
    known: Dict[Tuple[str, str, str, bool], HeldTwice] = {}
    for copy, n_bytes in _new_bytes(held):
        kind = run.accounts[copy.host].kind
        is_pinned = kind == "pinned" or copy.pinned_by > 0
        key = (line_of(run, names, copy.host), line_of(run, names, copy.copied_by), kind, is_pinned)
        before = known.get(key, HeldTwice(*key, 0, 0, 0, until(run, copy)))
        known[key] = before._replace(
            copies=before.copies + 1,
            bytes=before.bytes + n_bytes,
            since=max(before.since, copy.begin),
            until=min(before.until, until(run, copy)),
        )
    rows = sorted(known.values(), key=lambda row: (-row.bytes, row))
    return Twice(sum(row.bytes for row in rows), _line_before(run, names, at, held), rows, _copied(run, names))


def _line_before(run: Profile, names: Names, at: Moment, held: List[Copy]) -> str:
    if not held:
        return ""
    which = next((name for name, peak in run.peaks.items() if peak.time == at.time), main_peak(run))
    frees, position = set(run.frees), position_of(run, at, which)
    latest = next((row for row in range(position - 1, -1, -1) if row not in frees), -1)
    if latest < 0 or run.blocks.time[latest] <= max(copy.begin for copy in held):
        return ""
    return line_of(run, names, run.blocks.account[latest])


def _copied(run: Profile, names: Names) -> List[CopiedBy]:
    sums: Dict[str, Usage] = {}
    for account, (copies, n_bytes) in run.copied.items():
        line = line_of(run, names, account)
        sums[line] = sums.get(line, Usage()) + Usage(n_bytes, copies)
    rows = [CopiedBy(line, usage.blocks, usage.host_bytes) for line, usage in sums.items()]
    return sorted(rows, key=lambda row: (-row.bytes, row.line))
