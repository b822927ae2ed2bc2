# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables of the page that follow no moment and no filter, ready to be shown."""

from typing import Dict, Iterator, List, Sequence, Tuple

from jmassif.analysis.allocator_steps import FitError
from jmassif.analysis.fit import try_settings
from jmassif.analysis.summary import Report
from jmassif.html.cells import shown
from jmassif.html.head import ReadyTable, TableCell
from jmassif.model.records import Growth, growth_by_side
from jmassif.model.run_info import counted
from jmassif.render import summary
from jmassif.render.events import TWICE_NOTE, host_memory
from jmassif.render.words import NOT_COUNTED
from jmassif.units import count, growth, moment, size

Row = List[TableCell]
Heads = Sequence[Tuple[str, str]]

_MAX_PLACES = 100
_KEEPERS = 3
_MAX_COUNTS = 200
_MAX_MOMENTS = 400
_MAX_PIECES = 1 << 18  # in all maps over time: a few seconds' work
_MAX_REPLAYED = 1 << 16  # records of blocks: a second's work, for each setting
MAX_EVENTS = 2000
MAX_SCOPES = 200


def _table(
    view: str,
    caption: str,
    heads: Heads,
    rows: List[Row],
    note: str = "",
    limit: int = 25,
    total: Sequence[TableCell] = (),
) -> Iterator[ReadyTable]:
    """None without rows."""
    if rows:
        yield ReadyTable(view, caption, note, limit, list(heads), rows, list(total))


# ---- leaks ----


def leaks(report: Report) -> Iterator[ReadyTable]:
    """Lines that keep growing, and memory still allocated at exit, before an interpreter's clean-up."""
    held, grown, unit = report.leaks, report.growth, report.run.time_unit
    if held is None or grown is None:
        return
    step = summary.step_of(grown.step, unit)
    heads = [
        ("line", "long"),
        ("owner", ""),
        (f"per {step}", "bytes"),
        ("grown by", "bytes"),
        ("at exit", "bytes"),
        ("since", "time"),
    ]
    growing: List[Row] = [
        [shown(leak.label), leak.owner, round(summary.slope(grown, leak, unit)), leak.grown, leak.at_exit, leak.since]
        for leak in grown.lines[:_MAX_PLACES]
    ]
    notes = [f"over {grown.n_steps:,} times {step}"] * bool(grown.n_steps)
    notes += [shown(summary.keeper_text(keeper)) for keeper in held.keepers[:_KEEPERS]]
    yield from _table("leaks", "Growing", heads, growing, " ".join(notes), 10)
    owners = [(group.name, row) for group in held.ledger.groups for row in group.owners]
    owners.sort(key=lambda each: (-each[1].bytes, each[1].name))
    all_ = sum(row.bytes for _, row in owners)
    sides = [side for side in ("host", "device") if any(row.usage.on(side) for _, row in owners)]
    has_share = not (report.run.is_discrete and "device" in sides)
    rows: List[Row] = [
        [
            row.name,
            group,
            *(row.usage.on(side) for side in sides),
            *[100 * row.bytes / (all_ or 1)] * has_share,
            row.usage.blocks,
        ]
        for group, row in owners
    ]
    others = [f"{size(row.bytes)} {NOT_COUNTED[row.key]}" for row in held.not_counted]
    unknown = summary.growth_unknown(grown)
    notes = [
        f"{size(held.bytes)} at {moment(held.time, unit)}",
        f"not counted: {', '.join(others)}; pages of files and stacks" if others else "",
        f"growth is unknown: {unknown}" if unknown else "" if growing else "no line keeps growing",
    ]
    heads = [
        ("owner", ""),
        ("group", ""),
        *((side, "bytes") for side in sides),
        *[("share", "percent")] * has_share,
        ("blocks", "number"),
    ]
    total: Row = ["total", "", *(sum(row.usage.on(side) for _, row in owners) for side in sides), *[100] * has_share]
    total.append(sum(row.usage.blocks for _, row in owners))
    note = "; ".join(filter(None, notes))
    yield from _table("leaks", "Still allocated at exit, by owner", heads, rows, note, total=total)
    heads = [("size", "bytes"), ("blocks", "number"), ("kind", ""), ("owner", ""), ("call site", "long")]
    sites: List[Row] = [
        [place.bytes, place.blocks, place.kind, place.owner, shown(place.label)] for place in held.places[:_MAX_PLACES]
    ]
    note = "Python lines where there are any, else the function that allocated"
    yield from _table("leaks", "Still allocated at exit, by call site", heads, sites, note, 10)


