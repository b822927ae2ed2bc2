# SPDX-License-Identifier: GPL-2.0-or-later
"""The sections on events: failed calls, regions and marks, temporaries, snapshots."""

from typing import Dict, Iterator, List

from jmassif.analysis.moments import main_peak
from jmassif.analysis.summary import Report
from jmassif.model.records import Snapshot
from jmassif.model.run import Profile
from jmassif.model.run_info import counted
from jmassif.render.layout import FULL, Column, Extent, Lines, Table, heading, paragraph
from jmassif.units import count, growth, moment, printable, size


_MARKS_SHOWN = 40
_REGIONS_SHOWN = 20
_REGIONS_SHOWN_OF_A_NAME = 3
_TEMPORARIES_SHOWN = 5
_SNAPSHOTS_SHOWN = 24
_FAILURES_SHOWN = 16


# Error codes that the CUDA runtime and driver API share (driver_types.h, cuda.h).
_CUDA_ERRORS = {
    1: "invalid value",
    2: "out of memory",
    3: "not initialized",
    4: "driver shutting down",
    35: "driver too old",
    100: "no device",
    101: "invalid device",
    201: "invalid context",
    304: "operating system call failed",
    400: "invalid handle",
    700: "illegal address",
    712: "host memory already registered",
    713: "host memory not registered",
    719: "launch failure",
    801: "not supported",
    999: "unknown error",
}


def _failed_calls(profile: Profile) -> Iterator[str]:
    """A text for each function and error, the most frequent first."""
    for (name, code), calls in sorted(profile.failures.items(), key=lambda item: (-item[1], item[0])):
        is_cuda = name.startswith("cuda") or (name.startswith("cu") and name[2:3].isupper())
        meaning = f" ({_CUDA_ERRORS[code]})" if is_cuda and code in _CUDA_ERRORS else ""
        yield f"{count(calls, 'call')} of {printable(name)} failed with error {code}{meaning}"


def failures(profile: Profile, extent: Extent = FULL) -> Lines:
    found = list(_failed_calls(profile))
    counters = [f"{key}: {size(n) if key.endswith('-bytes') else f'{n:,}'}" for key, n in counted(profile).odd]
    most = extent.of(_FAILURES_SHOWN)
    lines = found[:most]
    if len(found) > most:
        lines.append(f"and {len(found) - most:,} other pairs of function and error{extent.hint}")
    lines += counters[: extent.rows]
    if len(counters) > extent.rows:
        lines.append(f"and {count(len(counters) - extent.rows, 'more counter')}{extent.hint}")
    return heading("Failed calls and warnings") + lines if lines else []


def without_size(profile: Profile) -> Lines:
    """Objects of the kernel's driver, which does not say how much memory they take."""
    kept = ", ".join(count(n, noun) for noun, n in counted(profile).without_size)
    return heading("Not counted") + paragraph(f"Driver objects of unknown size: {kept}.") if kept else []


_REGIONS = Table(
    Column("times", 9),
    Column("took", 11, gap=1),
    Column("at most", 10, gap=1),
    Column("host", 10, gap=1),
    Column("device", 10, gap=1),
    Column("region", gap=2),
)


def regions(report: Report, extent: Extent = FULL) -> Lines:
    """Regions that come again and again, a row a name."""
    names = report.regions
    if all(row.calls == 1 for row in names):
        return []
    unit = report.run.time_unit
    lines = heading("Regions by name") + [_REGIONS.head]
    most = extent.of(_REGIONS_SHOWN)
    for row in names[:most]:
        figures = (size(row.most), growth(row.host), growth(row.device)) if row.recorded else ("", "", "")
        text = printable(row.text)
        if row.recorded < row.calls:
            text += f" (sizes: of {row.recorded:,} of them)"
        lines.append(_REGIONS.row(f"{row.calls:,}", moment(row.time, unit), *figures, text))
    if len(names) > most:
        lines.append(f"and {len(names) - most:,} more names{extent.hint}")
    return lines


