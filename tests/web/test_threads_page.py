# SPDX-License-Identifier: GPL-2.0-or-later
"""Threads on the page: what each allocated, as json has it at the same moment."""

import json
from pathlib import Path

from tests.reporter.commands import jm_print
from tests.reporter.test_threads import LOADERS, MAIN, _trace
from tests.reporter.traces import small_training_run
from tests.web.browser import look, write_page

BY_THREAD = ("choose", "#owners .choice select", "thread")


def test_the_table_of_threads_is_that_of_json_at_any_moment(tmp_path: Path) -> None:
    trace = _trace().save(tmp_path)
    page = write_page(tmp_path, trace)
    rows, _, at_end, problems = look(
        page,
        BY_THREAD,
        ("rows", "#owners tbody"),
        ("click", ".moment button:text-is('End')"),
        ("rows", "#owners tbody"),
        ("axe",),
    )[1:]
    held = {row[0]: row[1] for row in rows}
    table = json.loads(jm_print("--format=json", "--by=thread", trace).out)["table"]
    assert held == {row["name"]: row["held"]["host_bytes"] for row in table}
    assert held["main thread"] == MAIN and held["loader"] == sum(LOADERS) and len(held) == 4
    assert {row[0] for row in at_end} == set(held) and problems == []


def test_the_timeline_has_areas_by_thread(tmp_path: Path) -> None:
    page = write_page(tmp_path, _trace().save(tmp_path))
    names = look(
        page, ("choose", "#timeline select", "thread"), ("attributes", "#timeline .values [data-name]", "data-name")
    )[1]
    assert names == ["(no thread)", "thread 4", "loader", "main thread"]


def test_where_threads_were_not_recorded_there_is_no_such_table(tmp_path: Path) -> None:
    page = write_page(tmp_path, small_training_run().save(tmp_path))
    assert look(
        page, ("texts", "#owners option:text-is('thread')"), ("texts", "#timeline option:text-is('thread')")
    ) == [[], []]


def test_the_sum_of_processes_adds_threads_up_by_name(tmp_path: Path) -> None:
    traces = []
    for pid in (11, 12):
        trace = _trace()
        trace.lines[1:1] = [f"m pid {pid}", f"m start 2026-01-02T03:04:0{pid % 10}Z", "m time-unit ms"]
        traces.append(trace.save(tmp_path, f"jmassif.out.{pid}"))
    rows = look(write_page(tmp_path, *traces), BY_THREAD, ("rows", "#owners tbody"))[1]
    assert {"main thread", "loader", "thread 4", "(no thread)"} == {row[0] for row in rows}
