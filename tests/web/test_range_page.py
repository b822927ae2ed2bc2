# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory between two moments on the page: of a program that prints its truth to the byte, and of real runs as the trace has it."""

from pathlib import Path
from typing import Any, Dict, List

import pytest

from jmassif.analysis.processes import build_job_report, join
from jmassif.html.data import report_of
from jmassif.html.job import job_data
from jmassif.reader.builder import load_file
from tests.harness import ROOT, record
from tests.reporter.traces import Trace
from tests.tool.programs import program
from tests.web.browser import look, write_page
from tests.web.pages import Page, owners, page_of


def between(page: Page, first: int, second: int, by: str) -> Dict[str, Dict[str, int]]:
    """The owners' table of two snapshots, by their index."""
    ids = [page.profile.snapshots[index].id for index in (second, first)]
    fragment = f"at={ids[0]}&with={ids[1]}&owners.by={by}&tab=by-owner"
    more = ["evaluate", "document.querySelectorAll('#owners .more').forEach((more) => more.hidden || more.click())"]
    return figures(look(page.path, more, ["rows", "#owners table"], fragment=fragment, tabs="none")[1])


def figures(rows: List[List[Any]]) -> Dict[str, Dict[str, int]]:
    """By name and head of a column."""
    heads = [str(head).strip(" ▾▴") for head in rows[0]]
    return {
        row[0]: {head: int(n) for head, n in zip(heads[1:], row[1:]) if isinstance(n, (int, float))} for row in rows[1:]
    }


def test_a_range_of_a_program_that_knows_is_right_to_the_byte(tmp_path: Path) -> None:
    recording = record([program("range.c", f"-I{ROOT / 'jmassif'}", "-O0", "-g")])
    page = page_of(tmp_path, recording.trace)
    first, second = (mark.snapshot or 0 for mark in page.profile.marks)
    shown = between(page, first, second, "site")
    for line in recording.stdout.splitlines():
        name, new, gone, both = line.split()  # bytes of blocks of one end or of neither
        found = [shown[place] for place in shown if place.startswith(f"{name} (")]
        row = found[0] if found else {"allocated since": 0, "freed since": 0, "change": 0}
        allocated, freed = int(new) + int(both), int(gone) + int(both)
        assert (row["allocated since"], row["freed since"], row["change"]) == (
            allocated,
            freed,
            allocated - freed,
        ), name


@pytest.mark.parametrize("ends", [(0, -1), (2, -2), (3, 9)])
def test_a_range_of_a_real_run_adds_up(training: Page, ends: List[int]) -> None:
    profile = training.profile
    first, second = (index % len(profile.snapshots) for index in ends)
    shown = between(training, first, second, "owner")
    before, after = (owners(profile, profile.composition(index)) for index in (first, second))
    for name in set(before) | set(after):
        row = shown[name]
        assert [row["before"], row["total"]] == [of.get(name, [0, 0, 0])[2] for of in (before, after)], name
        assert row["before"] + row["allocated since"] - row["freed since"] == row["total"], name
        assert row["allocated since"] >= 0, name


def test_regions_of_several_processes_are_apart_and_named(tmp_path: Path) -> None:
    """Two processes have regions of the same name at the same time, below them others; a third begins when they are over."""
    traces = []
    for pid, start, name in ((10, 0, "load"), (20, 0, "train"), (30, 100, "save")):
        facts = {"pid": str(pid), "start_unix_ms": str(1_700_000_000_000 + start), "host": "board"}
        trace = Trace(command=f"worker{pid}.py", memory="unified", time_unit="ms", **facts)
        account = trace.account("heap", "app", ["main (a.c:1)"])
        trace.snapshot(0, "start", {account: (100, 1)})
        for at, text in ((10, "epoch"), (20, name)):
            trace.region_begin(at, text)
        trace.snapshot(50, "time", {account: (200, 1)})
        trace.region_end(80, name)
        trace.region_end(90, "epoch")
        trace.snapshot(95, "exit", {account: (50, 1)})
        traces.append(trace.save(tmp_path, f"{pid}.jm"))
    made = build_job_report(join([(str(trace), load_file(str(trace))) for trace in traces]))
    reports = [report_of(process.profile) for process in made.job.members]
    regions = [(each["text"], each["depth"]) for each in job_data(made, reports, [None] * 3)[0].head["regions"]]
    rows, _, pointed = look(
        write_page(tmp_path, *traces),
        ["rows", "#events tbody"],
        ["hover", "#timeline .u-over", 0.26, 0.5],
        ["text", "#timeline .tip"],
    )
    assert "in epoch of 10 › load of 10 › epoch of 20 › train of 20" in pointed
    assert [row[1:4] for row in rows[:2]] == [["region", "10", "epoch"], ["region", "20", "epoch"]]
    assert regions == [
        (f"{text} of {pid}", lane)
        for pid, name, first in ((10, "load", 0), (20, "train", 2), (30, "save", 0))
        for lane, text in ((first, "epoch"), (first + 1, name))
    ]
