# SPDX-License-Identifier: GPL-2.0-or-later
"""Data of a job: its processes, and before them the sum as a run of its own, whose cells are those of all processes."""

from itertools import count
from math import inf
from typing import Any, Dict, Iterator, List, Optional, Sequence

from jmassif.analysis.processes import JobReport
from jmassif.analysis.summary import NOTE, Report
from jmassif.export.json import data
from jmassif.html import head
from jmassif.html.cells import Columns, shown
from jmassif.html.data import RunData, add_timeline, notes, run_data
from jmassif.html.first import statements_data
from jmassif.html.names import SharedNames
from jmassif.html.tables import joint_tables
from jmassif.model.records import PEAKS
from jmassif.render.job import Statement, rank_cells, statements
from jmassif.render.sources import Sources


def together(made: JobReport) -> Dict[str, Any]:
    peaks = {which: made.job.peak(which) for which in PEAKS}
    sums = {which: head.SumPeak(at.on(which), at.time) for which, at in peaks.items()}
    found: Dict[str, Any] = data(head.Together(statements_data(statements(made)), sums))
    return found


def _moments(made: JobReport, columns: Columns) -> head.Moments:
    """All processes' moments in order, and where the peaks are among them."""
    job, steps = made.job, made.job.steps()
    columns.add("step.time", [step.time for step in steps])
    columns.add("step.process", [step.member for step in steps])
    columns.add("step.moment", [0 if step.number is None else step.number + 1 for step in steps])
    at = {which: job.nearest_step(steps, which) for which in PEAKS} if steps else {}
    peaks = {which: head.Peak(n, steps[n].time, steps[n].host, steps[n].device) for which, n in at.items()}
    peak = at.get(job.measures[-1], -1)
    return head.Moments([], peaks, head.ChosenMoments(peak, peak))


def _shifted(rows: Sequence[Dict[str, Any]], by: int) -> List[Dict[str, Any]]:
    """Events, on the common clock."""
    return [
        {**row, **{key: row[key] + by for key in ("time", "begin", "end") if row.get(key) is not None}} for row in rows
    ]


def _regions(heads: Sequence[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """All processes' regions, those of a process in lanes that no other process uses at that time."""
    found: List[Dict[str, Any]] = []
    busy: List[float] = []  # by lane: until when
    for each in heads:
        rows = _shifted(each["regions"], each["offset"])
        if rows:
            begin, n = min(row["begin"] for row in rows), max(row["depth"] for row in rows) + 1
            end = max(inf if row["end"] is None else row["end"] for row in rows)
            first = next(lane for lane in count() if all(until <= begin for until in busy[lane : lane + n]))
            busy[first : first + n] = [end] * n
            found += [{**row, "text": f"{row['text']} of {each['pid']}", "depth": row["depth"] + first} for row in rows]
    return found


def _ranks(made: JobReport) -> Iterator[head.ReadyTable]:
    heads = [("rank", ""), ("host", ""), ("pid", ""), ("end", ""), ("status", "long")]
    heads += [(name, "bytes") for name in ("peak", "your code", "cache")]
    rows: List[List[head.TableCell]] = [
        [*map(shown, rank_cells(row, not made.job.no_clock)), row.peak, row.yours, row.cached] for row in made.ranks
    ]
    if rows:
        yield head.ReadyTable("about", "Ranks", "each at its own peak", 25, heads, rows, [])


def _sum(made: JobReport, reports: Sequence[Report], runs: Sequence[RunData], names: SharedNames) -> RunData:
    """Facts of the machine are those of the first process, which has seen it for longest."""
    heads, columns = [run.head for run in runs], Columns()

    def left_out(member: str) -> List[int]:
        return [sum(each[member][0] for each in heads), sum(each[member][1] for each in heads)]

    clock = [Statement("note", NOTE, f"No common clock: {shown(made.job.no_clock)}.")] if made.job.no_clock else []
    n_kept = sum(each["columns"]["node.parent"]["rows"] - 1 for each in heads)
    figures = head.Figures(tables=[*_ranks(made), *joint_tables(reports, [each["offset"] for each in heads])])
    whole = {
        **heads[0],
        **head.run_head(names.cell_names(), _moments(made, columns), figures),
        **{
            name: [row for each in heads for row in _shifted(each[name], each["offset"])]
            for name in ("marks", "scopes")
        },
        "regions": _regions(heads),
        "pid": "all",
        "key": "all",
        "command": f"all {len(runs)} processes",
        "end_time": None,
        "blocks_left_out": [left_out("blocks_left_out")[0], max(each["blocks_left_out"][1] for each in heads)],
        "block_thresholds": heads[0]["block_thresholds"],
        "facts": [[f"Process {each['pid']}", each["command"]] for each in heads],
        "notes": data(clock + notes(reports, n_kept)),
    }
    rows = made.job.timeline()
    totals = ([getattr(row, name) for row in rows] for name in ("time", "host", "device"))
    add_timeline(columns, *totals, [row.on("total") for row in rows])
    return RunData({**whole, **head.run_head(head.Packed(columns.specs))}, columns.bytes())


def job_data(made: JobReport, reports: Sequence[Report], sources: Sequence[Optional[Sources]]) -> List[RunData]:
    """The sum, which has the names of all, and the processes. Raises TooLarge."""
    names, share = SharedNames(), 1.0 / len(reports)
    runs = [
        run_data(report, share, of, process.offset, process.shares, names)
        for process, report, of in zip(made.job.members, reports, sources)
    ]
    return [_sum(made, reports, runs, names), *runs]