# ---- blocks ----


def temporaries(report: Report) -> Iterator[ReadyTable]:
    heads = [
        ("temporaries", "number"),
        ("of blocks", "number"),
        ("share", "percent"),
        ("bytes in all", "bytes"),
        ("allocated by", "long"),
    ]
    rows: List[Row] = [
        [row.temporaries, row.blocks, 100 * row.temporaries / row.blocks, row.bytes, shown(row.label)]
        for row in report.temporaries
    ]
    note = "freed before their thread allocated anything else; in the whole run"
    yield from _table("temporaries", "Temporaries", heads, rows, note, 15)


def fragmentation(report: Report) -> Iterator[ReadyTable]:
    """Of segments, at snapshots."""
    n_blocks = report.profile.blocks.n_rows - 2 * len(report.profile.frees)
    found = report.fragmentation(max(10, min(_MAX_MOMENTS, _MAX_PIECES // max(1, n_blocks))))
    heads = [
        ("at", "time"),
        ("reserved", "bytes"),
        ("free", "bytes"),
        ("largest hole", "bytes"),
        ("fragmentation", "percent"),
    ]
    rows: List[Row] = [
        [time, each.reserved, each.free, each.largest_hole, round(100 * each.share, 2)] for time, each in found
    ]
    note = "fragmentation: share of the free memory that is not in the largest hole"
    yield from _table("fragmentation", "Segments at snapshots", heads, rows, note, 8)


def settings(report: Report) -> Iterator[ReadyTable]:
    """Settings with which PyTorch's allocator would have needed less."""
    if report.profile.blocks.n_rows > _MAX_REPLAYED:
        return
    try:
        trials = try_settings(report.profile)
    except FitError:
        return
    reserved = [(trials.recorded, trials.reserved)] + [(trial.settings, trial.reserved) for trial in trials.others]
    rows: List[Row] = [
        [each.text or "default settings", n_bytes, n_bytes - trials.reserved] for each, n_bytes in reserved
    ]
    heads = [("setting", "long"), ("reserved", "bytes"), ("difference", "growth")]
    note = f"value of {trials.variable}; the most that a model of the allocator reserves for the recorded steps"
    if trials.holds and trials.others:
        yield from _table("fragmentation", "PyTorch's allocator with other settings", heads, rows, note, 10)


# ---- copies ----


def held_twice(report: Report) -> Iterator[ReadyTable]:
    """At the peak, and all copies to the device."""
    twice = report.held_twice
    if twice is None:
        return
    heads = [
        ("bytes", "bytes"),
        ("copies", "number"),
        ("since", "time"),
        ("until", "time"),
        ("host memory", "long"),
        ("copied by", "long"),
    ]
    rows: List[Row] = [
        [row.bytes, row.copies, row.since, row.until, shown(host_memory(row)), shown(row.copied)]
        for row in twice.rows[:_MAX_PLACES]
    ]
    note = f"{size(twice.bytes)} at {report.moment.name}. {TWICE_NOTE}"
    yield from _table("held-twice", "Held twice", heads, rows, note, 10)
    rows = [[row.bytes, row.copies, shown(row.line)] for row in twice.copied[:_MAX_PLACES]]
    heads = [heads[0], heads[1], heads[-1]]
    yield from _table("held-twice", "Copied to the device", heads, rows, "in the whole run", 10)


# ---- events ----


def _growths(growths: Tuple[Growth, ...]) -> Row:
    """Bytes of host and device, and by kind."""
    return [*growth_by_side(growths), ", ".join(f"{part.kind} {growth(part.bytes)}" for part in growths if part.bytes)]


_GROWN = [("host", "growth"), ("device", "growth"), ("by kind", "long")]


def start_up(report: Report, offset: int = 0) -> Iterator[ReadyTable]:
    fall = report.waterfall(MAX_SCOPES)
    rows: List[Row] = [
        [
            "  " * depth + shown(scope.name),
            scope.begin + offset,
            scope.end - scope.begin,
            *_growths(scope.growths),
        ]
        for scope, depth in fall.rows
    ]
    left = f"; and {count(fall.n_left_out, 'more call')}, each smaller, {growth(fall.left_out_bytes)} in all"
    note = "net growth by the time each call returned, with the calls inside it" + left * (fall.n_left_out > 0)
    heads = [("call", "long"), ("at", "time"), ("took", "time"), *_GROWN]
    yield from _table("start-up", "Start-up calls", heads, rows, note, 40)
    sums = sorted(report.profile.scope_sums.values(), key=lambda total: -total.calls)[:_MAX_COUNTS]
    rows = [[shown(total.name), total.calls, total.time, *_growths(total.growths)] for total in sums]
    yield from _table(
        "start-up", "Repeated calls", [("call", "long"), ("calls", "number"), ("took", "time"), *_GROWN], rows, "", 10
    )


def _in_time(row: Row) -> Tuple[TableCell, bool]:
    """Regions before marks of the same time."""
    return row[0], row[1] != "region"


def events(report: Report, offset: int = 0, pid: str = "") -> Iterator[ReadyTable]:
    """Regions and marks. `pid`: of the process, where there are several."""
    profile = report.profile
    rows: List[Row] = [
        [mark.time + offset, "mark", shown(mark.text), "", "", "", ""] for mark in profile.marks[:MAX_EVENTS]
    ]
    for region in profile.regions[:MAX_EVENTS]:
        took: TableCell = "still open at the end" if region.end is None else region.end - region.begin
        figures = profile.region_figures(region)
        rows.append(
            [region.begin + offset, "region", shown(region.text), took, figures.most, figures.host, figures.device]
        )
    left = max(0, len(profile.marks) - MAX_EVENTS) + max(0, len(profile.regions) - MAX_EVENTS)
    heads = [("at", "time"), ("what", ""), ("name", "long"), ("took", "time"), ("max", "bytes"), *_GROWN[:2]]
    if pid:
        heads.insert(2, ("process", ""))
        rows = [[*row[:2], pid, *row[2:]] for row in rows]
    rows.sort(key=_in_time)
    yield from _table(
        "events", "Regions and marks", heads, rows, f"{left:,} more are not on this page" if left else "", 15
    )


# ---- the run ----


def warnings(report: Report, pid: str = "") -> Iterator[ReadyTable]:
    """Failed calls and the recorder's counters. `pid`: of the process, where there are several."""
    failures = sorted(report.profile.failures.items(), key=lambda item: (-item[1], item[0]))
    rows: List[Row] = [
        [f"{shown(name)} failed with error {code}", count(n, "call")] for (name, code), n in failures[:_MAX_COUNTS]
    ]
    of = f" (pid {pid})" if pid else ""
    odd = counted(report.profile).odd[:_MAX_COUNTS]
    rows += [[shown(key) + of, size(n) if key.endswith("-bytes") else f"{n:,}"] for key, n in odd]
    yield from _table("about", "Failed calls and warnings", [("what", ""), ("how often", "")], rows)


def _manifest(report: Report) -> Iterator[ReadyTable]:
    """The recorder's options last."""
    pairs = sorted(report.profile.manifest.items(), key=lambda pair: (pair[0].startswith("option."), pair))
    rows: List[Row] = [[shown(key), shown(text)] for key, text in pairs]
    yield from _table("manifest", "Manifest", [("key", ""), ("value", "long")], rows, "", 10)


def tables(report: Report) -> List[ReadyTable]:
    """Those of a process."""
    each = (leaks, temporaries, fragmentation, settings, held_twice, start_up, events, warnings, _manifest)
    return [table for made in each for table in made(report)]  # type: ignore[operator]


def joint_tables(reports: Sequence[Report], offsets: Sequence[int]) -> List[ReadyTable]:
    """Those of several processes that can be told together, on their common clock."""
    found: Dict[str, ReadyTable] = {}
    for report, offset in zip(reports, offsets):
        pid = shown(report.profile.manifest.get("pid", ""))
        for table in (
            *temporaries(report),
            *start_up(report, offset),
            *events(report, offset, pid),
            *warnings(report, pid),
        ):
            before = found.get(table.caption)
            found[table.caption] = table._replace(rows=before.rows + table.rows) if before else table
    for table in found.values():
        if table.view == "events":
            table.rows.sort(key=_in_time)
    return list(found.values())
