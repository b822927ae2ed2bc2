# SPDX-License-Identifier: GPL-2.0-or-later
"""The sections on events of the run: start-up and failed calls, regions and marks, leaks, temporaries, snapshots."""

from collections import Counter
from typing import Dict, List, Sequence, Tuple

from jmassif.analysis.held_twice import HeldTwice
from jmassif.analysis.moments import main_peak
from jmassif.analysis.regions import NamedRegions
from jmassif.analysis.summary import Report
from jmassif.model.records import Growth, Snapshot, growth_by_side
from jmassif.model.run_info import counted
from jmassif.render.layout import Column, Lines, Table, heading, paragraph, rest
from jmassif.render.owners import groups_table
from jmassif.render.summary import growth_unknown, keeper_text, rate
from jmassif.render.view import View
from jmassif.render.words import NOT_COUNTED
from jmassif.units import count, growth, moment, printable, size

# ---- copies to the device ---------------------------------------------------------------------

_TWICE = Table(
    Column("bytes", 10),
    Column("copies", 7, gap=2),
    Column("since", 10, gap=2),
    Column("until", 10, gap=2),
    Column("host memory", 24, gap=2, align="<"),
    Column("copied by", gap=2),
)
_COPIED = Table(Column("bytes", 10), Column("copies", 7, gap=2), Column("copied by", gap=2))
TWICE_NOTE = (
    "Host memory that is in a device copy too: both are alive, and samples of the source have not changed. Copies of 64 KiB or"
    " more count; writes by kernels are not seen."
)


def host_memory(row: HeldTwice) -> str:
    """ "load.py:31 (file, pinned)" """
    return f"{row.allocated} ({row.kind}{', pinned' if row.is_pinned and row.kind != 'pinned' else ''})"


def held_twice(report: Report, view: View) -> Lines:
    twice, unit = report.held_twice, report.run.time_unit
    rows = twice.rows if twice else []
    most = view.most(len(rows)) if not view.held_twice else len(rows)
    lines = [
        _TWICE.row(
            size(row.bytes),
            f"{row.copies:,}",
            moment(row.since, unit),
            moment(row.until, unit),
            host_memory(row),
            row.copied,
        )
        for row in rows[:most]
    ]
    if not twice or not lines:
        return []
    lines += rest(len(rows) - most, "more row", view.hint) + [_TWICE.sum(size(twice.bytes), "", "", "", "total", "")]
    return heading(f"Held twice, at {report.moment.name}") + [_TWICE.head] + lines + paragraph(TWICE_NOTE)


def write_held_twice(report: Report, view: View) -> Lines:
    """The tables of --held-twice."""
    copied = report.held_twice.copied if report.held_twice else []
    rows = [(size(row.bytes), f"{row.copies:,}", row.line) for row in copied]
    nothing = paragraph(f"Nothing is held twice at {report.moment.name}, as far as it is on record.")
    return (held_twice(report, view) or [""] + nothing) + _COPIED.section(
        "Copied to the device, in the whole run", rows
    )


# ---- calls -----------------------------------------------------------------------------------

_SCOPES_SHOWN = 16
_FAILURES_SHOWN = 16

_SCOPES = Table(
    Column("at", 11),
    Column("took", 10, gap=1),
    Column("host", 10, gap=1),
    Column("device", 10, gap=1),
    Column("call: net growth by kind", gap=2),
)


def _scope(at: str, took: str, growths: Tuple[Growth, ...], call: str) -> str:
    host, device = growth_by_side(growths)
    parts = sorted(growths, key=lambda part: (-abs(part.bytes), part.kind))
    kinds = ", ".join(f"{part.kind} {growth(part.bytes)}" for part in parts if part.bytes)
    return _SCOPES.row(at, took, growth(host), growth(device), f"{call}: {kinds}" if kinds else call)