def marks(profile: Profile, extent: Extent = FULL) -> Lines:
    unit = profile.time_unit
    rows = [(mark.time, f"mark: {mark.text}") for mark in profile.marks]
    shown: Dict[str, int] = {}
    for region in profile.regions:
        shown[region.text] = shown.get(region.text, 0) + 1
        if shown[region.text] > _REGIONS_SHOWN_OF_A_NAME or len(rows) > 2 * _MARKS_SHOWN:
            continue
        lasted = "still open at the end" if region.end is None else f"took {moment(region.end - region.begin, unit)}"
        most, host, device = profile.region_figures(region)
        held = f"held at most {size(most)}, host {growth(host)}, device {growth(device)}"
        text = f"{'  ' * region.depth}{region.text} (thread {region.thread}, {lasted}; {held})"
        rows.append((region.begin, f"region: {text}"))
    n_all = len(profile.marks) + len(profile.regions)
    rows = sorted(rows, key=lambda row: row[0])[: extent.of(_MARKS_SHOWN)]
    lines = [f"{moment(time, unit):>12}  {printable(text)}" for time, text in rows]
    if n_all > len(rows):
        lines.append(f"and {n_all - len(rows):,} more{extent.hint}")
    return heading("Marks and regions") + lines if lines else []


def temporaries(report: Report, extent: Extent = FULL) -> Lines:
    shown = report.temporaries[: extent.of(_TEMPORARIES_SHOWN)]
    if not shown:
        return []
    return heading("Temporaries: freed before their thread allocated anything else") + [
        f"{each.temporaries:>12,} of {count(each.blocks, 'block')} in {each.label}" for each in shown
    ]


def _snapshots_shown(profile: Profile) -> List[Snapshot]:
    """Snapshots taken for a reason, and the largest in each of a number of equal spans of time."""
    fullest: Dict[int, Snapshot] = {}
    duration = max([1] + [snapshot.time for snapshot in profile.snapshots])
    timed = [snapshot for snapshot in profile.snapshots if snapshot.reason == "time"]
    for snapshot in timed:
        span = snapshot.time * _SNAPSHOTS_SHOWN // duration
        fullest[span] = max(fullest.get(span, snapshot), snapshot, key=lambda each: each.host + each.device)
    return [snapshot for snapshot in profile.snapshots if snapshot.reason != "time"] + list(fullest.values())


def snapshots_in_a_sentence(profile: Profile) -> Lines:
    ids = [snapshot.id for snapshot in profile.snapshots]
    if not ids:
        return []
    there_are = f"There are {count(len(ids), 'snapshot')}, {ids[0]} to {ids[-1]}"
    how = "--snapshot=N explains one, --snapshot=end what was held in the end. --all lists them."
    return heading("Snapshots") + paragraph(f"{there_are}; {how}")


def snapshots(profile: Profile) -> Lines:
    """Snapshots and peaks in order of time."""
    shown = _snapshots_shown(profile)
    rows = [(s.time, str(s.id), s.host, s.device, s.reason) for s in shown]
    for peak in profile.peaks.values():
        which = "peak" if peak.which == main_peak(profile) else f"peak-{peak.which}"
        if which != "peak-total":
            rows.append((peak.time, which, peak.host, peak.device, ""))
    if not rows:
        return []
    table = Table(
        Column("n", 11),
        Column(f"time ({profile.time_unit})", 15),
        Column("host (B)", 17),
        Column("device (B)", 17),
        Column("reason", gap=2),
    )
    lines = heading("Snapshots: --snapshot=n explains one") + [table.head]
    for time, name, host, device, reason in sorted(rows, key=lambda row: (row[0], row[1].rjust(20))):
        lines.append(table.row(name, f"{time:,}", f"{host:,}", f"{device:,}", reason).rstrip())
    if len(profile.snapshots) > len(shown):
        lines.append(f"{'':>11}  and {len(profile.snapshots) - len(shown):,} more between these")
    return lines