def start_up(report: Report, view: View) -> Lines:
    """Calls that cost much, and those that came too often to be recorded one by one."""
    unit = report.run.time_unit
    sums = sorted(report.profile.scope_sums.values(), key=lambda total: -total.calls)
    fall = report.waterfall(view.most(_SCOPES_SHOWN))
    lines = []
    for scope, depth in fall.rows:
        took = moment(scope.end - scope.begin, unit)
        lines.append(_scope(moment(scope.begin, unit), took, scope.growths, "  " * depth + printable(scope.name)))
    if fall.n_left_out:
        calls = count(fall.n_left_out, "more call")
        lines.append(f"and {calls} that cost less, {growth(fall.left_out_bytes)} in all{view.hint}")
    for total in sums[: view.most(len(sums)) // (2 if view.is_brief else 1)]:
        call = f"{printable(total.name)}, {count(total.calls, 'call')}"
        lines.append(_scope("many times", moment(total.time, unit), total.growths, call))
    return heading("Start-up cost") + [_SCOPES.head] + lines if lines or sums else []


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


def failed_calls(report: Report, view: View) -> Lines:
    """A line for each function and error, the most frequent first; then the recorder's counters."""
    failures = sorted(report.profile.failures.items(), key=lambda item: (-item[1], item[0]))
    most = view.most(_FAILURES_SHOWN)
    lines = []
    for (name, code), calls in failures[:most]:
        is_cuda = name.startswith("cuda") or (name.startswith("cu") and name[2:3].isupper())
        meaning = f" ({_CUDA_ERRORS[code]})" if is_cuda and code in _CUDA_ERRORS else ""
        lines.append(f"{count(calls, 'call')} of {printable(name)} failed with error {code}{meaning}")
    if len(failures) > most:
        lines.append(f"and {len(failures) - most:,} other pairs of function and error{view.hint}")
    odd = counted(report.profile).odd
    counters = [f"{key}: {size(n) if key.endswith('-bytes') else f'{n:,}'}" for key, n in odd]
    lines += counters[: view.most()] + rest(len(counters) - view.most(), "more counter", view.hint)
    return heading("Failed calls and warnings") + lines if lines else []


def without_size(report: Report, view: View) -> Lines:
    """Objects of the kernel's driver, which does not say how much memory they take."""
    kept = ", ".join(count(n, noun) for noun, n in counted(report.profile).without_size)
    return heading("Not counted") + paragraph(f"Driver objects of unknown size: {kept}.") if kept else []


# ---- regions and marks -----------------------------------------------------------------------

_MARKS_SHOWN = 40
_REGIONS_SHOWN = 20
_REGIONS_SHOWN_OF_A_NAME = 3

_REGIONS = Table(
    Column("times", 9),
    Column("took", 11, gap=1),
    Column("at most", 10, gap=1),
    Column("host", 10, gap=1),
    Column("device", 10, gap=1),
    Column("region", gap=2),
)


def region_cells(row: NamedRegions, time_unit: str) -> List[str]:
    """Calls, time, the most, growth on host and device."""
    figures = (size(row.most), growth(row.host), growth(row.device)) if row.recorded else ("", "", "")
    return [f"{row.calls:,}", moment(row.time, time_unit), *figures]


def regions(report: Report, view: View) -> Lines:
    """Regions that come again and again, a row a name."""
    if all(row.calls == 1 for row in report.regions):
        return []

    def cells(row: NamedRegions) -> Sequence[str]:
        note = f" (sizes: of {row.recorded:,} of them)" if row.recorded < row.calls else ""
        return [*region_cells(row, report.run.time_unit), printable(row.text) + note]

    most = view.most(_REGIONS_SHOWN)
    lines = _REGIONS.section("Regions by name", map(cells, report.regions[:most]))
    return lines + rest(len(report.regions) - most, "more name", view.hint)


def marks(report: Report, view: View) -> Lines:
    profile, unit = report.profile, report.run.time_unit
    rows = [(mark.time, f"mark: {mark.text}") for mark in profile.marks]
    shown: "Counter[str]" = Counter()
    for region in profile.regions:
        shown[region.text] += 1
        if shown[region.text] > _REGIONS_SHOWN_OF_A_NAME or len(rows) > 2 * _MARKS_SHOWN:
            continue
        lasted = "still open at the end" if region.end is None else f"took {moment(region.end - region.begin, unit)}"
        most, host, device = profile.region_figures(region)
        held = f"held at most {size(most)}, host {growth(host)}, device {growth(device)}"
        text = f"{'  ' * region.depth}{region.text} (thread {region.thread}, {lasted}; {held})"
        rows.append((region.begin, f"region: {text}"))
    n_all = len(profile.marks) + len(profile.regions)
    rows = sorted(rows, key=lambda row: row[0])[: view.most(_MARKS_SHOWN)]
    lines = [f"{moment(time, unit):>12}  {printable(text)}" for time, text in rows]
    if n_all > len(rows):
        lines.append(f"and {n_all - len(rows):,} more{view.hint}")
    return heading("Marks and regions") + lines if lines else []


# ---- leaks -----------------------------------------------------------------------------------

_GROWING_SHOWN = 10
_HELD_SHOWN = 4

_GROWING = Table(
    Column("grown by", 10),
    Column("since", 10, gap=1),
    Column("at exit", 10, gap=1),
    Column("owner", 10, align="<", gap=2),
    Column("line", gap=2),
)
_HELD = Table(
    Column("bytes", 10), Column("blocks", 10, gap=1), Column("owner", 10, align="<", gap=2), Column("line", gap=2)
)


def growing(report: Report, view: View) -> Lines:
    """Lines that were still growing at the end."""
    found, unit = report.growth, report.run.time_unit
    if found is None:
        return []
    shown, left_out = found.lines[: view.most(_GROWING_SHOWN)], found.lines[view.most(_GROWING_SHOWN) :]
    cells = (
        (
            size(leak.grown),
            moment(leak.since, unit),
            size(leak.at_exit),
            leak.owner,
            f"{leak.label}, {rate(found, leak, unit)}",
        )
        for leak in shown
    )
    lines = _GROWING.section("Still growing at the end", cells)
    lines += rest(len(left_out), "more line", f", {size(sum(leak.grown for leak in left_out))}{view.hint}")
    kept = report.leaks.keepers if report.leaks else []
    for keeper in kept[: view.most(_GROWING_SHOWN)]:
        lines += paragraph(keeper_text(keeper))
    return lines


def held_at_exit(report: Report, view: View) -> Lines:
    """Memory at exit, before an interpreter cleans up; the largest places where no line is known to grow, and by owner."""
    leaks, found = report.leaks, report.growth
    if leaks is None or found is None or not leaks.is_at_exit or not leaks.bytes:
        return []
    cleaned = ", before the interpreter's clean-up" if leaks.is_before_cleanup else ""
    text = f"{size(leaks.bytes)} was not freed at {moment(leaks.time, report.run.time_unit)}{cleaned}"
    if leaks.expected:
        other = f", {size(leaks.bytes - leaks.expected)} other" if leaks.expected < leaks.bytes else ""
        text += f": {size(leaks.expected)} model and optimizer (expected){other}"
    kept = [f"{NOT_COUNTED.get(key, key)} {size(n_bytes)}" for key, n_bytes in leaks.not_counted]
    if kept:
        text += f". Not counted: {', '.join(kept)}; pages of files and stacks"
    if found.unknown:
        text += f". Growth is unknown: {growth_unknown(found)}"
    lines = heading("Still allocated at exit") + paragraph(f"{text}.")
    if not found.lines:
        shown, left_out = leaks.places[: view.most(_HELD_SHOWN)], leaks.places[view.most(_HELD_SHOWN) :]
        lines.append(_HELD.head)
        lines += [_HELD.row(size(place.bytes), f"{place.blocks:,}", place.owner, place.label) for place in shown]
        lines += rest(len(left_out), "more line", f", {size(sum(place.bytes for place in left_out))}{view.hint}")
    if leaks.ledger.groups and not view.is_brief:
        is_sum = len(report.run.sides) == 1 or not report.run.is_discrete
        lines += [""] + groups_table(report.run.sides, is_sum, leaks.ledger)
    return lines


# ---- temporaries and snapshots ---------------------------------------------------------------

_TEMPORARIES_SHOWN = 5
_SNAPSHOTS_SHOWN = 24


def temporaries(report: Report, view: View) -> Lines:
    lines = [
        f"{each.temporaries:>12,} of {count(each.blocks, 'block')} in {each.label}"
        for each in report.temporaries[: view.most(_TEMPORARIES_SHOWN)]
    ]
    return heading("Temporaries: freed before their thread allocated anything else") + lines if lines else []


def _snapshots_shown(snapshots: Sequence[Snapshot]) -> List[Snapshot]:
    """Snapshots taken for a reason, and the largest in each of a number of equal spans of time."""
    fullest: Dict[int, Snapshot] = {}
    duration = max([1] + [snapshot.time for snapshot in snapshots])
    for snapshot in snapshots:
        span = snapshot.time * _SNAPSHOTS_SHOWN // duration
        if snapshot.reason == "time":
            fullest[span] = max(fullest.get(span, snapshot), snapshot, key=lambda each: each.host + each.device)
    return [snapshot for snapshot in snapshots if snapshot.reason != "time"] + list(fullest.values())


def _number_of(snapshots: Sequence[Snapshot]) -> Lines:
    if not snapshots:
        return []
    there_are = f"There are {count(len(snapshots), 'snapshot')}, {snapshots[0].id} to {snapshots[-1].id}"
    how = "--snapshot=N explains one, --snapshot=end what was held in the end. --all lists them."
    return heading("Snapshots") + paragraph(f"{there_are}; {how}")


def snapshots(report: Report, view: View) -> Lines:
    """Snapshots and peaks in order of time; in a short report their number."""
    profile = report.profile
    if view.is_brief:
        return _number_of(profile.snapshots)
    shown = _snapshots_shown(profile.snapshots)
    rows = [(s.time, str(s.id), s.host, s.device, s.reason) for s in shown]
    for peak in profile.peaks.values():
        which = "peak" if peak.which == main_peak(profile) else f"peak-{peak.which}"
        if which != "peak-total":
            rows.append((peak.time, which, peak.host, peak.device, ""))
    heads = (Column("n", 11), Column(f"time ({profile.time_unit})", 15), Column("host (B)", 17))
    table = Table(*heads, Column("device (B)", 17), Column("reason", gap=2))
    rows.sort(key=lambda row: (row[0], row[1].rjust(20)))
    cells = ((name, f"{time:,}", f"{host:,}", f"{device:,}", reason) for time, name, host, device, reason in rows)
    lines = table.section("Snapshots: --snapshot=n explains one", cells)
    if len(profile.snapshots) > len(shown):
        lines.append(f"{'':>11}  and {len(profile.snapshots) - len(shown):,} more between these")
    return lines
